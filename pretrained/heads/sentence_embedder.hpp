#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../tokenizers/tokenizer.hpp"
#include "../encoder.hpp"
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
  /// How many of the first numbers of a vector are kept, instead of size().
  std::optional<std::size_t> truncate_dim = {};
  bool normalize = false;  ///< whether vectors are divided by their length, after they are truncated
  /// Is called after each batch with the number of texts that are done; what it throws ends the call.
  std::function<void(std::size_t)> progress = {};
};

/// How the vectors of a folder are compared: similarity_fn_name of config_sentence_transformers.json.
enum class Similarity { cosine, dot, euclidean, manhattan };

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
  /// of 0, for an unknown prompt_name and for a truncate_dim that is 0 or above the size of the modules'
  /// vectors.
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
  /// The names of the prompts for queries, "query", and for what is searched, the first of "document",
  /// "passage" and "corpus"; empty if the folder has none, and texts get the default prompt.
  std::optional<std::string> query_prompt() const;
  std::optional<std::string> document_prompt() const;
  /// How the folder compares vectors; by cosine if it does not say.
  Similarity similarity() const;
  /// How many tokens a prompt is, with those in front of it.
  std::size_t prompt_length(const std::string& prompt) const;
  /// Maximum number of tokens of a text, including [CLS] and [SEP].
  std::size_t max_length() const { return max_length_; }
  /// A digest of the files that define the vectors, as they are in its folder now: two folders with one
  /// digest give the same vectors. It reads all weights. Throws FileError.
  std::string digest() const;

 private:
  Variable<T> full_vectors(const Input& input, std::size_t prompt_length) const;
  SentenceEmbedder(Encoder<T> encoder, tokenizers::Tokenizer tokenizer,
                   std::shared_ptr<const detail::TextOptions> texts,
                   std::shared_ptr<const detail::SentenceModules<T>> modules);

  std::string folder_;
  Encoder<T> encoder_;
  tokenizers::Tokenizer tokenizer_;
  std::size_t max_length_;
  std::shared_ptr<const detail::TextOptions> texts_;
  std::shared_ptr<const detail::SentenceModules<T>> modules_;
  std::shared_ptr<const xgrad::detail::CopiedFiles> files_;  // modules.json and the files it lists
};

}  // namespace xgrad::pretrained
