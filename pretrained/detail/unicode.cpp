#include "unicode.hpp"

#include <algorithm>
#include <iterator>

namespace xgrad::pretrained::detail::unicode {

std::span<const char32_t> decomposition(char32_t character) {
  const auto* const place = std::ranges::lower_bound(decomposing, character);
  const auto index = static_cast<std::size_t>(place - std::begin(decomposing));
  return std::span(decompositions)
      .subspan(decomposition_starts[index], decomposition_starts[index + 1] - decomposition_starts[index]);
}

}  // namespace xgrad::pretrained::detail::unicode
