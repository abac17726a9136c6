#pragma once

#include <cstddef>

// One pool of threads for the whole process: OpenBLAS is only ever a single-threaded worker of it.
namespace xgrad::kernels {

constexpr std::size_t most_threads = 1024;

/// How many threads parallel_for may use, the calling one included: 1 to most_threads.
std::size_t thread_count();
void set_thread_count(std::size_t count);

/// The same, but 1 inside of a parallel_for, which divides no further.
std::size_t available_threads();

/// Who helps the calling thread: as many as there are, which may have to be woken or started, or only those
/// who are awake because they have just computed something, for work that is not worth waking anybody.
enum class Helpers { woken, awake };

/// parallel_for with its function taken apart.
void run_parallel(std::size_t count, std::size_t workers, Helpers who,
                  void (*task)(const void* context, std::size_t item, std::size_t worker),
                  const void* context);

/// Calls f(item, worker) for each item in [0, count), on the calling thread and on those of the pool that are
/// free; `worker` < workers names the thread among those that take part. What an item computes must not
/// depend on the others, nor on who computes it.
///
/// The items are shared out in order: the first part is the calling thread's, 0, the next that of worker 1,
/// and so on, the same thread in every call; who is done helps the others. So rows that one kernel has
/// written are in the cache of the core whose turn they are in the next, which takes a tenth of the time that
/// fetching them from another core does. The first exception comes out here.
template <typename F>
void parallel_for(std::size_t count, const F& f, std::size_t workers = available_threads(),
                  Helpers who = Helpers::woken) {
  if (count == 1) return f(std::size_t{0}, std::size_t{0});
  run_parallel(
      count, workers, who,
      [](const void* context, std::size_t item, std::size_t worker) {
        (*static_cast<const F*>(context))(item, worker);
      },
      &f);
}

/// Calls f(begin, end, worker) for pieces of [0, n) of `grain` each, the last of up to twice that: a piece
/// should take several times the microseconds in which a thread wakes. Where they end does not depend on the
/// number of threads.
template <typename F>
void parallel_chunks(std::size_t n, std::size_t grain, const F& f,
                     std::size_t workers = available_threads()) {
  if (n < 2 * grain) return f(std::size_t{0}, n, std::size_t{0});
  const std::size_t pieces = n / grain;
  const auto chunk = [&](std::size_t piece, std::size_t worker) {
    f(piece * grain, piece + 1 == pieces ? n : (piece + 1) * grain, worker);
  };
  parallel_for(pieces, chunk, workers);
}

}  // namespace xgrad::kernels
