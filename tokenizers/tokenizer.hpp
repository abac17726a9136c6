#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/detail/by_name.hpp"

namespace xgrad::tokenizers {

/// Text to truncate if an encoding exceeds EncodeOptions::max_length.
enum class Truncation {
  longest_first,    ///< the longer one, then both; of an odd rest, the second gets more unless shorter
  only_first,       ///< the first; an error if it is too short
  only_second,      ///< the second
  do_not_truncate,  ///< neither: the encoding stays longer
};

/// The end of a text at which tokens are removed, or padding is added.
enum class Side { left, right };

struct EncodeOptions {
  xgrad::detail::ByName by_name = {};
  /// Maximum number of tokens, including special tokens. Empty: no limit, not even the model's.
  std::optional<std::size_t> max_length = {};
  Truncation truncation = Truncation::longest_first;
  /// Where tokens are removed; absent: the truncation_side of tokenizer_config.json, or else right.
  std::optional<Side> truncation_side = {};
  std::size_t stride = 0;                  ///< number of tokens that overflowing windows repeat
  bool return_overflowing_tokens = false;  ///< in Encoding::overflowing
  bool add_special_tokens = true;          ///< such as [CLS] and [SEP]
};

/// The length to which Tokenizer::pad() pads.
enum class Padding {
  longest,     ///< that of the longest encoding
  max_length,  ///< PadOptions::max_length, or else Tokenizer::max_length(); longer encodings stay
  do_not_pad,
};

struct PadOptions {
  xgrad::detail::ByName by_name = {};
  Padding padding = Padding::longest;
  std::optional<std::size_t> max_length = {};
  std::optional<std::size_t> pad_to_multiple_of = {};  ///< the length is rounded up to a multiple of it
  /// Where padding is added; absent: the padding_side of tokenizer_config.json, or else right.
  std::optional<Side> padding_side = {};
};

struct TokenizerOptions {
  xgrad::detail::ByName by_name = {};
  bool lowercase = false;  ///< lower texts before anything else, but for the special tokens in them
  /// Encode texts in the language that a model translates to, where the folder has a model of its own for
  /// them (Marian's target.spm).
  bool target = false;
  /// Called with notes for the user: where tokenizer_config.json contradicts tokenizer.json, which counts.
  /// Printed on stderr if absent.
  std::function<void(const std::string&)> note = {};
};

/// A text, or a pair of texts, as tokens; every vector has one entry per token. Tokens added by the
/// tokenizer, such as [CLS], belong to no word and no text.
struct [[nodiscard]] Encoding {
  std::vector<std::int64_t> ids;             ///< Tokenizer::token() returns their texts
  std::vector<std::int64_t> type_ids;        ///< 0 for the first text and 1 for the second, in most models
  std::vector<std::uint8_t> special;         ///< 1 for a token added by the tokenizer, or padding
  std::vector<std::uint8_t> attention_mask;  ///< 0 for padding, otherwise 1
  /// Start and end of the token in its text, in characters (code points) of the original text. (0, 0) for an
  /// added token.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> offsets;
  /// The index of the word in its text: words are separated by white space and punctuation, and each
  /// punctuation character is a word. Use it to assign labels of words to tokens.
  std::vector<std::optional<std::uint32_t>> words;
  std::vector<std::optional<std::uint32_t>> sequences;  ///< 0 for the first text, 1 for the second
  /// What truncation removed, in encodings of the same form: each part of the first text with each part of
  /// the second, but for the parts of this encoding together. Empty unless asked for.
  std::vector<Encoding> overflowing;

  std::size_t size() const { return ids.size(); }
};

/// Converts texts to the token ids of a pretrained model, and back. Reads a model's folder and gives exactly
/// the results of Hugging Face's Rust library `tokenizers` 0.23.3
/// (https://github.com/huggingface/tokenizers): WordPiece as in BERT, DistilBERT, ELECTRA and MPNet,
/// byte-level byte pair encoding as in RoBERTa, ModernBERT, GPT-2, Llama 3 and Qwen, that of characters as in
/// Llama 2 and Gemma, and SentencePiece's Unigram as in XLM-RoBERTa, ALBERT and T5. docs/tokenizers.md lists
/// the parts of a tokenizer.json that are read.
///
///     const auto tokenizer = xgrad::tokenizers::Tokenizer::from_folder("all-MiniLM-L6-v2");
///     const auto encoding = tokenizer.encode("The jury said", {.max_length = 128});
///
/// Copies share their data. All functions are thread-safe.
class Tokenizer {
 public:
  /// Reads tokenizer.json, or if it is missing, vocab.txt (WordPiece), vocab.json and merges.txt (RoBERTa,
  /// BART, GPT-2), vocab.json, source.spm and target.spm (Marian), or a model of SentencePiece
  /// (sentencepiece.bpe.model, spiece.model, spm.model or tokenizer.model), with the options of
  /// tokenizer_config.json, and unless that lists added_tokens_decoder, the tokens of special_tokens_map.json
  /// and added_tokens.json. A model of SentencePiece is read as the classes of XLM-RoBERTa, CamemBERT,
  /// DeBERTa-v2, ALBERT and T5 in transformers 4 do, or without a class in tokenizer_config.json and a
  /// model_type in config.json, as SentencePiece 0.2.3 does. Ignores the truncation and padding of
  /// tokenizer.json.
  ///
  /// Throws FileError for a folder without these files, for an incomplete file, and for unsupported rules,
  /// such as a WordLevel model. The limits are 1000 bytes per token and 2 million tokens.
  static Tokenizer from_folder(const std::string& folder, const TokenizerOptions& options = {});

  /// Reads the text of a tokenizer.json, which errors call `name`, without other files. Throws FileError.
  static Tokenizer from_json(const std::string& text, const std::string& name = "tokenizer.json",
                             const TokenizerOptions& options = {});

  /// Encodes a text in UTF-8. Recognizes special tokens in it, such as [MASK].
  ///
  /// Throws ValueError for a text that is not UTF-8 or has 4 GiB, for a max_length without room for the
  /// special tokens or unreachable by Truncation, for a stride that is not below the number of tokens
  /// that stay of a truncated text, and for a text that takes a Split pattern too many steps.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// Encodes a pair, such as a question and a paragraph.
  Encoding encode(std::string_view text, std::string_view second, const EncodeOptions& options = {}) const;

  /// Encodes many texts, without padding.
  std::vector<Encoding> encode(std::span<const std::string> texts, const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode(std::initializer_list<std::string> texts,
                               const EncodeOptions& options = {}) const;

  /// Encodes many pairs: texts[i] with seconds[i]. Also throws ValueError for different numbers of both.
  std::vector<Encoding> encode(std::span<const std::string> texts, std::span<const std::string> seconds,
                               const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode(std::initializer_list<std::string> texts,
                               std::initializer_list<std::string> seconds,
                               const EncodeOptions& options = {}) const;

  /// Pads encodings, and those that overflow from them, with pad_id(). Throws ValueError if they need padding
  /// and the padding token is missing, for Padding::max_length without one, and for a multiple of 0.
  /// https://huggingface.co/docs/transformers/main_classes/tokenizer#transformers.PreTrainedTokenizerBase.pad
  std::vector<Encoding> pad(std::vector<Encoding> encodings, const PadOptions& options = {}) const;

  /// The text of the tokens, without unknown ids, and without special tokens if requested. May differ from
  /// the encoded text: case, accents and blanks may be lost. Throws ValueError for a decoder that makes a
  /// text more than 100 times as long as its tokens. DecodeStream decodes tokens one by one.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

  /// The id of a token such as "##ing"; empty for an unknown token.
  std::optional<std::int64_t> token_to_id(std::string_view token) const;

  /// Whether a token has this id; ids may have gaps.
  bool contains(std::int64_t id) const;

  /// The token of an id. Throws IndexError for an unknown id.
  std::string token(std::int64_t id) const;

  /// The bytes that a token adds to a text behind others, which may be a part of a character; those of a
  /// special token are its text. Throws IndexError for an unknown id.
  std::string token_bytes(std::int64_t id) const;

  /// The number of tokens. Ids may be larger if they have gaps.
  std::size_t size() const;

  /// The largest id of a token. Throws ValueError without any.
  std::int64_t largest_id() const;

  /// Ids of the special tokens; RoBERTa's <s> and </s> are cls and sep. Each throws ValueError if the token
  /// is missing in the vocabulary.
  std::int64_t cls_id() const;
  std::int64_t sep_id() const;
  std::int64_t pad_id() const;
  std::int64_t unk_id() const;
  std::int64_t mask_id() const;

  /// Writes the files that it was read from into a folder, which is created if missing. Throws FileError,
  /// also for a folder with another file of a tokenizer, which would be read with them.
  void save(const std::string& folder) const;

  /// Throws FileError for a folder with another file of a tokenizer, as save() does; to be called before a
  /// long training.
  void check_save(const std::string& folder) const;

  /// The maximum input length in tokenizer_config.json (model_max_length), including special tokens. encode()
  /// ignores it unless it is passed as EncodeOptions::max_length.
  std::optional<std::size_t> max_length() const;

 private:
  friend class DecodeStream;
  struct Impl;

  explicit Tokenizer(std::shared_ptr<const Impl> impl);

  /// The index of a token that decode() does not leave out.
  std::optional<std::uint32_t> decoded_index(std::int64_t id, bool skip_special_tokens) const;

  std::shared_ptr<const Impl> impl_;
};

}  // namespace xgrad::tokenizers
