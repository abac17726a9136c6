#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenizer.hpp"

namespace xgrad::tokenizers {

/// Decodes tokens one by one, as a model generates them. What comes out is whole characters: a character of
/// several tokens is held back until it is complete.
///
///     xgrad::tokenizers::DecodeStream stream(tokenizer);
///     for (const std::int64_t id : ids) std::cout << stream.step(id);
///     std::cout << stream.finish() << '\n';
///
/// The texts are those of the DecodeStream of Hugging Face's Rust library `tokenizers` 0.23.3. Put together,
/// they are Tokenizer::decode() of all ids, but for tokens of bytes ("<0x0A>") that are no UTF-8 in all:
/// decode() makes one U+FFFD of each of them, while the characters that came before stay in a stream. The
/// library fails then.
class DecodeStream {
 public:
  explicit DecodeStream(Tokenizer tokenizer, bool skip_special_tokens = true);

  /// The text that is new with this token; empty for an unknown id, and while a character is not complete.
  std::string step(std::int64_t id);

  /// What was held back. Then the stream begins anew.
  std::string finish();

 private:
  std::string decode(std::span<const std::int64_t> ids) const;
  /// Of the text of all ids, that behind what was returned.
  std::string new_part(const std::string& text) const;

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::vector<std::int64_t> ids_;  // since the last but one text that was returned
  std::string said_;               // the text of the first of them
  std::size_t said_ids_ = 0;       // their number
};

}  // namespace xgrad::tokenizers
