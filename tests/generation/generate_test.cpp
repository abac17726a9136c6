// Greedy generation: with and without caches, alone and in a batch, and where it ends.

#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"

namespace generate_test {

using namespace xgrad::generation;
using xgrad::pretrained::Config, xgrad::pretrained::Family, xgrad::pretrained::CausalLM;
using xgrad_tests::message_of;
using Tokens = std::vector<std::vector<std::int64_t>>;

Config small(Family family) {
  Config config = Config::of(family);
  config.vocab_size = 29;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  if (family != Family::gpt2) {
    config.num_key_value_heads = 2;
    config.head_dim = 4;
  }
  config.max_position_embeddings = 40;
  config.bos_token_id.reset();
  config.eos_token_ids = {};
  config.initializer_range = 0.5;  // so that tokens differ
  return config;
}

template <class T = double>
CausalLM<T> model_of(const Config& config) {
  xgrad::manual_seed(3);
  return CausalLM<T>(config);
}

const Tokens prompts{{4, 7, 2}, {9, 1, 13, 20, 5, 28, 0}, {11}};

/// Positions by each rule, two of which have other angles beyond 8 positions, or at each length beyond.
std::vector<xgrad::RotaryConfig> scaled_positions() {
  using namespace xgrad;
  std::vector<RotaryConfig> all(5);
  all[0].scaling = LongScaling{
      .short_factors = {1, 1.3}, .long_factors = {2, 7}, .factor = 4, .original_max_positions = 8};
  all[1].scaling = DynamicScaling{.factor = 3, .max_positions = 8};
  all[2].scaling = YarnScaling{.factor = 4, .original_max_positions = 8};
  all[3].scaling = LinearScaling{3};
  all[4].scaling = Llama3Scaling{.factor = 4, .original_max_positions = 8};
  return all;
}

/// Of prompts in front of the length at which positions change, at it and beyond.
TEST(GenerateTest, TokensBeyondTheOriginalLengthAreThoseWithoutACache) {
  Tokens around(5);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto token = static_cast<std::int64_t>(5 * i % 29);
    for (const auto& [text, length] : {std::pair{0, 1}, {1, 5}, {2, 7}, {3, 8}, {4, 11}})
      if (std::cmp_less(i, length)) around[static_cast<std::size_t>(text)].push_back(token);
  }
  for (const Family family : {Family::llama, Family::qwen3, Family::mistral}) {
    for (const xgrad::RotaryConfig& rotary : scaled_positions()) {
      Config config = small(family);
      config.rotary = rotary;
      if (family == Family::mistral) config.sliding_window = 6;
      const CausalLM<double> model = model_of(config);
      const Tokens expected = generate(model, around, {.use_cache = false});
      EXPECT_EQ(generate(model, around), expected) << rotary.scaling.index();
      for (std::size_t i = 0; i < around.size(); ++i)
        EXPECT_EQ(generate(model, {around[i]}).front(), expected[i]) << rotary.scaling.index() << ", " << i;
    }
  }
}

/// A cache goes on in parts of any length, also a copy of it, which another text makes longer.
TEST(GenerateTest, CachesGoOnBeyondTheOriginalLength) {
  const xgrad::NoGrad guard;
  for (const xgrad::RotaryConfig& rotary : scaled_positions()) {
    Config config = small(Family::llama);
    config.rotary = rotary;
    const CausalLM<double> model = model_of(config);
    const auto alone = [&](const std::vector<std::int64_t>& text) {
      const xgrad::Ids ids = xgrad::pad_sequence({text});
      return model.token_logits(xgrad::select(model.decoder()({ids}).last_hidden_state, 1, -1));
    };
    const auto next = [&](const Tokens& texts, std::vector<xgrad::KeyValueCache<double>>& caches) {
      std::vector<std::int64_t> rows;
      std::vector<std::size_t> lengths;
      for (const std::vector<std::int64_t>& text : texts) {
        rows.insert(rows.end(), text.begin(), text.end());
        lengths.push_back(text.size());
      }
      xgrad::Ids ids = xgrad::Ids::from_shape({rows.size()});
      std::copy(rows.begin(), rows.end(), ids.begin());
      return model.next_logits(ids, lengths, caches);
    };
    const auto expect_last = [&](const Tokens& texts, const xgrad::Variable<double>& logits) {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const xgrad::Variable<double> expected = alone(texts[i]);
        for (std::size_t k = 0; k < 29; ++k)
          EXPECT_NEAR(logits.value()(i, k), expected.value()(0, k), 1e-10)
              << rotary.scaling.index() << ", text " << i << " of " << texts[i].size();
      }
    };
    std::vector<xgrad::KeyValueCache<double>> caches{model.decoder().new_cache(),
                                                     model.decoder().new_cache()};
    Tokens texts(2);
    for (const Tokens& more : {Tokens{{4, 7, 2}, {9, 1, 13, 20, 5, 28}}, Tokens{{1, 2, 3}, {8, 3}},
                               Tokens{{5, 6, 7, 8, 9}, {6}}, Tokens{{2}, {3, 3, 3}}}) {
      for (std::size_t i = 0; i < 2; ++i) texts[i].insert(texts[i].end(), more[i].begin(), more[i].end());
      expect_last(texts, next(more, caches));
    }
    std::vector<xgrad::KeyValueCache<double>> swapped{caches[1], caches[0]};
    std::swap(texts[0], texts[1]);
    for (const Tokens& more : {Tokens{{11}, {12}}, Tokens{{13, 14}, {15}}}) {
      for (std::size_t i = 0; i < 2; ++i) texts[i].insert(texts[i].end(), more[i].begin(), more[i].end());
      expect_last(texts, next(more, swapped));
    }
  }
}

/// Ends the call in which it sees an op too many.
struct FailingOps : xgrad::Watcher {
  explicit FailingOps(std::size_t count) : left(count) {}
  void on_op(const xgrad::OpEvent<double>&) override {
    if (left-- == 0) throw std::runtime_error("no more");
  }
  std::size_t left;
};

TEST(GenerateTest, ACallThatThrowsChangesNoCache) {
  const xgrad::NoGrad guard;
  std::vector<xgrad::RotaryConfig> positions = scaled_positions();
  positions.emplace_back();
  for (const xgrad::RotaryConfig& rotary : positions) {
    Config config = small(Family::mistral);
    config.rotary = rotary;
    config.sliding_window = 3;
    const CausalLM<double> model = model_of(config);
    const auto after = [&](std::size_t ops) {
      std::vector<xgrad::KeyValueCache<double>> caches{model.decoder().new_cache(),
                                                       model.decoder().new_cache()};
      static_cast<void>(model.next_logits({4, 7, 2, 9, 1, 13}, std::vector<std::size_t>{2, 4}, caches));
      const auto next = [&] {
        return model.next_logits({5, 6, 7, 8, 9, 3}, std::vector<std::size_t>{1, 5}, caches).value();
      };
      std::optional<FailingOps> failing(ops);
      try {
        return std::pair(next(), false);
      } catch (const std::runtime_error&) {
        failing.reset();
        EXPECT_EQ(caches[0].length(), 2U);
        EXPECT_EQ(caches[1].length(), 4U);
        return std::pair(next(), true);
      }
    };
    const auto [expected, never_failed] = after(100000);
    EXPECT_FALSE(never_failed);
    std::size_t failures = 0;
    for (bool failed = true; failed; ++failures) {
      const auto [logits, has_failed] = after(failures);
      EXPECT_EQ(logits, expected) << rotary.scaling.index() << " after " << failures << " ops";
      failed = has_failed;
    }
    EXPECT_GT(failures, 10U);
  }
}

TEST(GenerateTest, TokensAreThoseWithoutACacheAndAlone) {
  for (const Family family : {Family::gpt2, Family::llama, Family::mistral, Family::qwen2, Family::qwen3}) {
    Config config = small(family);
    if (family == Family::mistral) config.sliding_window = 3;
    const CausalLM<double> model = model_of(config);
    const Tokens together = generate(model, prompts);
    EXPECT_EQ(together.front().size(), 20u);
    EXPECT_NE(together[0], together[1]);
    EXPECT_EQ(generate(model, prompts, {.use_cache = false}), together);
    for (std::size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(generate(model, {prompts[i]}).front(), together[i]) << i;
  }
}

TEST(GenerateTest, TokensAreTheMostProbableOnes) {
  const CausalLM<double> model = model_of(small(Family::llama));
  const auto written = generate(model, {prompts[1]}, {.max_new_tokens = 3}).front();
  std::vector<std::int64_t> text = prompts[1];
  for (const std::int64_t token : written) {
    xgrad::Ids ids = xgrad::Ids::from_shape({std::size_t{1}, text.size()});
    std::copy(text.begin(), text.end(), ids.begin());
    const auto logits = select(model({ids}), 1, -1);
    EXPECT_EQ(argmax(logits)(), token);
    text.push_back(token);
  }
}

TEST(GenerateTest, CachesOfLayersWithAWindowForget) {
  Config config = small(Family::mistral);
  config.sliding_window = 5;
  config.max_position_embeddings = 2000;
  const CausalLM<float> model = model_of<float>(config);
  EXPECT_EQ(generate(model, prompts, {.max_new_tokens = 600}).back().size(), 600u);

  const xgrad::NoGrad no_grad;
  auto cache = model.decoder().new_cache();
  std::vector<xgrad::KeyValueCache<float>> caches{cache};
  const std::vector<std::size_t> one{1};
  for (int i = 0; i < 600; ++i) model.next_logits(xgrad::Ids{i % 29}, one, caches);
  EXPECT_EQ(caches[0].length(), 600u);
  EXPECT_LT(caches[0].kept(0), 260u);
  const auto logits = model.next_logits(xgrad::Ids{600 % 29}, one, caches).value();
  std::vector<std::int64_t> last;  // as many as two layers with the window see
  for (int i = 592; i <= 600; ++i) last.push_back(i % 29);
  xgrad::Ids ids = xgrad::Ids::from_shape({std::size_t{1}, std::size_t{601}});
  for (int i = 0; i <= 600; ++i) ids(0, static_cast<std::size_t>(i)) = i % 29;
  const auto whole = select(model({ids}), 1, -1).value();
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole.data()[i], logits.data()[i], 1e-4) << i;
}

TEST(GenerateTest, EndsAtAnEndToken) {
  Config config = small(Family::llama);
  const Tokens all = generate(model_of(config), prompts);
  const std::int64_t end = all[1][4];
  const auto first = std::find(all[1].begin(), all[1].end(), end) + 1;
  const std::vector<std::int64_t> cut(all[1].begin(), first);
  EXPECT_EQ(generate(model_of(config), prompts, {.eos_token_ids = {{end, 99}}})[1], cut);
  config.eos_token_ids = {end};
  const CausalLM<double> model = model_of(config);
  EXPECT_EQ(generate(model, prompts)[1], cut) << "that of the config";
  EXPECT_EQ(generate(model, prompts, {.eos_token_ids = std::vector<std::int64_t>()}), all) << "none";
}

TEST(GenerateTest, TellsEachTokenAndStopsWhenToldSo) {
  const CausalLM<double> model = model_of(small(Family::qwen3));
  const Tokens all = generate(model, prompts, {.max_new_tokens = 5});
  Tokens told(3);
  std::size_t count = 0;
  const Tokens some = generate(model, prompts, {}, [&](std::size_t prompt, std::int64_t token) {
    told[prompt].push_back(token);
    return ++count < 7;
  });
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(told, some);
  EXPECT_EQ(some[0], std::vector(all[0].begin(), all[0].begin() + 3));
  EXPECT_EQ(some[2], std::vector(all[2].begin(), all[2].begin() + 2));
}

TEST(GenerateTest, AFullContextIsAnErrorOrSlides) {
  Config config = small(Family::gpt2);
  config.max_position_embeddings = 10;
  const CausalLM<double> model = model_of(config);
  EXPECT_EQ(generate(model, prompts, {.max_new_tokens = 4})[1].size(), 4u) << "10 positions are enough";
  for (const bool use_cache : {true, false}) {
    const std::string message = message_of<xgrad::ShapeError>(
        [&] { generate(model, prompts, {.max_new_tokens = 5, .use_cache = use_cache}); });
    EXPECT_NE(message.find("at most 10"), std::string::npos) << message;
  }
  const Tokens slid = generate(model, prompts, {.max_new_tokens = 30}, {}, ContextEnd::slide);
  EXPECT_EQ(slid[1].size(), 30u);
  EXPECT_EQ(generate(model, prompts, {.max_new_tokens = 30, .use_cache = false}, {}, ContextEnd::slide),
            slid);
  std::vector<std::int64_t> seen = prompts[1];  // as if it began with what is left
  seen.insert(seen.end(), slid[1].begin(), slid[1].begin() + 4);
  seen.erase(seen.begin(), seen.end() - 5);
  EXPECT_EQ(generate(model, {seen}, {.max_new_tokens = 5}).front(),
            std::vector(slid[1].begin() + 4, slid[1].begin() + 9));
}

TEST(GenerateTest, SamplesDrawInTheOrderOfTexts) {
  const CausalLM<double> model = model_of(small(Family::llama));
  const auto sampled = [&](const Tokens& of, const GenerationOptions& options) {
    xgrad::manual_seed(5);
    return generate(model, of, options);
  };
  const GenerationOptions plain{.max_new_tokens = 6, .do_sample = true, .top_k = 0};
  const Tokens together = sampled(prompts, plain);
  GenerationOptions options = plain;
  options.use_cache = false;
  EXPECT_EQ(sampled(prompts, options), together);
  options = plain;
  options.num_return_sequences = 3;
  const Tokens copies = sampled({prompts[0]}, options);
  EXPECT_EQ(copies.size(), 3u);
  EXPECT_NE(copies[0], copies[1]);
  EXPECT_EQ(sampled({prompts[0], prompts[0], prompts[0]}, plain), copies);
  options = plain;
  options.eos_token_ids = {{together[0][1]}};  // the first text ends early, but its numbers are drawn
  const Tokens cut = sampled(prompts, options);
  EXPECT_EQ(cut[0], std::vector(together[0].begin(), together[0].begin() + 2));
  for (std::size_t i = 0; i < cut[1].size(); ++i) EXPECT_EQ(cut[1][i], together[1][i]) << i;
}

TEST(GenerateTest, OptionsSeeTheWholeText) {
  const CausalLM<double> model = model_of(small(Family::qwen2));
  const Tokens all = generate(model, prompts, {.max_new_tokens = 12, .no_repeat_ngram_size = 1});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::set<std::int64_t> seen(prompts[i].begin(), prompts[i].end());
    for (const std::int64_t token : all[i]) EXPECT_TRUE(seen.insert(token).second) << "no token twice";
  }
  EXPECT_EQ(generate(model, prompts, {.max_length = 8})[0].size(), 5u);
  EXPECT_EQ(generate(model, prompts, {.max_length = 8})[1].size(), 1u) << "with the prompt";
  EXPECT_EQ(
      message_of<xgrad::ValueError>([&] { generate(model, prompts, {.max_length = 7}); }),
      "generate: max_length must be above the number of tokens of a prompt, got 7 for the 7 of prompt 1");
  const std::int64_t first = generate(model, {prompts[0]})[0][0];
  const auto later = generate(model, {prompts[0]}, {.min_new_tokens = 4, .eos_token_ids = {{first}}}).front();
  EXPECT_GE(later.size(), 4u);
}

TEST(GenerateTest, ThreadsShareAModel) {
  const CausalLM<float> model = model_of<float>(small(Family::llama));
  const Tokens want = generate(model, prompts);
  Tokens got[2];
  std::thread other([&] { got[0] = generate(model, prompts); });
  got[1] = generate(model, prompts);
  other.join();
  for (const Tokens& one : got) EXPECT_EQ(one, want);
}

TEST(GenerateTest, RefusesWhatItCannotWrite) {
  const CausalLM<float> model = model_of<float>(small(Family::llama));
  EXPECT_EQ(message_of<xgrad::ValueError>([&] {
              generate(model, {{1}, {}});
            }),
            "generate: a prompt must have tokens, got none in prompt 1");
  EXPECT_NE(
      message_of<xgrad::IndexError>([&] { generate(model, {{29}}); }).find("ids must be in [0, 29), got 29"),
      std::string::npos);
  model.train();
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { generate(model, {{1}}); }),
            "generate: the model must be in evaluation mode: call eval()");
  model.eval();
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { generate(model, {{1}}, {.num_beams = 2}); }),
            "generate: num_beams must be 1, got 2");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { generate(model, {{1}}, {.stop_strings = {"."}}); }),
            "generate: stop_strings need the tokenizer of the model, got none");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { generate(model, {{1}}, {.top_p = 2}); }).substr(0, 12),
            "generation: ");
  model.decoder().word_embeddings().assign(xgrad::Array<float>(xgrad::full<float>({29, 16}, std::nanf(""))));
  EXPECT_NE(message_of<xgrad::ValueError>([&] { generate(model, {{1}}); }).find("nan"), std::string::npos);
}

}  // namespace generate_test
