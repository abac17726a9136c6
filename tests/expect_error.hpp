#pragma once

#include <exception>
#include <string>

namespace xgrad_tests {

/// The text of the Error that the call throws.
template <class Error = std::exception, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& thrown) {
    if (dynamic_cast<const Error*>(&thrown) != nullptr) return thrown.what();
    return std::string("an exception of another type: ") + thrown.what();
  }
  return "no exception";
}

}  // namespace xgrad_tests
