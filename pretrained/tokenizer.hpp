#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input.hpp"

namespace xgrad::pretrained {

/// Which text is shortened when an encoding would be longer than EncodeOptions::max_length. Tokens are taken
/// off its end.
enum class Truncation {
  longest_first,  ///< the longer one, then both: of an odd number the second gets more, unless it was shorter
  only_first,     ///< the first; what it cannot give is an error
  only_second,    ///< the second
  none,           ///< neither: a longer encoding is an error
};

struct EncodeOptions {
  /// The most tokens, with the special ones. Nothing: all of them, however many the model can take.
  std::optional<std::size_t> max_length = {};
  Truncation truncation = Truncation::longest_first;
  bool add_special_tokens = true;  ///< such as [CLS] and [SEP]
};

/// A text, or a pair of texts, as tokens; every vector has one entry for each. Tokens that the tokenizer
/// added, such as [CLS], belong to no word and to no text.
struct Encoding {
  std::vector<std::int64_t> ids;       ///< Tokenizer::token() has their texts
  std::vector<std::int64_t> type_ids;  ///< 0 for the first text and 1 for the second, in most models
  std::vector<std::uint8_t> special;   ///< 1 for a token that the tokenizer added
  /// Where the token begins and ends in its text, in characters (code points) of the text as it was given.
  /// (0, 0) for a token that was added.
  std::vector<std::pair<std::size_t, std::size_t>> offsets;
  /// The number of the word in its text, from 0: words are what white space and punctuation separate, and
  /// each character of punctuation. Labels of words reach their tokens by it.
  std::vector<std::optional<std::size_t>> words;
  std::vector<std::optional<std::size_t>> sequences;  ///< 0 for the first text, 1 for the second

  std::size_t size() const { return ids.size(); }
};

/// Texts that a model takes at once: (batch, length), as long as the longest, the others padded at their
/// ends.
struct Batch : Input {
  std::vector<Encoding> encodings;  ///< without padding
};

/// Turns texts into the ids that a pretrained model knows, and back. It is read from a model's folder and
/// gives exactly what Hugging Face's Rust library `tokenizers` 0.23 gives
/// (https://github.com/huggingface/tokenizers): WordPiece as in BERT, DistilBERT and ELECTRA, and byte pair
/// encoding of bytes as in RoBERTa.
///
///     const auto tokenizer = xgrad::pretrained::Tokenizer::from_folder("all-MiniLM-L6-v2");
///     const auto batch = tokenizer.encode(texts, {.max_length = 128});
///     model(batch);
///
/// Copies share what was read. All functions may be called from several threads at once.
class Tokenizer {
 public:
  /// Reads tokenizer.json; where there is none, vocab.txt (WordPiece) or vocab.json and merges.txt (RoBERTa)
  /// and what tokenizer_config.json says of them. The truncation and padding of tokenizer.json are not used.
  ///
  /// Throws FileError for a folder without these files, for a file that is not whole, and for a rule that is
  /// not supported, such as a Unigram model. A token may have 1000 bytes, a vocabulary 2 million tokens.
  static Tokenizer from_folder(const std::string& folder);

  /// The text must be UTF-8. Special tokens that are written in it, such as [MASK], are found.
  ///
  /// Throws ValueError for a text that is not UTF-8 or has 4 GiB, and for a max_length that leaves no room
  /// for the special tokens or that Truncation cannot reach.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The same for a pair, such as a question and a paragraph.
  Encoding encode(std::string_view text, std::string_view second, const EncodeOptions& options = {}) const;

  /// Many texts. Throws ValueError, too, if they need padding and there is no token for it.
  Batch encode(std::span<const std::string> texts, const EncodeOptions& options = {}) const;
  Batch encode(std::initializer_list<std::string> texts, const EncodeOptions& options = {}) const;

  /// Many pairs: texts[i] with seconds[i]. Throws ValueError, too, if there are not as many of both.
  Batch encode(std::span<const std::string> texts, std::span<const std::string> seconds,
               const EncodeOptions& options = {}) const;
  Batch encode(std::initializer_list<std::string> texts, std::initializer_list<std::string> seconds,
               const EncodeOptions& options = {}) const;

  /// Encodings as long as the longest of them, padded with pad_id(). Throws ValueError if they need padding
  /// and there is no token for it.
  /// https://huggingface.co/docs/transformers/main_classes/tokenizer#transformers.PreTrainedTokenizerBase.pad
  Batch pad(std::vector<Encoding> encodings) const;

  /// The text of the tokens. Ids of no token are left out, and so are special tokens if asked for. It is not
  /// always the text that was encoded: case, accents and blanks may be lost.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

  /// The id of a token such as "##ing"; nothing if there is no such token.
  std::optional<std::int64_t> token_to_id(std::string_view token) const;

  /// Whether a token has this id; there may be gaps.
  bool contains(std::int64_t id) const;

  /// The token of an id. Throws IndexError if there is none.
  const std::string& token(std::int64_t id) const;

  /// The number of tokens. Ids may be larger where a vocabulary has gaps.
  std::size_t size() const;

  /// Ids of the special tokens; RoBERTa's <s> and </s> are its cls and sep. Each throws ValueError if the
  /// vocabulary has no such token.
  std::int64_t cls_id() const;
  std::int64_t sep_id() const;
  std::int64_t pad_id() const;
  std::int64_t unk_id() const;
  std::int64_t mask_id() const;

  /// Writes the files that it was read from into a folder, which is made if it is not there. Throws
  /// FileError.
  void save(const std::string& folder) const;

  /// What tokenizer_config.json says of the longest input (model_max_length), with special tokens. encode()
  /// does not use it unless it is given as EncodeOptions::max_length.
  std::optional<std::size_t> max_length() const;

 private:
  struct Impl;

  explicit Tokenizer(std::shared_ptr<const Impl> impl);

  std::shared_ptr<const Impl> impl_;
};

}  // namespace xgrad::pretrained
