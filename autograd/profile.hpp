#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace xgrad {

/// What one kind of op, or one module and all below it, cost.
struct ProfileRow {
  std::string name;   ///< the op's, or the module's as in named_parameters(); the outermost module's type
  std::size_t calls;  ///< of the op or of the module, forward
  double forward_seconds;
  double backward_seconds;
  std::size_t bytes;  ///< of the results, forward
};

/// What profile() measured. Printed, it is two tables, of ops and of modules, times in milliseconds.
struct Profile {
  std::vector<ProfileRow> ops;      ///< the longest first
  std::vector<ProfileRow> modules;  ///< in the order of their first calls
  double seconds;                   ///< of the whole run; what the ops leave of it was spent between them

  friend std::ostream& operator<<(std::ostream& out, const Profile& profile);
};

/// Runs a function and counts ops, the bytes of their results, and time, by op and by module, on the calling
/// thread:
///
///   std::cout << xgrad::profile([&] { cross_entropy(model(ids), labels).backward(); });
///
/// The time of an op is what passed since the op or module before it, on the clock on the wall; an op that is
/// part of another op's backward counts there. An exception of the function comes out.
/// https://pytorch.org/docs/stable/profiler.html
Profile profile(const std::function<void()>& run);

}  // namespace xgrad
