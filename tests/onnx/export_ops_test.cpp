// ONNX files of single ops, and how a file holds weights.

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"
#include "exported_functions.hpp"

namespace export_ops_test {

using xgrad::Array, xgrad::Ids, xgrad::Module, xgrad::Shape, xgrad::Variable;
using xgrad::onnx::Graph, xgrad::onnx::Input, xgrad::onnx::Values;
using xgrad_tests::relative_difference, xgrad_tests::TemporaryFolder;

/// Exports f and reads it again; also for lengths that were not traced.
template <class T, class F>
void expect_exported(const std::string& name, const F& f, std::int64_t opset) {
  constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;
  const TemporaryFolder folder;
  const xgrad::Linear<T> unread(1, 1);
  const std::string path = folder.path("model.onnx");
  try {
    xgrad::onnx::save<T>(unread, path, {{"x", {"batch", "sequence", 8U}}},
                         [&](const Values<T>& in) {
                           return Values<T>{{"y", f(std::get<Variable<T>>(in.at("x")))}};
                         },
                         {.opset = opset});
  } catch (const std::exception& error) {
    ADD_FAILURE() << name << ", operator set " << opset << ": " << error.what();
    return;
  }
  const Graph<T> graph(path);
  for (const auto& [batch, length] : {std::pair<std::size_t, std::size_t>{1, 6}, {4, 11}}) {
    const Variable<T> x(xgrad::normal<T>({batch, length, 8}));
    const Array<T> y = std::get<Variable<T>>(graph({{"x", x}}).at("y")).value();
    EXPECT_LE(relative_difference(y, f(x).value()), tolerance) << name << ' ' << batch;
  }
}

template <class T>
class OnnxExportedOpsTest : public testing::Test {};

using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(OnnxExportedOpsTest, Floats);

TYPED_TEST(OnnxExportedOpsTest, FunctionsAreWrittenForEveryOperatorSet) {
  xgrad::manual_seed(2);
  for (const auto& [name, f] : xgrad_tests::exported_functions<TypeParam>())
    for (const std::int64_t opset : {17, 18, 23}) expect_exported<TypeParam>(name, f, opset);
}

TYPED_TEST(OnnxExportedOpsTest, LayersAreWrittenForEveryOperatorSet) {
  xgrad::manual_seed(2);
  for (const auto& [name, f] : xgrad_tests::exported_layers<TypeParam>())
    for (const std::int64_t opset : {17, 23}) expect_exported<TypeParam>(name, f, opset);
}

/// A weight, and what reads it.
struct Weighted : Module<float> {
  explicit Weighted(const char* name = "weight")
      : Module<float>("Weighted"), weight(this->parameter(name, xgrad::normal<float>({3, 4}))) {}
  Variable<float> weight;
};

class OnnxWeightsTest : public testing::Test {
 protected:
  template <class F>
  Graph<float> saved(const F& f, const xgrad::onnx::ExportOptions& options = {}) {
    xgrad::onnx::save<float>(
        model_, path_, {{"x", {"batch", 4U}}},
        [&](const Values<float>& in) {
          return Values<float>{{"y", f(std::get<Variable<float>>(in.at("x")))}};
        },
        options);
    return Graph<float>(path_);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("model.onnx");
  const Weighted model_;
};

TEST_F(OnnxWeightsTest, AProductReadsAConstantAndTheLayerGetsItsWeightBack) {
  const auto graph = saved([&](const Variable<float>& x) {
    return linear(matmul(linear(x, model_.weight), model_.weight), model_.weight);
  });
  EXPECT_EQ(graph.operators().count("Transpose"), 1U) << "both orders are read";
  const auto once = saved([&](const Variable<float>& x) { return linear(x, model_.weight); });
  EXPECT_EQ(once.operators(), (std::map<std::string, std::size_t>{{"Identity", 1}, {"MatMul", 1}}));
  for (const Graph<float>& one : {graph, once}) {
    const auto parameters = one.named_parameters();
    ASSERT_EQ(parameters.size(), 1U);
    EXPECT_EQ(parameters[0].first, "weight");
    xgrad_tests::expect_same_bits(parameters[0].second.value(), model_.weight.value());
  }
}

TEST_F(OnnxWeightsTest, ATransposeOfAnotherProgramStaysOne) {
  saved([&](const Variable<float>& x) { return linear(x, model_.weight); });
  std::string bytes = xgrad_tests::read_bytes(path_);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string other = bytes;
    other.replace(other.find(from), from.size(), to);
    return Graph<float>(folder_.write("other.onnx", other));
  };
  for (const auto& [from, to] :
       {std::pair{"\x05xgrad", "\x05other"}, {"transpose of", "Transpose of"}, {"of weight", "of Linear"}}) {
    const auto graph = replaced(from, to);
    const bool is_named = std::string(to) == "of Linear";
    EXPECT_EQ(graph.named_parameters()[0].first, is_named ? "Linear" : "weight_transposed");
    EXPECT_EQ(graph.named_parameters()[0].second.shape(), is_named ? (Shape{3, 4}) : (Shape{4, 3}));
    const Variable<float> x(xgrad::normal<float>({2, 4}));
    EXPECT_LE(relative_difference(std::get<Variable<float>>(graph({{"x", x}}).at("y")).value(),
                                  linear(x, model_.weight).value()),
              1e-6);
  }
  // the name is taken by the value of a node
  const auto graph = replaced("of weight", "of MatMul");
  EXPECT_EQ(graph.named_parameters()[0].first, "weight_transposed");
}

TEST_F(OnnxWeightsTest, OperatorSetsOfOtherYearsAreRefused) {
  for (const std::int64_t opset : {16, 24}) {
    EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>(
                  [&] { saved([](const Variable<float>& x) { return x * 2; }, {.opset = opset}); }),
              "onnx::save: operator sets 17 to 23 can be written, got " + std::to_string(opset));
  }
}

TEST_F(OnnxWeightsTest, OtherResultsOfARefusedLayerAreNoErrorsOfTheirOwn) {
  const xgrad::LSTM<float> layer(4, 3, {.proj_size = 2});
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>(
                [&] { saved([&](const Variable<float>& x) { return layer(x).h; }); }),
            "onnx::save: cannot export 'lstm', with projections, which ONNX lacks");
}

TEST_F(OnnxWeightsTest, WhatNoOutputNeedsIsLeftOut) {
  const auto graph = saved([&](const Variable<float>& x) {
    const Variable<float> unread = exp(linear(x, model_.weight));
    return x * 2;
  });
  EXPECT_EQ(graph.operators(), (std::map<std::string, std::size_t>{{"Identity", 1}, {"Mul", 1}}));
  EXPECT_TRUE(graph.named_parameters().empty());
}

}  // namespace export_ops_test
