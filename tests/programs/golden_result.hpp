#pragma once

#include <string>

namespace xgrad_tests {

/// One thing that was compared; a problem tells what came in place of what was expected, and is empty if
/// nothing did.
struct GoldenResult {
  std::string name, problem;
};

}  // namespace xgrad_tests
