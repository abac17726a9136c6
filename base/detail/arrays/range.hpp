#pragma once

#include <cstddef>

namespace xgrad::detail {

/// A range of indices.
struct Range {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// Part i of n elements divided into `parts`.
inline Range part(std::size_t n, std::size_t i, std::size_t parts) {
  return {n * i / parts, n * (i + 1) / parts};
}

}  // namespace xgrad::detail
