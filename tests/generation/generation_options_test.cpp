// generation_config.json, read and written.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/generation/generation_options.hpp>

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace generation_options_test {

using nlohmann::json;
using xgrad::FileError, xgrad::ValueError, xgrad::generation::GenerationOptions;
using xgrad_tests::message_of, xgrad_tests::TemporaryFolder;
using Ids = std::vector<std::int64_t>;

GenerationOptions read(const TemporaryFolder& folder) {
  std::string path = folder.path("");
  path.pop_back();  // the slash
  return GenerationOptions::from_folder(path);
}

TEST(GenerationOptions, EveryKeyIsReadAndWrittenAgain) {
  const json all = {{"max_new_tokens", 30},
                    {"max_length", 40},
                    {"min_length", 2},
                    {"min_new_tokens", 1},
                    {"stop_strings", {"a", "b"}},
                    {"bos_token_id", 3},
                    {"eos_token_id", {2, 7}},
                    {"pad_token_id", 0},
                    {"sequence_bias", {{{4, 5}, -1.5}, {{6}, 2.0}}},
                    {"repetition_penalty", 1.25},
                    {"no_repeat_ngram_size", 3},
                    {"bad_words_ids", {{1}, {2, 3}}},
                    {"forced_bos_token_id", 8},
                    {"forced_eos_token_id", {2}},
                    {"remove_invalid_values", true},
                    {"exponential_decay_length_penalty", {5, 1.5}},
                    {"suppress_tokens", {9, 10}},
                    {"begin_suppress_tokens", {11, 12}},
                    {"do_sample", true},
                    {"temperature", 0.5},
                    {"top_k", 0},
                    {"top_p", 0.75},
                    {"min_p", 0.0},
                    {"typical_p", 0.5},
                    {"epsilon_cutoff", 0.25},
                    {"eta_cutoff", 0.125},
                    {"renormalize_logits", true},
                    {"num_beams", 4},
                    {"num_return_sequences", 2},
                    {"use_cache", false},
                    {"early_stopping", "never"},
                    {"transformers_version", "5.24.0"}};
  const TemporaryFolder folder;
  folder.write("generation_config.json", all.dump());
  const auto options = read(folder);
  EXPECT_EQ(options.max_new_tokens, 30u);
  EXPECT_EQ(options.eos_token_ids, (Ids{2, 7}));
  EXPECT_EQ(options.forced_eos_token_ids, (Ids{2}));
  EXPECT_EQ(options.sequence_bias[0].first, (Ids{4, 5}));
  EXPECT_EQ(options.sequence_bias[0].second, -1.5);
  EXPECT_EQ(options.exponential_decay_length_penalty->first, 5u);
  EXPECT_EQ(options.min_p, 0.0);
  EXPECT_EQ(json::parse(options.json()), all);
  EXPECT_EQ(options.length_limit(7), 37u);
  options.check();
}

TEST(GenerationOptions, DefaultsAreThoseOfHuggingFaceAndAreNotWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(read(folder).json(), "{}\n");
  folder.write("generation_config.json",
               R"({"temperature": null, "top_k": 50, "guidance_scale": null, "num_beam_groups": 1,
                   "diversity_penalty": 0.0, "eos_token_id": 2, "encoder_repetition_penalty": 1.0})");
  const auto options = read(folder);
  EXPECT_EQ(options.json(), "{\n  \"eos_token_id\": 2\n}\n");
  EXPECT_EQ(options.length_limit(7), 27u);
  EXPECT_EQ((GenerationOptions{.max_length = 9}.length_limit(7)), 9u);
  EXPECT_EQ((GenerationOptions{.max_new_tokens = SIZE_MAX}.length_limit(7)), SIZE_MAX);
}

TEST(GenerationOptions, WhatIsWrongInAFileIsRefusedByItsKey) {
  const std::pair<const char*, const char*> bad[]{
      {R"({"top_z": 1})", "top_z: is not known"},
      {R"({"temperature": 0})", "temperature must be above 0, got 0"},
      {R"({"temperature": "hot"})", R"(temperature must be a number)"},
      {R"({"top_k": -1})", "top_k must be at least 0, got -1"},
      {R"({"top_k": 1.5})", "top_k must be a whole number"},
      {R"({"top_p": 1.5})", "top_p must be from 0 to 1, got 1.5"},
      {R"({"min_p": -0.5})", "min_p must be from 0 to 1, got -0.5"},
      {R"({"typical_p": 0})", "typical_p must be above 0 and at most 1, got 0"},
      {R"({"epsilon_cutoff": 1})", "epsilon_cutoff must be at least 0 and below 1, got 1"},
      {R"({"num_beams": 0})", "num_beams must be at least 1, got 0"},
      {R"({"max_new_tokens": 0})", "max_new_tokens must be at least 1, got 0"},
      {R"({"eos_token_id": [2, -1]})", "eos_token_id[1] must be at least 0, got -1"},
      {R"({"eos_token_id": {}})", "eos_token_id must be"},
      {R"({"do_sample": 1})", "do_sample must be"},
      {R"({"stop_strings": [1]})", "stop_strings[0] must be"},
      {R"({"stop_strings": ["a", ""]})", "stop_strings must be texts with characters, got an array"},
      {R"({"bad_words_ids": [[]]})", "bad_words_ids must be ids from 0 on, in no empty list, got an array"},
      {R"({"bad_words_ids": 5})", "bad_words_ids must be"},
      {R"({"sequence_bias": [[[1]]]})", "sequence_bias[0] must be a list of ids and a number"},
      {R"({"sequence_bias": [[[], 1.0]]})", "sequence_bias must be ids from 0 on, in no empty list"},
      {R"({"exponential_decay_length_penalty": [1, 0]})",
       "exponential_decay_length_penalty[1] must be above 0, got 0"},
      {R"({"exponential_decay_length_penalty": 3})", "exponential_decay_length_penalty must be"},
      {R"({"guidance_scale": 1.5})", "guidance_scale must be 1, as others are not built, got 1.5"},
      {R"({"top_h": 0.5})", "top_h must be null, as others are not built, got 0.5"},
      {R"({"top_p": 0.5, "top_p": 0.6})", ""},
      {"[]", ""},
  };
  const TemporaryFolder folder;
  for (const auto& [text, message] : bad) {
    const std::string path = folder.write("generation_config.json", text);
    const std::string got = message_of<FileError>([&] { read(folder); });
    EXPECT_TRUE(got.starts_with(path + ": " + message)) << text << '\n' << got;
  }
}

TEST(GenerationOptions, ValuesOutOfRangeAreNamed) {
  const auto message = [](const GenerationOptions& options) {
    return message_of<ValueError>([&] { options.check(); });
  };
  EXPECT_EQ(message({}), "no exception");
  EXPECT_EQ(message({.temperature = 0}), "generation: temperature must be above 0, got 0");
  EXPECT_EQ(message({.temperature = std::nan("")}), "generation: temperature must be above 0, got nan");
  EXPECT_EQ(message({.max_length = 0}), "generation: max_length must be at least 1, got 0");
  EXPECT_EQ(message({.eos_token_ids = Ids{1, -2}}), "generation: eos_token_id must be at least 0, got -2");
  EXPECT_EQ(message({.stop_strings = {"a", ""}}),
            "generation: stop_strings must be texts with characters, got an empty one");
  EXPECT_EQ(message({.bad_words_ids = {{1}, {}}}),
            "generation: bad_words_ids must be ids from 0 on, in no empty list, got an empty list");
  EXPECT_EQ(message({.sequence_bias = {{{-1}, 0.0}}}),
            "generation: sequence_bias must be ids from 0 on, in no empty list, got -1");
  EXPECT_EQ(message({.exponential_decay_length_penalty = std::pair{std::size_t{1}, -1.0}}),
            "generation: exponential_decay_length_penalty must be above 0, got -1");
  EXPECT_EQ(message({.min_p = 1.5}), "generation: min_p must be from 0 to 1, got 1.5");
}

}  // namespace generation_options_test
