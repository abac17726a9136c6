#pragma once

#include <cstdlib>
#include <string>

namespace xgrad_tests {

/// Where cases of a kind are: among the sources, or in the folder that the environment names, where others
/// are made.
inline std::string data_folder(const std::string& kind) {
  const char* const other = std::getenv("XGRAD_TEST_DATA");
  return std::string(other != nullptr ? other : XGRAD_TEST_DATA_DIR) + "/" + kind + "/";
}

}  // namespace xgrad_tests
