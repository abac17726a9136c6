#pragma once

// Times of several things that are to be compared, measured in turns.

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace bench {

/// CPU time of this thread.
inline double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using DoSoManyTimes = std::function<void(std::size_t calls)>;

inline double seconds_of(const DoSoManyTimes& run, std::size_t calls) {
  const double start = now();
  run(calls);
  return now() - start;
}

/// How many calls take so long.
inline std::size_t calls_in(double seconds, const DoSoManyTimes& run) {
  run(1);  // the first call fills the pools
  std::size_t calls = 1;
  double taken = seconds_of(run, calls);
  while (taken < seconds / 8) {
    calls *= 2;
    taken = seconds_of(run, calls);
  }
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(calls) * seconds / taken));
}

/// Microseconds per call of each: the median of short batches, which alternate so that all see the same
/// machine.
inline std::vector<double> measure(const std::vector<DoSoManyTimes>& runs, double seconds) {
  constexpr std::size_t rounds = 7;
  std::vector<std::size_t> calls;
  for (const DoSoManyTimes& run : runs) calls.push_back(calls_in(seconds / rounds, run));
  std::vector<std::vector<double>> times(runs.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (calls[i] > 1) runs[i](1);  // takes the caches back from the one before
      times[i].push_back(1e6 * seconds_of(runs[i], calls[i]) / static_cast<double>(calls[i]));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& all : times) {
    std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
    medians.push_back(all[rounds / 2]);
  }
  return medians;
}

}  // namespace bench
