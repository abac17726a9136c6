#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../../tokenizers/tokenizer.hpp"
#include "../../config.hpp"
#include "../../heads/sentence_embedder.hpp"

// Not installed: how a folder of sentence-transformers treats texts and vectors, but for modules.

namespace xgrad::pretrained::detail {

/// sentence_bert_config.json, or what older files call it, and config_sentence_transformers.json.
struct TextOptions {
  std::map<std::string, std::string> prompts;
  std::optional<std::string> default_prompt;
  std::optional<std::size_t> max_length;
  std::optional<std::size_t> truncate_dim;  // of the vectors
  Similarity similarity = Similarity::cosine;
  bool lowers = false;

  /// Throws FileError.
  explicit TextOptions(const std::string& folder);

  /// The names of all files that are read, as far as they are there.
  static const std::vector<std::string>& files();

  /// What goes before texts: `prompt`, or else that of this name, or else the default one. Throws ValueError,
  /// which begins with `caller`, for an unknown name.
  std::string prompt(const char* caller, const std::optional<std::string>& prompt,
                     const std::optional<std::string>& name) const;

  /// The first of these names that a prompt has.
  std::optional<std::string> first_prompt(std::initializer_list<const char*> names) const;

  /// The most tokens of a text: max_length, or else the tokenizer's, but no more than the encoder takes.
  std::size_t most_tokens(const Config& encoder, const tokenizers::Tokenizer& tokenizer) const;

 private:
  void read_encoder_options(const std::string& folder);
  void read_model_options(const std::string& folder);
};

}  // namespace xgrad::pretrained::detail
