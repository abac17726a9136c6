// The streams that PyTorch gives, bit for bit.

#include <xgrad/graph/random.hpp>

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <xtensor/xbuilder.hpp>

#include <xgrad/graph/error.hpp>
#include <xgrad/models/embedding.hpp>
#include <xgrad/models/linear.hpp>
#include <xgrad/ops/dropout.hpp>

#include "expect_error.hpp"
#include "npy.hpp"

namespace {

using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::Shape;
using xgrad_tests::read_npy;

const std::string folder = XGRAD_TEST_DATA_DIR "/random/";

Shape shape_of(const json& call) {
  const auto lengths = call.at("shape").get<std::vector<std::size_t>>();
  return Shape(lengths.begin(), lengths.end());
}

template <class T>
void expect_file(const Array<T>& drawn, const json& call, const char* key = "file") {
  const std::string file = call.at(key).get<std::string>();
  const Array<T> expected = read_npy<T>(folder + file);
  ASSERT_EQ(xgrad::to_string(drawn.shape()), xgrad::to_string(expected.shape())) << file;
  for (std::size_t i = 0; i < drawn.size(); ++i)
    EXPECT_EQ(drawn.data()[i], expected.data()[i]) << file << " " << i;
}

Ids raw32(std::size_t count) {
  Ids words = Ids::from_shape({count});
  for (std::int64_t& word : words) word = xgrad::default_generator().random32();
  return words;
}

template <class T>
Array<T> draw(const std::string& op, const json& call) {
  const Shape shape = shape_of(call);
  if (op == "rand") return xgrad::uniform<T>(shape);
  if (op == "randn") return xgrad::normal<T>(shape);
  if (op == "uniform_") return xgrad::uniform<T>(shape, call.at("low"), call.at("high"));
  if (op == "normal_") return xgrad::normal<T>(shape, call.at("mean"), call.at("std"));
  if (op == "bernoulli_") return xgrad::bernoulli<T>(shape, call.at("p"));
  if (op == "dropout_ones") {
    return xgrad::dropout(xgrad::Variable<T>(xt::ones<T>(shape)), call.at("p")).value();
  }
  throw std::runtime_error("unknown call " + op);
}

void check_module(const std::string& op, const json& call) {
  if (op == "nn.Embedding") {
    xgrad::EmbeddingOptions options;
    if (call.contains("padding_idx")) options.padding_idx = call.at("padding_idx").get<std::int64_t>();
    const xgrad::Embedding<float> made(call.at("num_embeddings"), call.at("embedding_dim"), options);
    expect_file(made.weight().value(), call);
  } else {
    const xgrad::Linear<float> made(call.at("in_features"), call.at("out_features"),
                                    call.at("bias").get<bool>());
    expect_file(made.weight().value(), call);
    if (call.contains("bias_file")) expect_file(made.bias().value(), call, "bias_file");
  }
}

void check_call(const json& call) {
  const std::string op = call.at("op").get<std::string>();
  if (op == "raw32") {
    expect_file(raw32(shape_of(call)[0]), call);
  } else if (op == "randint") {
    expect_file(xgrad::randint(call.at("low"), call.at("high"), shape_of(call)), call);
  } else if (op == "randperm") {
    expect_file(xgrad::randperm(static_cast<std::int64_t>(shape_of(call)[0])), call);
  } else if (op.rfind("nn.", 0) == 0) {
    check_module(op, call);
  } else if (call.at("dtype") == "float64") {
    expect_file(draw<double>(op, call), call);
  } else {
    expect_file(draw<float>(op, call), call);
  }
}

TEST(RandomTest, StreamsEqualPyTorchs) {
  const json expected = json::parse(std::ifstream(folder + "expected.json"));
  for (const json& sequence : expected.at("sequences")) {
    SCOPED_TRACE(sequence.at("name").get<std::string>());
    xgrad::manual_seed(sequence.at("seed").get<std::uint64_t>());
    for (const json& call : sequence.at("calls")) check_call(call);
    const json& cached = sequence.at("final").at("cached_normal");
    if (cached.is_null()) continue;
    EXPECT_EQ(xgrad::default_generator().normal(), cached.get<double>());
  }
}

TEST(RandomTest, OnlyTheLow32BitsOfASeedCount) {
  xgrad::Generator a(5), b(5 + (std::uint64_t{1} << 32)), c(6);
  const std::uint64_t first = a.random64();
  EXPECT_EQ(first, b.random64());
  EXPECT_NE(first, c.random64());
}

TEST(RandomTest, AGeneratorIsIndependentOfTheDefaultOne) {
  xgrad::Generator mine(1);
  const Array<float> first = xgrad::normal<float>({20}, 0, 1, mine);
  mine.manual_seed(1);
  xgrad::manual_seed(2);
  xgrad::normal<float>({20});
  EXPECT_EQ(first, xgrad::normal<float>({20}, 0, 1, mine));
}

TEST(RandomTest, NothingIsDrawnForEmptyArrays) {
  xgrad::Generator a(3), b(3);
  EXPECT_EQ(xgrad::normal<float>({0, 4}, 0, 1, a).size(), 0u);
  EXPECT_EQ(xgrad::randperm(0, a).size(), 0u);
  EXPECT_EQ(a.random32(), b.random32());
}

TEST(RandomTest, RefusesBadArguments) {
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::randint(3, 3, {1}); }),
            "randint: low must be below high, got 3 and 3");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::randperm(-1); }),
            "randperm: count must be at least 0, got -1");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::bernoulli<float>({1}, 1.5); }),
            "bernoulli: p must be in [0, 1], got 1.5");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::bernoulli<float>({1}, std::nan("")); }),
            "bernoulli: p must be in [0, 1], got nan");
}

}  // namespace
