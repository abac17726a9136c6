// What decoders of folders write: alone and together, in threads, by any number of threads.

#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

#include "../data_folder.hpp"
#include "../expect_error.hpp"
#include "../keep_num_threads.hpp"
#include "../programs/text_goldens.hpp"

namespace pretrained_generation_test {

using namespace xgrad::generation;
using xgrad::pretrained::CausalLM;
using xgrad_tests::message_of;
using Tokens = std::vector<std::vector<std::int64_t>>;

std::string folder(const std::string& name) { return xgrad_tests::data_folder("decoders") + name; }

/// GPT-2 with its positions, Qwen 2 with layers that slide, and Llama.
class PretrainedGenerationTest : public testing::TestWithParam<const char*> {
 protected:
  const CausalLM<float> model_ = CausalLM<float>::from_folder(folder(GetParam()));
  const Tokens prompts_{{4, 7, 2, 5, 8, 1, 3}, {9, 1, 13, 20, 5, 28, 0, 40, 41, 42, 43}, {11}};
  const GenerationOptions greedy_{.max_new_tokens = 20, .eos_token_ids = std::vector<std::int64_t>()};

  /// What f does under each of two threads at once.
  static void in_two_threads(const std::function<void(std::size_t)>& f) {
    std::thread other([&] { f(1); });
    f(0);
    other.join();
  }
};

TEST_P(PretrainedGenerationTest, TokensAreThoseWithoutACacheAndAlone) {
  const Tokens together = generate(model_, prompts_, greedy_);
  GenerationOptions options = greedy_;
  options.use_cache = false;
  EXPECT_EQ(generate(model_, prompts_, options), together);
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    EXPECT_EQ(together[i].size(), 20u);
    EXPECT_EQ(generate(model_, {prompts_[i]}, greedy_).front(), together[i]) << i;
  }
}

TEST_P(PretrainedGenerationTest, TokensDoNotDependOnTheNumberOfThreads) {
  const xgrad_tests::KeepNumThreads keep;
  const auto written = [&](std::size_t threads, bool samples) {
    xgrad::set_num_threads(threads);
    xgrad::manual_seed(3);
    GenerationOptions options = greedy_;
    options.do_sample = samples;
    return generate(model_, prompts_, options);
  };
  for (const bool samples : {false, true}) {
    const Tokens one = written(1, samples);
    for (const std::size_t threads : {2u, 3u, 8u}) EXPECT_EQ(written(threads, samples), one) << threads;
  }
}

TEST_P(PretrainedGenerationTest, ThreadsShareTheModelAndEachHasItsCaches) {
  const Tokens want = generate(model_, prompts_, greedy_);
  Tokens got[2];
  in_two_threads([&](std::size_t i) { got[i] = generate(model_, prompts_, greedy_); });
  for (const Tokens& one : got) EXPECT_EQ(one, want);

  // Step by step, each with a text of its own.
  const auto last_logits = [&](std::size_t text) {
    const xgrad::NoGrad no_grad;
    std::vector<xgrad::KeyValueCache<float>> caches{model_.decoder().new_cache()};
    const std::vector<std::size_t> one{1};
    xgrad::Array<float> logits;
    for (const std::int64_t id : prompts_[text])
      logits = model_.next_logits(xgrad::Ids{id}, one, caches).value();
    return logits;
  };
  const xgrad::Array<float> alone[]{last_logits(0), last_logits(1)};
  xgrad::Array<float> at_once[2];
  in_two_threads([&](std::size_t i) { at_once[i] = last_logits(i); });
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(at_once[i], alone[i]) << i;
  EXPECT_NE(alone[0], alone[1]);
}

TEST_P(PretrainedGenerationTest, StopsWhenToldSo) {
  const Tokens all = generate(model_, prompts_, greedy_);
  std::vector<std::pair<std::size_t, std::int64_t>> told;
  const Tokens some = generate(model_, prompts_, greedy_, [&](std::size_t text, std::int64_t token) {
    told.emplace_back(text, token);
    return told.size() < 5;
  });
  EXPECT_EQ(some, (Tokens{{all[0][0], all[0][1]}, {all[1][0], all[1][1]}, {all[2][0]}}));
  ASSERT_EQ(told.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(told[i], std::pair(i % 3, all[i % 3][i / 3]));
}

INSTANTIATE_TEST_SUITE_P(Folders, PretrainedGenerationTest,
                         testing::Values("gpt2_plain", "qwen2_sliding", "llama_text"));

TEST(PretrainedContextTest, PromptsLongerThanThePositionsAreAnErrorOrSlide) {
  const auto model = CausalLM<float>::from_folder(folder("gpt2_plain"));  // 40 positions
  std::vector<std::int64_t> prompt(41);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int64_t>(i * 7 % 95);
  const GenerationOptions options{.max_new_tokens = 30, .eos_token_ids = std::vector<std::int64_t>()};
  const std::string message = message_of<xgrad::ShapeError>([&] { generate(model, {prompt}, options); });
  EXPECT_NE(message.find("at most 40"), std::string::npos) << message;
  const Tokens slid = generate(model, {prompt}, options, {}, ContextEnd::slide);
  ASSERT_EQ(slid.front().size(), 30u);
  // The model sees the last half of its positions.
  const std::vector<std::int64_t> last(prompt.end() - 20, prompt.end());
  const Tokens seen = generate(model, {last}, {.max_new_tokens = 21, .eos_token_ids = options.eos_token_ids});
  EXPECT_EQ(seen.front(), std::vector(slid.front().begin(), slid.front().begin() + 21));
  const std::vector<std::int64_t> fits(prompt.begin(), prompt.end() - 1);
  EXPECT_EQ(generate(model, {fits}, {.max_new_tokens = 1}).front().size(), 1u) << "40 positions are enough";
}

TEST(TextGoldensTest, TextsAndStopStringsAreThoseOfTransformers) {
  const auto results = xgrad_tests::TextGoldens(folder("llama_text")).results();
  EXPECT_EQ(results.size(), 4u * 4 + 3 + 20 * 2 + 3 * 2);
  for (const auto& [name, problem] : results) EXPECT_EQ(problem, "") << name;
}

TEST(StopStringTextsTest, EachTextOfABatchEndsAlone) {
  const auto model = CausalLM<float>::from_folder(folder("llama_text"));
  const auto tokenizer = xgrad::tokenizers::Tokenizer::from_folder(folder("llama_text"));
  const Tokens two{tokenizer.encode("the cat sat").ids, tokenizer.encode("There was an").ids};
  const GenerationOptions options{.max_new_tokens = 12, .stop_strings = {"on the m", "never"}};
  std::vector<std::int64_t> told;
  const Tokens written = generate(model, tokenizer, two, options, [&](std::size_t text, std::int64_t token) {
    if (text == 0) told.push_back(token);
    return true;
  });
  EXPECT_EQ(tokenizer.decode(written[0]), " on the m");
  EXPECT_EQ(told, written[0]) << "the last token is told, too";
  EXPECT_EQ(written[1].size(), 12u);
  GenerationOptions without = options;
  without.stop_strings.clear();
  EXPECT_EQ(generate(model, tokenizer, two, without), generate(model, two, without));
  EXPECT_EQ(generate(model, tokenizer, two, without)[1], written[1]);
}

}  // namespace pretrained_generation_test
