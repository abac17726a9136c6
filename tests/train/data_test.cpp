// Tokens, vocabularies, padding and the choice of batches.

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/train/data.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "expect_error.hpp"
#include "files.hpp"

namespace data_test {

using xgrad::BatchSampler, xgrad::Ids, xgrad::TrainingState, xgrad::Vocabulary;
using xgrad_tests::message_of;
using Tokens = std::vector<std::string>;
using Indices = std::vector<std::size_t>;

TEST(TokensTest, AreTheWordsBetweenBlanks) {
  EXPECT_EQ(xgrad::whitespace_tokens("  my shoes\tare \r\n small,\n"),
            (Tokens{"my", "shoes", "are", "small,"}));
  EXPECT_EQ(xgrad::whitespace_tokens(""), Tokens());
  EXPECT_EQ(xgrad::whitespace_tokens(" \n"), Tokens());
  EXPECT_EQ(xgrad::to_ascii_lowercase("My SHOES, \xC3\x84 Z[@"), "my shoes, \xC3\x84 z[@");
}

TEST(VocabularyTest, HasSpecialsThenTheMostFrequentTokens) {
  const std::vector<Tokens> texts = {{"b", "a", "c"}, {"b", "[UNK]", "c", "b", "d"}};
  const Vocabulary all = Vocabulary::build(texts);
  EXPECT_EQ(all.tokens(), (Tokens{"[PAD]", "[UNK]", "b", "c", "a", "d"}));
  EXPECT_EQ(Vocabulary::build(texts, {.min_freq = 2}).tokens(), (Tokens{"[PAD]", "[UNK]", "b", "c"}));
  EXPECT_EQ(Vocabulary::build(texts, {.max_tokens = 3}).tokens(), (Tokens{"[PAD]", "[UNK]", "b"}));
  EXPECT_EQ(all.ids({"c", "x", "[PAD]"}), (std::vector<std::int64_t>{3, 1, 0}));
  EXPECT_EQ(all.token(5), "d");
  EXPECT_TRUE(all.contains("a"));
  EXPECT_FALSE(all.contains("x"));
}

TEST(VocabularyTest, RefusesWhatItCannotName) {
  EXPECT_EQ(message_of([] {
              Vocabulary({"a", "b", "a"}, "");
            }),
            "Vocabulary: tokens must be unique, got 'a' twice");
  EXPECT_EQ(message_of([] {
              Vocabulary({"a", ""}, "");
            }),
            "Vocabulary: token 1 must be one line of text, got ''");
  EXPECT_EQ(message_of([] { Vocabulary({"a"}); }),
            "Vocabulary: the unknown token '[UNK]' must be one of the tokens");
  EXPECT_EQ(message_of([] {
              Vocabulary({"[UNK]", "a\nb"});
            }),
            R"(Vocabulary: token 1 must be one line of text, got 'a\nb')");
  EXPECT_EQ(message_of([] { Vocabulary::build({{"a"}}, {.max_tokens = 1}); }),
            "Vocabulary: max_tokens must be at least the number of specials, 2, got 1");
  EXPECT_EQ(message_of([] {
              Vocabulary::build({{"a", "[UNK]"}}, {.specials = {"[PAD]"}});
            }),
            "Vocabulary: the unknown token '[UNK]' must be one of the specials");
  const Vocabulary closed({"a", "b"}, "");
  EXPECT_EQ(message_of([&] { closed.id("c"); }), "Vocabulary: there is no token 'c'");
  EXPECT_EQ(message_of([&] { closed.token(2); }), "Vocabulary: id must be in [0, 2), got 2");
  EXPECT_EQ(message_of([&] { closed.token(-1); }), "Vocabulary: id must be in [0, 2), got -1");
}

TEST(VocabularyTest, IsSavedAndLoaded) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("vocabulary");
  const Vocabulary saved({"[PAD]", "[UNK]", "na\xC3\xAFve", "two words", "\r"});
  saved.save(path);
  const Vocabulary loaded = Vocabulary::load(path);
  EXPECT_EQ(loaded.tokens(), saved.tokens());
  EXPECT_EQ(loaded.id("none of them"), 1);
  const auto message = [&](const char* text) {
    folder.write("vocabulary", text);
    return message_of<xgrad::FileError>([&] { Vocabulary::load(path, ""); });
  };
  EXPECT_EQ(message("a\nb"), path + ": the last line must end with a newline");
  EXPECT_EQ(message("a\na\n"), path + ": Vocabulary: tokens must be unique, got 'a' twice");
  EXPECT_EQ(message("a\n\n"), path + ": Vocabulary: token 1 must be one line of text, got ''");
  std::filesystem::remove(path);
  EXPECT_TRUE(message_of<xgrad::FileError>([&] { Vocabulary::load(path); }).starts_with(path));
}

TEST(PadSequenceTest, FillsUpToTheLongest) {
  EXPECT_EQ(xgrad::pad_sequence({{1, 2, 3}, {}, {4}}, 9), (Ids{{1, 2, 3}, {9, 9, 9}, {4, 9, 9}}));
  EXPECT_EQ(xgrad::to_string(xgrad::pad_sequence({}).shape()), "(0, 0)");
}

TEST(RandomSplitTest, HasEveryIndexOnce) {
  xgrad::Generator generator(3), again(3);
  const auto parts = xgrad::random_split(10, {7, 0, 3}, generator);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].size(), 7u);
  EXPECT_EQ(parts[2].size(), 3u);
  Indices all = parts[0];
  all.insert(all.end(), parts[2].begin(), parts[2].end());
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  Indices expected(10);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(all, expected);
  EXPECT_EQ(xgrad::random_split(10, {7, 0, 3}, again), parts);
  for (const Indices& wrong :
       {Indices{4, 5}, Indices{11}, Indices{}, Indices{7, 8}, Indices{11, std::size_t(-1)}}) {
    EXPECT_EQ(message_of([&] { xgrad::random_split(10, wrong); }),
              "random_split: the lengths must add up to the number of examples, 10");
  }
}

/// The batches of one epoch.
std::vector<Indices> epoch_of(BatchSampler& sampler) {
  std::vector<Indices> batches;
  for (std::size_t i = 0; i < sampler.batches_per_epoch(); ++i) batches.push_back(sampler.next());
  return batches;
}

Indices sorted(const std::vector<Indices>& batches) {
  Indices all;
  for (const Indices& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(BatchSamplerTest, ShowsEveryExampleOnceInAnEpoch) {
  xgrad::manual_seed(1);
  BatchSampler sampler(10, {.batch_size = 4});
  EXPECT_EQ(sampler.batches_per_epoch(), 3u);
  const auto first = epoch_of(sampler), second = epoch_of(sampler);
  EXPECT_EQ(sorted(first), (Indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(sorted(second), sorted(first));
  EXPECT_NE(first, second);
  EXPECT_EQ(first.back().size(), 2u);
  EXPECT_EQ(sampler.epoch(), 2u);
}

TEST(BatchSamplerTest, InOrderIfNotShuffled) {
  BatchSampler sampler(5, {.batch_size = 2, .shuffle = false});
  const std::vector<Indices> expected = {{0, 1}, {2, 3}, {4}};
  EXPECT_EQ(epoch_of(sampler), expected);
  EXPECT_EQ(epoch_of(sampler), expected);
  BatchSampler by_length({3, 1, 2, 1}, {.batch_size = 2, .shuffle = false});
  EXPECT_EQ(epoch_of(by_length), (std::vector<Indices>{{1, 3}, {2, 0}}));
}

TEST(BatchSamplerTest, TheLastBatchCanBeDropped) {
  BatchSampler sampler(10, {.batch_size = 4, .drop_last = true});
  const auto batches = epoch_of(sampler);
  EXPECT_EQ(batches.size(), 2u);
  EXPECT_EQ(sorted(batches).size(), 8u);
}

TEST(BatchSamplerTest, EveryExampleIsDroppedAsOften) {
  xgrad::manual_seed(3);
  BatchSampler sampler({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {.batch_size = 4, .drop_last = true});
  Indices shown(10, 0);
  for (int epoch = 0; epoch < 1000; ++epoch)
    for (const std::size_t example : sorted(epoch_of(sampler))) ++shown[example];
  for (const std::size_t count : shown) EXPECT_NEAR(static_cast<double>(count), 800, 60);
}

TEST(BatchSamplerTest, ABatchCanBeLargerThanAnyNumberOfExamples) {
  for (const std::size_t size : {std::size_t{1} << 59, ~std::size_t{0}}) {
    BatchSampler sampler({5, 2, 8}, {.batch_size = size});
    EXPECT_EQ(epoch_of(sampler), (std::vector<Indices>{{1, 0, 2}}));
  }
}

TEST(BatchSamplerTest, PutsExamplesOfLikeLengthTogether) {
  xgrad::manual_seed(2);
  Indices lengths;
  for (const std::int64_t length : xgrad::randint(1, 100, {640}))
    lengths.push_back(static_cast<std::size_t>(length));
  BatchSampler sampler(lengths, {.batch_size = 10});
  std::size_t spread = 0;
  Indices first_lengths;
  const auto batches = epoch_of(sampler);
  for (const Indices& batch : batches) {
    const auto [shortest, longest] = std::minmax_element(
        batch.begin(), batch.end(), [&](std::size_t a, std::size_t b) { return lengths[a] < lengths[b]; });
    spread += lengths[*longest] - lengths[*shortest];
    first_lengths.push_back(lengths[batch.front()]);
  }
  EXPECT_LT(spread, 64 * 8u) << "without sorting it is about 64 * 80";
  EXPECT_FALSE(std::is_sorted(first_lengths.begin(), first_lengths.begin() + 32))
      << "batches come in any order";
  EXPECT_EQ(sorted(batches).size(), 640u);
}

TEST(BatchSamplerTest, GoesOnFromItsState) {
  for (const bool bucketed : {false, true}) {
    for (const int before : {0, 2, 3, 5}) {
      const auto make = [bucketed] {
        const xgrad::BatchSamplerOptions options{.batch_size = 3};
        return bucketed ? BatchSampler(Indices{5, 2, 8, 1, 1, 3, 9, 4}, options) : BatchSampler(8, options);
      };
      xgrad::manual_seed(7);
      BatchSampler sampler = make();
      for (int i = 0; i < before; ++i) sampler.next();
      const TrainingState state = sampler.state_dict();
      const std::string stream = xgrad::get_rng_state();
      std::vector<Indices> expected, found;
      for (int i = 0; i < 9; ++i) expected.push_back(sampler.next());

      BatchSampler resumed = make();
      resumed.next();
      resumed.load_state_dict(state);
      xgrad::set_rng_state(stream);
      for (int i = 0; i < 9; ++i) found.push_back(resumed.next());
      EXPECT_EQ(found, expected);
      EXPECT_EQ(resumed.epoch(), sampler.epoch());
    }
  }
}

TEST(BatchSamplerTest, RefusesAStateThatIsNotItsOwn) {
  BatchSampler sampler(8, {.batch_size = 3});
  sampler.next();
  const TrainingState before = sampler.state_dict();
  TrainingState state = before;
  state.numbers.erase("seed");
  state.numbers["sead"] = 1;
  EXPECT_EQ(message_of([&] { sampler.load_state_dict(state); }),
            "load_state_dict: 'seed' is missing; 'sead' is unexpected");
  for (const double wrong : {-1.0, 4.0, 0.5, std::nan("")}) {
    state = before;
    state.numbers["position"] = wrong;
    EXPECT_TRUE(message_of([&] {
                  sampler.load_state_dict(state);
                }).starts_with("load_state_dict: 'position' must be a whole number of at most 3, got "));
  }
  state = before;
  state.numbers["epoch"] = 0;
  EXPECT_EQ(message_of([&] { sampler.load_state_dict(state); }),
            "load_state_dict: BatchSampler: 'position' must be 0 before the first epoch, got 1");
  EXPECT_EQ(message_of([&] { sampler.load_state_dict(BatchSampler(9, {.batch_size = 3}).state_dict()); }),
            "load_state_dict: 'examples' must be 8, got 9");
  EXPECT_EQ(sampler.state_dict(), before);
}

TEST(BatchSamplerTest, RefusesWhatGivesNoBatches) {
  EXPECT_EQ(message_of([] { BatchSampler(0, {.batch_size = 3}); }),
            "BatchSampler: there must be examples, got none");
  EXPECT_EQ(message_of([] { BatchSampler(3, {.batch_size = 0}); }),
            "BatchSampler: batch_size must be at least 1, got 0");
  EXPECT_EQ(message_of([] { BatchSampler(3, {.batch_size = 4, .drop_last = true}); }),
            "BatchSampler: with drop_last there must be as many examples as batch_size 4, got 3");
}

}  // namespace data_test
