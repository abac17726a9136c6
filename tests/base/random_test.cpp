// The streams that PyTorch gives: bit for bit, but for normals in double, which the C library's logarithm,
// sine and cosine decide.

#include <xgrad/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/creation.hpp>
#include <xgrad/base/error.hpp>
#include <xgrad/models/layers/embedding.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/models/toy_encoder.hpp>
#include <xgrad/ops/pointwise/dropout.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"
#include "npy.hpp"

namespace random_test {

using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::Shape;
using xgrad_tests::read_npy;

const std::string folder = xgrad_tests::data_folder("random");

Shape shape_of(const json& call) {
  const auto lengths = call.at("shape").get<std::vector<std::size_t>>();
  return Shape(lengths.begin(), lengths.end());
}

template <class T>
void expect_file(const Array<T>& drawn, const json& call, const json& file) {
  const Array<T> expected = read_npy<T>(folder + file.get<std::string>());
  ASSERT_EQ(xgrad::to_string(drawn.shape()), xgrad::to_string(expected.shape())) << file;
  const double tolerance = std::is_same_v<T, double> ? call.at("abs_tol").get<double>() : 0.0;
  for (std::size_t i = 0; i < drawn.size(); ++i)
    EXPECT_NEAR(drawn.data()[i], expected.data()[i], tolerance) << file << " " << i;
}

Ids raw32(std::size_t count) {
  Ids words = Ids::from_shape({count});
  for (std::int64_t& word : words) word = xgrad::default_generator().random32();
  return words;
}

/// Those of make_cases.py.
template <class T>
Array<T> probabilities(const Shape& shape) {
  Array<T> p = xgrad::arange<T>(shape);
  for (T& one : p) one = std::fmod(one, T{17}) / 16;
  return p;
}

template <class T>
Array<T> draw(const std::string& op, const json& call) {
  const Shape shape = shape_of(call);
  if (op == "rand") return xgrad::uniform<T>(shape);
  if (op == "randn") return xgrad::normal<T>(shape);
  if (op == "uniform_") return xgrad::uniform<T>(shape, call.at("low"), call.at("high"));
  if (op == "normal_") return xgrad::normal<T>(shape, call.at("mean"), call.at("std"));
  if (op == "bernoulli_") return xgrad::bernoulli<T>(shape, call.at("p"));
  if (op == "bernoulli") return xgrad::bernoulli<T>(probabilities<T>(shape));
  if (op == "exponential_") return xgrad::exponential<T>(shape, call.at("rate"));
  if (op == "dropout_ones") {
    return xgrad::dropout(xgrad::Variable<T>(xt::ones<T>(shape)), call.at("p")).value();
  }
  throw std::runtime_error("unknown call " + op);
}

template <class T>
xgrad::StateDict<T> initialised(const std::string& op, const json& call) {
  if (op == "nn.Embedding") {
    xgrad::EmbeddingOptions options;
    if (call.contains("padding_idx")) options.padding_idx = call.at("padding_idx").get<std::int64_t>();
    return xgrad::Embedding<T>(call.at("num_embeddings"), call.at("embedding_dim"), options).state_dict();
  }
  if (op == "nn.Linear") {
    return xgrad::Linear<T>(call.at("in_features"), call.at("out_features"), call.at("bias").get<bool>())
        .state_dict();
  }
  if (op != "ToyEncoder") throw std::runtime_error("unknown module " + op);
  return xgrad::ToyEncoder<T>({.vocab_size = call.at("vocab_size"),
                               .max_len = call.at("max_len"),
                               .classes = call.at("classes"),
                               .encoder = {.d_model = call.at("d_model"),
                                           .heads = call.at("heads"),
                                           .d_ff = call.at("d_ff"),
                                           .layers = call.at("layers"),
                                           .norm_first = call.at("norm_first").get<bool>(),
                                           .bias = call.at("bias").get<bool>()},
                               .pad_id = call.at("pad_id").get<std::int64_t>()})
      .state_dict();
}

template <class T>
void check_call_of(const std::string& op, const json& call) {
  if (op == "multinomial") {
    return expect_file(
        xgrad::multinomial(probabilities<T>(shape_of(call)), call.at("num_samples").get<std::size_t>(),
                           {.replacement = call.at("replacement").get<bool>()}),
        call, call.at("file"));
  }
  if (!call.contains("files")) return expect_file(draw<T>(op, call), call, call.at("file"));
  const xgrad::StateDict<T> state = initialised<T>(op, call);
  EXPECT_EQ(state.size(), call.at("files").size());
  for (const auto& [name, array] : state) expect_file(array, call, call.at("files").at(name));
}

void check_call(const json& call) {
  const std::string op = call.at("op").get<std::string>();
  if (op == "raw32") {
    expect_file(raw32(shape_of(call)[0]), call, call.at("file"));
  } else if (op == "randint") {
    expect_file(xgrad::randint(call.at("low"), call.at("high"), shape_of(call)), call, call.at("file"));
  } else if (op == "randperm") {
    const Ids order = xgrad::randperm(static_cast<std::int64_t>(shape_of(call)[0]));
    const auto n = static_cast<std::ptrdiff_t>(order.size()),
               stride = call.value("stride", std::ptrdiff_t{1});
    expect_file(Ids(xt::view(order, xt::range(std::ptrdiff_t{0}, n, stride))), call, call.at("file"));
  } else if (call.at("dtype") == "float64") {
    check_call_of<double>(op, call);
  } else {
    check_call_of<float>(op, call);
  }
}

TEST(RandomTest, StreamsEqualPyTorchs) {
  const json expected = json::parse(std::ifstream(folder + "expected.json"));
  ASSERT_GT(expected.at("sequences").size(), 100u);
  for (const json& sequence : expected.at("sequences")) {
    SCOPED_TRACE(sequence.at("name").get<std::string>());
    const auto seed = sequence.at("seed").get<std::uint64_t>();
    xgrad::manual_seed(seed);
    for (const json& call : sequence.at("calls")) check_call(call);
    const json& final = sequence.at("final");
    const json& cached = final.at("cached_normal");
    EXPECT_EQ(xgrad::get_rng_state().ends_with(" none"), cached.is_null());
    if (!cached.is_null()) {
      EXPECT_DOUBLE_EQ(xgrad::default_generator().normal(), cached.get<double>());
    }
    xgrad::Generator fresh(seed);
    for (std::size_t i = 0; i < final.at("engine_draws_32bit"); ++i) fresh.random32();
    EXPECT_EQ(xgrad::default_generator().random32(), fresh.random32()) << "another number of draws";
  }
}

TEST(RandomTest, NumbersBelowTwoToThe28ThAreDrawnFrom32Bits) {
  constexpr std::int64_t limit = std::int64_t{1} << 28;
  xgrad::manual_seed(5);
  EXPECT_EQ(xgrad::randint(0, limit - 1, {3}), (Ids{148147046, 236996814, 250105852}));
  xgrad::manual_seed(5);
  EXPECT_EQ(xgrad::randint(0, limit, {3}), (Ids{236996814, 80864957, 220060790}));
}

TEST(RandomTest, UniformNumbersThatAreRoundedUpToTheEndAreTheBeginning) {
  xgrad::manual_seed(5);
  const Array<float> x = xgrad::uniform<float>({1501}, 1000, 1001);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 1001.0F);
  EXPECT_EQ(x(1500), 1000.0F);
}

TEST(RandomTest, SamplesAreDrawnWithTheirProbabilities) {
  using xgrad_tests::message_of;
  xgrad::manual_seed(1);
  const Array<double> x = xgrad::exponential<double>({20000}, 4);
  EXPECT_NEAR(xt::mean(x)(), 0.25, 0.01);
  const Array<float> weights{1, 0, 3, 4};
  const Ids drawn = xgrad::multinomial(weights, 20000, {.replacement = true});
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), i)) / 20000, weights(i) / 8, 0.01);
  Ids all = xgrad::multinomial(weights, 3);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Ids{0, 2, 3}));

  EXPECT_EQ(
      message_of<xgrad::ValueError>([&] { xgrad::multinomial(weights, 4); }),
      "multinomial: num_samples without replacement must be at most 3, the number of weights above 0 in "
      "row 0, got 4");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { xgrad::multinomial(weights, 0); }),
            "multinomial: num_samples must be at least 1, got 0");
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              xgrad::multinomial(Array<float>{{1, 2}, {0, 0}}, 1);
            }),
            "multinomial: the weights of a row must add up to more than 0 and be finite, got 0 in row 1");
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              xgrad::multinomial(Array<float>{3e38f, 3e38f, 1}, 1);
            }),
            "multinomial: the weights of a row must add up to more than 0 and be finite, got inf in row 0");
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              xgrad::multinomial(Array<float>{1, -2}, 1);
            }),
            "multinomial: weights must be at least 0, got -2");
  EXPECT_EQ(message_of<xgrad::ShapeError>([] { xgrad::multinomial(Array<float>(1.0f), 1); }),
            "multinomial: weights must be (N) or (rows, N), got ()");
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::exponential<float>({2}, 0); }),
            "exponential: rate must be above 0, got 0");
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              xgrad::bernoulli(Array<float>{0.5f, 1.5f});
            }),
            "bernoulli: every probability must be in [0, 1], got 1.5");
}

TEST(RandomTest, BlocksOfNumbersAreThoseDrawnOneByOne) {
  for (const std::size_t before : {0u, 1u, 600u, 623u}) {
    xgrad::Generator blocks(7), singles(7);
    for (std::size_t i = 0; i < before; ++i) EXPECT_EQ(blocks.random32(), singles.random32());
    for (const std::size_t count : {0u, 1u, 23u, 624u, 1500u}) {
      std::vector<std::uint32_t> words(count);
      blocks.draw(words.data(), count);
      for (const std::uint32_t word : words) EXPECT_EQ(word, singles.random32()) << before << " " << count;
    }
    for (const double p : {0.0, 0x1p-60, 0.1, 0.5, 1.0 / 3, 1.0}) {
      const Array<float> drawn = xgrad::bernoulli<float>({1100}, p, blocks);
      for (const float one : drawn) EXPECT_EQ(one, singles.uniform<double>() < p ? 1.0f : 0.0f) << p;
    }
  }
}

/// What comes after: of both kinds of normals, and of the rest.
std::vector<double> next_numbers(xgrad::Generator& generator) {
  std::vector<double> numbers{generator.normal(), static_cast<double>(generator.random32())};
  const Array<float> more = xgrad::normal<float>({700}, 0, 1, generator);
  numbers.insert(numbers.end(), more.begin(), more.end());
  return numbers;
}

TEST(RandomTest, ASavedStateGoesOnWhereItWas) {
  for (const int draws : {0, 1, 2, 623, 624, 625, 1000}) {
    xgrad::Generator generator(9);
    for (int i = 0; i < draws; ++i) generator.random32();
    for (const bool cached : {false, true}) {
      if (cached) generator.normal();
      const std::string state = generator.get_state();
      const std::vector<double> expected = next_numbers(generator);
      xgrad::Generator other;
      other.normal();
      other.set_state(state);
      EXPECT_TRUE(other.get_state() == state);
      EXPECT_EQ(next_numbers(other), expected);
      generator.set_state(state);
      EXPECT_EQ(next_numbers(generator), expected);
      generator.set_state(state);
    }
  }
}

TEST(RandomTest, TheDefaultGeneratorsStateIsSaved) {
  xgrad::manual_seed(4);
  xgrad::normal<float>({3});
  const std::string state = xgrad::get_rng_state();
  const Array<float> expected = xgrad::normal<float>({3});
  xgrad::manual_seed(5);
  xgrad::set_rng_state(state);
  EXPECT_EQ(xgrad::normal<float>({3}), expected);
}

TEST(RandomTest, RefusesTextThatIsNoState) {
  xgrad::Generator generator(1);
  generator.normal();
  const std::string state = generator.get_state(), words = state.substr(0, state.rfind(' '));
  const auto replaced = [&](std::size_t at, std::size_t count, const char* by) {
    return std::string(state).replace(at, count, by);
  };
  std::string zeros;
  for (int i = 0; i < 624; ++i) zeros += "0 ";
  const std::string start = words.substr(0, words.rfind(' '));  // without the position
  for (const std::string& bad : {std::string(),
                                 std::string(" "),
                                 std::string("none"),
                                 words,
                                 words + " ",
                                 words + " nan",
                                 words + " inf",
                                 words + " 1x",
                                 words + " 1e308",
                                 words + " 1e+308",
                                 words + " -9.5",
                                 words + " 1.500",
                                 start + " 625 none",
                                 start + " 4294967295 none",
                                 zeros + "624 none",
                                 words + " 1 1",
                                 state + " ",
                                 " " + state,
                                 "1 " + state,
                                 state.substr(state.size() / 2),
                                 replaced(0, 1, "-1"),
                                 replaced(0, 1, "x"),
                                 replaced(0, state.find(' '), "4294967296"),
                                 replaced(0, state.find(' '), "99999999999999999999999")}) {
    EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { generator.set_state(bad); }),
              "set_state: the text is not a generator's state")
        << bad.substr(0, 40);
    EXPECT_TRUE(generator.get_state() == state) << bad.substr(0, 40);
  }
}

TEST(RandomTest, OnlyTheLow32BitsOfASeedCount) {
  xgrad::Generator a(5), b(5 + (std::uint64_t{1} << 32)), c(6);
  const std::uint64_t first = a.random64();
  EXPECT_EQ(first, b.random64());
  EXPECT_NE(first, c.random64());
}

TEST(RandomTest, ASeedForgetsTheNormalNumberThatWasDrawnInAdvance) {
  xgrad::Generator generator(5);
  const Array<double> first = xgrad::normal<double>({1}, 0, 1, generator);
  generator.manual_seed(5);
  EXPECT_EQ(xgrad::normal<double>({1}, 0, 1, generator), first);
}

TEST(RandomTest, AGeneratorIsIndependentOfTheDefaultOne) {
  xgrad::Generator mine(1);
  const Array<float> first = xgrad::normal<float>({20}, 0, 1, mine);
  mine.manual_seed(1);
  xgrad::manual_seed(2);
  xgrad::normal<float>({20});
  EXPECT_EQ(first, xgrad::normal<float>({20}, 0, 1, mine));
}

// The numbers are those of Python's random.Random(n).getrandbits(32), whose seed is a key of 32-bit words.
TEST(RandomTest, AKeyOfSeveralWordsIsASeed) {
  using Key = std::vector<std::uint32_t>;
  Key long_key(700);
  std::iota(long_key.begin(), long_key.end(), 1);
  const std::pair<Key, Key> cases[] = {
      {{0x123, 0x234, 0x345, 0x456}, {1067595299U, 955945823U, 477289528U, 3460025646U}},
      {{7}, {1390851128U, 4071050724U, 647892279U, 2798318755U}},
      {{1, 2, 3, 4, 5}, {376532863U, 3107472658U, 665803011U, 2102092608U}},
      {long_key, {1434167400U, 83764642U, 1980819017U, 3263046518U}},
  };
  for (const auto& [key, expected] : cases) {
    xgrad::Generator generator(1);
    generator.manual_seed(key);
    Key drawn(1000);
    generator.draw(drawn.data(), drawn.size());
    EXPECT_EQ((Key{drawn[0], drawn[1], drawn[2], drawn[999]}), expected) << key.size();
  }
}

TEST(RandomTest, AKeyForgetsTheNormalNumberThatWasDrawnInAdvance) {
  const std::vector<std::uint32_t> key{1, 2};
  xgrad::Generator generator;
  generator.manual_seed(key);
  const Array<double> first = xgrad::normal<double>({1}, 0, 1, generator);
  generator.manual_seed(key);
  EXPECT_EQ(xgrad::normal<double>({1}, 0, 1, generator), first);
}

TEST(RandomTest, AKeyIsInTheStateBeforeAnythingIsDrawn) {
  const std::vector<std::uint32_t> key{1, 2};
  xgrad::Generator generator(key), other;
  other.set_state(generator.get_state());
  const std::uint32_t first = generator.random32();
  EXPECT_EQ(other.random32(), first);
  EXPECT_EQ(other.get_state(), generator.get_state());
  generator.manual_seed(key);
  generator.manual_seed(5);
  EXPECT_EQ(generator.random32(), xgrad::Generator(5).random32());
}

TEST(RandomTest, AUsedGeneratorIsTheDefaultOneOfItsThread) {
  xgrad::manual_seed(2);
  const Array<float> first = xgrad::normal<float>({3}), second = xgrad::normal<float>({3});
  xgrad::Generator outer(5), inner(6);
  xgrad::manual_seed(2);
  {
    const xgrad::UseGenerator use_outer(outer);
    EXPECT_EQ(&xgrad::default_generator(), &outer);
    {
      const xgrad::UseGenerator use_inner(inner);
      xgrad::manual_seed(2);
      EXPECT_EQ(xgrad::normal<float>({3}), first);
    }
    EXPECT_EQ(outer.get_state(), xgrad::Generator(5).get_state());
    Array<float> drawn_by_another;
    std::thread([&] { drawn_by_another = xgrad::normal<float>({3}); }).join();
    EXPECT_EQ(drawn_by_another, first);
  }
  EXPECT_EQ(xgrad::normal<float>({3}), second);
}

TEST(RandomTest, NothingIsDrawnForEmptyArrays) {
  xgrad::Generator a(3), b(3);
  EXPECT_EQ(xgrad::normal<float>({0, 4}, 0, 1, a).size(), 0u);
  EXPECT_EQ(xgrad::randperm(0, a).size(), 0u);
  EXPECT_EQ(a.random32(), b.random32());
}

TEST(RandomTest, RefusesBadArguments) {
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>(
                [] { xgrad::Generator().manual_seed(std::span<const std::uint32_t>()); }),
            "manual_seed: the key must have words, got none");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::randint(3, 3, {1}); }),
            "randint: low must be below high, got 3 and 3");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::randperm(-1); }),
            "randperm: count must be at least 0, got -1");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::bernoulli<float>({1}, 1.5); }),
            "bernoulli: p must be in [0, 1], got 1.5");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::bernoulli<float>({1}, std::nan("")); }),
            "bernoulli: p must be in [0, 1], got nan");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::uniform<float>({1}, 1, 0); }),
            "uniform: low must not be above high, and high - low finite, got 1 and 0");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::uniform<float>({1}, -3e38, 3e38); }),
            "uniform: low must not be above high, and high - low finite, got -3e+38 and 3e+38");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::normal<float>({1}, 0, -1); }),
            "normal: std must be at least 0, got -1");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::normal<float>({1}, 0, std::nan("")); }),
            "normal: std must be at least 0, got nan");
}

}  // namespace random_test
