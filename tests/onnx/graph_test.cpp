// Graphs from ONNX files: those of PyTorch, their training, and files that are wrong.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"
#include "model_builder.hpp"

namespace graph_test {

using nlohmann::json;
using xgrad::Array, xgrad::FileError, xgrad::Ids, xgrad::Shape, xgrad::ShapeError, xgrad::ValueError,
    xgrad::Variable;
using xgrad::onnx::Graph, xgrad::onnx::Value, xgrad::onnx::Values;
using xgrad_tests::message_of, xgrad_tests::MessageWriter, xgrad_tests::ModelBuilder,
    xgrad_tests::relative_difference, xgrad_tests::TemporaryFolder;

std::string file(const std::string& name) { return XGRAD_ONNX_DIR "/" + name; }

template <class A>
A array_of(const json& dims, const json& data) {
  const auto lengths = dims.get<std::vector<std::size_t>>();
  A array = A::from_shape(Shape(lengths.begin(), lengths.end()));
  const auto elements = data.get<std::vector<typename A::value_type>>();
  std::copy(elements.begin(), elements.end(), array.data());
  return array;
}

template <class T>
Values<T> inputs_of(const json& inputs) {
  Values<T> values;
  for (const auto& [name, input] : inputs.items()) {
    if (input.at("type") == "int64") {
      values.emplace(name, array_of<Ids>(input.at("dims"), input.at("data")));
    } else {
      values.emplace(name, Variable<T>(array_of<Array<T>>(input.at("dims"), input.at("data"))));
    }
  }
  return values;
}

/// The largest difference from what is expected, in parts of the largest element.
template <class T>
double difference(const Variable<T>& got, const json& expected) {
  const auto elements = expected.get<std::vector<T>>();
  if (got.size() != elements.size()) return INFINITY;
  Array<T> array = Array<T>::from_shape(got.shape());
  std::ranges::copy(elements, array.begin());
  return relative_difference(got.value(), array);
}

template <class T>
void expect_results_of(const std::string& cases) {
  const json models = json::parse(xgrad_tests::read_bytes(file(cases)));
  std::size_t compared = 0;
  for (const json& model : models) {
    const Graph<T> graph(file(model.at("model")));
    for (const json& one : model.at("cases")) {
      const Values<T> results = graph(inputs_of<T>(one.at("inputs")));
      for (const auto& [name, expected] : one.at("outputs").items()) {
        EXPECT_LE(difference(std::get<Variable<T>>(results.at(name)), expected), 2e-6)
            << model.at("model") << " " << name;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 6U);
}

TEST(OnnxGraphTest, FilesOfPyTorchAndByHandGiveTheirResults) {
  for (const char* cases : {"by_hand.json", "torch113.json"}) {
    expect_results_of<float>(cases);
    expect_results_of<double>(cases);
  }
}

TEST(OnnxGraphTest, InitializersAreParametersWithGradients) {
  const Graph<double> graph(file("by_hand.onnx"));
  xgrad::manual_seed(0);
  Array<std::int64_t> mask = xt::ones<std::int64_t>({2, 5});
  mask(0, 4) = 0;
  const Values<double> given{{"x", Variable<double>(xgrad::normal<double>({2, 5, 4}))},
                             {"attention_mask", mask}};
  const Variable<double> seed(xgrad::normal<double>({2, 5, 4}));
  ASSERT_FALSE(graph.parameters().empty());
  EXPECT_TRUE(xgrad::gradcheck(
      [&](const std::vector<Variable<double>>&) {
        return sum(std::get<Variable<double>>(graph(given).at("y")) * seed);
      },
      graph.parameters()));
}

TEST(OnnxGraphTest, AModelOfPyTorchIsTrained) {
  const Graph<float> graph(file("torch113_bert_classifier_opset17.onnx"));
  const json models = json::parse(xgrad_tests::read_bytes(file("torch113.json")));
  const json& model = *std::ranges::find(models, "torch113_bert_classifier_opset17.onnx",
                                         [](const json& one) { return one.at("model"); });
  const Values<float> given = inputs_of<float>(model.at("cases").at(0).at("inputs"));
  xgrad::Adam<float> adam(graph.parameters(), {.lr = 1e-3});
  std::vector<float> losses;
  for (int step = 0; step < 20; ++step) {
    adam.zero_grad();
    const auto results = graph(given);
    const Variable<float> loss = cross_entropy(std::get<Variable<float>>(results.begin()->second), Ids{2, 0});
    loss.backward();
    adam.step();
    losses.push_back(loss.item());
  }
  EXPECT_LT(losses.back(), 0.1F * losses.front());
}

TEST(OnnxGraphTest, DescribesItsInputsOutputsAndOperators) {
  const Graph<float> graph(file("by_hand.onnx"));
  ASSERT_EQ(graph.inputs().size(), 2U);
  EXPECT_EQ(graph.inputs()[0].name, "x");
  EXPECT_EQ(graph.inputs()[0].type, "FLOAT");
  ASSERT_TRUE(graph.inputs()[0].shape);
  EXPECT_EQ((*graph.inputs()[0].shape)[2].fixed, 4U);
  EXPECT_FALSE((*graph.inputs()[0].shape)[1].fixed);
  EXPECT_EQ(graph.inputs()[1].type, "INT64");
  EXPECT_EQ(graph.outputs().size(), 2U);
  EXPECT_EQ(graph.operators().at("MatMul"), 2U);
}

/// A graph y = x + w in a file, with what a test adds.
class OnnxFileTest : public testing::Test {
 protected:
  OnnxFileTest() {
    model_.input("x", 1, {-1, 2});
    model_.floats("w", {2}, {1, 2});
    model_.output("y");
  }

  void add() { model_.node("Add", {"x", "w"}, {"y"}); }

  std::string path() const { return folder_.write("model.onnx", model_.bytes()); }
  Graph<float> graph() const { return Graph<float>(path()); }

  /// What is said of the file, without its path.
  std::string error() const {
    const std::string text = message_of<FileError>([&] { graph(); });
    const std::string begin = folder_.path("model.onnx") + ": ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  }

  TemporaryFolder folder_;
  ModelBuilder model_;
};

TEST_F(OnnxFileTest, IsComputed) {
  add();
  const Values<float> results = graph()({{"x", Variable<float>(Array<float>{{1, 2}, {3, 4}})}});
  EXPECT_EQ(std::get<Variable<float>>(results.at("y")).value(), (Array<float>{{2, 4}, {4, 6}}));
}

TEST_F(OnnxFileTest, OperatorsThatAreMissingAreNamedAtOnce) {
  add();
  model_.node("Loop", {"y"}, {"a"});
  model_.node("Scan", {"a"}, {"b"});
  model_.node("Loop", {"b"}, {"c"});
  const std::string begin =
      "operators that are not supported: Loop (2 nodes, the first is Loop \"makes_a\"), "
      "Scan (Scan \"makes_b\")";
  EXPECT_EQ(error(), begin +
                         "; a transformer may do without them if it is loaded with "
                         "attn_implementation=\"eager\"");
  model_.node("MoE", {"c"}, {"d"}, {}, "com.microsoft");
  EXPECT_EQ(error(), begin +
                         ", com.microsoft.MoE (MoE \"makes_d\"); export the model without ONNX Runtime's "
                         "optimisations");
}

TEST_F(OnnxFileTest, AllThatIsMissingIsNamedAtOnce) {
  model_.opset = 6;
  model_.initializer(ModelBuilder::tensor("s", 8, {1}, ""));
  model_.node("Loop", {"x"}, {"a"});
  model_.node("Cast", {"x"}, {"b"}, {ModelBuilder::attribute("to", 8)});
  model_.node("Cast", {"x"}, {"y"}, {ModelBuilder::attribute("to", 8)});
  EXPECT_EQ(
      error(),
      "operators that are not supported: Loop (Loop \"makes_a\"); a transformer may do without them if it "
      "is loaded with attn_implementation=\"eager\"; operator sets 7 to 24 are supported, got 6; tensor "
      "\"s\": elements of type STRING are not supported; Cast \"makes_b\": a cast to STRING is not "
      "supported (and in 1 more nodes)");
}

TEST_F(OnnxFileTest, EveryFileIsDescribed) {
  model_.opset = 6;
  model_.initializer(ModelBuilder::tensor("s", 8, {3}, ""));
  model_.input_of_type("list", 4);
  model_.node("Loop", {"x"}, {"y"});
  model_.node("MoE", {"y"}, {"z"}, {}, "com.microsoft");
  const xgrad::onnx::Description file = xgrad::onnx::describe(path());
  ASSERT_EQ(file.inputs.size(), 2U);
  EXPECT_EQ(file.inputs[0].name, "x");
  EXPECT_EQ(file.inputs[1].type, "no tensor");
  EXPECT_EQ(file.operators, (std::map<std::string, std::size_t>{{"Loop", 1}, {"com.microsoft.MoE", 1}}));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors[1].name, "s");
  EXPECT_EQ(file.tensors[1].type, "STRING");
  EXPECT_EQ(file.tensors[1].shape, Shape{3});
  EXPECT_FALSE(file.has_doubles);
  model_.input("d", 11, {1});
  EXPECT_TRUE(xgrad::onnx::describe(path()).has_doubles);
}

TEST_F(OnnxFileTest, EveryNodeHasAnOperatorAndAnOutput) {
  model_.node("", {"x"}, {"y"});
  EXPECT_EQ(error(), "there is a node without an operator");
  model_ = {};
  model_.node("Split", {"x"}, {});
  EXPECT_EQ(error(), "Split: a node must have an output");
}

TEST_F(OnnxFileTest, OperatorsOfFusedNodesAreNoneOfFiles) {
  model_.node("linear", {"x", "w"}, {"y"}, {}, "xgrad");
  EXPECT_EQ(error(), "operators that are not supported: xgrad.linear (linear \"makes_y\")");
}

TEST_F(OnnxFileTest, StatisticsOfSkippedNormsAreNotMadeUp) {
  model_.node("SkipLayerNormalization", {"x", "x", "w"}, {"y", "mean"}, {}, "com.microsoft");
  EXPECT_EQ(error(),
            "SkipLayerNormalization \"makes_y\": the statistics of rows are not supported as outputs");
}

TEST_F(OnnxFileTest, AttributesThatAreUnknownAreNotIgnored) {
  model_.node("Add", {"x", "w"}, {"y"}, {ModelBuilder::attribute("axis", 1)});
  EXPECT_EQ(error(), "Add \"makes_y\": attribute \"axis\" is not supported");
}

TEST_F(OnnxFileTest, AttributesWithoutAValueAreZeroOrEmpty) {
  model_.node("Concat", {"x", "x"}, {"twice"}, {ModelBuilder::attribute_of_type("axis", 2)});
  model_.node("LeakyRelu", {"twice"}, {"y"}, {ModelBuilder::attribute_of_type("alpha", 1)});
  const Values<float> results = graph()({{"x", Variable<float>(Array<float>{{-1, 2}})}});
  EXPECT_EQ(std::get<Variable<float>>(results.at("y")).value(), (Array<float>{{0, 2}, {0, 2}}));
  model_ = {};
  model_.floats("w", {2}, {1, 2});
  model_.node("Gelu", {"w"}, {"y"}, {ModelBuilder::attribute_of_type("approximate", 3)});
  EXPECT_EQ(error(), "Gelu \"makes_y\": approximate must be none or tanh, got \"\"");
  model_ = {};
  model_.floats("w", {2}, {1, 2});
  model_.node("Neg", {"w"}, {"y"}, {ModelBuilder::attribute("", 1)});
  EXPECT_EQ(error(), "an attribute has no name");
}

TEST_F(OnnxFileTest, InputsMustBeTensors) {
  add();
  const ModelBuilder without = model_;
  for (const std::uint64_t type : {4, 5, 8, 9}) {
    model_ = without;
    model_.input_of_type("z", type);
    EXPECT_EQ(error(), "\"z\": sequences, maps, optionals and sparse tensors are not supported") << type;
  }
  model_ = without;
  model_.field(15, MessageWriter());
  EXPECT_EQ(error(), "sparse initializers are not supported");
}

TEST_F(OnnxFileTest, OfOperatorSetsThatOfOnnxCounts) {
  add();
  model_.microsoft_opset = 1;
  EXPECT_EQ(graph().operators().at("Add"), 1U);
  model_.node("Neg", {"x"}, {"z"}, {}, "ai.onnx");
  EXPECT_EQ(graph().operators().at("Neg"), 1U);
  model_.opset = 0;
  EXPECT_EQ(error(), "the version of ONNX's operators is missing (opset_import)");
}

TEST_F(OnnxFileTest, InitializersMayAlsoBeInputs) {
  add();
  model_.input("w", 1, {2});
  EXPECT_EQ(graph().inputs().size(), 1U);
  EXPECT_EQ(xgrad::onnx::describe(path()).inputs.size(), 1U);
}

TEST_F(OnnxFileTest, NegativeLengthsAreOpen) {
  MessageWriter dimension, shape, tensor, type, info;
  dimension.integer(1, -1);
  shape.message(1, dimension);
  tensor.integer(1, 1);
  tensor.message(2, shape);
  type.message(1, tensor);
  info.text(1, "z");
  info.message(2, type);
  model_.field(11, info);
  add();
  EXPECT_FALSE(xgrad::onnx::describe(path()).inputs.at(1).shape.value()[0].fixed);
}

TEST_F(OnnxFileTest, ThereAreAsManyOutputsAsAnOperatorHas) {
  model_.node("Add", {"x", "w"}, {"y", "z"});
  EXPECT_EQ(message_of<ValueError>([&] {
              graph()({{"x", Variable<float>(Array<float>{{1, 2}})}});
            }),
            "Add \"makes_y\": there are 1 results, the graph asks for 2");
}

TEST_F(OnnxFileTest, StatisticsOfNormsAreNoParameters) {
  for (const char* name : {"scale", "bias", "mean", "variance", "other_mean"})
    model_.floats(name, {2}, {1, 1});
  model_.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"z"});
  model_.node("Add", {"z", "mean"}, {"u"});
  model_.node("BatchNormalization", {"u", "scale", "bias", "other_mean", "variance"}, {"y"});
  const auto names = [](const auto& named) {
    std::vector<std::string> all;
    for (const auto& one : named) all.push_back(one.first);
    return all;
  };
  EXPECT_EQ(names(graph().named_parameters()), (std::vector<std::string>{"w", "scale", "bias", "mean"}))
      << "the mean is added, too";
  EXPECT_EQ(names(graph().named_buffers()), (std::vector<std::string>{"variance", "other_mean"}));
}

TEST_F(OnnxFileTest, ErrorsBeginWithTheModuleThatRuns) {
  struct Holder : xgrad::Module<float> {
    explicit Holder(const Graph<float>& of) : Module("Holder"), inner(this->child("inner", of)) {}
    Values<float> operator()(const Values<float>& given) const {
      const auto scope = this->scope();
      return inner(given);
    }
    Graph<float> inner;
  };
  model_.floats("v", {3}, {1, 2, 3});
  model_.node("Add", {"x", "v"}, {"y"});
  const Holder holder(graph());
  const std::string text = message_of<ShapeError>([&] {
    holder({{"x", Variable<float>(Array<float>{{1, 2}})}});
  });
  EXPECT_TRUE(text.starts_with("inner: Add \"makes_y\": add: ")) << text;
}

// ---- Branches ----

/// An If of the condition c, whose branches are the same unless a test says otherwise.
class OnnxBranchTest : public OnnxFileTest {
 protected:
  OnnxBranchTest() {
    model_.input("c", 9, {-1});
    branch_.node("Neg", {"x"}, {"z"});
    branch_.output("z");
  }

  void branches(const ModelBuilder& then_branch, const ModelBuilder& else_branch,
                const std::string& condition = "c", const std::string& y = "y") {
    model_.node("If", {condition}, {y},
                {ModelBuilder::attribute("then_branch", then_branch),
                 ModelBuilder::attribute("else_branch", else_branch)});
  }

  Array<float> y(const xgrad::Mask& condition) const {
    const Variable<float> x(Array<float>{{1, 2}});
    return std::get<Variable<float>>(graph()({{"x", x}, {"c", condition}}).at("y")).value();
  }

  ModelBuilder branch_;
};

TEST_F(OnnxBranchTest, TheConditionChooses) {
  ModelBuilder outer;
  outer.output("x");
  branches(branch_, outer);
  EXPECT_EQ(y(xgrad::Mask{true}), (Array<float>{{-1, -2}}));
  EXPECT_EQ(y(xgrad::Mask{false}), (Array<float>{{1, 2}})) << "a value of the graph around it";
  EXPECT_EQ(message_of<ShapeError>([&] {
              y(xgrad::Mask{true, false});
            }),
            "If \"makes_y\": the condition must be one, got (2)");
  EXPECT_EQ(xgrad::onnx::describe(path()).operators,
            (std::map<std::string, std::size_t>{{"If", 1}, {"Neg", 1}}));
}

TEST_F(OnnxBranchTest, ABranchThatIsNeverTakenMayBeAnything) {
  ModelBuilder other;
  other.node("Loop", {"x"}, {"z"});
  other.output("z");
  model_.initializer(ModelBuilder::tensor("yes", 9, {}, std::string(1, '\1')));
  branches(branch_, other, "yes");
  EXPECT_EQ(y(xgrad::Mask{false}), (Array<float>{{-1, -2}}));
}

TEST_F(OnnxBranchTest, BranchesHaveNoInputs) {
  ModelBuilder with_input = branch_;
  with_input.input("i", 1, {1});
  branches(with_input, branch_);
  EXPECT_EQ(error(), "If \"makes_y\": then_branch must have no input and 1 outputs");
}

TEST_F(OnnxBranchTest, BranchesAreNestedSixteenTimesAtMost) {
  const ModelBuilder around = model_;
  const auto nest = [&](int depth) {
    ModelBuilder inner = branch_;
    for (int i = 1; i < depth; ++i) {
      ModelBuilder next;
      next.node(
          "If", {"c"}, {"z"},
          {ModelBuilder::attribute("then_branch", inner), ModelBuilder::attribute("else_branch", branch_)});
      next.output("z");
      inner = next;
    }
    model_ = around;
    branches(inner, branch_);
  };
  nest(16);
  EXPECT_EQ(y(xgrad::Mask{true}), (Array<float>{{-1, -2}}));
  nest(17);
  EXPECT_EQ(error(), "graphs in attributes may be nested 16 deep");
  model_ = around;
  for (int i = 0; i < 9; ++i) branches(branch_, branch_, "c", i == 0 ? "y" : "y" + std::to_string(i));
  EXPECT_EQ(y(xgrad::Mask{true}), (Array<float>{{-1, -2}})) << "so many beside each other";
}

TEST_F(OnnxBranchTest, FilesWithDoublesAreKnown) {
  branches(branch_, branch_);
  EXPECT_FALSE(xgrad::onnx::describe(path()).has_doubles);
  const ModelBuilder without = model_;
  model_.node("Cast", {"x"}, {"d"}, {ModelBuilder::attribute("to", 11)});
  EXPECT_TRUE(xgrad::onnx::describe(path()).has_doubles);
  model_ = without;
  ModelBuilder with = branch_;
  with.node("Cast", {"z"}, {"d"}, {ModelBuilder::attribute("to", 11)});
  branches(with, branch_, "c", "other");
  EXPECT_TRUE(xgrad::onnx::describe(path()).has_doubles);
}

TEST_F(OnnxFileTest, VeryManyInitializersAreRead) {
  constexpr std::size_t count = 100'000;
  for (std::size_t i = 1; i < count; ++i) model_.floats("w" + std::to_string(i), {1}, {1});
  add();
  EXPECT_EQ(graph().named_parameters().size(), count);
}

TEST_F(OnnxFileTest, ValuesMustBeMadeOnceAndBeforeTheyAreRead) {
  model_.node("Add", {"later", "w"}, {"y"});
  model_.node("Neg", {"x"}, {"later"});
  EXPECT_EQ(error(), "Add \"makes_y\": no earlier node computes the value \"later\"");
  model_ = {};
  model_.floats("w", {2}, {1, 2});
  model_.node("Neg", {"w"}, {"w"});
  EXPECT_EQ(error(), "there are two values \"w\"");
  model_ = {};
  model_.floats("w", {2}, {1, 2});
  model_.node("Neg", {"w"}, {"v"});
  model_.output("y");
  EXPECT_EQ(error(), "the outputs: no earlier node computes the value \"y\"");
  model_ = {};
  model_.floats("", {2}, {1, 2});
  model_.node("Neg", {"x"}, {"y"});
  EXPECT_EQ(error(), "a tensor of the graph must have a name, got none");
}

TEST_F(OnnxFileTest, OperatorSetsOfOtherVersionsAreRefused) {
  add();
  model_.opset = 25;
  EXPECT_EQ(error(), "operator sets 7 to 24 are supported, got 25");
}

TEST_F(OnnxFileTest, TensorsMustHaveTheirBytes) {
  add();
  model_.initializer(ModelBuilder::tensor("v", 1, {2, 3}, "12345678"));
  EXPECT_EQ(error(), "tensor \"v\": (2, 3) of F32 takes 24 bytes, got 8");
  model_ = {};
  model_.initializer(ModelBuilder::tensor("v", 1, {1}, "12345678"));
  EXPECT_EQ(error(), "tensor \"v\": (1) of F32 takes 4 bytes, got 8");
  model_ = {};
  model_.initializer(ModelBuilder::tensor("v", 1, std::vector<std::int64_t>(65, 1), "1234"));
  EXPECT_EQ(error(), "tensor \"v\": a tensor may have 64 axes, got 65");
}

TEST_F(OnnxFileTest, LengthsMustBePossible) {
  add();
  const std::int64_t large = std::int64_t{1} << 40;
  model_.initializer(ModelBuilder::tensor("v", 1, {large, large}, ""));
  EXPECT_EQ(error(), "tensor \"v\": a tensor (1099511627776, 1099511627776) is larger than memory");
  model_ = {};
  model_.initializer(ModelBuilder::tensor("v", 1, {-1}, ""));
  EXPECT_EQ(error(), "tensor \"v\": lengths must be at least 0, got -1");
  model_ = {};
  model_.initializer(ModelBuilder::tensor("v", 1, {large, 0}, ""));
  EXPECT_EQ(error(), "a result (1099511627776, 0) would have more than 268435456 elements");
}

TEST_F(OnnxFileTest, SumsOfThoseBeforeAreNotMadeOfThoseBehind) {
  model_.integers("axis", {}, {1});
  model_.node("CumSum", {"x", "axis"}, {"y"}, {ModelBuilder::attribute("exclusive", 1)});
  const Variable<float> x(Array<float>{{1, INFINITY}, {1, 1e30F}});
  EXPECT_EQ(std::get<Variable<float>>(graph()({{"x", x}}).at("y")).value(), (Array<float>{{0, 1}, {0, 1}}));
}

TEST_F(OnnxFileTest, InputsAreChecked) {
  add();
  const Graph<float> graph = this->graph();
  const Variable<float> x(Array<float>{{1, 2}});
  EXPECT_EQ(message_of<ValueError>([&] { graph({}); }), "input \"x\" is missing");
  EXPECT_EQ(message_of<ValueError>([&] { graph({{"x", x}, {"z", x}}); }), "there is no input \"z\"");
  EXPECT_EQ(message_of<ValueError>([&] {
              graph({{"x", Ids{{1, 2}}}});
            }),
            "input \"x\" must hold floats, got integers");
  EXPECT_EQ(message_of<ShapeError>([&] {
              graph({{"x", Variable<float>(Array<float>{1, 2})}});
            }),
            "input \"x\" must have the shape (open, 2), got (2)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              graph({{"x", Variable<float>(Array<float>{{1, 2, 3}})}});
            }),
            "input \"x\" must have the shape (open, 2), got (1, 3)");
}

TEST_F(OnnxFileTest, WhatAnOperatorThrowsBeginsWithItsName) {
  model_.floats("v", {3}, {1, 2, 3});
  model_.node("Add", {"x", "v"}, {"y"});
  EXPECT_EQ(message_of<ShapeError>([&] {
              graph()({{"x", Variable<float>(Array<float>{{1, 2}})}});
            }),
            "Add \"makes_y\": add: shapes must broadcast, got a (1, 2) and b (3)");
}

/// A graph y of constants, whose lengths do not fit.
class OnnxArgumentsTest : public OnnxFileTest {
 protected:
  OnnxArgumentsTest() {
    model_ = {};
    model_.output("y");
  }

  template <class Error>
  std::string refusal() const {
    const Graph<float> graph = this->graph();
    return message_of<Error>([&] { graph({}); });
  }
};

TEST_F(OnnxArgumentsTest, OfTransposedConvolutions) {
  model_.floats("x", {1, 1, 2}, {1, 2});
  model_.floats("weight", {1, 1, 2}, {1, 2});
  model_.floats("bias", {3}, {1, 2, 3});
  const ModelBuilder constants = model_;
  model_.node("ConvTranspose", {"x", "weight", "bias"}, {"y"});
  EXPECT_EQ(refusal<ShapeError>(), "ConvTranspose \"makes_y\": B must be (1), got (3)");
  model_ = constants;
  model_.node("ConvTranspose", {"x", "weight"}, {"y"},
              {ModelBuilder::attribute("kernel_shape", std::vector<std::int64_t>{3})});
  EXPECT_EQ(refusal<ShapeError>(),
            "ConvTranspose \"makes_y\": kernel_shape does not fit the weight (1, 1, 2)");
}

TEST_F(OnnxArgumentsTest, PadsAreTwoForEachAxis) {
  model_.floats("x", {1, 1, 2}, {1, 2});
  model_.node("Conv", {"x", "x"}, {"y"},
              {ModelBuilder::attribute("pads", std::vector<std::int64_t>{1, 1, 1})});
  EXPECT_EQ(refusal<ValueError>(), "Conv \"makes_y\": pads must be two for each of 1 axes, got 3");
}

TEST_F(OnnxArgumentsTest, PadsDoNotCutMoreThanThereIs) {
  model_.integers("x", {2}, {1, 2});
  const ModelBuilder constants = model_;
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  for (const auto& [before, after] : {std::pair<std::int64_t, std::int64_t>{-3, 4}, {least, least}}) {
    model_ = constants;
    model_.integers("pads", {2}, {before, after});
    model_.node("Pad", {"x", "pads"}, {"y"});
    EXPECT_EQ(refusal<ShapeError>(), "Pad \"makes_y\": pads " + std::to_string(before) + " and " +
                                         std::to_string(after) + " do not fit axis 0 of x (2)");
  }
}

TEST_F(OnnxArgumentsTest, MasksOfAttention) {
  model_.floats("x", {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  model_.floats("weight", {1, 3}, {1, 2, 3});
  model_.floats("bias", {3}, {1, 2, 3});
  model_.integers("mask", {3, 2}, {1, 1, 1, 1, 1, 1});
  model_.floats("heads", {1, 1, 1, 1}, {1});
  model_.integers("ones", {1, 1}, {1});
  const ModelBuilder constants = model_;
  model_.node("Attention", {"x", "weight", "bias", "mask"}, {"y"}, {ModelBuilder::attribute("num_heads", 1)},
              "com.microsoft");
  EXPECT_EQ(refusal<ShapeError>(), "Attention \"makes_y\": a mask of 2 sequences of 3 keys cannot be (3, 2)");
  model_ = constants;
  model_.node("Attention", {"heads", "heads", "heads", "ones"}, {"y"});
  EXPECT_EQ(refusal<ValueError>(),
            "Attention \"makes_y\": attn_mask must hold floats or conditions, got integers");
}

TEST_F(OnnxArgumentsTest, OfGroupsAndTuples) {
  model_.opset = 18;
  model_.floats("x", {1, 4, 1}, {1, 2, 3, 4});
  model_.floats("scale", {3}, {1, 2, 3});
  model_.integers("none", {2, 0}, {});
  const ModelBuilder constants = model_;
  model_.node("GroupNormalization", {"x", "scale", "scale"}, {"y"},
              {ModelBuilder::attribute("num_groups", 2)});
  EXPECT_EQ(refusal<ShapeError>(), "GroupNormalization \"makes_y\": scale and bias must be (2), got (3)");
  model_ = constants;
  model_.node("GatherND", {"scale", "none"}, {"y"});
  EXPECT_EQ(refusal<ShapeError>(), "GatherND \"makes_y\": indices of 0 axes do not fit x (3)");
}

/// What a graph y = op(input) of integers makes of them.
Ids integers_of(const std::string& op, const Ids& input, const std::vector<MessageWriter>& attributes = {}) {
  const TemporaryFolder folder;
  ModelBuilder model;
  model.input("x", 7, {-1, 2});
  model.output("y");
  model.integers("last", {1}, {-1});
  model.opset = 20;
  model.node(op, {"x", "last"}, {"y"}, attributes);
  return std::get<Ids>(Graph<float>(folder.write("model.onnx", model.bytes()))({{"x", input}}).at("y"));
}

TEST(OnnxReductionTest, IntegersAreReducedExactly) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1, most = std::numeric_limits<std::int64_t>::max();
  const Ids x{{large, 2}, {most, 1}, {-7, 4}};
  const std::vector<MessageWriter> drops{ModelBuilder::attribute("keepdims", 0)};
  EXPECT_EQ(integers_of("ReduceSum", x, drops),
            (Ids{large + 2, std::numeric_limits<std::int64_t>::min(), -3}));
  EXPECT_EQ(integers_of("ReduceMax", x, drops), (Ids{large, most, 4}));
  EXPECT_EQ(integers_of("ReduceMin", x, drops), (Ids{2, 1, -7}));
  EXPECT_EQ(integers_of("ReduceMean", Ids{{large, large + 2}, {-7, 4}}, drops), (Ids{large + 1, -1}));
  EXPECT_EQ(integers_of("ReduceSum", Ids(Shape{0, 2})).shape(), (Shape{0, 1}));
}

TEST_F(OnnxFileTest, CastsToNarrowerFloatsRound) {
  const float tie = std::ldexp(1.0F, -11), least = std::ldexp(1.0F, -24), nan = NAN;
  const auto cast = [&](std::int64_t type, const Array<float>& x) {
    model_ = {};
    model_.input("x", 1, {-1});
    model_.output("y");
    model_.node("Cast", {"x"}, {"y"}, {ModelBuilder::attribute("to", type)});
    const Variable<float> given(x, true);
    const auto y = std::get<Variable<float>>(graph()({{"x", given}}).at("y"));
    sum(y * 3).backward();
    EXPECT_EQ(given.grad().value(), Array<float>(x.shape(), 3.0F));
    return y.value();
  };
  const Array<float> halves = cast(10, {0, 1 + tie, 1 + 3 * tie, 65519, -65520, least / 2, 1.75F * least,
                                        -INFINITY, std::nextafter(1 + tie, 2.0F)});
  EXPECT_EQ(halves,
            (Array<float>{0, 1, 1 + 4 * tie, 65504, -INFINITY, 0, 2 * least, -INFINITY, 1 + 2 * tie}));
  EXPECT_TRUE(std::isnan(cast(10, {nan})(0)));
  const float bit = std::ldexp(1.0F, -8);
  EXPECT_EQ(cast(16, {1 + bit, -1 - 3 * bit, std::numeric_limits<float>::max(), 3}),
            (Array<float>{1, -1 - 4 * bit, INFINITY, 3}));
}

MessageWriter einsum(const std::string& equation) {
  MessageWriter attribute;
  attribute.text(1, "equation");
  attribute.text(4, equation);
  attribute.integer(20, 3);
  return attribute;
}

TEST_F(OnnxFileTest, PowersOfIntegersAreExact) {
  model_ = {};
  model_.integers("a", {6}, {3, -3, 2, -1, 5, 1});
  model_.integers("e", {6}, {39, 39, -1, -3, 0, -2});
  model_.node("Pow", {"a", "e"}, {"y"});
  model_.output("y");
  EXPECT_EQ(std::get<Ids>(graph()({}).at("y")),
            (Ids{4052555153018976267, -4052555153018976267, 0, -1, 1, 1}));
}

TEST_F(OnnxFileTest, IntegerProductsAreOfSmallIntegers) {
  model_ = {};
  model_.integers("a", {1, 2}, {3, 70000});
  model_.integers("b", {2, 1}, {1, 1});
  model_.node("MatMulInteger", {"a", "b"}, {"y"});
  model_.output("y");
  const Graph<float> graph = this->graph();
  EXPECT_EQ(
      message_of<ValueError>([&] { graph({}); }),
      "MatMulInteger \"makes_y\": integers without their zero point must be between -65535 and 65535, got "
      "70000");
}

TEST_F(OnnxFileTest, ConditionsAreNoExponents) {
  model_ = {};
  model_.integers("a", {1}, {2});
  model_.node("Less", {"a", "a"}, {"c"});
  model_.node("Pow", {"a", "c"}, {"y"});
  model_.output("y");
  const Graph<float> graph = this->graph();
  EXPECT_EQ(message_of<ValueError>([&] { graph({}); }),
            "Pow \"makes_y\": input 1 must hold floats, got conditions");
}

// ---- Omitted inputs and outputs, windows, ranges ----

TEST_F(OnnxArgumentsTest, NamesInErrorsAreEscaped) {
  model_ = {};
  model_.node("Lo\nop", {}, {"a\tb"});
  model_.output("a\tb");
  EXPECT_EQ(error(), "operators that are not supported: Lo\\nop (Lo\\nop \"makes_a\\tb\")");
  model_ = {};
  model_.integers("x", {1}, {1});
  model_.node("Pad", {"x"}, {"y"}, {ModelBuilder::attribute("mode", std::string("a\x1b"))});
  EXPECT_EQ(error(), "Pad \"makes_y\": mode must be constant, reflect, edge or wrap, got \"a\\u001b\"");
}

TEST_F(OnnxArgumentsTest, MaximaOfIntegersHavePlaces) {
  model_ = {};
  model_.input("x", 3, {1, 2, 4});
  model_.node("MaxPool", {"x"}, {"y", "places"},
              {ModelBuilder::attribute("kernel_shape", std::vector<std::int64_t>{2}),
               ModelBuilder::attribute("strides", std::vector<std::int64_t>{2})});
  model_.output("y");
  model_.output("places");
  const Values<float> results = graph()({{"x", Ids{{{-1, 7, 3, 2}, {4, 4, -8, -7}}}}});
  EXPECT_EQ(std::get<Ids>(results.at("y")), (Ids{{{7, 3}, {4, -7}}}));
  EXPECT_EQ(std::get<Ids>(results.at("places")), (Ids{{{1, 2}, {4, 7}}}));
}

/// The pads at one end are as low as what they are beside.
TEST_F(OnnxArgumentsTest, PlacesOfMaximaAreNeverPads) {
  model_ = {};
  model_.input("x", 1, {1, 1, 4});
  model_.node("MaxPool", {"x"}, {"y", "places"},
              {ModelBuilder::attribute("kernel_shape", std::vector<std::int64_t>{2}),
               ModelBuilder::attribute("dilations", std::vector<std::int64_t>{2}),
               ModelBuilder::attribute("pads", std::vector<std::int64_t>{1, 0})});
  model_.output("y");
  model_.output("places");
  const Values<float> results =
      graph()({{"x", Variable<float>(Array<float>{{{-INFINITY, -INFINITY, -INFINITY, -INFINITY}}})}});
  EXPECT_EQ(std::get<Variable<float>>(results.at("y")).value(),
            (Array<float>{{{-INFINITY, -INFINITY, -INFINITY}}}));
  EXPECT_EQ(std::get<Ids>(results.at("places")), (Ids{{{1, 0, 1}}}));
}

TEST_F(OnnxArgumentsTest, NanIsOneElementBehindAllNumbers) {
  model_ = {};
  model_.input("x", 1, {-1});
  model_.node("Unique", {"x"}, {"y", "first", "which", "counts"});
  for (const char* name : {"y", "first", "which", "counts"}) model_.output(name);
  const Values<float> results = graph()({{"x", Variable<float>(Array<float>{NAN, 2, NAN, -INFINITY, 2})}});
  const Array<float> y = std::get<Variable<float>>(results.at("y")).value();
  ASSERT_EQ(y.size(), 3U);
  EXPECT_EQ(y(0), -INFINITY);
  EXPECT_EQ(y(1), 2);
  EXPECT_TRUE(std::isnan(y(2)));
  EXPECT_EQ(std::get<Ids>(results.at("first")), (Ids{3, 1, 0}));
  EXPECT_EQ(std::get<Ids>(results.at("which")), (Ids{2, 1, 2, 0, 1}));
  EXPECT_EQ(std::get<Ids>(results.at("counts")), (Ids{1, 2, 2}));
}

TEST_F(OnnxArgumentsTest, ScalesAndSizesExcludeEachOther) {
  model_.floats("x", {1, 2}, {1, 2});
  model_.floats("scales", {2}, {1, 2});
  model_.integers("sizes", {2}, {1, 4});
  model_.node("Resize", {"x", "", "scales", "sizes"}, {"y"});
  EXPECT_EQ(refusal<ValueError>(), "Resize \"makes_y\": there must be scales or sizes, got both");
}

TEST_F(OnnxArgumentsTest, TypesNeedATable) {
  model_.integers("ids", {1, 1}, {0});
  model_.floats("table", {1, 1}, {1});
  model_.floats("one", {1}, {1});
  model_.node("EmbedLayerNormalization", {"ids", "ids", "table", "table", "", "one", "one"}, {"y"}, {},
              "com.microsoft");
  EXPECT_EQ(refusal<ValueError>(), "EmbedLayerNormalization \"makes_y\": input 4 is missing");
}

TEST_F(OnnxArgumentsTest, RangesOfIntegersAreExact) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = -most - 1;
  const auto range = [&](std::int64_t start, std::int64_t limit, std::int64_t delta) {
    model_ = {};
    model_.integers("start", {}, {start});
    model_.integers("limit", {}, {limit});
    model_.integers("delta", {}, {delta});
    model_.node("Range", {"start", "limit", "delta"}, {"y"});
    model_.output("y");
    return std::get<Ids>(graph()({}).at("y"));
  };
  EXPECT_EQ(range(most - 3, most, 2), (Ids{most - 3, most - 1}));
  EXPECT_EQ(range(most, most - 2, -1), (Ids{most, most - 1}));
  EXPECT_EQ(range(least, most, most), (Ids{least, -1, most - 1}));
  EXPECT_EQ(range(5, least, least), (Ids{5, least + 5}));
  EXPECT_EQ(range(2, 2, 1), Ids::from_shape({0}));
  EXPECT_EQ(range(2, 3, -1), Ids::from_shape({0}));
}

TEST_F(OnnxArgumentsTest, OmittedInputsAndOutputsAreNone) {
  model_.floats("x", {1, 2, 2}, {1, 2, 3, 4});
  const MessageWriter heads = ModelBuilder::attribute("q_num_heads", 1),
                      others = ModelBuilder::attribute("kv_num_heads", 1);
  const ModelBuilder constants = model_;
  model_.node("Attention", {"x", "x", "x", "", "", ""}, {"y", "", ""}, {heads, others});
  EXPECT_EQ(std::get<Variable<float>>(graph()({}).at("y")).shape(), (Shape{1, 2, 2}));
  model_ = constants;
  model_.node("Attention", {"x", "x", "x", "", "x", "x"}, {"y"}, {heads, others});
  EXPECT_EQ(error(), "Attention \"makes_y\": past keys and values are not supported");
  model_ = constants;
  model_.node("MultiHeadAttention", {"x", "x", "x", "", "", "", "", ""}, {"y", "", ""},
              {ModelBuilder::attribute("num_heads", 1)}, "com.microsoft");
  EXPECT_EQ(std::get<Variable<float>>(graph()({}).at("y")).shape(), (Shape{1, 2, 2}));
}

TEST_F(OnnxArgumentsTest, TypesOfQuantizedIntegers) {
  model_.opset = 21;
  model_.floats("x", {3}, {-300, 2, 300});
  model_.floats("scale", {}, {1});
  model_.initializer(ModelBuilder::tensor("zero", 3, {}, std::string(1, '\1')));
  const ModelBuilder constants = model_;
  model_.node("QuantizeLinear", {"x", "scale", ""}, {"y"});
  EXPECT_EQ(std::get<Ids>(graph()({}).at("y")), (Ids{0, 2, 255}));
  model_ = constants;
  model_.node("QuantizeLinear", {"x", "scale"}, {"y"}, {ModelBuilder::attribute("output_dtype", 3)});
  EXPECT_EQ(std::get<Ids>(graph()({}).at("y")), (Ids{-128, 2, 127}));
  model_ = constants;
  model_.node("QuantizeLinear", {"x", "scale", "zero"}, {"y"}, {ModelBuilder::attribute("output_dtype", 2)});
  EXPECT_EQ(error(),
            "QuantizeLinear \"makes_y\": output_dtype and the zero point must have one type, got UINT8 and "
            "INT8");
}

/// Graphs of long vectors a (n, 1) and b (1, n), whose table of n x n would be too large.
class OnnxLimitsTest : public OnnxFileTest {
 protected:
  static constexpr std::int64_t length = 1 << 15;

  OnnxLimitsTest() {
    const std::vector<float> numbers(length, 1);
    model_ = {};
    model_.floats("a", {length, 1}, numbers);
    model_.floats("b", {1, length}, numbers);
    model_.output("y");
  }

  std::string refusal() const {
    const Graph<float> graph = this->graph();
    return message_of<ValueError>([&] { graph({}); });
  }
};

TEST_F(OnnxLimitsTest, ResultsOfBroadcastingAndProductsAreLimited) {
  const std::string text = "\"makes_y\": a result (32768, 32768) would have more than 268435456 elements";
  const ModelBuilder vectors = model_;
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Less", "MatMul", "Gemm"}) {
    model_ = vectors;
    model_.node(op, {"a", "b"}, {"y"});
    EXPECT_EQ(refusal(), std::string(op) + " " + text);
  }
  model_ = vectors;
  model_.node("Einsum", {"a", "b"}, {"y"}, {einsum("i j, j k -> ik")});
  EXPECT_EQ(refusal(), "Einsum " + text);
  model_ = vectors;
  model_.node("Greater", {"a", "a"}, {"c"});
  model_.node("Where", {"c", "a", "b"}, {"y"});
  EXPECT_EQ(refusal(), "Where " + text);
  model_ = vectors;
  model_.node("Greater", {"a", "a"}, {"c"});
  model_.node("Greater", {"b", "b"}, {"d"});
  model_.node("And", {"c", "d"}, {"y"});
  EXPECT_EQ(refusal(), "And " + text);
  model_ = vectors;
  model_.node("Transpose", {"a"}, {"turned"},
              {ModelBuilder::attribute("perm", std::vector<std::int64_t>{1, 0})});
  model_.node("MatMul", {"a", "turned"}, {"y"});
  EXPECT_EQ(refusal(), "linear " + text) << "which takes the place of both";
}

/// Axes that a product of two sums over are in no result.
TEST_F(OnnxLimitsTest, AxesThatAreSummedOverDoNotCount) {
  constexpr std::int64_t rows = 4096, inner = 17;
  for (const char* equation : {"ij,jk->ik", "ij,jk"}) {
    model_ = {};
    model_.floats("a", {rows, inner}, std::vector<float>(rows * inner, 2));
    model_.floats("b", {inner, rows}, std::vector<float>(rows * inner, 1));
    model_.node("Einsum", {"a", "b"}, {"y"}, {einsum(equation)});
    model_.output("y");
    const Array<float> y = std::get<Variable<float>>(graph()({}).at("y")).value();
    EXPECT_EQ(y.shape(), (xgrad::Shape{rows, rows}));
    EXPECT_EQ(y(rows - 1, 0), 2.0F * inner);
  }
}

TEST_F(OnnxLimitsTest, JoinedPartsAreLimited) {
  model_.node("Concat", std::vector<std::string>(1 << 14, "a"), {"y"}, {ModelBuilder::attribute("axis", 0)});
  EXPECT_EQ(refusal(), "Concat \"makes_y\": a result (536870912, 1) would have more than 268435456 elements");
}

TEST_F(OnnxLimitsTest, AllValuesTogetherAreLimited) {
  model_.integers("shape", {1}, {1 << 27});
  model_.node("ConstantOfShape", {"shape"}, {"y"}, {[] {
                MessageWriter attribute;
                attribute.text(1, "value");
                attribute.message(5, ModelBuilder::tensor("", 9, {1}, std::string(1, '\1')));
                attribute.integer(20, 4);
                return attribute;
              }()});
  model_.node("Identity", {"y"}, {"z"});
  model_.output("z");
  EXPECT_EQ(refusal(), "Identity \"makes_z\": all values together would have more than 268435456 elements");
}

TEST_F(OnnxLimitsTest, ValuesThatNothingReadsAnyMoreDoNotCount) {
  model_.integers("shape", {1}, {1 << 26});
  model_.node("ConstantOfShape", {"shape"}, {"v0"}, {[] {
                MessageWriter attribute;
                attribute.text(1, "value");
                attribute.message(5, ModelBuilder::tensor("", 9, {1}, std::string(1, '\1')));
                attribute.integer(20, 4);
                return attribute;
              }()});
  for (int i = 0; i < 5; ++i) model_.node("Not", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  model_.node("Shape", {"v5"}, {"y"});
  EXPECT_EQ(std::get<Ids>(graph()({}).at("y")), Ids{1 << 26});
}

/// What the graph around a branch holds counts, too.
TEST_F(OnnxLimitsTest, ValuesOfBranchesAreLimitedTogetherWithThoseAround) {
  model_.integers("shape", {1}, {1 << 27});
  MessageWriter zero;
  zero.text(1, "value");
  zero.message(5, ModelBuilder::tensor("", 9, {1}, std::string(1, '\0')));
  zero.integer(20, 4);
  model_.initializer(ModelBuilder::tensor("yes", 9, {}, std::string(1, '\1')));
  ModelBuilder branch;
  branch.node("ConstantOfShape", {"shape"}, {"inner"}, {zero});
  branch.node("Shape", {"inner"}, {"z"});
  branch.output("z");
  model_.node("ConstantOfShape", {"shape"}, {"outer"}, {zero});
  model_.node(
      "If", {"yes"}, {"y"},
      {ModelBuilder::attribute("then_branch", branch), ModelBuilder::attribute("else_branch", branch)});
  model_.output("outer");
  EXPECT_EQ(refusal(),
            "If \"makes_y\": ConstantOfShape \"makes_inner\": all values together would have more than "
            "268435456 elements");
}

TEST_F(OnnxFileTest, AFewBytesDoNotAskForAllMemory) {
  model_.integers("shape", {2}, {1 << 20, 1 << 20});
  model_.node("ConstantOfShape", {"shape"}, {"y"});
  EXPECT_EQ(
      message_of<ValueError>([&] {
        graph()({{"x", Variable<float>(Array<float>{{1, 2}})}});
      }),
      "ConstantOfShape \"makes_y\": a result (1048576, 1048576) would have more than 268435456 elements");
}

// ---- External data ----

class OnnxExternalDataTest : public OnnxFileTest {
 protected:
  /// A tensor v (2) of floats at this place.
  void external(const std::string& location, const std::string& offset, const std::string& length) {
    model_ = {};
    model_.input("x", 1, {-1, 2});
    model_.initializer(external_tensor("v", location, offset, length));
    model_.node("Add", {"x", "v"}, {"y"});
    model_.output("y");
  }

  static MessageWriter external_tensor(const std::string& name, const std::string& location,
                                       const std::string& offset, const std::string& length) {
    MessageWriter tensor;
    tensor.integers(1, std::vector<std::int64_t>{2});
    tensor.integer(2, 1);
    tensor.text(8, name);
    for (const auto& [key, value] :
         {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      MessageWriter entry;
      entry.text(1, key);
      entry.text(2, value);
      tensor.message(13, entry);
    }
    tensor.integer(14, 1);
    return tensor;
  }
};

TEST_F(OnnxExternalDataTest, IsReadFromAFileBeside) {
  folder_.write("data.bin", "----" + ModelBuilder::raw(std::vector<float>{5, 6}));
  external("data.bin", "4", "8");
  const Values<float> results = graph()({{"x", Variable<float>(Array<float>{{1, 2}})}});
  EXPECT_EQ(std::get<Variable<float>>(results.at("y")).value(), (Array<float>{{6, 8}}));
}

TEST_F(OnnxExternalDataTest, MustLieInTheFolderOfTheModel) {
  const TemporaryFolder other;
  const std::string outside = other.write("data.bin", "12345678");
  std::filesystem::create_symlink(outside, folder_.path("link.bin"));
  for (const std::string& location :
       {outside, std::string("../data.bin"), std::string("link.bin"), std::string()}) {
    external(location, "0", "8");
    EXPECT_EQ(error(), "tensor \"v\": external data must lie in the folder of the model, got location \"" +
                           location + "\"");
  }
}

/// As in the caches of downloads, where models are links to files in a folder of their own.
TEST_F(OnnxExternalDataTest, MayLieWhereTheModelsLinkLeads) {
  const TemporaryFolder blobs;
  const std::string data = blobs.write("1", ModelBuilder::raw(std::vector<float>{5, 6}));
  external("data.bin", "0", "8");
  const std::string model = blobs.write("2", model_.bytes());
  std::filesystem::create_symlink(data, folder_.path("data.bin"));
  std::filesystem::create_symlink(model, folder_.path("link.onnx"));
  const Graph<float> graph(folder_.path("link.onnx"));
  const Values<float> results = graph({{"x", Variable<float>(Array<float>{{1, 2}})}});
  EXPECT_EQ(std::get<Variable<float>>(results.at("y")).value(), (Array<float>{{6, 8}}));

  const TemporaryFolder other;
  std::filesystem::remove(folder_.path("data.bin"));
  std::filesystem::create_symlink(other.write("1", "12345678"), folder_.path("data.bin"));
  EXPECT_EQ(message_of<FileError>([&] { const Graph<float> loaded(folder_.path("link.onnx")); }),
            folder_.path("link.onnx") +
                ": tensor \"v\": external data must lie in the folder of the model, "
                "got location \"data.bin\"");
}

TEST_F(OnnxExternalDataTest, AFolderOfModelsMayBeALink) {
  const TemporaryFolder links;
  folder_.write("data.bin", ModelBuilder::raw(std::vector<float>{5, 6}));
  external("data.bin", "0", "8");
  path();
  std::filesystem::create_directory_symlink(folder_.path(""), links.path("models"));
  EXPECT_EQ(Graph<float>(links.path("models/model.onnx")).parameter_count(), 2U);
}

TEST_F(OnnxExternalDataTest, MustBeThere) {
  folder_.write("data.bin", "12345678");
  external("data.bin", "4", "8");
  EXPECT_EQ(error(), "tensor \"v\": external data goes from 4 to 4 + 8, but \"data.bin\" has 8 bytes");
  external("data.bin", "-4", "8");
  EXPECT_EQ(error(), "tensor \"v\": the offset of external data must be a number, got \"-4\"");
  external("data.bin", "99999999999999999999", "8");
  EXPECT_EQ(error(),
            "tensor \"v\": the offset of external data must be a number, got \"99999999999999999999\"");
  external("data.bin", "0", "4");
  EXPECT_EQ(error(), "tensor \"v\": (2) of F32 takes 8 bytes, got 4");
  external("none.bin", "0", "8");
  EXPECT_NE(error().find("none.bin: cannot be read: No such file or directory"), std::string::npos)
      << error();
}

TEST_F(OnnxExternalDataTest, NeedsAFile) {
  folder_.write("data.bin", "12345678");
  external("data.bin", "0", "8");
  const std::string bytes = model_.bytes();
  EXPECT_EQ(
      message_of<FileError>(
          [&] { const Graph<float> loaded(folder_.path("model.onnx"), std::as_bytes(std::span(bytes))); }),
      folder_.path("model.onnx") + ": tensor \"v\": external data needs a model that is read from a file");
}

/// Each tensor becomes an array of its own.
TEST_F(OnnxExternalDataTest, MayBeTakenAFewTimes) {
  const std::string data = folder_.write("data.bin", "12345678");
  external("data.bin", "0", "8");
  for (int i = 1; i < 16; ++i)
    model_.initializer(external_tensor("v" + std::to_string(i), "data.bin", "0", "8"));
  EXPECT_EQ(graph().parameter_count(), 2U * 16);
  model_.initializer(external_tensor("one more", "data.bin", "0", "8"));
  EXPECT_EQ(error(), "tensor \"one more\": tensors take the bytes of \"" + data + "\" more than 16 times");
}

// ---- Damaged files ----

/// Loads the bytes and computes with what loads: any exception will do, and nothing else.
void try_bytes(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.write("damaged.onnx", bytes);
  try {
    const Graph<float> graph(path);
    graph({{"x", Variable<float>(Array<float>(Shape{1, 2, 4}, 0.5F))},
           {"attention_mask", Ids(Shape{1, 2}, 1)}});
  } catch (const std::exception&) {
  }
}

TEST(OnnxDamageTest, EveryBeginningOfAFileIsRefused) {
  const TemporaryFolder folder;
  const std::string bytes = xgrad_tests::read_bytes(file("by_hand.onnx"));
  std::size_t refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string path = folder.write("short.onnx", bytes.substr(0, size));
    refused += message_of<FileError>([&] { const Graph<float> graph(path); }).starts_with(path) ? 1 : 0;
  }
  EXPECT_EQ(refused, bytes.size());
}

TEST(OnnxDamageTest, ChangedBytesDoNoHarm) {
  const TemporaryFolder folder;
  const std::string bytes = xgrad_tests::read_bytes(file("by_hand.onnx"));
  std::mt19937 random(0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(random());
    try_bytes(folder, changed);
  }
}

}  // namespace graph_test
