#pragma once

// What Hugging Face's library gave with a model folder's own tokenizer, in its tokenizer_cases.json.

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "tokenizer_cases.hpp"

namespace xgrad_tests {

class FolderCases {
 public:
  FolderCases(const std::string& folder, Note note)
      : note_(std::move(note)),
        tokenizer_(xgrad::tokenizers::Tokenizer::from_folder(folder)),
        cases_(read_json(folder + "/tokenizer_cases.json")) {}

  void compare() const {
    for (const json& one : list_entry(cases_, "strings")) compare_string(one);
    for (const json& one : list_entry(cases_, "without_special_tokens")) {
      const Encoding encoding =
          tokenizer_.encode(entry_as<std::string>(one, "text"), {.add_special_tokens = false});
      note_("without special tokens, " + entry(one, "text").dump(), json(encoding.ids) == entry(one, "ids"));
    }
    for (const json& one : list_entry(cases_, "pairs"))
      note_("pair, " + settings_of(one), is_right_pair(one));
    for (const json& one : list_entry(cases_, "batches"))
      note_("batch, " + settings_of(one), is_right_batch(one));
  }

 private:
  using Encoding = xgrad::tokenizers::Encoding;
  using Side = xgrad::tokenizers::Side;
  using json = nlohmann::json;

  void compare_string(const json& one) const {
    const Encoding encoding = tokenizer_.encode(entry_as<std::string>(one, "text"));
    const std::string name = "string, " + entry(one, "text").dump();
    note_(name + ": ids", json(encoding.ids) == entry(one, "ids"));
    note_(name + ": offsets", json(encoding.offsets) == entry(one, "offsets"));
    note_(name + ": words", to_json(encoding.words) == entry(one, "words"));
    note_(name + ": decoded", json(tokenizer_.decode(encoding.ids, false)) == entry(one, "decoded"));
    note_(name + ": decoded without special tokens",
          json(tokenizer_.decode(encoding.ids)) == entry(one, "decoded_skip"));
  }

  static Side side_of(const json& one) {
    const auto side = entry_as<std::string>(one, "direction");
    if (side != "left" && side != "right") bad_entry("direction", "left or right", side);
    return side == "left" ? Side::left : Side::right;
  }

  static std::string settings_of(const json& one) {
    std::string text;
    for (const auto& [name, value] : one.items())
      if (value.is_primitive()) text += name + " " + value.dump() + ", ";
    return text;
  }

  static bool is_same(const Encoding& encoding, const json& one) {
    return json(encoding.ids) == entry(one, "ids") && json(encoding.type_ids) == entry(one, "type_ids") &&
           json(encoding.special) == entry(one, "special_tokens_mask") &&
           json(encoding.offsets) == entry(one, "offsets") &&
           to_json(encoding.words) == entry(one, "words") &&
           json(encoding.attention_mask) == entry(one, "attention_mask") &&
           to_json(encoding.sequences) == entry(one, "sequences") &&
           overflows_alike(encoding, list_entry(one, "overflowing"));
  }

  static bool overflows_alike(const Encoding& encoding, const json& wanted) {
    bool same = encoding.overflowing.size() == wanted.size();
    for (std::size_t i = 0; same && i < wanted.size(); ++i) {
      const Encoding& part = encoding.overflowing[i];
      same = json(part.ids) == entry(wanted[i], "ids") && json(part.offsets) == entry(wanted[i], "offsets") &&
             json(part.attention_mask) == entry(wanted[i], "attention_mask");
    }
    return same;
  }

  bool is_right_pair(const json& one) const {
    using xgrad::tokenizers::Truncation;
    static const std::map<std::string, Truncation> strategies{{"longest_first", Truncation::longest_first},
                                                              {"only_first", Truncation::only_first},
                                                              {"only_second", Truncation::only_second}};
    xgrad::tokenizers::EncodeOptions options;
    if (!entry(one, "max_length").is_null()) {
      options.max_length = entry_as<std::size_t>(one, "max_length");
      options.truncation = strategies.at(entry_as<std::string>(one, "strategy"));
      options.truncation_side = side_of(one);
      options.stride = entry_as<std::size_t>(one, "stride");
      options.return_overflowing_tokens = true;
    }
    try {
      const Encoding encoding = encode(tokenizer_, entry(one, "a"), entry(one, "b"), options);
      return !one.contains("error") && is_same(encoding, one);
    } catch (const xgrad::ValueError&) {
      return one.contains("error");
    }
  }

  bool is_right_batch(const json& one) const {
    xgrad::tokenizers::PadOptions options;
    options.padding_side = side_of(one);
    if (!entry(one, "length").is_null()) {
      options.padding = xgrad::tokenizers::Padding::max_length;
      options.max_length = entry_as<std::size_t>(one, "length");
    }
    if (!entry(one, "pad_to_multiple_of").is_null())
      options.pad_to_multiple_of = entry_as<std::size_t>(one, "pad_to_multiple_of");
    const std::vector<Encoding> encodings =
        tokenizer_.pad(tokenizer_.encode(entry_as<std::vector<std::string>>(one, "texts")), options);
    const json& rows = list_entry(one, "rows");
    bool right = rows.size() == encodings.size();
    for (std::size_t row = 0; right && row < rows.size(); ++row)
      right = is_same(encodings[row], rows.at(row));
    return right;
  }

  Note note_;
  xgrad::tokenizers::Tokenizer tokenizer_;
  json cases_;
};

}  // namespace xgrad_tests
