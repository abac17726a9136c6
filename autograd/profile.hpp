#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace xgrad {

/// Cost of one op, or of one module including its submodules.
struct ProfileRow {
  std::string name;   ///< of the op, or of the module as in named_parameters(); for the outermost, its type
  std::size_t calls;  ///< of the op or of the module, forward
  double forward_seconds;
  double backward_seconds;
  std::size_t bytes;  ///< of the results, forward
};

/// Result of profile(). Prints as two tables, of ops and of modules, with times in milliseconds.
struct [[nodiscard]] Profile {
  std::vector<ProfileRow> ops;      ///< in descending order of time
  std::vector<ProfileRow> modules;  ///< in the order of first calls
  double seconds;                   ///< of the whole run, including the time between ops

  friend std::ostream& operator<<(std::ostream& out, const Profile& profile);
};

/// Runs a function and measures the calls, the bytes of results and the time of ops, by op and by module, on
/// the calling thread:
///
///   std::cout << xgrad::profile([&] { cross_entropy(model(ids), labels).backward(); });
///
/// The time of an op is the wall-clock time since the previous op or module; an op inside another op's
/// backward counts for the latter. Exceptions of the function propagate.
/// https://pytorch.org/docs/stable/profiler.html
Profile profile(const std::function<void()>& run);

}  // namespace xgrad
