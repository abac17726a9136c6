#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "declared_tokens.hpp"
#include "json.hpp"
#include "pipeline.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// The path of a file in a folder.
std::string in_folder(const std::string& folder, const char* name);

bool is_file(const std::string& path);

/// Texts of the tokens with a role, in the order of Role; empty for a role that nothing has.
using RoleTexts = std::array<std::string_view, role_names.size()>;
inline constexpr RoleTexts bert_texts{"[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"};
inline constexpr RoleTexts roberta_texts{"<s>", "</s>", "<pad>", "<unk>", "<mask>"};

/// What a folder says about its tokenizer beside the vocabulary: tokenizer_config.json, and unless that lists
/// all added tokens (added_tokens_decoder), special_tokens_map.json, whose tokens count then, and
/// added_tokens.json, as in transformers. Each may be missing. All functions throw FileError.
class TokenizerConfig {
 public:
  TokenizerConfig(const std::string& folder, bool lowers);
  /// Without files.
  explicit TokenizerConfig(bool lowers) : lowers_(lowers) {}

  /// A member of tokenizer_config.json.
  std::optional<Json> find(const std::string& name) const { return file_ ? file_->find(name) : std::nullopt; }
  bool flag(const std::string& name, bool otherwise) const;

  /// What contradicts a tokenizer.json with these tokens, a line each.
  std::vector<std::string> contradictions(const Json& tokenizer, const TokenTable& tokens) const;

  /// The normalizer, of texts in lower case where that was asked for.
  std::optional<Normalizer> adapted(std::optional<Normalizer> normalizer) const;

  /// None for the huge number that stands for it.
  std::optional<std::size_t> max_length() const;

  /// The value of truncation_side or padding_side.
  Side side(const std::string& name) const;

  /// The token that is declared for a name such as "mask_token".
  std::optional<Declared> token(const std::string& name) const;
  std::optional<Declared> token(Role role) const;

  /// What the folder declares without a tokenizer.json: the tokens with a role, those of the usual texts if
  /// the vocabulary has them, and others.
  std::vector<Declared> tokens(const TokenIds& vocab, const RoleTexts& usual) const;

  /// The special tokens that the folder names, or else those with the usual texts.
  decltype(Pipeline::roles) roles(const TokenTable& tokens, const RoleTexts& usual) const;

  /// tokenizer_class without "Fast"; empty if missing.
  std::string class_name() const;

  /// Refuses a class whose rules are not those of the files without tokenizer.json.
  void check_class(const std::vector<std::string_view>& known) const;

 private:
  std::vector<Declared> other_tokens() const;

  std::optional<Json> file_, map_, added_;
  bool lowers_;
};

/// The index of a special token without which there is no encoding; `path` is that of the vocabulary.
std::uint32_t required(const decltype(Pipeline::roles)& roles, Role role, const std::string& path,
                       const RoleTexts& usual);

}  // namespace xgrad::tokenizers::detail
