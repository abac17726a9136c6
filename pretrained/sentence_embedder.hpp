#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../tokenizers/tokenizer.hpp"
#include "encoder.hpp"
#include "pooling.hpp"

namespace xgrad::detail {
class CopiedFiles;
}  // namespace xgrad::detail

namespace xgrad::pretrained {

namespace detail {
struct TextOptions;
template <class T>
struct SentenceModules;
}  // namespace detail

struct EmbedOptions {
  xgrad::detail::ByName by_name = {};
  std::size_t batch_size = 32;  ///< texts at a time
  /// Name of the prompt that goes before each text. Empty: the folder's default prompt, if it has one.
  std::optional<std::string> prompt_name = {};
  /// The prompt itself, instead of one with a name; "" for none.
  std::optional<std::string> prompt = {};
};

/// Embeds texts with a folder of sentence-transformers: an encoder, pooling, and modules that work on vectors
/// (Reimers and Gurevych 2019, arXiv:1908.10084). https://sbert.net
template <class T>
class SentenceEmbedder {
 public:
  /// Reads an encoder and its tokenizer, modules.json with the modules it lists (Pooling, then any of Dense,
  /// LayerNorm and Normalize), prompts, the maximum length and truncate_dim; without modules.json, uses mean
  /// pooling.
  /// Throws FileError for unreadable files and for unsupported modules.
  static SentenceEmbedder from_folder(const std::string& folder, const LoadOptions& options = {});

  /// The vectors (texts, size()). Encodes texts of similar length together, without recording gradients, and
  /// truncates long texts with their prompt. Throws ValueError for a text that is not UTF-8, for a batch_size
  /// of 0 and for an unknown prompt_name.
  Array<T> operator()(std::span<const std::string> texts, const EmbedOptions& options = {}) const;

  /// The differentiable vectors (batch, size()) of tokens, of which the first `prompt_length` of each text
  /// are of a prompt.
  Variable<T> embed(const Input& input, std::size_t prompt_length = 0) const;

  /// All parameters that are not frozen: the encoder's, then those of Dense and LayerNorm by the place of the
  /// module, "2.linear.weight".
  std::vector<NamedParameter<T>> trainable_parameters() const;

  /// Writes encoder, tokenizer and the files of the modules into a folder, which sentence-transformers opens.
  /// Saving an unchanged one gives the same bytes. Throws FileError.
  void save(const std::string& folder) const;

  const Encoder<T>& encoder() const& { return encoder_; }
  Encoder<T> encoder() && { return encoder_; }
  const tokenizers::Tokenizer& tokenizer() const& { return tokenizer_; }
  tokenizers::Tokenizer tokenizer() && { return tokenizer_; }
  /// Size of a vector: truncate_dim, if that is smaller than what the modules give, whose first numbers are
  /// kept. They are not normalized again.
  std::size_t size() const;
  /// The poolings whose vectors come one after the other.
  std::vector<Pooling> poolings() const;
  /// The folder's prompts by name.
  std::map<std::string, std::string> prompts() const;
  /// How many tokens a prompt is, with those in front of it.
  std::size_t prompt_length(const std::string& prompt) const;
  /// Maximum number of tokens of a text, including [CLS] and [SEP].
  std::size_t max_length() const { return max_length_; }

 private:
  SentenceEmbedder(Encoder<T> encoder, tokenizers::Tokenizer tokenizer,
                   std::shared_ptr<const detail::TextOptions> texts,
                   std::shared_ptr<const detail::SentenceModules<T>> modules);

  Encoder<T> encoder_;
  tokenizers::Tokenizer tokenizer_;
  std::size_t max_length_;
  std::shared_ptr<const detail::TextOptions> texts_;
  std::shared_ptr<const detail::SentenceModules<T>> modules_;
  std::shared_ptr<const xgrad::detail::CopiedFiles> files_;  // modules.json and the files it lists
};

}  // namespace xgrad::pretrained
