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

/// How the hidden states of a text become one vector.
enum class Pooling {
  mean,       ///< their mean over the tokens that are no padding
  cls_token,  ///< that of the first token
};

/// Vectors of texts, as sentence-transformers' folders say: an encoder, pooling and normalization
/// (Reimers and Gurevych 2019, arXiv:1908.10084). https://sbert.net
template <class T>
class SentenceEmbedder {
 public:
  /// Reads an encoder and its tokenizer, and modules.json with what it names; without it texts are pooled by
  /// the mean, and not normalized. Throws FileError for files that cannot be read and for modules that are
  /// not built.
  static SentenceEmbedder from_folder(const std::string& folder, const LoadOptions& options = {});

  /// The vectors (texts, hidden_size). The encoder takes texts of similar length together, `batch_size` at a
  /// time, and no gradient is recorded. White space at the ends of texts is left out, and texts that are too
  /// long are cut. Throws ValueError for a text that is not UTF-8 and for a batch_size of 0.
  Array<T> operator()(std::span<const std::string> texts, std::size_t batch_size = 32) const;

  /// The vectors (batch, hidden_size) of tokens, which can be differentiated.
  Variable<T> embed(const Input& input) const;

  /// Writes encoder, tokenizer and the files of the modules into a folder. Throws FileError.
  void save(const std::string& folder) const;

  const Encoder<T>& encoder() const { return encoder_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  Pooling pooling() const { return pooling_; }
  bool normalizes() const { return normalizes_; }
  /// The most tokens of a text, [CLS] and [SEP] among them.
  std::size_t max_length() const { return max_length_; }

 private:
  SentenceEmbedder(Encoder<T> encoder, Tokenizer tokenizer);

  Encoder<T> encoder_;
  Tokenizer tokenizer_;
  Pooling pooling_ = Pooling::mean;
  bool normalizes_ = false;
  std::size_t max_length_;
  std::shared_ptr<const detail::CopiedFiles> files_;  // modules.json and what it names
};

/// The vector of each text (batch, hidden_size) from hidden states (batch, length, hidden_size).
template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, Pooling pooling);

}  // namespace xgrad::pretrained
