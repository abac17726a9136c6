#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"

namespace own_model_test {
namespace {

using xgrad::Array, xgrad::Ids, xgrad::KeyValueCache, xgrad::ToyDecoder, xgrad::Variable;
using xgrad::generation::ContextEnd, xgrad::generation::generate;
using xgrad_tests::message_of;
using Tokens = std::vector<std::vector<std::int64_t>>;

ToyDecoder<double> toy(std::size_t max_len, bool norm_first = true) {
  const ToyDecoder<double> model(
      {.vocab_size = 11,
       .max_len = max_len,
       .layers = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2, .norm_first = norm_first}});
  model.eval();
  return model;
}

/// Logits of the token after these, computed from all of them.
Array<double> last_logits(const ToyDecoder<double>& model, const std::vector<std::int64_t>& tokens) {
  return select(select(model.token_logits(xgrad::pad_sequence({tokens})), 0, 0), 0, -1).value();
}

TEST(ToyDecoderCacheTest, NextLogitsAreThoseOfWholeSequences) {
  xgrad::manual_seed(1);
  const xgrad::NoGrad no_grad;
  for (const bool norm_first : {true, false}) {
    const ToyDecoder<double> model = toy(7, norm_first);
    std::vector<KeyValueCache<double>> caches(2, model.new_cache());
    Tokens texts{{}, {}};
    for (const Tokens& more : {Tokens{{1, 2, 3}, {4}}, {{5}, {6, 7, 8}}, {{9}, {10}}}) {
      std::vector<std::int64_t> fresh;
      std::vector<std::size_t> lengths;
      for (std::size_t i = 0; i < 2; ++i) {
        fresh.insert(fresh.end(), more[i].begin(), more[i].end());
        texts[i].insert(texts[i].end(), more[i].begin(), more[i].end());
        lengths.push_back(more[i].size());
      }
      const Ids ids = xgrad::detail::array_of<std::int64_t>(std::span<const std::int64_t>(fresh));
      const Variable<double> logits = model.next_logits(ids, lengths, caches);
      ASSERT_EQ(logits.shape(), (xgrad::Shape{2, 11}));
      for (std::size_t i = 0; i < 2; ++i) {
        const Array<double> expected = last_logits(model, texts[i]);
        for (std::size_t id = 0; id < 11; ++id) EXPECT_NEAR(logits.value()(i, id), expected(id), 1e-12);
      }
    }
  }
}

TEST(ToyDecoderCacheTest, WritesTheMostProbableTokens) {
  xgrad::manual_seed(2);
  const xgrad::NoGrad no_grad;
  const ToyDecoder<double> model = toy(12);
  Tokens expected{{1, 2, 3}, {4}};
  for (auto& text : expected) {
    for (int i = 0; i < 9; ++i) {
      const Array<double> logits = last_logits(model, text);
      text.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
    text.erase(text.begin(), text.end() - 9);
  }
  EXPECT_EQ(generate(model, {{1, 2, 3}, {4}}, {.max_new_tokens = 9}), expected);
  EXPECT_EQ(generate(model, {{1, 2, 3}, {4}}, {.max_new_tokens = 9, .use_cache = false}), expected);
}

TEST(ToyDecoderCacheTest, AFullContextIsAnErrorOrSlides) {
  xgrad::manual_seed(3);
  const ToyDecoder<double> model = toy(6);
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              generate(model, {{1, 2, 3}}, {.max_new_tokens = 5});
            }),
            "generate: a text must have at most 6 tokens, as many as the model has positions, got 7");
  const auto slid = generate(model, {{1, 2, 3}}, {.max_new_tokens = 20}, {}, ContextEnd::slide).front();
  ASSERT_EQ(slid.size(), 20u);
  const std::vector<std::int64_t> kept(slid.begin() + 1, slid.begin() + 4);  // half of the positions
  EXPECT_EQ(generate(model, {kept}, {.max_new_tokens = 3}).front(),
            std::vector(slid.begin() + 4, slid.begin() + 7));
}

TEST(ToyDecoderCacheTest, WrongCallsChangeNoCache) {
  const ToyDecoder<double> model = toy(4);
  std::vector<KeyValueCache<double>> caches{model.new_cache()}, of_another{KeyValueCache<double>(3)};
  const std::size_t one = 1, two = 2, five = 5;
  EXPECT_EQ(message_of<xgrad::GraphError>([&] {
              model.next_logits(Ids{1}, {&one, 1}, caches);
            }),
            "ToyDecoder: caches keep no gradients: call it under NoGrad");
  const xgrad::NoGrad no_grad;
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              model.next_logits(Ids{1}, {&one, 1}, of_another);
            }),
            "ToyDecoder: a cache must be of the model's new_cache(), with 2 layers, got 3");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              model.next_logits(Ids{1}, {&two, 1}, caches);
            }),
            "ToyDecoder: lengths must be those of tokens (rows), at least 1 each, one for each cache, got 1 "
            "lengths for 1 caches, and tokens (1)");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              model.next_logits(Ids{1, 2, 3, 4, 5}, {&five, 1}, caches);
            }),
            "ToyDecoder: a sequence must have at most 4 tokens, got 0 and 5 more");
  EXPECT_NE(message_of<xgrad::IndexError>([&] { return model.next_logits(Ids{11}, {&one, 1}, caches); }), "");
  EXPECT_EQ(caches[0].length(), 0u);
}

TEST(ToyDecoderCacheTest, TrainingModeIsRefused) {
  const ToyDecoder<double> model = toy(4);
  model.train();
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { generate(model, {{1}}); }),
            "generate: the model must be in evaluation mode: call eval()");
}

/// The next token is the sum of the last two, modulo 7; no module, and without keys.
class Sums : public xgrad::AutoregressiveModel<float> {
 public:
  KeyValueCache<float> new_cache() const override { return KeyValueCache<float>(0); }
  Variable<float> next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                              std::span<KeyValueCache<float>> caches) const override {
    Array<float> logits = xt::zeros<float>({lengths.size(), std::size_t{7}});
    const std::int64_t* next = tokens.data();
    for (std::size_t i = 0; i < lengths.size(); next += lengths[i++]) {
      caches[i].note_tokens({next, lengths[i]});
      const std::vector<std::int64_t>& all = caches[i].tokens();
      logits(i, static_cast<std::size_t>(all.back() + all[all.size() - 2]) % 7) = 1;
    }
    return Variable<float>(std::move(logits));
  }
  std::vector<std::int64_t> eos_token_ids() const override { return {6}; }
};

TEST(OwnModelTest, WritesUpToItsEndToken) {
  const Sums model;
  EXPECT_EQ(generate(model, {{1, 1}, {5, 3}, {3, 3}}, {.max_new_tokens = 4}),
            (Tokens{{2, 3, 5, 1}, {1, 4, 5, 2}, {6}}));
  EXPECT_EQ(generate(model, {{3, 3}}, {.max_new_tokens = 3, .eos_token_ids = {{2}}}), (Tokens{{6, 2}}));
}

/// Gives logits of another shape.
class Wrong : public xgrad::AutoregressiveModel<float> {
 public:
  explicit Wrong(xgrad::Shape shape) : shape_(std::move(shape)) {}
  KeyValueCache<float> new_cache() const override { return KeyValueCache<float>(0); }
  Variable<float> next_logits(const Ids&, std::span<const std::size_t>,
                              std::span<KeyValueCache<float>>) const override {
    return Variable<float>(Array<float>(shape_, 0.0F));
  }
  std::optional<std::size_t> max_length() const override { return 2; }

 private:
  xgrad::Shape shape_;
};

TEST(OwnModelTest, LogitsOfAnotherShapeAndLongTextsAreRefused) {
  for (const xgrad::Shape& shape : {xgrad::Shape{7}, {2, 7}, {1, 1, 7}})
    EXPECT_NE(message_of<xgrad::ShapeError>([&] {
                generate(Wrong(shape), {{1}});
              }).find("next_logits of 1 sequences must be (1, vocab_size), got "),
              std::string::npos);
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              generate(Wrong({1, 7}), {{1, 2, 3}});
            }),
            "generate: a text must have at most 2 tokens, as many as the model has positions, got 3");
}

}  // namespace
}  // namespace own_model_test
