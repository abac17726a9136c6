#pragma once

// One library's side of bench_encoder: a process that is asked over stdin and answers on stdout, a JSON line
// each. Its memory and threads are its own, and it is idle while another is measured.

#include <time.h>

#include <cstddef>
#include <exception>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "protocol.hpp"

namespace bench {

/// In milliseconds.
inline double now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// Wall time and CPU time of the process, in ms per call, of each of `batches` batches of `calls` calls,
/// after `warm_up` ms that take the caches back from the process that ran before.
template <class Call>
nlohmann::json timed(const nlohmann::json& request, Call&& call) {
  const std::size_t calls = request.at("calls"), batches = request.at("batches");
  const double warm_until = now(CLOCK_MONOTONIC) + request.at("warm_up").get<double>();
  while (now(CLOCK_MONOTONIC) < warm_until) call();
  Times times;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const double wall_start = now(CLOCK_MONOTONIC), cpu_start = now(CLOCK_PROCESS_CPUTIME_ID);
    for (std::size_t i = 0; i < calls; ++i) call();
    times.cpu.push_back((now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start) / static_cast<double>(calls));
    times.wall.push_back((now(CLOCK_MONOTONIC) - wall_start) / static_cast<double>(calls));
  }
  return times;
}

/// Answers requests until stdin ends.
template <class Answer>
int serve(Answer&& answer) {
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json reply;
    try {
      const nlohmann::json request = nlohmann::json::parse(line);
      reply = answer(request.at("do").get<std::string>(), request);
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply << std::endl;
  }
  return 0;
}

}  // namespace bench
