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

namespace apps {

/// A model that predicts the next token of a text.
class LanguageModel {
 public:
  /// A model that train_gpt saved. Throws xgrad::FileError.
  static std::unique_ptr<LanguageModel> load(const std::string& path);

  LanguageModel() = default;
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;
  virtual ~LanguageModel() = default;

  /// The tokens of a text.
  virtual std::vector<std::int64_t> ids(const std::string& text) const = 0;

  /// How many tokens the model sees at once, if that has a limit.
  virtual std::optional<std::size_t> max_length() const = 0;

  /// The mean loss of the last `count` tokens, each given all before it; count is less than their number.
  virtual double loss(std::span<const std::int64_t> ids, std::size_t count) const = 0;

  /// Calls show(text) with what the model writes behind these tokens, in pieces of whole characters, until it
  /// returns false. Of a text that is longer than the model sees, it sees the end.
  virtual void write(const std::vector<std::int64_t>& ids,
                     const xgrad::generation::GenerationOptions& options,
                     const std::function<bool(std::string_view)>& show) const = 0;
};

}  // namespace apps
