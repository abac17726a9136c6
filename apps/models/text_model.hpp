#pragma once

// A small GPT that writes texts like the one that it has learned.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <xgrad/models/toy_decoder.hpp>

#include "text_tokens.hpp"

namespace apps {

/// The tokens of its text, and the decoder, with the layers and initial weights of GPT-2 (Radford et al.
/// 2019, "Language Models are Unsupervised Multitask Learners").
class TextModel {
 public:
  using Model = xgrad::ToyDecoder<float>;
  static constexpr const char* task = "text";
  static constexpr std::size_t longest_context = 4096;

  /// `context` is the number of tokens that the model sees; `sizes` has those of its layers, and their
  /// dropout.
  TextModel(TextTokens tokens, std::size_t context, const xgrad::EncoderConfig& sizes);

  /// Throws xgrad::FileError for a file that neither save() nor a training with metadata() has written.
  static TextModel load(const std::string& path);

  /// What load() builds the model with, besides the weights.
  xgrad::Metadata metadata() const;

  void save(const std::string& path) const;

  const TextTokens& tokens() const { return tokens_; }
  const Model& model() const { return model_; }

  void load_state_dict(const xgrad::StateDict<float>& state) const { model_.load_state_dict(state); }
  void eval() const { model_.eval(); }

  /// The sum of the losses of the tokens from `first` on in each of these windows (rows, up to context + 1),
  /// given those before.
  xgrad::Variable<float> loss(const xgrad::Ids& windows, std::size_t first = 1) const;

 private:
  TextTokens tokens_;
  Model model_;
};

}  // namespace apps
