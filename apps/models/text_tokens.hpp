#pragma once

// Texts as the numbers that a model of their language reads.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <xgrad/files/safetensors.hpp>

#include "saved_model.hpp"

namespace apps {

/// The characters of a text, that is its code points, as ids in the order of their code points.
class TextTokens {
 public:
  /// Those of a text. Throws std::invalid_argument when it is not UTF-8.
  explicit TextTokens(std::string_view text);

  /// What save_to() wrote. Throws xgrad::FileError.
  static TextTokens of(const SavedModel& saved);
  void save_to(xgrad::Metadata& metadata) const;

  std::size_t size() const { return characters_.size(); }

  /// Throws std::invalid_argument for a text that is not UTF-8 or has another character.
  std::vector<std::int64_t> ids(std::string_view text) const;

  std::string text(const std::vector<std::int64_t>& ids) const;

  /// The tokens by their ids, for people: blanks and line breaks as signs.
  std::vector<std::string> labels() const;

 private:
  std::u32string characters_;
  std::map<char32_t, std::int64_t> ids_;
};

}  // namespace apps
