#include "parallel.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "../product_precision.hpp"
#include "cpu_quota.hpp"

namespace xgrad::kernels {
namespace {

/// The processors that this process may run on, at most those of its CPU quota:
/// std::thread::hardware_concurrency() counts all of the machine.
std::size_t allowed_processors() {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  return 1;  // no thread can be started
#else
  std::size_t count = std::thread::hardware_concurrency();
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0)
    count = static_cast<std::size_t>(CPU_COUNT(&allowed));
  count = std::min(count, detail::cpu_quota("").value_or(count));
#endif
  return std::clamp<std::size_t>(count, 1, most_threads);
#endif
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

/// Waits in a loop for 50 microseconds; false if done() was not true by then.
template <typename Done>
bool spin_until(Done done) {
  if (done()) return true;
  using Clock = std::chrono::steady_clock;
  constexpr int spins = 64;  // between looks at the clock
  const Clock::time_point last = Clock::now() + std::chrono::microseconds(50);
  do {
    for (int i = 0; i < spins; ++i) {
      if (done()) return true;
      relax();
    }
  } while (Clock::now() < last);
  return false;
}

/// Sleeps on `changes` until done(). Whoever makes it true changes and notifies that afterwards.
template <typename Done>
void sleep_until(const std::atomic<int>& changes, Done done) {
  for (;;) {
    const int seen = changes.load();
    if (done()) return;
    changes.wait(seen);
  }
}

using Task = void (*)(const void* context, std::size_t item, std::size_t worker);

thread_local bool inside_task = false;

/// The items [begin, end) of a job that begin on one thread: `next` is the first that nobody took. One line
/// of the cache each.
struct alignas(64) Share {
  std::atomic<std::size_t> next{0};
  std::size_t end = 0;
};

/// Each thread of a job has a share of the items, and helps with those of the others when it is done. The
/// caller has the first share and waits only for workers who have come, so that a worker that has no
/// processor to begin on costs no more than its absence. In a forked child no worker is left, and nothing
/// waits for one.
class Pool {
 public:
  /// False if the pool is busy with another thread's job, or nobody would come.
  bool run(std::size_t count, std::size_t threads, Helpers who, Task task, const void* context) {
    if (who == Helpers::awake && awake_.load(std::memory_order_relaxed) == 0) return false;
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    const std::size_t shares = std::min(threads, count), helpers = shares - 1;
    if (who == Helpers::woken) start_workers(helpers);
    job_ = {task, context, shares, detail::products_may_be_rounded()};
    for (std::size_t i = 0; i < shares; ++i) {
      shares_[i].next.store(i * count / shares, std::memory_order_relaxed);
      shares_[i].end = (i + 1) * count / shares;
    }
    const std::uint64_t ended = state_.load(std::memory_order_relaxed) & job_mask;
    state_.store(ended + job + helpers * helper, std::memory_order_release);
    if (who == Helpers::woken) wake(helpers);
    work(0);
    state_.fetch_and(~helper_mask, std::memory_order_acq_rel);
    const auto is_finished = [&] { return (state_.load(std::memory_order_acquire) & working_mask) == 0; };
    if (!spin_until(is_finished)) sleep_until(finished_, is_finished);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  // state_: the number of the job, how many workers may come, how many have come and still work
  static constexpr std::uint64_t working = 1, helper = 1 << 16, job = std::uint64_t{1} << 32;
  static constexpr std::uint64_t working_mask = helper - 1, helper_mask = job - helper, job_mask = ~(job - 1);
  static_assert(most_threads <= working_mask);

  struct Job {
    Task task;
    const void* context;
    std::size_t shares;
    bool rounds_products;  // requested where the job begins
  };

  void start_workers(std::size_t wanted) {
    try {
      for (; workers_ < wanted; ++workers_) std::thread(&Pool::serve, this, workers_ + 1).detach();
    } catch (const std::exception&) {  // no more threads or no memory for them: those that there are do it
    }
  }

  void wake(std::size_t helpers) {
    for (std::size_t worker = 1; worker <= std::min(helpers, workers_); ++worker) {
      ++started_[worker];
      started_[worker].notify_one();
    }
  }

  void serve(std::size_t worker) {
    inside_task = true;
    ++awake_;
    std::uint64_t served = 0;
    const auto is_new = [&](std::uint64_t state) {
      return worker <= (state & helper_mask) / helper && (state & job_mask) != served;
    };
    for (;;) {
      std::uint64_t state = 0;
      const auto has_come = [&] { return is_new(state = state_.load(std::memory_order_acquire)); };
      if (!spin_until(has_come)) {
        --awake_;
        sleep_until(started_[worker], has_come);
        ++awake_;
      }
      do {
        if (!state_.compare_exchange_weak(state, state + working, std::memory_order_acq_rel)) continue;
        served = state & job_mask;
        work(worker);
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
    const detail::RoundingScope scope(job_.rounds_products);
    for (std::size_t i = 0; i < job_.shares; ++i) compute(shares_[(worker + i) % job_.shares], worker);
    inside_task = worker != 0;
  }

  /// Takes items of the share until there are none.
  void compute(Share& share, std::size_t worker) {
    for (;;) {
      const std::size_t item = share.next.fetch_add(1, std::memory_order_relaxed);
      if (item >= share.end) return;
      try {
        job_.task(job_.context, item, worker);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        for (std::size_t i = 0; i < job_.shares; ++i)
          shares_[i].next.store(shares_[i].end, std::memory_order_relaxed);
      }
    }
  }

  std::mutex busy_, error_mutex_;
  std::atomic<std::uint64_t> state_{0};
  std::atomic<std::size_t> awake_{0};
  // Each worker sleeps on its own, the caller on the last. They are int, on which the kernel itself can wait.
  std::array<std::atomic<int>, most_threads> started_{};
  std::atomic<int> finished_{0};
  std::array<Share, most_threads> shares_{};
  Job job_{};
  std::exception_ptr error_;
  std::size_t workers_ = 0;
};

/// Never destroyed: its threads sleep in it until the process ends. Null without memory for it.
Pool* pool() {
  static std::atomic<Pool*> instance{nullptr};
  Pool* made = instance.load(std::memory_order_acquire);
  if (made != nullptr) return made;
  std::unique_ptr<Pool> fresh(new (std::nothrow) Pool);
  if (instance.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  return made;
}

}  // namespace

std::size_t thread_count() { return wanted_threads().load(std::memory_order_relaxed); }

void set_thread_count(std::size_t count) { wanted_threads().store(count, std::memory_order_relaxed); }

std::size_t available_threads() { return inside_task ? 1 : thread_count(); }

void run_parallel(std::size_t count, std::size_t workers, Helpers who, Task task, const void* context) {
  const bool alone = count < 2 || workers < 2 || inside_task;
  if (!alone) {
    Pool* const threads = pool();
    if (threads != nullptr && threads->run(count, workers, who, task, context)) return;
  }
  for (std::size_t item = 0; item < count; ++item) task(context, item, 0);
}

}  // namespace xgrad::kernels
