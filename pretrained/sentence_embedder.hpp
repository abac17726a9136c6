#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "encoder.hpp"
#include "tokenizer.hpp"

namespace xgrad::pretrained {

namespace detail {
class CopiedFiles;
}

/// Pooling of the hidden states of a text into one vector.
enum class Pooling {
  mean,       ///< the mean over all tokens except padding
  cls_token,  ///< the hidden state of the first token
};

/// Embeds texts with a folder of sentence-transformers: an encoder, pooling and normalization (Reimers and
/// Gurevych 2019, arXiv:1908.10084). https://sbert.net
template <class T>
class SentenceEmbedder {
 public:
  /// Reads an encoder and its tokenizer, and modules.json with the modules it lists; without it, uses mean
  /// pooling and no normalization. Throws FileError for unreadable files and for unsupported modules.
  static SentenceEmbedder from_folder(const std::string& folder, const LoadOptions& options = {});

  /// The vectors (texts, hidden_size). Encodes texts of similar length together, `batch_size` at a time,
  /// without recording gradients. Strips white space at the ends of texts, and truncates long texts. Throws
  /// ValueError for a text that is not UTF-8 and for a batch_size of 0.
  Array<T> operator()(std::span<const std::string> texts, std::size_t batch_size = 32) const;

  /// The differentiable vectors (batch, hidden_size) of tokens.
  Variable<T> embed(const Input& input) const;

  /// Writes encoder, tokenizer and the files of the modules into a folder. Throws FileError.
  void save(const std::string& folder) const;

  const Encoder<T>& encoder() const& { return encoder_; }
  Encoder<T> encoder() && { return encoder_; }
  const Tokenizer& tokenizer() const& { return tokenizer_; }
  Tokenizer tokenizer() && { return tokenizer_; }
  Pooling pooling() const { return pooling_; }
  bool normalizes() const { return normalizes_; }
  /// Maximum number of tokens of a text, including [CLS] and [SEP].
  std::size_t max_length() const { return max_length_; }

 private:
  SentenceEmbedder(Encoder<T> encoder, Tokenizer tokenizer);

  Encoder<T> encoder_;
  Tokenizer tokenizer_;
  Pooling pooling_ = Pooling::mean;
  bool normalizes_ = false;
  std::size_t max_length_;
  std::shared_ptr<const detail::CopiedFiles> files_;  // modules.json and the files it lists
};

/// The vector of each text (batch, hidden_size) from hidden states (batch, length, hidden_size).
template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, Pooling pooling);

}  // namespace xgrad::pretrained
