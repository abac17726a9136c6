#include "stop_strings.hpp"

#include <algorithm>
#include <utility>

namespace xgrad::generation {

StopStrings::StopStrings(std::vector<std::string> strings, BytesOf bytes_of)
    : strings_(std::move(strings)), bytes_of_(std::move(bytes_of)) {
  for (const std::string& one : strings_) longest_ = std::max(longest_, one.size());
}

StopStrings::StopStrings(std::vector<std::string> strings, const tokenizers::Tokenizer& tokenizer)
    : StopStrings(std::move(strings), [tokenizer](std::int64_t id) -> std::optional<std::string> {
        if (!tokenizer.contains(id)) return std::nullopt;
        return tokenizer.token_bytes(id);
      }) {}

bool StopStrings::end(std::span<const std::int64_t> tokens) const {
  if (strings_.empty() || tokens.empty()) return false;
  const std::optional<std::string> last = bytes_of_(tokens.back());
  if (!last) return false;
  std::string before;
  // As Hugging Face, of no more tokens than the longest string has bytes.
  for (std::size_t i = 1; i < std::min(tokens.size(), longest_) && before.size() + 1 < longest_; ++i) {
    const std::optional<std::string> one = bytes_of_(tokens[tokens.size() - 1 - i]);
    if (!one) break;
    before.insert(0, *one);
  }
  const std::string text = before + *last;
  return std::any_of(strings_.begin(), strings_.end(), [&](const std::string& one) {
    const std::size_t first = before.size() + 1 - std::min(before.size() + 1, one.size());
    return text.find(one, first) != text.npos;
  });
}

}  // namespace xgrad::generation
