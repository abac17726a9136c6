#include "decode_stream.hpp"

#include <algorithm>
#include <compare>
#include <string_view>
#include <utility>

#include "detail/unicode/unicode.hpp"

namespace xgrad::tokenizers {
namespace {

constexpr std::string_view replacement = "\ufffd";  // perhaps of an incomplete character
constexpr std::size_t character_tokens = 4;         // at most, as a character has at most so many bytes
constexpr std::size_t kept_tokens = 2 * character_tokens, most_held = 64;

/// The size of the characters that both texts begin with.
std::size_t common_size(std::string_view a, std::string_view b) {
  const auto size = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  return size < a.size() ? detail::unicode::last_start(a.substr(0, size + 1)) : size;
}

/// Whether texts of tokens, and of one less, and so on, become longer and shorter at the same of them. Bytes
/// that are UTF-8 only together do not where one is missing.
bool grow_alike(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 1; i < character_tokens; ++i) {
    if ((a[i].size() <=> a[i - 1].size()) != (b[i].size() <=> b[i - 1].size())) return false;
    if (a[i].ends_with(replacement) != b[i].ends_with(replacement)) return false;
  }
  return true;
}

}  // namespace

DecodeStream::DecodeStream(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string DecodeStream::step(std::int64_t id) {
  if (!tokenizer_.decoded_index(id, skip_special_tokens_)) return "";
  if (said_.empty() && !ids_.empty()) {
    std::string text = decode(ids_);
    if (!text.ends_with(replacement)) {
      said_ = std::move(text);
      said_ids_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = decode(ids_);
  if (text.ends_with(replacement)) return ids_.size() - said_ids_ > most_held ? complete_part() : "";
  if (text.size() <= said_.size()) return "";
  std::string more = new_part(text);
  // The tokens of the text before stay, as they may change how the next ones are decoded.
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(said_ids_));
  said_ = decode(ids_);
  said_ids_ = ids_.size();
  return more;
}

std::string DecodeStream::complete_part() {
  const std::vector<std::string> texts = last_texts(ids_);
  const std::string& text = texts.front();
  if (!text.starts_with(said_)) {  // new_part() of later texts will be without the older tokens, too
    if (!decode(std::span(ids_).subspan(said_ids_)).ends_with(replacement)) return "";
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(std::exchange(said_ids_, 0)));
    said_.clear();
    return "";
  }
  std::size_t complete = text.size() - replacement.size();
  for (const std::string& one : texts) complete = std::min(complete, common_size(one, text));
  complete = std::max(complete, said_.size());
  std::string more = text.substr(said_.size(), complete - said_.size());
  const std::string rest = text.substr(complete);
  shorten(texts, rest);
  said_ = decode(ids_);
  said_.resize(said_.size() - rest.size());
  said_ids_ = ids_.size() - character_tokens;
  return more;
}

void DecodeStream::shorten(const std::vector<std::string>& texts, std::string_view rest) {
  using Difference = std::ptrdiff_t;
  const auto replace_ids = [&](std::vector<std::int64_t>& ids) {
    const std::vector<std::string> others = last_texts(ids);
    const bool is_alike = others.front().ends_with(rest) && grow_alike(others, texts);
    if (is_alike) ids_.swap(ids);
    return is_alike;
  };
  std::vector<std::int64_t> kept(ids_.end() - Difference{kept_tokens}, ids_.end());
  if (replace_ids(kept)) return;
  // Alone, they make characters; behind others, they are bytes of a run that is no UTF-8.
  kept.insert(kept.begin(), character_tokens, 0);
  for (auto first = ids_.begin(); first + Difference{kept_tokens} != ids_.end(); ++first) {
    std::copy_n(first, character_tokens, kept.begin());
    if (replace_ids(kept)) return;
  }
}

std::vector<std::string> DecodeStream::last_texts(std::span<const std::int64_t> ids) const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i <= character_tokens; ++i) texts.push_back(decode(ids.first(ids.size() - i)));
  return texts;
}

std::string DecodeStream::finish() {
  std::string rest = new_part(decode(ids_));
  ids_.clear();
  said_.clear();
  said_ids_ = 0;
  return rest;
}

std::string DecodeStream::decode(std::span<const std::int64_t> ids) const {
  return tokenizer_.decode(ids, skip_special_tokens_);
}

std::string DecodeStream::new_part(const std::string& text) const {
  if (text.starts_with(said_)) return text.substr(said_.size());
  return decode(std::span(ids_).subspan(said_ids_));
}

}  // namespace xgrad::tokenizers
