#pragma once

// How far a program is, for somebody who watches.

#include <chrono>
#include <cstddef>
#include <string>

namespace apps {

/// A line on stderr, "1234 texts, 56.7 per second", if that is a terminal: redrawn at most ten times per
/// second. It is not drawn in the first second.
class Progress {
 public:
  /// what: is counted, such as "texts".
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// Shows that so many are done, of so many in all; 0: nobody knows.
  void update(std::size_t done, std::size_t all = 0);

  /// Takes the line away, before other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool terminal_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace apps
