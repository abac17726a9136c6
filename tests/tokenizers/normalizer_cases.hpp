#pragma once

// What Hugging Face's library makes of characters and short texts by a normalizer.

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "../../tokenizers/detail/files/pipeline.hpp"
#include "tokenizer_cases.hpp"
#include "unicode_sweep.hpp"

namespace xgrad_tests {

/// The character map of a tokenizer.json below a folder.
inline std::string charsmap_below(const std::string& folder) {
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().filename() != "tokenizer.json") continue;
    const nlohmann::json normalizer = read_json(file.path().string()).value("normalizer", nlohmann::json());
    if (!normalizer.is_object()) continue;
    for (const nlohmann::json& part : normalizer.value("normalizers", nlohmann::json::array({normalizer})))
      if (part.contains("precompiled_charsmap")) return part.at("precompiled_charsmap");
  }
  throw BadEntry(folder + ": must have a tokenizer.json with a precompiled_charsmap");
}

/// Whether a text is in base64, as a character map is, and no words about one.
inline bool is_base64(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t end = text.find_first_not_of(digits);
  return !text.empty() && text.size() % 4 == 0 &&
         (end == text.npos || text.find_first_not_of('=', end) == text.npos);
}

/// Gives each Precompiled of a normalizer's rules that has only words in place of its map the one that
/// charsmap() returns.
template <class F>
void complete_charsmaps(nlohmann::json& rules, const F& charsmap) {
  if (rules.contains("normalizers")) {
    for (nlohmann::json& part : rules.at("normalizers")) complete_charsmaps(part, charsmap);
  }
  if (rules.value("type", "") == "Precompiled" &&
      !is_base64(rules.value("precompiled_charsmap", nlohmann::json())))
    rules["precompiled_charsmap"] = charsmap();
}

/// Compares a file: what changes of all characters (`single`), and `sequences`. A Precompiled without a map
/// of its own takes the file's `precompiled_charsmap`, or else that of a tokenizer.json that lies beside.
inline void compare_normalizer(const std::string& path, const Note& note) {
  using nlohmann::json;
  namespace detail = xgrad::tokenizers::detail;
  const json file = read_json(path), &about = entry(file, "about");
  json rules = entry(about, "normalizer");
  complete_charsmaps(rules, [&]() -> std::string {
    for (const json* part : {&file, &about}) {
      if (is_base64(part->value("precompiled_charsmap", json()))) return part->at("precompiled_charsmap");
    }
    return charsmap_below(std::filesystem::path(path).parent_path().parent_path().string());
  });
  const detail::Normalizer normalizer = *detail::read_normalizer(detail::Json::parse(path, rules.dump()));
  const json& changed = entry(file, "single");
  const bool has_syllables = !entry_as<bool>(about, "hangul_by_the_algorithm");
  for (const char32_t character : all_characters()) {
    const bool is_syllable = character >= 0xAC00 && character <= 0xD7A3;
    if (is_syllable && !has_syllables) continue;
    const std::string text = text_of(character), wanted = changed.value(text, text);
    if (normalizer(text) != wanted) note(json(text).dump(), false);
  }
  note("single", true);
  for (const json& pair : list_entry(file, "sequences"))
    note(pair.dump(), normalizer(pair.at(0).get<std::string>()) == pair.at(1).get<std::string>());
}

}  // namespace xgrad_tests
