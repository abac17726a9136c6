#include "changes.hpp"

#include <algorithm>

#include "../../../base/detail/text/utf8.hpp"

namespace xgrad::tokenizers::detail {

void transform(const TextBuffer& from, std::span<const Change> changes, TextBuffer& to) {
  std::size_t offset = 0;
  for (const auto& [character, change] : changes) {
    std::size_t place = std::min(offset, from.text.size() - 1);
    if (change > 0 && offset > 0) place = offset - 1;
    to.append(character, from.sources[place]);
    for (std::int32_t i = change; i <= 0 && offset < from.text.size(); ++i)
      offset += xgrad::detail::utf8::first_length(std::string_view(from.text).substr(offset));
  }
}

}  // namespace xgrad::tokenizers::detail
