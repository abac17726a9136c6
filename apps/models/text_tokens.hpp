#pragma once

// Texts as the numbers that a model of their language reads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <xgrad/files/safetensors.hpp>

#include "saved_model.hpp"

namespace apps {

/// The tokens of a text and their ids. Copies share their data.
class TextTokens {
 public:
  /// The characters of a text, that is its code points, in their order. Throws std::invalid_argument when it
  /// is not UTF-8.
  static TextTokens of_characters(std::string_view text);

  /// So many tokens of byte-level byte pair encoding, trained on a text; fewer if it has no more. Throws
  /// std::runtime_error in a build without xgrad::tokenizers.
  static TextTokens of_byte_pairs(const std::string& text, std::size_t size);

  /// What save_to() wrote. Throws xgrad::FileError.
  static TextTokens of(const SavedModel& saved);
  void save_to(xgrad::Metadata& metadata) const { kind_->save_to(metadata); }

  /// "characters" or "tokens".
  const char* name() const { return kind_->name(); }

  std::size_t size() const { return kind_->size(); }

  /// Throws std::invalid_argument for a text that is not UTF-8 or, of characters, has another one.
  std::vector<std::int64_t> ids(std::string_view text) const { return kind_->ids(text); }

  /// What each token of a text adds to it: whole characters, of which a token may be a part.
  using Stream = std::function<std::string(std::int64_t)>;
  Stream stream() const { return kind_->stream(); }

  /// What a token adds to a text, in bytes, which may be a part of a character.
  std::string bytes(std::int64_t id) const { return kind_->bytes(id); }

  /// The text of tokens, without a character that is not complete at its end.
  std::string text(const std::vector<std::int64_t>& ids) const;

  /// The tokens by their ids, for people: blanks and line breaks as signs.
  std::vector<std::string> labels() const { return kind_->labels(); }

 private:
  struct Kind {
    virtual ~Kind() = default;
    virtual void save_to(xgrad::Metadata& metadata) const = 0;
    virtual const char* name() const = 0;
    virtual std::size_t size() const = 0;
    virtual std::vector<std::int64_t> ids(std::string_view text) const = 0;
    virtual Stream stream() const = 0;
    virtual std::string bytes(std::int64_t id) const = 0;
    virtual std::vector<std::string> labels() const = 0;
  };
  class Characters;
  class BytePairs;

  explicit TextTokens(std::shared_ptr<const Kind> kind) : kind_(std::move(kind)) {}
  static TextTokens saved_byte_pairs(const SavedModel& saved);

  std::shared_ptr<const Kind> kind_;
};

}  // namespace apps
