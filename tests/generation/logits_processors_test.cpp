// Logits as Hugging Face's processors change them.

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/generation/logits_processors.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"
#include "programs/processor_goldens.hpp"

namespace logits_processors_test {

using xgrad::IndexError, xgrad::ValueError, xgrad::generation::GenerationOptions;
using xgrad_tests::message_of;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> processed(const GenerationOptions& options, std::vector<double> logits,
                              const std::vector<std::int64_t>& tokens = {0}, std::size_t prompt_length = 1) {
  xgrad::generation::process_logits<double>(options, tokens, prompt_length, logits);
  return logits;
}

TEST(LogitsProcessors, GiveHuggingFacesLogitsInItsOrder) {
  const auto results =
      xgrad_tests::processor_goldens(xgrad_tests::data_folder("generation") + "processors.json");
  EXPECT_GE(results.size(), 60u);
  for (const auto& [name, problem] : results) EXPECT_EQ(problem, "") << name;
}

TEST(LogitsProcessors, TopPKeepsTheFewestThatMakeTheProbability) {
  const double p[] = {0.1, 0.4, 0.2, 0.3};
  std::vector<double> logits;
  for (const double one : p) logits.push_back(std::log(one));
  const auto kept = [&](double top_p) {
    std::vector<int> places;
    const auto result = processed({.do_sample = true, .top_k = 0, .top_p = top_p}, logits);
    for (int i = 0; i < 4; ++i) {
      if (result[static_cast<std::size_t>(i)] > -infinity) places.push_back(i);
    }
    return places;
  };
  EXPECT_EQ(kept(0.39), (std::vector<int>{1}));
  EXPECT_EQ(kept(0.41), (std::vector<int>{1, 3}));
  EXPECT_EQ(kept(0.69), (std::vector<int>{1, 3}));
  EXPECT_EQ(kept(0.71), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(kept(0.95), (std::vector<int>{0, 1, 2, 3}));
}

TEST(LogitsProcessors, OfEqualLogitsTopPKeepsTheLast) {
  const auto result = processed({.do_sample = true, .top_k = 0, .top_p = 0.5}, {1, 1, 1, 1});
  EXPECT_EQ(result, (std::vector<double>{-infinity, -infinity, 1, 1}));
}

TEST(LogitsProcessors, TokensAsTypicalAsTheLastOneStay) {
  const GenerationOptions options{.do_sample = true, .top_k = 0, .typical_p = 0.3};
  EXPECT_EQ(processed(options, {1, 1, 1, 1}), (std::vector<double>{1, 1, 1, 1}));
}

TEST(LogitsProcessors, EndsThatAreExcludedAreNotFavoured) {
  const GenerationOptions options{.eos_token_ids = std::vector<std::int64_t>{0, 1},
                                  .exponential_decay_length_penalty = std::pair{std::size_t{1}, 2.0}};
  EXPECT_EQ(processed(options, {-infinity, -3, 1}, {0, 0, 0, 0}, 1), (std::vector<double>{-infinity, 6, 1}));
  for (const std::vector<std::int64_t>& tokens : {std::vector<std::int64_t>{0}, {0, 0}})
    EXPECT_EQ(processed(options, {-infinity, -3, 1}, tokens, 1), (std::vector<double>{-infinity, -3, 1}));
  const GenerationOptions never{.eos_token_ids = std::vector<std::int64_t>{0, 1},
                                .exponential_decay_length_penalty = std::pair{SIZE_MAX, 2.0}};
  EXPECT_EQ(processed(never, {-infinity, -3, 1}, {0, 0, 0, 0}, 1), (std::vector<double>{-infinity, -3, 1}));
}

TEST(LogitsProcessors, EtaFallsWithTheEntropy) {
  // min(0.25, 0.5 e^-0.802) = 0.224
  const std::vector<double> logits{std::log(0.7), std::log(0.2), std::log(0.1)};
  EXPECT_EQ(processed({.do_sample = true, .top_k = 0, .eta_cutoff = 0.25}, logits),
            (std::vector<double>{logits[0], -infinity, -infinity}));
}

TEST(LogitsProcessors, SequencesMayBeOneTokenLongerThanTheText) {
  EXPECT_EQ(processed({.bad_words_ids = {{0, 1}, {0, 0, 2}}}, {5, 6, 7}, {0}),
            (std::vector<double>{5, -infinity, 7}));
  EXPECT_EQ(processed({.sequence_bias = {{{0, 1}, 2}, {{0, 0, 2}, 2}}}, {5, 6, 7}, {0}),
            (std::vector<double>{5, 8, 7}));
}

TEST(LogitsProcessors, TheLastBiasOfEqualSequencesCounts) {
  EXPECT_EQ(processed({.sequence_bias = {{{1}, 2}, {{0, 1}, 5}, {{1}, 3}, {{0, 1}, 7}}}, {5, 6, 7}, {0, 0}),
            (std::vector<double>{5, 16, 7}));
}

TEST(LogitsProcessors, BeamsKeepOneTokenMoreThanThereAreEnds) {
  const std::vector<std::int64_t> ends{0, 1};
  const auto kept = [&](GenerationOptions options) {
    options.do_sample = true;
    options.num_beams = 2;
    options.eos_token_ids = ends;
    const auto result = processed(options, {0, 1, 2, 3, 4});
    return std::count_if(result.begin(), result.end(), [](double logit) { return logit > -infinity; });
  };
  EXPECT_EQ(kept({.top_k = 1}), 3);
  EXPECT_EQ(kept({.top_k = 0, .top_p = 0.01}), 3);
  EXPECT_EQ(kept({.top_k = 0, .min_p = 1}), 3);
  EXPECT_EQ(kept({.top_k = 0, .typical_p = 0.01}), 3);
  EXPECT_EQ(kept({.top_k = 0, .epsilon_cutoff = 0.9}), 3);
  EXPECT_EQ(kept({.top_k = 0, .eta_cutoff = 0.9}), 3);
}

TEST(LogitsProcessors, EndsAreExcludedUntilThereAreTokensEnough) {
  GenerationOptions options{.min_new_tokens = 2, .eos_token_ids = std::vector<std::int64_t>{1}};
  EXPECT_EQ(processed(options, {0, 1, 2}, {0, 0, 0}, 2)[1], -infinity);
  EXPECT_EQ(processed(options, {0, 1, 2}, {0, 0, 0, 0}, 2)[1], 1);
  options = {.min_length = 4, .eos_token_ids = std::vector<std::int64_t>{1}};
  EXPECT_EQ(processed(options, {0, 1, 2}, {0, 0, 0}, 2)[1], -infinity);
  EXPECT_EQ(processed(options, {0, 1, 2}, {0, 0, 0, 0}, 2)[1], 1);
  options.eos_token_ids = {};
  EXPECT_TRUE(names_of_processors(options).empty());
}

TEST(LogitsProcessors, TheLastTokenIsForced) {
  const GenerationOptions options{.max_new_tokens = 3, .max_length = 4, .forced_eos_token_ids = {2}};
  EXPECT_EQ(processed(options, {5, 6, 7}, {0, 0, 0, 0}, 2), (std::vector<double>{-infinity, -infinity, 0}));
  EXPECT_EQ(processed(options, {5, 6, 7}, {0, 0, 0}, 2), (std::vector<double>{5, 6, 7}));
}

TEST(LogitsProcessors, OnlyTheSecondTokenIsForced) {
  EXPECT_EQ(processed({.forced_bos_token_id = 1}, {5, 6}, {0}, 1), (std::vector<double>{-infinity, 0}));
  EXPECT_EQ(processed({.forced_bos_token_id = 1}, {5, 6}, {0, 0}, 2), (std::vector<double>{5, 6}));
}

TEST(LogitsProcessors, TokensOfTheBeginAreSuppressedBehindAForcedOne) {
  GenerationOptions options{.begin_suppress_tokens = {0}};
  EXPECT_EQ(processed(options, {5, 6}, {1}, 1)[0], -infinity);
  EXPECT_EQ(processed(options, {5, 6}, {1, 1}, 1)[0], 5);
  options.forced_bos_token_id = 1;
  EXPECT_EQ(processed(options, {5, 6}, {1}, 1), (std::vector<double>{-infinity, 0}));
  EXPECT_EQ(processed(options, {5, 6}, {1, 1}, 1)[0], -infinity);
  EXPECT_EQ(processed(options, {5, 6}, {1, 1}, 2)[0], -infinity);
}

TEST(LogitsProcessors, IdsBeyondTheLogitsCannotBeWritten) {
  // A table of embeddings may have more rows than there are logits.
  EXPECT_EQ(processed({.repetition_penalty = 2, .no_repeat_ngram_size = 1}, {4, -4}, {7, 1, 7}),
            (std::vector<double>{4, -infinity}));
}

TEST(LogitsProcessors, InvalidValuesBecomeNumbersWhereThatIsAskedFor) {
  constexpr double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(processed({.remove_invalid_values = true}, {std::nan(""), infinity, -infinity, 1}),
            (std::vector<double>{0, largest, -largest, 1}));
}

TEST(LogitsProcessors, WhatCannotBeProcessedIsRefused) {
  const auto message = [](const GenerationOptions& options, const std::vector<double>& logits,
                          const std::vector<std::int64_t>& tokens = {0}) {
    return message_of<ValueError>([&] { processed(options, logits, tokens); });
  };
  const std::string nan = "generation: logits must be numbers, got nan";
  const std::vector<double> with_nan{0, std::nan(""), 1};
  EXPECT_EQ(message({.do_sample = true, .top_k = 1}, with_nan), nan);
  EXPECT_EQ(message({.do_sample = true, .top_k = 0, .top_p = 0.5}, with_nan), nan);
  EXPECT_EQ(message({.do_sample = true, .top_k = 0, .typical_p = 0.5}, with_nan), nan);
  EXPECT_EQ(message({.do_sample = true, .top_k = 0, .eta_cutoff = 0.5}, with_nan), nan);
  EXPECT_EQ(message({.renormalize_logits = true}, {-infinity, -infinity}),
            "generation: the largest logit must be finite, got -inf");
  EXPECT_EQ(message({.do_sample = true, .top_k = 0, .min_p = 0.5}, {infinity, 0}),
            "generation: the largest logit must be finite, got inf");
  EXPECT_EQ(message({}, {}), "generation: there must be logits, got none");
  EXPECT_EQ(message({}, {0}, {}), "generation: the prompt must be a part of the 0 tokens, got 1");
  EXPECT_EQ(message({.top_p = 2}, {0}), "generation: top_p must be from 0 to 1, got 2");
  const auto beyond = [](const GenerationOptions& options, const std::vector<std::int64_t>& tokens = {0}) {
    return message_of<IndexError>([&] { processed(options, {0, 1}, tokens); });
  };
  const std::string rest = " must have ids below 2, the number of logits, got 2";
  EXPECT_EQ(beyond({.sequence_bias = {{{2, 0}, 1.0}}}), "generation: sequence_bias" + rest);
  EXPECT_EQ(beyond({.bad_words_ids = {{0, 2}}}), "generation: bad_words_ids" + rest);
  EXPECT_EQ(beyond({.min_length = 5, .eos_token_ids = std::vector<std::int64_t>{2}}),
            "generation: eos_token_id" + rest);
  EXPECT_EQ(beyond({.forced_bos_token_id = 2}), "generation: forced_bos_token_id" + rest);
  EXPECT_EQ(beyond({.max_length = 2, .forced_eos_token_ids = {2}}), "generation: forced_eos_token_id" + rest);
  EXPECT_EQ(beyond({.suppress_tokens = {2}}), "generation: suppress_tokens" + rest);
  EXPECT_EQ(beyond({.begin_suppress_tokens = {2}}), "generation: begin_suppress_tokens" + rest);
}

}  // namespace logits_processors_test
