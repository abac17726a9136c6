#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace xgrad::detail {

/// Reports a note for the user: to `note`, or on stderr if that is absent.
inline void tell(const std::function<void(const std::string&)>& note, const std::string& text) {
  if (note) {
    note(text);
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

}  // namespace xgrad::detail
