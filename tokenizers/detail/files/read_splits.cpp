#include "read_splits.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../../base/error.hpp"
#include "../unicode/classes.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

Pattern pattern_of(const Json& place, std::string_view source) {
  try {
    return Pattern(source);
  } catch (const ValueError& error) {
    place.fail(error.what());
  }
}

/// {"Regex": "..."}, or {"String": "..."} with the characters as they are.
Pattern read_pattern(const Json& pattern) {
  const auto text = pattern.find("String");
  if (!text) return pattern_of(pattern.at("Regex"), pattern.at("Regex").text());
  std::string source;
  for (const char letter : text->text()) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_sign = byte < 0x80 && unicode::is(byte, unicode::punctuation);
    if (is_sign) source += '\\';
    source += letter;
  }
  return pattern_of(*text, source);
}

SplitBehavior read_behavior(const Json& behavior) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names{
      {{"Removed", SplitBehavior::removed},
       {"Isolated", SplitBehavior::isolated},
       {"Contiguous", SplitBehavior::contiguous},
       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
       {"MergedWithNext", SplitBehavior::merged_with_next}}};
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.first == behavior.text(); });
  if (found == names.end())
    behavior.refuse("Removed, Isolated, Contiguous, MergedWithPrevious or MergedWithNext");
  return found->second;
}

CharacterSet punctuation_characters() {
  unicode::Ranges ranges;
  for (char32_t character = 0; character < 0x110000; ++character)
    if (unicode::is(character, unicode::punctuation)) ranges.push_back({character, character});
  return CharacterSet(unicode::sorted_ranges(std::move(ranges)));
}

Splitter::Step read_split_step(const Json& part) {
  const std::string& type = part.at("type").text();
  if (type == "Split")
    return PatternSplit{read_pattern(part.at("pattern")), read_behavior(part.at("behavior")),
                        part.flag("invert", false)};
  if (type == "Digits")
    return CharacterSplit{CharacterSet(unicode::numeric_characters()), part.flag("individual_digits", false)
                                                                           ? SplitBehavior::isolated
                                                                           : SplitBehavior::contiguous};
  if (type == "Punctuation") {
    const auto behavior = part.find("behavior");
    return CharacterSplit{punctuation_characters(),
                          behavior ? read_behavior(*behavior) : SplitBehavior::isolated};
  }
  if (type == "WhitespaceSplit")
    return CharacterSplit{CharacterSet(*unicode::property("White_Space")), SplitBehavior::removed};
  if (type == "ByteLevel")
    return ByteLevelSplit{part.at("add_prefix_space").boolean(), part.flag("use_regex", true)};
  if (type == "Metaspace") return read_metaspace(part);
  part.at("type").refuse(
      "Split, Digits, Punctuation, WhitespaceSplit, ByteLevel or Metaspace, or a Sequence of these");
}

void append_steps(const Json& part, std::vector<Splitter::Step>& steps) {
  if (part.at("type").text() == "Sequence") {
    for (const Json& one : part.at("pretokenizers").items()) append_steps(one, steps);
    return;
  }
  const auto changes_text = [](const Splitter::Step& step) {
    return std::holds_alternative<ByteLevelSplit>(step) || std::holds_alternative<MetaspaceSplit>(step);
  };
  constexpr std::size_t most_steps = 64;
  if (steps.size() == most_steps) part.fail("must be one of at most " + std::to_string(most_steps));
  steps.push_back(read_split_step(part));
  if (std::count_if(steps.begin(), steps.end(), changes_text) > 1)
    part.fail("must be the only ByteLevel or Metaspace");
}

}  // namespace

MetaspaceSplit read_metaspace(const Json& part) {
  using Prepend = MetaspaceSplit::Prepend;
  MetaspaceSplit result{.prepend = part.flag("add_prefix_space", true) ? Prepend::always : Prepend::never,
                        .blank = part.at("replacement").text(),
                        .split = part.flag("split", true)};
  if (unicode::count(result.blank) != 1) part.at("replacement").refuse("one character");
  if (const auto shown = part.find("str_rep"); shown && shown->text() != result.blank)
    shown->refuse("the replacement");
  const auto scheme = part.find("prepend_scheme");
  if (!scheme) return result;
  if (scheme->text() == "always") {
    result.prepend = Prepend::always;
  } else if (scheme->text() == "first") {
    result.prepend = Prepend::first;
  } else if (scheme->text() == "never") {
    result.prepend = Prepend::never;
  } else {
    scheme->refuse("always, first or never");
  }
  return result;
}

Replace read_replace(const Json& part) {
  const Json pattern = part.at("pattern");
  const auto text = pattern.find("String");
  const std::string& content = part.at("content").text();
  constexpr std::size_t longest_content = 1000;
  if (content.size() > longest_content) part.fail("content must have at most 1000 bytes");
  if (!text) return {pattern_of(pattern.at("Regex"), pattern.at("Regex").text()), content};
  if (text->text().empty()) text->refuse("a text that is not empty");
  return {text->text(), content};
}

Splitter read_splitter(const std::optional<Json>& part) {
  std::vector<Splitter::Step> steps;
  if (part) append_steps(*part, steps);
  return Splitter(std::move(steps));
}

}  // namespace xgrad::tokenizers::detail
