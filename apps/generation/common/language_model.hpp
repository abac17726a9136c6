#pragma once

// Models that continue texts, for the programs that write and rate them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <xgrad/generation/generation_options.hpp>
#include <xgrad/pretrained/model.hpp>

namespace apps {

/// A model that predicts the next token of a text, in evaluation mode.
class LanguageModel {
 public:
  /// A pretrained decoder with its tokenizer, by its folder or its name in the hub's cache, or the file of a
  /// model that train_gpt saved or its checkpoint, which have no options. Throws xgrad::FileError.
  static std::unique_ptr<LanguageModel> load(const std::string& path,
                                             const xgrad::pretrained::LoadOptions& options);

  LanguageModel() = default;
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;
  virtual ~LanguageModel() = default;

  /// The tokens of a text, with those that its tokenizer adds.
  virtual std::vector<std::int64_t> ids(const std::string& text) const = 0;

  /// How many tokens the model sees at once, if that has a limit.
  virtual std::optional<std::size_t> max_length() const = 0;

  /// How long the texts of its training were, of a model that sees any number of tokens.
  virtual std::optional<std::size_t> trained_length() const { return std::nullopt; }

  /// The mean loss of the last `count` tokens, each given all before it; count is less than their number.
  virtual double loss(std::span<const std::int64_t> ids, std::size_t count) const = 0;

  /// generation_config.json of the model's folder.
  virtual xgrad::generation::GenerationOptions options() const { return {}; }

  /// Calls show(text) with what the model writes after these tokens, in pieces of whole characters. Of a text
  /// that becomes longer than the model sees, a model of train_gpt forgets the first half, a pretrained one
  /// where `slides`; else that is an error.
  virtual void write(const std::vector<std::int64_t>& ids,
                     const xgrad::generation::GenerationOptions& options, bool slides,
                     const std::function<void(std::string_view)>& show) const = 0;
};

}  // namespace apps
