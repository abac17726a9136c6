#include "decode_stream.hpp"

#include <string_view>
#include <utility>

namespace xgrad::tokenizers {
namespace {

constexpr std::string_view replacement = "\ufffd";  // perhaps of an incomplete character

}  // namespace

DecodeStream::DecodeStream(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string DecodeStream::step(std::int64_t id) {
  if (said_.empty() && !ids_.empty()) {
    std::string text = decode(ids_);
    if (!text.ends_with(replacement)) {
      said_ = std::move(text);
      said_ids_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = decode(ids_);
  if (text.size() <= said_.size() || text.ends_with(replacement)) return "";
  std::string more = new_part(text);
  // The tokens of the text before stay, as they may change how the next ones are decoded.
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(said_ids_));
  said_ = decode(ids_);
  said_ids_ = ids_.size();
  return more;
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
