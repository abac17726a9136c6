#pragma once

#include <exception>
#include <string>

namespace xgrad_tests {

/// The text of the Error that the call throws.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& other) {
    return std::string("an exception of another type: ") + other.what();
  }
  return "no exception";
}

}  // namespace xgrad_tests
