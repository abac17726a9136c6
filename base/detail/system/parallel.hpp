#pragma once

#include <cstddef>

// The thread pool of the process. OpenBLAS runs single-threaded inside its workers.
namespace xgrad::kernels {

constexpr std::size_t most_threads = 1024;

/// Maximum number of threads of parallel_for, including the caller: 1 to most_threads.
std::size_t thread_count();
void set_thread_count(std::size_t count);

/// thread_count(), but 1 inside a parallel_for, which does not nest.
std::size_t available_threads();

/// Threads that help the caller: all, which may have to be woken or started, or only those still awake after
/// a computation, for work too small to wake threads for.
enum class Helpers { woken, awake };

/// parallel_for without its template.
void run_parallel(std::size_t count, std::size_t workers, Helpers who,
                  void (*task)(const void* context, std::size_t item, std::size_t worker),
                  const void* context);

/// Calls f(item, worker) for each item in [0, count), on the calling thread and on free threads of the pool;
/// `worker` < workers identifies the thread. Items must be independent of each other and of the thread that
/// computes them.
///
/// Items are assigned in order: the first part to the calling thread, 0, the next to worker 1, and so on, the
/// same in every call; threads that finish early take items of the others. Rows written by one kernel are
/// therefore in the cache of the core that reads them in the next, which takes a tenth of the time of a fetch
/// from another core. Rethrows the first exception.
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
/// should take several times as long as waking a thread, a few microseconds. Piece borders do not depend on
/// the number of threads.
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
