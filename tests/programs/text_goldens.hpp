#pragma once

// Compares the texts that a decoder with a tokenizer writes with what Hugging Face gave.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/base/random.hpp>
#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/tokenizers/decode_stream.hpp>

#include "golden_result.hpp"
#include "json_file.hpp"

namespace xgrad_tests {

/// A folder of a decoder with a tokenizer and text_cases.json.
class TextGoldens {
 public:
  explicit TextGoldens(const std::string& folder)
      : tokenizer_(xgrad::tokenizers::Tokenizer::from_folder(folder)),
        model_(xgrad::pretrained::CausalLM<float>::from_folder(folder)),
        options_(Options::from_folder(folder)),
        cases_(read_json(folder + "/text_cases.json")),
        name_(folder + ": ") {}

  std::vector<GoldenResult> results() {
    for (const json& one : list_entry(cases_, "prompts")) compare_prompt(one);
    compare_prompt(entry(cases_, "chat"));
    for (const json& one : list_entry(cases_, "stop_strings")) compare_stop_strings(one);
    for (const json& one : list_entry(cases_, "sampled_with_generation_config")) compare_sampled(one);
    return results_;
  }

 private:
  using json = nlohmann::json;
  using Ids = std::vector<std::int64_t>;
  using Options = xgrad::generation::GenerationOptions;

  /// Greedily, so many tokens.
  Ids written(const Ids& ids, std::size_t count, std::vector<std::string> stop_strings = {}) const {
    return xgrad::generation::generate(model_, tokenizer_, {ids},
                                       {.max_new_tokens = count, .stop_strings = std::move(stop_strings)})
        .front();
  }

  void compare_prompt(const json& one) {
    const auto text = entry_as<std::string>(one, "text");
    const auto ids = entry_as<Ids>(one, "ids"), greedy = entry_as<Ids>(one, "greedy");
    note("ids", text, tokenizer_.encode(text).ids, ids);
    note("tokens", text, written(ids, greedy.size()), greedy);
    note("text", text, tokenizer_.decode(greedy), entry_as<std::string>(one, "text_out"));
    if (!one.contains("pieces")) return;
    xgrad::tokenizers::DecodeStream stream(tokenizer_);
    std::vector<std::string> pieces;
    for (const std::int64_t id : greedy) pieces.push_back(stream.step(id));
    note("pieces", text, pieces, entry_as<std::vector<std::string>>(one, "pieces"));
  }

  void compare_stop_strings(const json& one) {
    const auto tokens = entry_as<Ids>(one, "new_tokens");
    const auto strings = entry_as<std::vector<std::string>>(one, "stop_strings");
    const std::string about = entry_as<std::string>(one, "text") + ", up to " + json(strings).dump();
    note("tokens", about, written(entry_as<Ids>(one, "ids"), most_tokens, strings), tokens);
    note("text", about, tokenizer_.decode(tokens), entry_as<std::string>(one, "text_out"));
  }

  /// With the options of the folder.
  void compare_sampled(const json& one) {
    const auto seed = entry_as<std::uint64_t>(one, "seed");
    const auto tokens = entry_as<Ids>(one, "new_tokens");
    Options options = options_;
    options.max_new_tokens = most_tokens;
    xgrad::manual_seed(seed);
    const std::string about = "seed " + std::to_string(seed);
    note("tokens", about, generate(model_, {entry_as<Ids>(one, "ids")}, options).front(), tokens);
    note("text", about, tokenizer_.decode(tokens), entry_as<std::string>(one, "text_out"));
  }

  template <class Values>
  void note(const std::string& what, const std::string& about, const Values& got, const Values& want) {
    results_.push_back({name_ + what + " of " + about,
                        got == want ? "" : "must be " + json(want).dump() + ", got " + json(got).dump()});
  }

  static constexpr std::size_t most_tokens = 24;

  xgrad::tokenizers::Tokenizer tokenizer_;
  xgrad::pretrained::CausalLM<float> model_;
  Options options_;
  json cases_;
  std::string name_;
  std::vector<GoldenResult> results_;
};

}  // namespace xgrad_tests
