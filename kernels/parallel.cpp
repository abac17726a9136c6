#include "parallel.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "product_precision.hpp"

namespace xgrad::kernels {
namespace {

/// The processors that this process may run on: std::thread::hardware_concurrency() counts all of the
/// machine.
std::size_t allowed_processors() {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  return 1;  // no thread can be started
#elif defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&allowed));
#endif
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most_threads);
}

/// The first positive number among the variables by which users bound the threads of OpenBLAS and OpenMP, or
/// all processors that this process may run on.
std::size_t initial_thread_count() {
  for (const char* variable : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(variable);
    const long wanted = text ? std::strtol(text, nullptr, 10) : 0;
    if (wanted > 0) return std::min(static_cast<std::size_t>(wanted), most_threads);
  }
  return allowed_processors();
}

std::atomic<std::size_t>& wanted_threads() {
  static std::atomic<std::size_t> count{initial_thread_count()};
  return count;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Waits until done(), first in a loop for 50 microseconds, then asleep on `changes`. Whoever makes it
/// true changes and notifies that afterwards.
template <typename Done>
void wait_for(const std::atomic<int>& changes, Done done) {
  if (done()) return;
  using Clock = std::chrono::steady_clock;
  constexpr int spins = 64;  // between looks at the clock
  const Clock::time_point last = Clock::now() + std::chrono::microseconds(50);
  do {
    for (int i = 0; i < spins; ++i) {
      if (done()) return;
      relax();
    }
  } while (Clock::now() < last);
  for (;;) {
    const int seen = changes.load();
    if (done()) return;
    changes.wait(seen);
  }
}

using Task = void (*)(const void* context, std::size_t item, std::size_t worker);

thread_local bool inside_task = false;

/// Workers take the seats of a job while there are any; the caller computes items itself and waits only for
/// those who took one, so that a worker that has no processor to begin on costs no more than its absence. In
/// a forked child no worker is left, and nothing waits for one.
class Pool {
 public:
  /// False if the pool is busy with another thread's job.
  bool run(std::size_t count, std::size_t workers, Task task, const void* context) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    const std::size_t helpers = std::min(workers, count) - 1;
    start_workers(helpers);
    job_ = {task, context, count, parts_asked()};
    next_.store(0, std::memory_order_relaxed);
    const std::uint64_t ended = state_.load(std::memory_order_relaxed) & job_mask;
    state_.store(ended + job + helpers * seat, std::memory_order_release);
    ++started_;
    wake(helpers);
    work(0);
    state_.fetch_and(~seat_mask, std::memory_order_acq_rel);
    wait_for(finished_, [&] { return (state_.load(std::memory_order_acquire) & working_mask) == 0; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  // state_: the number of the job, its free seats, how many workers took one and still work
  static constexpr std::uint64_t working = 1, seat = 1 << 16, job = std::uint64_t{1} << 32;
  static constexpr std::uint64_t working_mask = seat - 1, seat_mask = job - seat, job_mask = ~(job - 1);
  static_assert(most_threads <= working_mask);

  struct Job {
    Task task;
    const void* context;
    std::size_t count;
    Parts parts;  // asked for where the job begins
  };

  void start_workers(std::size_t wanted) {
    try {
      for (; workers_ < wanted; ++workers_) std::thread(&Pool::serve, this).detach();
    } catch (
        const std::system_error&) {  // the system gives no more threads: those that there are do the work
    }
  }

  void wake(std::size_t wanted) {
    if (wanted >= workers_) return started_.notify_all();
    for (std::size_t i = 0; i < wanted; ++i) started_.notify_one();
  }

  void serve() {
    inside_task = true;
    std::uint64_t served = 0;
    const auto is_new = [&](std::uint64_t state) {
      return (state & seat_mask) != 0 && (state & job_mask) != served;
    };
    for (;;) {
      std::uint64_t state = 0;
      wait_for(started_, [&] { return is_new(state = state_.load(std::memory_order_acquire)); });
      do {
        if (!state_.compare_exchange_weak(state, state - seat + working, std::memory_order_acq_rel)) continue;
        served = state & job_mask;
        work((state & seat_mask) / seat);
        if (((state_.fetch_sub(working, std::memory_order_acq_rel) - working) & working_mask) == 0) {
          ++finished_;
          finished_.notify_one();
        }
        break;
      } while (is_new(state));
    }
  }

  void work(std::size_t worker) {
    inside_task = true;
    const PartsScope scope(job_.parts);
    for (;;) {
      const std::size_t item = next_.fetch_add(1, std::memory_order_relaxed);
      if (item >= job_.count) break;
      try {
        job_.task(job_.context, item, worker);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(job_.count, std::memory_order_relaxed);
      }
    }
    inside_task = worker != 0;
  }

  std::mutex busy_, error_mutex_;
  std::atomic<std::uint64_t> state_{0};
  // Workers sleep on the one, the caller on the other. The standard library notifies one sleeper only of an
  // int, as the kernel does; of other types, all.
  std::atomic<int> started_{0}, finished_{0};
  std::atomic<std::size_t> next_{0};
  Job job_{};
  std::exception_ptr error_;
  std::size_t workers_ = 0;
};

/// Never destroyed: its threads sleep in it until the process ends.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

std::size_t thread_count() { return wanted_threads().load(std::memory_order_relaxed); }

void set_thread_count(std::size_t count) { wanted_threads().store(count, std::memory_order_relaxed); }

std::size_t available_threads() { return inside_task ? 1 : thread_count(); }

void run_parallel(std::size_t count, std::size_t workers, Task task, const void* context) {
  const bool alone = count < 2 || workers < 2 || inside_task;
  if (!alone && pool().run(count, workers, task, context)) return;
  for (std::size_t item = 0; item < count; ++item) task(context, item, 0);
}

}  // namespace xgrad::kernels
