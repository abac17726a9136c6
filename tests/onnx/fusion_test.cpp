// Nodes that one kernel computes: the same values and gradients as node by node, and only where that is so.

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "model_builder.hpp"

namespace fusion_test {

using xgrad::Array, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad::onnx::Graph, xgrad::onnx::Values;
using xgrad_tests::ModelBuilder, xgrad_tests::MessageWriter;
using Names = std::vector<std::string>;
using T = double;

/// Builds a graph twice: as it is, and with every value as an output, which keeps all nodes apart.
class Net {
 public:
  std::string node(const std::string& op, const Names& inputs, const std::vector<MessageWriter>& more = {}) {
    std::string name = "v" + std::to_string(++count_);
    whole_.node(op, inputs, {name}, more);
    apart_.node(op, inputs, {name}, more);
    apart_.output(name);
    return name;
  }
  std::string transposed(const std::string& x, const std::vector<std::int64_t>& perm) {
    return node("Transpose", {x}, {ModelBuilder::attribute("perm", perm)});
  }
  std::string number(double value) {
    std::string name = "n" + std::to_string(++count_);
    for (ModelBuilder* builder : {&whole_, &apart_})
      builder->initializer(ModelBuilder::tensor(name, 11, {}, ModelBuilder::raw(std::vector<double>{value})));
    return name;
  }
  std::string integers(const std::vector<std::int64_t>& list) {
    std::string name = "i" + std::to_string(++count_);
    for (ModelBuilder* builder : {&whole_, &apart_})
      builder->integers(name, {static_cast<std::int64_t>(list.size())}, list);
    return name;
  }
  std::string weight(const std::vector<std::int64_t>& dims) {
    std::string name = "w" + std::to_string(++count_);
    std::size_t size = 1;
    for (const std::int64_t length : dims) size *= static_cast<std::size_t>(length);
    const Array<float> drawn = xgrad::normal<float>({size});
    for (ModelBuilder* builder : {&whole_, &apart_})
      builder->floats(name, dims, std::vector<float>(drawn.begin(), drawn.end()));
    return name;
  }
  std::string input(const std::string& name, const Shape& shape) {
    add_input(name, 11, shape);
    given_.emplace(name, Variable<T>(xgrad::normal<T>(shape), true));
    return name;
  }
  std::string mask(const std::string& name, const Mask& values) {
    add_input(name, 9, values.shape());
    given_.emplace(name, values);
    return name;
  }

  /// Compares both for the value `y`, and returns the op that made it.
  std::string made_by(const std::string& y) {
    whole_.output(y);
    const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    const std::string one = whole_.bytes(), other = apart_.bytes();
    const Graph<T> whole("whole", bytes(one)), apart("apart", bytes(other));
    EXPECT_EQ(whole.operators(), apart.operators());
    const auto got = run(whole, y), expected = run(apart, y);
    for (const auto& [name, array] : expected) {
      const Array<T>& other_array = got.at(name);
      EXPECT_EQ(other_array.shape(), array.shape()) << name;
      for (std::size_t i = 0; i < array.size() && i < other_array.size(); ++i)
        EXPECT_NEAR(other_array.data()[i], array.data()[i], 1e-12 * (1 + std::abs(array.data()[i]))) << name;
    }
    const std::string text = xgrad::to_string(std::get<Variable<T>>(whole(given_).at(y)));
    const std::size_t begin = text.find("grad_fn=<") + 9;
    return text.substr(begin, text.find('>') - begin);
  }

 private:
  void add_input(const std::string& name, std::int64_t type, const Shape& shape) {
    const std::vector<std::int64_t> dims(shape.begin(), shape.end());
    for (ModelBuilder* builder : {&whole_, &apart_}) builder->input(name, type, dims);
  }

  /// y, and the gradients of sum(y^2) of inputs and parameters.
  std::map<std::string, Array<T>> run(const Graph<T>& graph, const std::string& output) const {
    const Variable<T> y = std::get<Variable<T>>(graph(given_).at(output));
    sum(square(y)).backward();
    std::map<std::string, Array<T>> all{{"y", y.value()}};
    for (const auto& [name, parameter] : graph.named_parameters())
      if (parameter.has_grad()) all.emplace(name, parameter.grad().value());
    for (const auto& [name, value] : given_) {
      const auto* const x = std::get_if<Variable<T>>(&value);
      if (x == nullptr) continue;
      all.emplace(name, x->grad().value());
      x->zero_grad();
    }
    return all;
  }

  ModelBuilder whole_, apart_;
  Values<T> given_;
  int count_ = 0;
};

class OnnxFusionTest : public testing::Test {
 protected:
  OnnxFusionTest() { xgrad::manual_seed(5); }
  Net net;
};

TEST_F(OnnxFusionTest, ProductsWithTurnedWeights) {
  const std::string x = net.input("x", {2, 3, 4});
  const std::string y = net.node("MatMul", {x, net.transposed(net.weight({5, 4}), {1, 0})});
  EXPECT_EQ(net.made_by(net.node("Add", {net.weight({5}), y})), "linear");
}

TEST_F(OnnxFusionTest, ProductsWithRelu) {
  const std::string x = net.input("x", {3, 4});
  const std::string y = net.node("MatMul", {x, net.transposed(net.weight({5, 4}), {1, 0})});
  EXPECT_EQ(net.made_by(net.node("Relu", {net.node("Add", {y, net.weight({5})})})), "linear_relu");
}

TEST_F(OnnxFusionTest, ATurnedWeightMayBeReadTwice) {
  const std::string turned = net.transposed(net.weight({4, 4}), {1, 0});
  const std::string y = net.node("MatMul", {net.input("x", {3, 4}), turned});
  EXPECT_EQ(net.made_by(net.node("MatMul", {y, turned})), "linear");
}

TEST_F(OnnxFusionTest, ABiasThatStretchesIsAdded) {
  const std::string y =
      net.node("MatMul", {net.input("x", {3, 4}), net.transposed(net.weight({5, 4}), {1, 0})});
  EXPECT_EQ(net.made_by(net.node("Add", {y, net.weight({1})})), "add");
}

TEST_F(OnnxFusionTest, GeluInBothForms) {
  const std::string x = net.input("x", {3, 4});
  const std::string erf = net.node("Erf", {net.node("Div", {x, net.number(std::sqrt(2.0))})});
  const std::string inner = net.node("Mul", {x, net.node("Add", {erf, net.number(1)})});
  const std::string gelu = net.node("Mul", {inner, net.number(0.5)});
  const std::string cube = net.node("Mul", {net.number(0.044715), net.node("Pow", {gelu, net.number(3)})});
  const std::string tanh = net.node(
      "Tanh", {net.node("Mul", {net.node("Add", {gelu, cube}), net.number(std::sqrt(2 / std::acos(-1.0)))})});
  const std::string product = net.node("Mul", {gelu, net.node("Add", {tanh, net.number(1)})});
  EXPECT_EQ(net.made_by(net.node("Mul", {product, net.number(0.5)})), "gelu");
}

TEST_F(OnnxFusionTest, SumsThatAreNormalized) {
  const std::string x = net.input("x", {2, 3, 4});
  const std::string sum = net.node("Add", {x, net.input("r", {2, 3, 4})});
  EXPECT_EQ(net.made_by(net.node("LayerNormalization", {sum, net.weight({4}), net.weight({4})})),
            "add_layer_norm");
}

TEST_F(OnnxFusionTest, SumsThatStretchAreNormalized) {
  const std::string sum = net.node("Add", {net.input("x", {1, 4}), net.input("r", {3, 1})});
  EXPECT_EQ(net.made_by(net.node("LayerNormalization", {sum, net.weight({4}), net.weight({4})})),
            "layer_norm");
}

/// What else attention can be told.
struct Spelled {
  std::int64_t axis = -1;  // of the softmax
  double lowest = -3.4e38;
  std::vector<std::int64_t> joined = {0, 0, -1};
  std::string scale = "";
};

/// Attention in two heads as the exporter writes it.
std::string attention(Net& net, const Names& qkv, const std::string& mask, const std::string& bias = "",
                      const Spelled& how = {}) {
  const std::string heads = net.integers({0, 0, 2, -1});
  const auto split = [&](const std::string& x, const std::vector<std::int64_t>& perm) {
    return net.transposed(net.node("Reshape", {x, heads}), perm);
  };
  const std::string q = split(qkv[0], {0, 2, 1, 3}), k = split(qkv[1], {0, 2, 3, 1}),
                    v = split(qkv[2], {0, 2, 1, 3});
  std::string s =
      net.node("Mul", {net.node("MatMul", {q, k}), how.scale.empty() ? net.number(0.5) : how.scale});
  if (!bias.empty()) s = net.node("Add", {s, bias});
  if (!mask.empty()) s = net.node("Where", {mask, s, net.number(how.lowest)});
  s = net.node("Softmax", {s}, {ModelBuilder::attribute("axis", how.axis)});
  const std::string y = net.transposed(net.node("MatMul", {s, v}), {0, 2, 1, 3});
  return net.node("Reshape", {y, net.integers(how.joined)});
}

TEST_F(OnnxFusionTest, Attention) {
  const std::string q = net.input("q", {2, 3, 4}), k = net.input("k", {2, 5, 4}),
                    v = net.input("v", {2, 5, 6});
  EXPECT_EQ(net.made_by(attention(net, {q, k, v}, "")), "scaled_dot_product_attention");
}

TEST_F(OnnxFusionTest, AttentionWithABias) {
  const std::string x = net.input("x", {2, 3, 4});
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, "", net.input("bias", {2, 1, 3, 3}))),
            "scaled_dot_product_attention");
}

TEST_F(OnnxFusionTest, AttentionWithAMask) {
  const std::string x = net.input("x", {2, 3, 4});
  const std::string mask = net.mask("mask", Mask{{{{true, true, false}}}, {{{true, false, false}}}});
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, mask)), "scaled_dot_product_attention");
}

/// Of as many heads as sequences.
TEST_F(OnnxFusionTest, AttentionWithAMaskOrABiasOfHeads) {
  const std::string x = net.input("x", {2, 3, 4});
  const std::string mask = net.mask("mask", Mask{{{true, true, false}}, {{true, false, false}}});
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, mask)), "scaled_dot_product_attention");
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, "", net.input("bias", {2, 3, 3}))),
            "scaled_dot_product_attention");
}

TEST_F(OnnxFusionTest, WhatAttendsToNothingAttendsToAllAlike) {
  const std::string x = net.input("x", {2, 3, 4});
  const std::string mask = net.mask("mask", Mask{{{{true, true, false}}}, {{{false, false, false}}}});
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, mask)), "reshape");
}

/// The same of two sequences of three tokens as PyTorch exports its attention: two factors of the scale, a
/// bias that hides keys, no nan where it hides all, and keys that are turned in one step or as rows of
/// matrices.
std::string pytorch_attention(Net& net, const std::string& x, const std::string& bias, bool as_rows) {
  const std::string heads = net.integers({2, 3, -1, 2});
  const auto split = [&](const std::vector<std::int64_t>& perm) {
    return net.transposed(net.node("Reshape", {x, heads}, {ModelBuilder::attribute("allowzero", 1)}), perm);
  };
  const std::string q = split({0, 2, 1, 3}), v = split({0, 2, 1, 3});
  std::string k =
      split(as_rows ? std::vector<std::int64_t>{0, 2, 1, 3} : std::vector<std::int64_t>{0, 2, 3, 1});
  if (as_rows) {
    const std::string length =
        net.node("Slice", {net.node("Shape", {k}), net.integers({2}), net.integers({3})});
    const std::string rows = net.node("Concat", {net.integers({-1}), length, net.integers({2})},
                                      {ModelBuilder::attribute("axis", 0)});
    k = net.transposed(net.node("Reshape", {k, rows}), {0, 2, 1});
    k = net.node("Reshape", {k, net.integers({2, 2, 2, 3})});
  }
  const std::vector<MessageWriter> along{ModelBuilder::attribute("axis", 0)};
  const std::string factor = net.number(0.8);
  const std::string scores = net.node("MatMul", {net.node("Mul", {q, factor}), net.node("Mul", {k, factor})});
  const std::string weights =
      net.node("Softmax", {net.node("Add", {scores, bias})}, {ModelBuilder::attribute("axis", -1)});
  const std::string shown = net.node("Where", {net.node("IsNaN", {weights}), net.number(0), weights});
  const std::string product = net.node("MatMul", {shown, v});
  const std::string batch =
      net.node("Slice", {net.node("Shape", {product}), net.integers({0}), net.integers({1})});
  const std::string joined = net.node("Concat", {batch, net.integers({3}), net.integers({-1})}, along);
  const std::string apart =
      as_rows ? product
              : net.node("Reshape", {product, net.node("Concat", {batch, net.integers({-1, 3, 2})}, along)});
  return net.node("Reshape", {net.transposed(apart, {0, 2, 1, 3}), joined},
                  {ModelBuilder::attribute("allowzero", 1)});
}

TEST_F(OnnxFusionTest, AttentionAsPyTorchExportsIt) {
  for (const bool as_rows : {false, true}) {
    net = Net();
    const std::string x = net.input("x", {2, 3, 4}), bias = net.input("bias", {2, 1, 3, 3});
    EXPECT_EQ(net.made_by(pytorch_attention(net, x, bias, as_rows)), "scaled_dot_product_attention")
        << as_rows;
  }
}

TEST_F(OnnxFusionTest, AttentionWithTwoBiases) {
  const std::string x = net.input("x", {2, 3, 4}), heads = net.integers({0, 0, 2, -1});
  const auto split = [&](const std::vector<std::int64_t>& perm) {
    return net.transposed(net.node("Reshape", {x, heads}), perm);
  };
  const std::string product = net.node("MatMul", {split({0, 2, 1, 3}), split({0, 2, 3, 1})});
  const std::string positions = net.node("Add", {product, net.input("positions", {1, 2, 3, 3})});
  const std::string scores = net.node("Add", {positions, net.input("bias", {2, 1, 1, 3})});
  const std::string weights = net.node("Softmax", {scores}, {ModelBuilder::attribute("axis", -1)});
  const std::string y = net.transposed(net.node("MatMul", {weights, split({0, 2, 1, 3})}), {0, 2, 1, 3});
  EXPECT_EQ(net.made_by(net.node("Reshape", {y, net.integers({0, 0, -1})})), "scaled_dot_product_attention");
}

TEST_F(OnnxFusionTest, AttentionWithTheScaleAsADivisor) {
  const std::string x = net.input("x", {2, 3, 4}), heads = net.integers({0, 0, 2, -1});
  const auto split = [&](const std::vector<std::int64_t>& perm) {
    return net.transposed(net.node("Reshape", {x, heads}), perm);
  };
  const std::string k = net.transposed(split({0, 2, 1, 3}), {0, 1, 3, 2});
  const std::string scores = net.node("Div", {net.node("MatMul", {split({0, 2, 1, 3}), k}), net.number(1.5)});
  const std::string weights = net.node("Softmax", {scores}, {ModelBuilder::attribute("axis", -1)});
  const std::string y = net.transposed(net.node("MatMul", {weights, split({0, 2, 1, 3})}), {0, 2, 1, 3});
  EXPECT_EQ(net.made_by(net.node("Reshape", {y, net.integers({2, 3, 4})})), "scaled_dot_product_attention");
}

TEST_F(OnnxFusionTest, ADivisorOfEachKeyIsComputedAsItStands) {
  const std::string x = net.input("x", {2, 3, 4}), heads = net.integers({0, 0, 2, -1});
  const auto split = [&](const std::vector<std::int64_t>& perm) {
    return net.transposed(net.node("Reshape", {x, heads}), perm);
  };
  const std::string product = net.node("MatMul", {split({0, 2, 1, 3}), split({0, 2, 3, 1})});
  const std::string scores = net.node("Div", {product, net.weight({3})});
  const std::string weights = net.node("Softmax", {scores}, {ModelBuilder::attribute("axis", -1)});
  const std::string y = net.transposed(net.node("MatMul", {weights, split({0, 2, 1, 3})}), {0, 2, 1, 3});
  EXPECT_EQ(net.made_by(net.node("Reshape", {y, net.integers({0, 0, -1})})), "reshape");
}

// ---- Products of 8-bit integers ----

/// How a graph spells x times a weight of bytes.
enum class Spelling { single_operators, to_float, one_operator, between_quantizations };

/// A product of x (..., rows) and a weight (rows, cols) of bytes, which is fused unless all values are
/// outputs.
struct IntegerProduct {
  Spelling spelling = Spelling::single_operators;
  std::int64_t type = 2, rows = 70, cols = 37, bias_length = 37;  // of UINT8
  bool by_columns = false, has_zero_point = true, has_bias = true;

  ModelBuilder model(bool is_apart) const {
    xgrad::manual_seed(3);
    ModelBuilder model;
    const auto bytes = [](std::int64_t count, std::uint64_t factor) {
      std::string all;
      for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i)
        all += static_cast<char>(i * factor % 253 + 3);
      return all;
    };
    const auto floats = [](std::int64_t count) {
      const Array<float> drawn = xgrad::normal<float>({static_cast<std::size_t>(count)});
      return std::vector<float>(drawn.begin(), drawn.end());
    };
    const std::vector<std::int64_t> dims =
        by_columns ? std::vector<std::int64_t>{cols} : std::vector<std::int64_t>{};
    const std::int64_t each = by_columns ? cols : 1;
    model.input("x", 1, {-1, -1, -1});
    model.initializer(ModelBuilder::tensor("w", type, {rows, cols}, bytes(rows * cols, 7919)));
    model.initializer(ModelBuilder::tensor(
        "w_zero", type, dims,
        has_zero_point ? bytes(each, 31) : std::string(static_cast<std::size_t>(each), '\0')));
    model.floats("w_scale", dims, floats(each));
    model.floats("bias", {bias_length}, floats(bias_length));
    Names made;
    const auto node = [&](const std::string& op, const Names& inputs, const Names& outputs,
                          const std::vector<MessageWriter>& attributes = {}, const std::string& domain = "") {
      model.node(op, inputs, outputs, attributes, domain);
      made.insert(made.end(), outputs.begin(), outputs.end());
    };
    const std::string product = has_bias ? "product" : "y";
    switch (spelling) {
      case Spelling::single_operators:
        node("DynamicQuantizeLinear", {"x"}, {"q", "q_scale", "q_zero"});
        node("MatMulInteger", {"q", "w", "q_zero", "w_zero"}, {"sums"});
        node("Cast", {"sums"}, {"floats"}, {ModelBuilder::attribute("to", 1)});
        node("Mul", {"q_scale", "w_scale"}, {"scales"});
        node("Mul", {"floats", "scales"}, {product});
        break;
      case Spelling::to_float:
        node("DynamicQuantizeLinear", {"x"}, {"q", "q_scale", "q_zero"});
        node("MatMulIntegerToFloat", {"q", "w", "q_scale", "w_scale", "q_zero", "w_zero"}, {product}, {},
             "com.microsoft");
        break;
      case Spelling::one_operator:
        node("DynamicQuantizeMatMul", {"x", "w", "w_scale", "w_zero"}, {product}, {}, "com.microsoft");
        break;
      default:
        model.floats("x_scale", {}, {0.02F});
        model.initializer(ModelBuilder::tensor("x_zero", type, {}, "\x41"));
        node("QuantizeLinear", {"x", "x_scale", "x_zero"}, {"q"});
        node("DequantizeLinear", {"q", "x_scale", "x_zero"}, {"x_again"});
        node("DequantizeLinear", {"w", "w_scale", "w_zero"}, {"w_again"});
        node("MatMul", {"x_again", "w_again"}, {product});
    }
    if (has_bias) node("Add", {"bias", product}, {"y"});
    for (const std::string& name : is_apart ? made : Names{"y"}) model.output(name);
    return model;
  }

  Graph<float> graph(bool is_apart) const {
    const std::string bytes = model(is_apart).bytes();
    return Graph<float>("model", std::as_bytes(std::span(bytes)));
  }
};

Array<float> integer_product(const Graph<float>& graph, const Array<float>& x) {
  const xgrad::NoGrad guard;
  return std::get<Variable<float>>(graph({{"x", Variable<float>(x)}}).at("y")).value();
}

std::vector<IntegerProduct> integer_products() {
  std::vector<IntegerProduct> all;
  for (const Spelling spelling : {Spelling::single_operators, Spelling::to_float, Spelling::one_operator,
                                  Spelling::between_quantizations})
    for (const std::int64_t type : {2, 3})
      for (const bool by_columns : {false, true})
        for (const bool has_zero_point : {false, true})
          all.push_back({.spelling = spelling,
                         .type = type,
                         .by_columns = by_columns,
                         .has_zero_point = has_zero_point,
                         .has_bias = by_columns || has_zero_point});
  return all;
}

TEST(OnnxIntegerProductTest, KernelsGiveTheNumbersOfSingleOperators) {
  Array<float> x = xgrad::normal<float>({3, 5, 70});
  x(0, 0, 0) = NAN;
  x(1, 2, 3) = -9.5F;
  for (const IntegerProduct& one : integer_products()) {
    const Array<float> got = integer_product(one.graph(false), x),
                       expected = integer_product(one.graph(true), x);
    ASSERT_EQ(got.shape(), expected.shape());
    // products of floats are rounded on the way
    const bool is_exact = one.spelling != Spelling::between_quantizations;
    const float largest = xt::amax(xt::abs(expected))();
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got.data()[i], expected.data()[i], is_exact ? 0 : 1e-6F * largest)
          << static_cast<int>(one.spelling) << ' ' << one.type << ' ' << one.by_columns << ' '
          << one.has_zero_point;
  }
}

TEST(OnnxIntegerProductTest, IsOneNode) {
  for (const IntegerProduct& one : integer_products()) {
    EXPECT_EQ(integer_product(one.graph(false), Array<float>(Shape{0, 1, 70})).shape(), (Shape{0, 1, 37}));
    EXPECT_EQ(one.graph(false).operators(), one.graph(true).operators());
    EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] {
                integer_product(one.graph(false), Array<float>(Shape{2, 3, 69}, 0.0F));
              }),
              "integer_linear \"makes_y\": the last axis of x must have 70 elements, got x (2, 3, 69)");
  }
}

TEST(OnnxIntegerProductTest, ScalesAndBiasesHaveTheirGradients) {
  const Array<float> x = xgrad::normal<float>({2, 3, 70});
  for (const IntegerProduct& one : integer_products()) {
    const auto gradients = [&](bool is_apart) {
      const Graph<float> graph = one.graph(is_apart);
      const auto y = std::get<Variable<float>>(graph({{"x", Variable<float>(x)}}).at("y"));
      std::map<std::string, Array<float>> all{{"y", y.value()}};
      if (y.requires_grad()) sum(square(y)).backward();
      for (const auto& [name, parameter] : graph.named_parameters())
        if (parameter.has_grad()) all.emplace(name, parameter.grad().value());
      return all;
    };
    const auto got = gradients(false), expected = gradients(true);
    ASSERT_EQ(got.size(), expected.size());
    for (const auto& [name, array] : expected) {
      const float largest = xt::amax(xt::abs(array))();
      for (std::size_t i = 0; i < array.size(); ++i)
        EXPECT_NEAR(got.at(name).data()[i], array.data()[i], 1e-5F * largest) << name;
    }
  }
}

/// An embedding of zeros may be normalized, which makes its gradient very large.
TEST(OnnxPaddingTest, TheOnlyRowOfZerosGetsNoGradient) {
  const auto gradient = [](const std::vector<float>& table) {
    ModelBuilder model;
    model.floats("table", {3, 2}, table);
    model.input("ids", 7, {-1});
    model.node("Gather", {"table", "ids"}, {"y"});
    model.output("y");
    const std::string bytes = model.bytes();
    const Graph<T> graph("model", std::as_bytes(std::span(bytes)));
    sum(std::get<Variable<T>>(graph({{"ids", xgrad::Ids{1, -1, 1}}}).at("y"))).backward();
    return graph.parameters()[0].grad().value();
  };
  EXPECT_EQ(gradient({1, 0, 0, 0, 5, 6}), (Array<T>{{0, 0}, {0, 0}, {1, 1}}));
  EXPECT_EQ(gradient({1, 0, 3, 4, 5, 6}), (Array<T>{{0, 0}, {2, 2}, {1, 1}}));
  EXPECT_EQ(gradient({0, 0, 0, 0, 5, 6}), (Array<T>{{0, 0}, {2, 2}, {1, 1}}));
}

TEST_F(OnnxFusionTest, GeluWithTheHalfFirst) {
  const std::string x = net.input("x", {3, 4});
  const std::string erf = net.node("Erf", {net.node("Mul", {x, net.number(std::sqrt(0.5))})});
  const std::string half = net.node("Mul", {x, net.number(0.5)});
  EXPECT_EQ(net.made_by(net.node("Mul", {half, net.node("Add", {erf, net.number(1)})})), "gelu");
}

TEST_F(OnnxFusionTest, AttentionOfOtherShapes) {
  const std::string q = net.input("q", {1, 3, 2, 2}), x = net.input("x", {2, 5, 4});
  EXPECT_EQ(net.made_by(attention(net, {q, x, x}, "")), "reshape");
}

TEST_F(OnnxFusionTest, AMaskThatStretchesTheBatch) {
  const std::string x = net.input("x", {1, 2, 4});
  const std::string mask = net.mask("mask", Mask{{{{true, false}}}, {{{true, true}}}});
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, mask)), "reshape");
}

TEST_F(OnnxFusionTest, WhatIsAlmostAttention) {
  const std::string x = net.input("x", {2, 3, 4});
  const std::string mask = net.mask("mask", Mask{{{{true, true, false}}}, {{{true, false, false}}}});
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, "", "", {.axis = -2})), "reshape");
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, mask, "", {.lowest = -10})), "reshape");
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, "", "", {.joined = {2, 12}})), "reshape");
  EXPECT_EQ(net.made_by(attention(net, {x, x, x}, "", "", {.scale = net.weight({1})})), "reshape");
  const std::string one = net.input("one", {1, 3, 4});
  EXPECT_EQ(net.made_by(attention(net, {x, one, one}, "")), "reshape");
}

TEST_F(OnnxFusionTest, WhatIsAlmostGelu) {
  const std::string x = net.input("x", {3, 4});
  const auto gelu_of = [&](const std::string& factor, double divisor) {
    const std::string erf = net.node("Erf", {net.node("Div", {x, net.number(divisor)})});
    const std::string inner = net.node("Mul", {factor, net.node("Add", {erf, net.number(1)})});
    return net.node("Mul", {inner, net.number(0.5)});
  };
  EXPECT_EQ(net.made_by(gelu_of(x, 1.5)), "mul");
  EXPECT_EQ(net.made_by(gelu_of(x, std::sqrt(2.0))), "gelu");
  EXPECT_EQ(net.made_by(gelu_of(net.input("z", {3, 4}), std::sqrt(2.0))), "mul");
}

TEST_F(OnnxFusionTest, ATransposeThatTurnsNothing) {
  const std::string x = net.input("x", {3, 4});
  EXPECT_EQ(net.made_by(net.node("MatMul", {x, net.transposed(net.weight({4, 4}), {0, 1})})), "matmul");
}

TEST(OnnxIntegerProductTest, WhatElseIsReadStays) {
  const Array<float> x = xgrad::normal<float>({2, 3, 70});
  ModelBuilder model = IntegerProduct{}.model(false);
  model.output("q_scale");
  const std::string bytes = model.bytes();
  const Graph<float> graph("model", std::as_bytes(std::span(bytes)));
  EXPECT_EQ(integer_product(graph, x), integer_product(IntegerProduct{}.graph(false), x));
  const IntegerProduct one_bias{.bias_length = 1};
  EXPECT_EQ(integer_product(one_bias.graph(false), x), integer_product(one_bias.graph(true), x));
}

/// Columns are no embeddings.
TEST(OnnxPaddingTest, ColumnsOfATableWithARowOfZeros) {
  ModelBuilder model;
  model.floats("table", {3, 2}, {1, 0, 0, 0, 5, 6});
  model.input("ids", 7, {-1});
  model.node("Gather", {"table", "ids"}, {"y"}, {ModelBuilder::attribute("axis", 1)});
  model.output("y");
  const std::string bytes = model.bytes();
  const Graph<T> graph("model", std::as_bytes(std::span(bytes)));
  const Variable<T> y = std::get<Variable<T>>(graph({{"ids", xgrad::Ids{1, 0}}}).at("y"));
  EXPECT_EQ(y.value(), (Array<T>{{0, 1}, {0, 0}, {6, 5}}));
  sum(y).backward();
  EXPECT_EQ(graph.parameters()[0].grad().value(), (Array<T>{{1, 1}, {1, 1}, {1, 1}}));
}

}  // namespace fusion_test
