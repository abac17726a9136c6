#include "tokenizer_config.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"

namespace xgrad::tokenizers::detail {
namespace {

std::optional<Json> read_if_there(const std::string& path) {
  return is_file(path) ? std::optional(Json::read(path)) : std::nullopt;
}

/// A token that may be a text, which is special then.
Declared text_or_object(const Json& value) {
  if (value.is_object()) return declared(value, true);
  return {.place = value, .text = value.text()};
}

/// The id that is the name of a member.
std::int64_t id_of_name(const std::string& name, const Json& member) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size() || id < 0 || id > largest_id)
    member.fail("the name must be an id");
  return id;
}

/// additional_special_tokens, which newer files call extra_special_tokens: a list, or an object with names.
void append_extra_tokens(const std::optional<Json>& file, std::vector<Declared>& tokens) {
  if (!file) return;
  for (const char* name : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto extra = file->find(name);
    if (!extra) continue;
    if (extra->is_object()) {
      for (const auto& [role, token] : extra->members()) tokens.push_back(text_or_object(token));
    } else {
      for (const Json& token : extra->items()) tokens.push_back(text_or_object(token));
    }
  }
}

/// Whether a normalizer of a tokenizer.json lowers texts.
bool lowers_texts(const Json& normalizer) {
  const std::string& type = normalizer.at("type").text();
  if (type == "BertNormalizer") return normalizer.at("lowercase").boolean();
  if (type != "Sequence") return type == "Lowercase";
  const std::vector<Json> parts = normalizer.at("normalizers").items();
  return std::any_of(parts.begin(), parts.end(),
                     [](const Json& part) { return part.at("type").text() == "Lowercase"; });
}

}  // namespace

std::string in_folder(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

TokenizerConfig::TokenizerConfig(const std::string& folder, bool lowers)
    : file_(read_if_there(in_folder(folder, "tokenizer_config.json"))), lowers_(lowers) {
  if (find("added_tokens_decoder").has_value()) return;
  map_ = read_if_there(in_folder(folder, "special_tokens_map.json"));
  added_ = read_if_there(in_folder(folder, "added_tokens.json"));
}

bool TokenizerConfig::flag(const std::string& name, bool otherwise) const {
  return file_ ? file_->flag(name, otherwise) : otherwise;
}

std::vector<std::string> TokenizerConfig::contradictions(const Json& tokenizer,
                                                         const TokenTable& tokens) const {
  std::vector<std::string> notes;
  const auto compare = [&](const char* name, bool counts) {
    const auto value = find(name);
    if (value && value->boolean() != counts)
      notes.push_back(value->place() + " is " + value->dump() + ", but tokenizer.json, which counts, says " +
                      (counts ? "true" : "false"));
  };
  const auto normalizer = tokenizer.find("normalizer"), splits = tokenizer.find("pre_tokenizer");
  compare("do_lower_case", normalizer && lowers_texts(*normalizer));
  if (normalizer && normalizer->at("type").text() == "BertNormalizer") {
    compare("tokenize_chinese_chars", normalizer->at("handle_chinese_chars").boolean());
    compare("strip_accents", normalizer->flag("strip_accents", normalizer->at("lowercase").boolean()));
  }
  if (splits && splits->at("type").text() == "ByteLevel")
    compare("add_prefix_space", splits->at("add_prefix_space").boolean());
  const auto decoder = find("added_tokens_decoder");
  if (!decoder) return notes;
  for (const auto& [name, object] : decoder->members()) {
    const std::string wanted = object.at("content").text();
    const auto index = tokens.index(id_of_name(name, object));
    if (index && tokens[*index].text == wanted) continue;
    notes.push_back(object.place() + " is " + xgrad::detail::in_quotes(wanted) +
                    ", but tokenizer.json, which counts, has " +
                    (index ? xgrad::detail::in_quotes(tokens[*index].text) : "no token") + " with this id");
    break;  // the first of many
  }
  return notes;
}

std::optional<Normalizer> TokenizerConfig::adapted(std::optional<Normalizer> normalizer) const {
  if (!lowers_) return normalizer;
  return normalizer ? normalizer->lowercased() : TextSteps({Lowercase{}});
}

std::optional<std::size_t> TokenizerConfig::max_length() const {
  constexpr double none_from = 1e9;
  const auto value = find("model_max_length");
  if (!value) return std::nullopt;
  const double length = value->number(1, 1e300);  // Python also writes 512.0
  if (length >= none_from) return std::nullopt;
  if (length != std::floor(length)) value->refuse("a whole number");
  return static_cast<std::size_t>(length);
}

Side TokenizerConfig::side(const std::string& name) const {
  const auto value = find(name);
  if (!value || value->text() == "right") return Side::right;
  if (value->text() != "left") value->refuse("left or right");
  return Side::left;
}

std::optional<Declared> TokenizerConfig::token(const std::string& name) const {
  std::optional<Json> value = map_ ? map_->find(name) : std::nullopt;
  if (!value) value = find(name);
  return value ? std::optional(text_or_object(*value)) : std::nullopt;
}

std::optional<Declared> TokenizerConfig::token(Role role) const {
  return token(std::string(role_names[static_cast<std::size_t>(role)]) + "_token");
}

std::vector<Declared> TokenizerConfig::other_tokens() const {
  std::vector<Declared> result;
  if (const auto decoder = find("added_tokens_decoder")) {
    for (const auto& [name, object] : decoder->members()) {
      result.push_back(declared(object, false));
      result.back().id = id_of_name(name, object);
    }
    std::ranges::sort(result, {}, [](const Declared& token) { return *token.id; });
  }
  append_extra_tokens(file_, result);
  append_extra_tokens(map_, result);
  for (const char* name : {"bos_token", "eos_token"})
    if (auto one = token(name)) result.push_back(std::move(*one));
  return result;
}

std::vector<Declared> TokenizerConfig::tokens(const TokenIds& vocab, const RoleTexts& usual) const {
  std::vector<Declared> all = other_tokens(), result;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    if (auto one = token(static_cast<Role>(i))) {
      all.push_back(std::move(*one));
    } else if (vocab.contains(usual[i])) {
      all.push_back({.place = {}, .text = std::string(usual[i])});
    }
  }
  if (added_) {
    for (const auto& [text, id] : added_->members())
      all.push_back(
          {.place = id, .text = text, .id = id.integer(0, largest_id), .normalized = true, .special = false});
  }
  std::unordered_map<std::string, std::size_t> places;
  for (Declared& one : all) {
    const auto [place, is_new] = places.try_emplace(one.text, result.size());
    if (is_new) {
      result.push_back(std::move(one));
    } else if (one.id && !result[place->second].id) {
      result[place->second].id = one.id;
      if (!result[place->second].place) result[place->second].place = one.place;
    }
  }
  std::ranges::stable_sort(result, {}, [](const Declared& one) { return one.id.value_or(0); });
  return result;
}

decltype(Pipeline::roles) TokenizerConfig::roles(const TokenTable& tokens, const RoleTexts& usual) const {
  decltype(Pipeline::roles) roles;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const auto one = token(static_cast<Role>(i));
    roles[i] = tokens.index(one ? std::string_view(one->text) : usual[i]);
    if (one && !roles[i])
      one->place->fail("must be a token of the vocabulary, got " + xgrad::detail::in_quotes(one->text));
  }
  return roles;
}

std::string TokenizerConfig::class_name() const {
  const auto value = find("tokenizer_class");
  std::string name = value ? value->text() : "";
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

void TokenizerConfig::check_class(const std::vector<std::string_view>& known) const {
  const std::string name = class_name();
  if (name.empty() || std::ranges::find(known, name) != known.end()) return;
  std::string names;
  for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
  find("tokenizer_class")->refuse("one of " + names + " without a tokenizer.json");
}

std::uint32_t required(const decltype(Pipeline::roles)& roles, Role role, const std::string& path,
                       const RoleTexts& usual) {
  const auto i = static_cast<std::size_t>(role);
  if (!roles[i])
    xgrad::detail::fail<FileError>(path, ": the vocabulary must have the ", role_names[i], " token, got no ",
                                   xgrad::detail::in_quotes(usual[i]));
  return *roles[i];
}

}  // namespace xgrad::tokenizers::detail
