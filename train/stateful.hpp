#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace xgrad {

/// What a part of a training run remembers between steps, by name.
using Numbers = std::map<std::string, double>;

/// A part of a training run that a checkpoint keeps, so that a resumed run goes on as if it had not stopped.
class Stateful {
 public:
  virtual ~Stateful() = default;

  virtual Numbers state_dict() const = 0;

  /// Throws ValueError, naming every missing and every unexpected entry, and changes nothing then.
  virtual void load_state_dict(const Numbers& state) = 0;

 protected:
  Stateful() = default;
  Stateful(const Stateful&) = default;
  Stateful& operator=(const Stateful&) = default;
};

namespace detail {

/// Throws ValueError unless `state` has just the names of `expected`, in the name of `what`.
void check_names(const char* what, const Numbers& expected, const Numbers& state);

/// The number of this name in `state`. Throws ValueError unless it is whole and in [0, limit].
std::size_t whole_number(const char* what, const char* name, const Numbers& state, double limit);

}  // namespace detail
}  // namespace xgrad
