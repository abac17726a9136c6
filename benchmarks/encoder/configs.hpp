#pragma once

// The encoders that are measured, and what is said of the times.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "protocol.hpp"

namespace bench {

struct Config {
  const char* name;
  Size size;
};

inline constexpr Config configs[] = {
    {"toy", {6, 8, 1, 4, 2, 8, 1, 2}},
    {"small", {100, 16, 16, 64, 4, 256, 2, 10}},
    {"medium", {1000, 64, 16, 256, 4, 1024, 4, 10}},
    {"large", {8000, 128, 8, 512, 8, 2048, 6, 10}},
    {"longseq", {100, 1024, 1, 128, 4, 512, 2, 10}},
    {"minilm", {30522, 128, 8, 384, 12, 1536, 6, 2}},
    {"bert-base", {30522, 128, 8, 768, 12, 3072, 12, 2}},
};

inline const Config& config_of(const std::string& name) {
  return *std::ranges::find_if(configs, [&](const Config& config) { return config.name == name; });
}

inline std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const Config& config : configs) names.emplace_back(config.name);
  return names;
}

/// The value that the part `share` of the others is below.
inline double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace bench
