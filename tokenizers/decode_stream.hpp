#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer.hpp"

namespace xgrad::tokenizers {

/// Decodes tokens one by one, as a model generates them. What comes out is whole characters: a character of
/// several tokens is held back until it is complete, and of more than 64 tokens whose text ends in U+FFFD,
/// only the last ones are, so that a step takes as long after many tokens as after few.
///
///     xgrad::tokenizers::DecodeStream stream(tokenizer);
///     for (const std::int64_t id : ids) std::cout << stream.step(id);
///     std::cout << stream.finish() << '\n';
///
/// The texts are those of the DecodeStream of Hugging Face's Rust library `tokenizers` 0.23.3, which holds
/// back any number of tokens. Put together, they are Tokenizer::decode() of all ids, but for tokens of bytes
/// ("<0x0A>") that are no UTF-8 in all: decode() makes one U+FFFD of each of them, while the characters that
/// came before stay in a stream. The library fails then.
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
  /// Of the text of many ids, which ends in U+FFFD, that behind what was returned which does not change.
  std::string complete_part();
  /// Leaves the last ids out of many, and others before them if they change how the next ones are decoded.
  /// `texts` are their last_texts(), and `rest` what was not returned of the first.
  void shorten(const std::vector<std::string>& texts, std::string_view rest);
  /// The text of the ids, without the last one, and so on, as many as a character can have.
  std::vector<std::string> last_texts(std::span<const std::int64_t> ids) const;

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::vector<std::int64_t> ids_;  // since the last but one text that was returned, or fewer
  std::string said_;               // of their text, what was returned
  std::size_t said_ids_ = 0;       // the number of those that are older
};

}  // namespace xgrad::tokenizers
