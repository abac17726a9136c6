#include "progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace apps {

Progress::Progress(std::string what) : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::update(std::size_t done, std::size_t all) {
  using namespace std::chrono_literals;
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - start_ < 1s || now - last_ < 100ms) return;
  last_ = now;
  const std::string of_all = all == 0 ? "" : "/" + std::to_string(all);
  const double rate = static_cast<double>(done) / std::chrono::duration<double>(now - start_).count();
  std::fprintf(stderr, "\r%zu%s %s, %.1f per second\x1b[K", done, of_all.c_str(), what_.c_str(), rate);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace apps
