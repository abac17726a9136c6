#include "declared_tokens.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using xgrad::detail::in_quotes;

[[noreturn]] void refuse(const Declared& token, const std::string& why) {
  if (token.place) token.place->fail(why);
  xgrad::detail::fail<FileError>("token ", in_quotes(token.text), ": ", why);
}

/// The text of a token as a normalizer makes it.
std::string normalized_text(const Declared& token, const std::optional<Normalizer>& normalizer) {
  if (!normalizer) return token.text;
  try {
    return (*normalizer)(token.text);
  } catch (const ValueError& error) {
    refuse(token, error.what());
  }
}

/// The tokens to find in the text, or those to find in the normalised one, which are normalised themselves.
/// Of those with equal texts, such as Foo and foo in lower case, the last one is found; the library finds
/// any.
AddedTokens matcher(TokenTable& tokens, const std::vector<Declared>& all, bool normalized,
                    const std::optional<Normalizer>& normalizer) {
  std::vector<AddedToken> result;
  std::unordered_map<std::string, std::size_t> places;
  for (const Declared& token : all) {
    const std::uint32_t index = *tokens.index(token.text);
    if (token.special) tokens[index].special = true;
    if (token.normalized != normalized) continue;
    const std::string text = normalized ? normalized_text(token, normalizer) : token.text;
    if (text.empty())
      refuse(token, "a token must not be empty after normalisation, got " + in_quotes(token.text));
    const auto [place, is_new] = places.try_emplace(text, result.size());
    if (is_new) result.emplace_back();
    result[place->second] = {text, index, token.single_word, token.lstrip, token.rstrip};
  }
  return AddedTokens(std::move(result));
}

/// As in the library, a token that is normalised has its normalised text, and is special if a special token
/// has that text.
void rename_normalized(TokenTable& tokens, const std::vector<Declared>& all,
                       const std::optional<Normalizer>& normalizer) {
  if (!normalizer) return;
  std::unordered_set<std::string_view> specials;
  for (const Declared& token : all) {
    if (token.special) specials.insert(token.text);
  }
  for (const Declared& token : all) {
    if (!token.normalized) continue;
    TokenTable::Token& entry = tokens[*tokens.index(token.text)];
    entry.text = normalized_text(token, normalizer);
    entry.special = specials.contains(entry.text);
  }
}

}  // namespace

Declared declared(const Json& object, bool special_otherwise) {
  return {.place = object,
          .text = object.at("content").text(),
          .id = {},
          .single_word = object.flag("single_word", false),
          .lstrip = object.flag("lstrip", false),
          .rstrip = object.flag("rstrip", false),
          .normalized = object.flag("normalized", false),
          .special = object.flag("special", special_otherwise)};
}

std::vector<Declared> read_added_tokens(const std::optional<Json>& list) {
  std::vector<Declared> result;
  if (!list) return result;
  for (const Json& item : list->items()) {
    result.push_back(declared(item, false));
    result.back().id = item.at("id").integer(0, largest_id);
  }
  return result;
}

TokenIds new_tokens(const TokenIds& model, std::vector<Declared>& tokens) {
  std::erase_if(tokens, [](const Declared& token) { return token.text.empty(); });
  TokenIds added;
  std::unordered_set<std::string_view> seen;
  for (const Declared& token : tokens) {
    if (!seen.insert(token.text).second)
      refuse(token, "a token must be declared once, got " + in_quotes(token.text) + " twice");
    if (token.text.size() > longest_token || seen.size() > most_tokens)
      refuse(token, "there must be at most " + std::to_string(most_tokens) + " tokens of " +
                        std::to_string(longest_token) + " bytes");
    const auto found = model.find(token.text);
    const std::int64_t id =
        found != model.end() ? found->second : static_cast<std::int64_t>(model.size() + added.size());
    if (token.id.value_or(id) != id)
      refuse(token,
             "the id of " + in_quotes(token.text) + " must be " + std::to_string(id) +
                 (found != model.end() ? ", as in the vocabulary" : ", the first after the vocabulary") +
                 ", got " + std::to_string(*token.id));
    if (found != model.end()) continue;
    if (!token.id) refuse(token, "must be a token of the vocabulary, got " + in_quotes(token.text));
    added.emplace(token.text, id);
  }
  return added;
}

AddedMatchers add_matchers(TokenTable& tokens, const std::vector<Declared>& all,
                           const std::optional<Normalizer>& normalizer) {
  AddedTokens raw = matcher(tokens, all, false, normalizer);
  AddedTokens normalized = matcher(tokens, all, true, normalizer);
  rename_normalized(tokens, all, normalizer);
  return {std::move(raw), std::move(normalized)};
}

}  // namespace xgrad::tokenizers::detail
