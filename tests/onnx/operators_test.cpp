// Single operators: what they make of integers, of axes without elements and of old operator sets, and what
// they refuse.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "model_builder.hpp"

namespace operators_test {

using xgrad::Array, xgrad::FileError, xgrad::Ids, xgrad::IndexError, xgrad::Shape, xgrad::ShapeError,
    xgrad::ValueError, xgrad::Variable;
using xgrad::onnx::Graph;
using xgrad_tests::message_of, xgrad_tests::MessageWriter, xgrad_tests::ModelBuilder;
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

MessageWriter number(const std::string& name, float value) {
  MessageWriter writer;
  writer.text(1, name);
  writer.number(2, value);
  writer.integer(20, 1);
  return writer;
}

MessageWriter numbers(const std::string& name, const std::vector<float>& values) {
  MessageWriter writer;
  writer.text(1, name);
  for (const float value : values) writer.number(7, value);
  writer.integer(20, 6);
  return writer;
}

MessageWriter texts(const std::string& name, const std::vector<std::string>& values) {
  MessageWriter writer;
  writer.text(1, name);
  for (const std::string& value : values) writer.text(9, value);
  writer.integer(20, 8);
  return writer;
}

MessageWriter tensor(const std::string& name, const MessageWriter& value) {
  MessageWriter writer;
  writer.text(1, name);
  writer.message(5, value);
  writer.integer(20, 4);
  return writer;
}

template <class V>
MessageWriter attribute(const std::string& name, const V& value) {
  return ModelBuilder::attribute(name, value);
}

/// Elements in a shape.
template <class E>
Array<E> shaped(const Shape& shape, const std::vector<E>& elements) {
  Array<E> array = Array<E>::from_shape(shape);
  std::copy(elements.begin(), elements.end(), array.data());
  return array;
}

/// A graph y = op(constants).
class OnnxOperatorTest : public testing::Test {
 protected:
  OnnxOperatorTest() { begin(); }

  void begin(std::int64_t opset = 17) {
    model_ = {};
    model_.opset = opset;
    model_.output("y");
  }

  void y(const std::string& op, const std::vector<std::string>& inputs,
         const std::vector<MessageWriter>& attributes = {}, const std::string& domain = "") {
    model_.node(op, inputs, {"y"}, attributes, domain);
  }

  Graph<float> graph() const {
    const std::string bytes = model_.bytes();
    return Graph<float>("model", std::as_bytes(std::span(bytes)));
  }
  Ids integers() const { return std::get<Ids>(graph()({}).at("y")); }
  Array<float> floats() const { return std::get<Variable<float>>(graph()({}).at("y")).value(); }

  /// What is said when the graph is computed, behind the name of its node.
  template <class Error>
  std::string refusal() const {
    const Graph<float> graph = this->graph();
    return behind_name(message_of<Error>([&] { graph({}); }));
  }
  /// What is said when it is loaded.
  std::string error() const {
    return behind_name(message_of<FileError>([&] { graph(); }));
  }

  static std::string behind_name(const std::string& text) {
    const std::string end = " \"makes_y\": ";
    const std::size_t found = text.find(end);
    return found == std::string::npos ? text : text.substr(found + end.size());
  }

  ModelBuilder model_;
};

// ---- Shapes ----

TEST_F(OnnxOperatorTest, IntegersAreTransposed) {
  model_.integers("x", {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  y("Transpose", {"x"}, {attribute("perm", Integers{2, 0, 1})});
  EXPECT_EQ(integers(), shaped({3, 2, 1}, Integers{1, 4, 2, 5, 3, 6}));
  begin();
  model_.integers("x", {2, 1}, {1, 2});
  y("Transpose", {"x"}, {attribute("perm", Integers{0, 0})});
  EXPECT_EQ(refusal<ValueError>(), "perm must name each axis of x (2, 1) once, got (0, 0)");
}

TEST_F(OnnxOperatorTest, LengthsOfAReshape) {
  const auto reshape = [&](const Integers& shape, std::int64_t allowzero = 0) {
    begin();
    model_.integers("x", {2, 3}, {1, 2, 3, 4, 5, 6});
    model_.integers("shape", {static_cast<std::int64_t>(shape.size())}, shape);
    y("Reshape", {"x", "shape"}, {attribute("allowzero", allowzero)});
  };
  reshape({0, -1, 1});
  EXPECT_EQ(integers().shape(), (Shape{2, 3, 1}));
  reshape({6, 1, 0});
  EXPECT_EQ(refusal<ShapeError>(), "length 0 copies that of axis 2, which x (2, 3) does not have");
  reshape({4, -1});
  EXPECT_EQ(refusal<ShapeError>(), "no length of axis 1 keeps the number of elements of (2, 3)");
  reshape({-1, -1});
  EXPECT_EQ(refusal<ShapeError>(), "a shape must have lengths from 0 and at most one -1, got (-1, -1)");
  reshape({0, 6}, 1);
  EXPECT_EQ(refusal<ShapeError>(), "a shape (0, 6) does not hold the elements of (2, 3)");
  begin();
  model_.integers("x", {2}, {1, 2});
  model_.integers("shape", {1, 2}, {1, 2});
  y("Reshape", {"x", "shape"});
  EXPECT_EQ(refusal<ShapeError>(), "input 1 must be a list, got (1, 2)");
}

TEST_F(OnnxOperatorTest, AxesThatComeAndGo) {
  model_.integers("x", {1, 2, 1}, {1, 2});
  const ModelBuilder constants = model_;
  y("Squeeze", {"x"});
  EXPECT_EQ(integers(), (Ids{1, 2}));
  model_ = constants;
  y("Flatten", {"x"}, {attribute("axis", 3)});
  EXPECT_EQ(integers(), shaped({2, 1}, Integers{1, 2}));
  model_ = constants;
  y("Flatten", {"x"}, {attribute("axis", 4)});
  EXPECT_EQ(refusal<IndexError>(), "axis 4 is out of range for x (1, 2, 1)");
  model_ = constants;
  y("Shape", {"x"}, {attribute("start", 2), attribute("end", 1)});
  EXPECT_EQ(integers(), Ids::from_shape({0}));
  model_ = constants;
  model_.integers("axes", {2}, {0, -5});
  y("Unsqueeze", {"x", "axes"});
  EXPECT_EQ(refusal<ValueError>(), "axes must be named once");
  model_ = constants;
  y("Concat", {"x", "x"}, {attribute("axis", 3)});
  EXPECT_EQ(refusal<IndexError>(), "axis 3 is out of range for 3 axes");
  model_ = constants;
  y("Concat", {"x", "x"}, {attribute("axis", "first")});
  EXPECT_EQ(error(), "attribute \"axis\" must hold an integer");
}

TEST_F(OnnxOperatorTest, PartsThatDoNotFit) {
  model_.integers("x", {1, 2}, {1, 2});
  model_.integers("z", {1, 1}, {3});
  const ModelBuilder constants = model_;
  y("Concat", {"x", "z"}, {attribute("axis", 0)});
  EXPECT_EQ(refusal<ShapeError>(), "parts must agree except in axis 0, got (1, 2) and (1, 1)");
  for (const auto& [parts, text] : {std::pair<Integers, std::string>{{1}, "got 1"}, {{1, 2}, "got (1, 2)"}}) {
    model_ = constants;
    model_.integers("parts", {static_cast<std::int64_t>(parts.size())}, parts);
    std::vector<std::string> outputs{"y"};
    if (parts.size() > 1) outputs.emplace_back("rest");
    model_.node("Split", {"x", "parts"}, outputs, {attribute("axis", 1)});
    EXPECT_EQ(refusal<ShapeError>(), "parts must add up to 2, " + text);
  }
}

TEST_F(OnnxOperatorTest, TheLastPartMayBeShorter) {
  begin(18);
  model_.integers("x", {5}, {1, 2, 3, 4, 5});
  model_.node("Split", {"x"}, {"first", "y"}, {attribute("num_outputs", 2)});
  EXPECT_EQ(integers(), (Ids{4, 5}));
}

TEST_F(OnnxOperatorTest, SlicesOfOldAndNewOperatorSets) {
  begin(9);
  model_.integers("x", {2, 3}, {1, 2, 3, 4, 5, 6});
  const ModelBuilder constants = model_;
  y("Slice", {"x"}, {attribute("starts", Integers{-2, 1}), attribute("ends", Integers{2, 99})});
  EXPECT_EQ(integers(), (Ids{{2, 3}, {5, 6}}));
  model_ = constants;
  y("Slice", {"x"},
    {attribute("starts", Integers{2}), attribute("ends", Integers{3}), attribute("axes", Integers{-1})});
  EXPECT_EQ(integers(), shaped({2, 1}, Integers{3, 6}));
  begin();
  model_.integers("x", {3}, {1, 2, 3});
  model_.integers("start", {1}, {-1});
  model_.integers("end", {1}, {least});
  model_.integers("axes", {1}, {0});
  model_.integers("step", {1}, {0});
  y("Slice", {"x", "start", "end", "axes", "step"});
  EXPECT_EQ(refusal<ValueError>(), "steps must not be 0");
}

TEST_F(OnnxOperatorTest, SumsOfThoseBefore) {
  const auto sums = [&](std::int64_t exclusive, std::int64_t reverse) {
    begin();
    model_.integers("x", {2, 3}, {1, 2, 3, 4, 5, 6});
    model_.integers("axis", {}, {1});
    y("CumSum", {"x", "axis"}, {attribute("exclusive", exclusive), attribute("reverse", reverse)});
    return integers();
  };
  EXPECT_EQ(sums(0, 0), (Ids{{1, 3, 6}, {4, 9, 15}}));
  EXPECT_EQ(sums(1, 0), (Ids{{0, 1, 3}, {0, 4, 9}}));
  EXPECT_EQ(sums(0, 1), (Ids{{6, 5, 3}, {15, 11, 6}}));
  EXPECT_EQ(sums(1, 1), (Ids{{5, 3, 0}, {11, 6, 0}}));
  begin();
  model_.floats("x", {2, 0}, {});
  model_.integers("axis", {}, {1});
  y("CumSum", {"x", "axis"}, {attribute("exclusive", 1)});
  EXPECT_EQ(floats().shape(), (Shape{2, 0}));
}

TEST_F(OnnxOperatorTest, ElementsAreDroppedInTrainingOnly) {
  model_.floats("x", {1000}, std::vector<float>(1000, 1));
  model_.initializer(ModelBuilder::tensor("trains", 9, {}, std::string(1, '\1')));
  y("Dropout", {"x", "", "trains"});
  const Graph<float> graph = this->graph();
  const auto kept = [&] {
    const Array<float> y = std::get<Variable<float>>(graph({}).at("y")).value();
    return std::count_if(y.begin(), y.end(), [](float one) { return one != 0; });
  };
  EXPECT_NEAR(static_cast<double>(kept()), 500, 100);
  graph.eval();
  EXPECT_EQ(kept(), 1000);
}

// ---- Places and ranks ----

TEST_F(OnnxOperatorTest, PlacesAlongAnAxis) {
  model_.integers("x", {3, 2}, {1, 2, 3, 4, 5, 6});
  const ModelBuilder constants = model_;
  model_.integers("last", {1}, {-1});
  y("Gather", {"x", "last"}, {attribute("axis", 1)});
  EXPECT_EQ(integers(), shaped({3, 1}, Integers{2, 4, 6}));
  model_ = constants;
  model_.integers("two", {}, {2});
  y("Gather", {"x", "two"}, {attribute("axis", 1)});
  EXPECT_EQ(refusal<IndexError>(), "indices must be in [-2, 2), got 2");
}

TEST_F(OnnxOperatorTest, ElementsAndTuplesOfPlaces) {
  const auto elements = [&](const Integers& dims, const Integers& ids) {
    begin();
    model_.integers("x", {2, 2}, {1, 2, 3, 4});
    model_.integers("ids", dims, ids);
    y("GatherElements", {"x", "ids"}, {attribute("axis", 1)});
  };
  elements({2, 1}, {-1, 0});
  EXPECT_EQ(integers(), shaped({2, 1}, Integers{2, 3}));
  elements({3, 1}, {0, 0, 0});
  EXPECT_EQ(refusal<ShapeError>(), "indices (3, 1) must be as long as x (2, 2) at most, except in axis 1");
  elements({1, 1}, {-3});
  EXPECT_EQ(refusal<IndexError>(), "indices must be in [-2, 2), got -3");
  const auto tuples = [&](const Integers& dims, const Integers& ids) {
    begin();
    model_.integers("x", {2, 3}, {1, 2, 3, 4, 5, 6});
    model_.integers("ids", dims, ids);
    y("GatherND", {"x", "ids"}, {attribute("batch_dims", 1)});
  };
  tuples({2, 1}, {-1, 0});
  EXPECT_EQ(integers(), (Ids{3, 4}));
  tuples({2, 1}, {0, 3});
  EXPECT_EQ(refusal<IndexError>(), "indices must be in [-3, 3), got 3");
  tuples({2}, {0, 0});
  EXPECT_EQ(refusal<ShapeError>(), "indices must have more axes than batch_dims, 1, got (2)");
  tuples({3, 1}, {0, 0, 0});
  EXPECT_EQ(refusal<ShapeError>(), "the first 1 axes must agree, got x (2, 3) and indices (3, 1)");
}

TEST_F(OnnxOperatorTest, IntegersAreJoinedWithThoseThatAreThere) {
  const auto joined = [&](const char* how) {
    begin(18);
    model_.integers("x", {3}, {1, 5, 3});
    model_.integers("ids", {3}, {0, 1, -2});
    model_.integers("updates", {3}, {4, 2, 9});
    y("ScatterElements", {"x", "ids", "updates"}, {attribute("reduction", how)});
    return integers();
  };
  EXPECT_EQ(joined("none"), (Ids{4, 9, 3}));
  EXPECT_EQ(joined("add"), (Ids{5, 16, 3}));
  EXPECT_EQ(joined("mul"), (Ids{4, 90, 3}));
  EXPECT_EQ(joined("max"), (Ids{4, 9, 3}));
  EXPECT_EQ(joined("min"), (Ids{1, 2, 3}));
  const auto joined_floats = [&](const char* how) {
    begin(18);
    model_.floats("x", {3}, {1, 5, 3});
    model_.integers("ids", {3}, {0, 1, -2});
    model_.floats("updates", {3}, {4, 2, 9});
    y("ScatterElements", {"x", "ids", "updates"}, {attribute("reduction", how)});
    return floats();
  };
  EXPECT_EQ(joined_floats("add"), (Array<float>{5, 16, 3}));
  EXPECT_EQ(joined_floats("mul"), (Array<float>{4, 90, 3}));
  EXPECT_EQ(joined_floats("max"), (Array<float>{4, 9, 3}));
  EXPECT_EQ(joined_floats("min"), (Array<float>{1, 2, 3}));
  begin();
  model_.floats("x", {3}, {1, 5, 3});
  model_.integers("ids", {2}, {0, 1});
  y("ScatterElements", {"x", "ids", "x"});
  EXPECT_EQ(refusal<ShapeError>(), "indices and updates must have the same shape, got (2) and (3)");
}

TEST_F(OnnxOperatorTest, TheFirstOfEqualExtremesIsTaken) {
  const auto extreme = [&](const std::vector<float>& x) {
    begin();
    model_.floats("x", {static_cast<std::int64_t>(x.size())}, x);
    y("ArgMax", {"x"}, {attribute("keepdims", 0)});
  };
  extreme({1, 2, 2});
  EXPECT_EQ(*integers().data(), 1);
  extreme({1, NAN, NAN, 5});
  EXPECT_EQ(*integers().data(), 1);
  extreme({});
  EXPECT_EQ(refusal<ShapeError>(), "there are no elements along axis 0 of (0)");
}

TEST_F(OnnxOperatorTest, IntegersAreRanked) {
  const auto ranked = [&](std::int64_t opset, std::int64_t k) {
    begin(opset);
    model_.integers("x", {2, 3}, {7, 9, 8, 3, 1, 2});
    if (opset >= 10) model_.integers("k", {1}, {k});
    const std::vector<std::string> inputs =
        opset < 10 ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "k"};
    const std::vector<MessageWriter> attributes =
        opset < 10 ? std::vector<MessageWriter>{attribute("k", k)} : std::vector<MessageWriter>{};
    model_.node("TopK", inputs, {"y", "places"}, attributes);
    model_.output("places");
  };
  for (const std::int64_t opset : {9, 17}) {
    ranked(opset, 2);
    EXPECT_EQ(integers(), (Ids{{9, 8}, {3, 2}}));
    EXPECT_EQ(std::get<Ids>(graph()({}).at("places")), (Ids{{1, 2}, {0, 2}}));
  }
  ranked(17, 4);
  EXPECT_EQ(refusal<ValueError>(), "k must be from 0 to the length 3 of axis 1, got 4");
  begin();
  model_.integers("x", {2}, {1, 2});
  model_.node("TopK", {"x", "x"}, {"y", "places"});
  EXPECT_EQ(refusal<ShapeError>(), "input 1 must be one integer, got (2)");
}

TEST_F(OnnxOperatorTest, IdsBeyondTheDepthAreHotNowhere) {
  model_.integers("ids", {4}, {3, -1, -4, 0});
  model_.integers("depth", {}, {3});
  model_.integers("values", {2}, {0, 1});
  y("OneHot", {"ids", "depth", "values"});
  EXPECT_EQ(integers(), (Ids{{0, 0, 0}, {0, 0, 1}, {0, 0, 0}, {1, 0, 0}}));
}

TEST_F(OnnxOperatorTest, ExtractedFeaturesAreRows) {
  model_.floats("x", {3}, {1, 2, 3});
  model_.integers("ids", {2}, {2, 0});
  y("ArrayFeatureExtractor", {"x", "ids"}, {}, "ai.onnx.ml");
  EXPECT_EQ(floats(), (Array<float>{{3, 1}}));
}

TEST_F(OnnxOperatorTest, IntegersAreRepeatedAndPadded) {
  const auto tiled = [&](std::int64_t repeats) {
    begin();
    model_.integers("x", {1, 2}, {1, 2});
    model_.integers("repeats", {2}, {2, repeats});
    y("Tile", {"x", "repeats"});
  };
  tiled(2);
  EXPECT_EQ(integers(), (Ids{{1, 2, 1, 2}, {1, 2, 1, 2}}));
  tiled(-1);
  EXPECT_EQ(refusal<ValueError>(), "repeats must be at least 0, got -1");
  const auto padded = [&](const Integers& x, const Integers& pads, const char* mode) {
    begin();
    model_.integers("x", {static_cast<std::int64_t>(x.size())}, x);
    model_.integers("pads", {static_cast<std::int64_t>(pads.size())}, pads);
    y("Pad", {"x", "pads"}, {attribute("mode", mode)});
  };
  padded({7}, {2, 1}, "reflect");
  EXPECT_EQ(integers(), (Ids{7, 7, 7, 7}));
  padded({1, 2, 3}, {4, 2}, "reflect");
  EXPECT_EQ(integers(), (Ids{1, 2, 3, 2, 1, 2, 3, 2, 1}));
  padded({1, 2, 3}, {-1, 1}, "constant");
  EXPECT_EQ(integers(), (Ids{2, 3, 0}));
  padded({1, 2, 3}, {1, 1, 1}, "constant");
  EXPECT_EQ(refusal<ValueError>(), "pads must be two for each of 1 axes, got 3");
  begin(10);
  model_.floats("x", {1, 2}, {1, 2});
  y("Pad", {"x"}, {attribute("pads", Integers{0, 1, 0, 0}), number("value", 0.5F)});
  EXPECT_EQ(floats(), (Array<float>{{0.5F, 1, 2}}));
}

// ---- Single elements ----

TEST_F(OnnxOperatorTest, QuotientsOfIntegers) {
  const auto of = [&](const char* op, const Integers& a, const Integers& b) {
    begin();
    model_.integers("a", {static_cast<std::int64_t>(a.size())}, a);
    model_.integers("b", {static_cast<std::int64_t>(b.size())}, b);
    y(op, {"a", "b"});
  };
  of("Div", {least, 6, -7}, {-1, -1, 2});
  EXPECT_EQ(integers(), (Ids{least, -6, -3}));
  of("Mod", {least, 7, -7}, {-1, -3, 2});
  EXPECT_EQ(integers(), (Ids{0, -2, 1}));
  for (const char* op : {"Div", "Mod"}) {
    of(op, {1}, {0});
    EXPECT_EQ(refusal<ValueError>(), "integers must not be divided by 0") << op;
  }
  begin();
  model_.floats("a", {1}, {1});
  y("Mod", {"a", "a"});
  EXPECT_EQ(refusal<ValueError>(), "floats need the attribute fmod");
  begin();
  model_.integers("a", {3}, {-3, 4, least});
  y("Abs", {"a"});
  EXPECT_EQ(integers(), (Ids{3, 4, least}));
}

TEST_F(OnnxOperatorTest, IntegersAreNarrowed) {
  const auto cast = [&](std::int64_t type) {
    begin();
    model_.integers("x", {4}, {-1, 300, 70000, (std::int64_t{1} << 32) + 5});
    y("Cast", {"x"}, {attribute("to", type)});
    return integers();
  };
  EXPECT_EQ(cast(2), (Ids{255, 44, 112, 5}));
  EXPECT_EQ(cast(3), (Ids{-1, 44, 112, 5}));
  EXPECT_EQ(cast(4), (Ids{65535, 300, 4464, 5}));
  EXPECT_EQ(cast(5), (Ids{-1, 300, 4464, 5}));
  EXPECT_EQ(cast(6), (Ids{-1, 300, 70000, 5}));
  EXPECT_EQ(cast(12), (Ids{4294967295, 300, 70000, 5}));
  begin();
  model_.floats("x", {3}, {NAN, INFINITY, -2.9F});
  y("Cast", {"x"}, {attribute("to", 7)});
  EXPECT_EQ(integers(), (Ids{least, least, -2}));
  begin();
  model_.floats("x", {1}, {1});
  y("Cast", {"x"}, {attribute("to", 14)});
  EXPECT_EQ(error(), "a cast to COMPLEX64 is not supported");
}

/// ~x of a type of 8 bits is one, too.
TEST_F(OnnxOperatorTest, TypesOfResultsAreKnown) {
  const auto begin_with = [&](std::int64_t x) {
    begin(18);
    model_.integers("x", {1}, {x});
    model_.floats("f", {1}, {static_cast<float>(x)});
    model_.floats("one", {}, {1});
    model_.initializer(ModelBuilder::tensor("yes", 9, {}, std::string(1, '\1')));
  };
  begin_with(3);
  model_.node("Cast", {"x"}, {"byte"}, {attribute("to", 2)});
  const ModelBuilder with_byte = model_;
  y("BitwiseNot", {"byte"});
  EXPECT_EQ(integers(), Ids{252});
  model_ = with_byte;
  model_.node("Where", {"yes", "byte", "byte"}, {"chosen"});
  y("BitwiseNot", {"chosen"});
  EXPECT_EQ(integers(), Ids{252});
  begin_with(3);
  model_.node("QuantizeLinear", {"f", "one"}, {"quantized"});
  y("BitwiseNot", {"quantized"});
  EXPECT_EQ(integers(), Ids{252});
}

TEST_F(OnnxOperatorTest, ExponentsHaveGradients) {
  model_.floats("x", {2}, {2, 3});
  model_.floats("e", {1}, {2});
  y("Pow", {"x", "e"});
  const Graph<float> graph = this->graph();
  sum(std::get<Variable<float>>(graph({}).at("y"))).backward();
  for (const auto& [name, parameter] : graph.named_parameters()) {
    if (name != "e") continue;
    ASSERT_TRUE(parameter.has_grad());
    EXPECT_NEAR(parameter.grad().value()(0), 4 * std::log(2.0F) + 9 * std::log(3.0F), 1e-5F);
  }
}

/// Where nan is replaced it need not be that of the value that stays.
TEST_F(OnnxOperatorTest, WhereAnotherValueIsNan) {
  model_.floats("x", {2}, {1, 2});
  model_.floats("other", {2}, {-1, 1});
  model_.floats("zero", {}, {0});
  model_.node("Log", {"other"}, {"nan"});
  model_.node("IsNaN", {"nan"}, {"is_nan"});
  y("Where", {"is_nan", "zero", "x"});
  EXPECT_EQ(floats(), (Array<float>{0, 2}));
}

TEST_F(OnnxOperatorTest, ActivationsWithTheirNumbers) {
  model_.floats("x", {3}, {-9, 0, 9});
  const ModelBuilder constants = model_;
  y("HardSigmoid", {"x"});
  EXPECT_EQ(floats(), (Array<float>{0, 0.5F, 1}));
  model_ = constants;
  y("Swish", {"x"}, {number("alpha", 0.25F)});
  EXPECT_NEAR(floats()(2), 9 / (1 + std::exp(-2.25F)), 1e-5F);
  model_ = constants;
  y("QuickGelu", {"x"}, {}, "com.microsoft");
  EXPECT_NEAR(floats()(0), -9 / (1 + std::exp(9 * 1.702F)), 1e-9F);
}

TEST_F(OnnxOperatorTest, BoundsOfOldOperatorSets) {
  begin(10);
  model_.floats("x", {3}, {-9, 0, 9});
  y("Clip", {"x"}, {number("max", 2)});
  EXPECT_EQ(floats(), (Array<float>{-9, 0, 2}));
}

// ---- Networks ----

TEST_F(OnnxOperatorTest, IntegersAreMultipliedAsMatrices) {
  model_.integers("a", {2, 1, 2}, {1, 2, 3, 4});
  model_.integers("b", {2, 2, 1}, {1, 10, 100, 1000});
  y("MatMul", {"a", "b"});
  EXPECT_EQ(integers(), shaped({2, 1, 1}, Integers{21, 4300}));
  begin();
  model_.integers("a", {2, 2}, {1, 2, 3, 4});
  model_.integers("v", {2}, {1, 10});
  y("MatMul", {"a", "v"});
  EXPECT_EQ(integers(), (Ids{21, 43}));
  begin();
  model_.integers("a", {1, 2}, {1, 2});
  model_.integers("b", {3, 1}, {1, 2, 3});
  y("MatMul", {"a", "b"});
  EXPECT_EQ(refusal<ShapeError>(), "inner axes must agree, got a (1, 2) and b (3, 1)");
}

TEST_F(OnnxOperatorTest, SoftmaxOfOldOperatorSetsIsOfAllAxesBehind) {
  for (const std::int64_t opset : {11, 13}) {
    begin(opset);
    model_.floats("x", {1, 2, 2}, {0, 0, 0, 0});
    y("Softmax", {"x"});
    EXPECT_EQ(floats()(0, 1, 1), opset < 13 ? 0.25F : 0.5F);
  }
}

TEST_F(OnnxOperatorTest, SizesOfIntegersAreAdded) {
  model_.integers("x", {2, 2}, {-3, 4, 5, -6});
  y("ReduceL1", {"x"}, {attribute("axes", Integers{1}), attribute("keepdims", 0)});
  EXPECT_EQ(integers(), (Ids{7, 11}));
  begin();
  model_.integers("x", {0, 2}, {});
  y("ReduceMax", {"x"}, {attribute("axes", Integers{0})});
  EXPECT_EQ(refusal<ShapeError>(), "there are no elements to reduce in x (0, 2)");
  begin(20);
  model_.floats("x", {0, 2}, {});
  model_.integers("first", {1}, {0});
  y("ReduceMax", {"x", "first"}, {attribute("keepdims", 0)});
  EXPECT_EQ(floats(), (Array<float>{-INFINITY, -INFINITY}));
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    for (const bool all : {false, true}) {
      begin(20);
      model_.initializer(ModelBuilder::tensor("x", 9, {2}, std::string(2, all ? '\1' : '\0')));
      y(op, {"x"}, {attribute("keepdims", 0)});
      EXPECT_EQ(std::get<xgrad::Mask>(graph()({}).at("y")), xgrad::Mask(Shape{}, all)) << op;
    }
  }
}

/// Without axes and with noop_with_empty_axes, each element is reduced by itself.
TEST_F(OnnxOperatorTest, ReductionsOfNoAxesHaveTheirFunctionOfEachElement) {
  const auto reduced = [&](const char* op, bool is_empty_list, bool is_integer = false) {
    begin(18);
    model_.floats("x", {2, 2}, {2, 3, 0.5F, 1});
    model_.floats("signed", {2, 2}, {-2, 3, 0.5F, -1});
    model_.integers("integers", {2}, {-2, 3});
    model_.integers("none", {0}, {});
    const char* const x = is_integer ? "integers" : std::string(op) == "ReduceLogSum" ? "x" : "signed";
    y(op, is_empty_list ? std::vector<std::string>{x, "none"} : std::vector<std::string>{x},
      {attribute("noop_with_empty_axes", 1), attribute("keepdims", 0)});
  };
  for (const bool is_empty_list : {false, true}) {
    for (const char* const op : {"ReduceL1", "ReduceL2"}) {
      reduced(op, is_empty_list);
      EXPECT_EQ(floats(), (Array<float>{{2, 3}, {0.5F, 1}})) << op;
    }
    reduced("ReduceSumSquare", is_empty_list);
    EXPECT_EQ(floats(), (Array<float>{{4, 9}, {0.25F, 1}}));
    reduced("ReduceLogSum", is_empty_list);
    EXPECT_EQ(floats(), (Array<float>{{std::log(2.0F), std::log(3.0F)}, {std::log(0.5F), 0}}));
    for (const char* const op :
         {"ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"}) {
      reduced(op, is_empty_list);
      EXPECT_EQ(floats(), (Array<float>{{-2, 3}, {0.5F, -1}})) << op;
    }
    reduced("ReduceL1", is_empty_list, true);
    EXPECT_EQ(integers(), (Ids{2, 3}));
    reduced("ReduceSumSquare", is_empty_list, true);
    EXPECT_EQ(integers(), (Ids{4, 9}));
  }
  begin(17);
  model_.floats("x", {1}, {1});
  y("ReduceL1", {"x"}, {attribute("noop_with_empty_axes", 1)});
  EXPECT_EQ(error(), "attribute \"noop_with_empty_axes\" is not supported");
  begin(18);  // a scalar has no axes either
  model_.floats("x", {}, {-3});
  y("ReduceL1", {"x"});
  EXPECT_EQ(floats(), shaped({}, std::vector<float>{3}));
}

/// Attributes that an operator set does not have, that are of another kind, or whose value is not supported.
TEST_F(OnnxOperatorTest, NoAttributeIsPassedOver) {
  const auto said = [&](std::int64_t opset, const char* op, const std::vector<std::string>& inputs,
                        const MessageWriter& one) {
    begin(opset);
    model_.floats("x", {1, 2}, {1, 2});
    y(op, inputs, {one});
    return error();
  };
  const auto unknown = [](const char* name) {
    return "attribute \"" + std::string(name) + "\" is not supported";
  };
  EXPECT_EQ(said(13, "Squeeze", {"x"}, attribute("axes", Integers{0})), unknown("axes"));
  EXPECT_EQ(said(13, "Unsqueeze", {"x"}, attribute("axes", Integers{0})), unknown("axes"));
  EXPECT_EQ(said(13, "Split", {"x"}, attribute("split", Integers{1})), unknown("split"));
  EXPECT_EQ(said(18, "ReduceMax", {"x"}, attribute("axes", Integers{0})), unknown("axes"));
  EXPECT_EQ(said(18, "Split", {"x"}, attribute("num_outputs", 2)),
            "num_outputs must be the number of outputs, 1, got 2");
  EXPECT_EQ(said(17, "Transpose", {"x"}, attribute("perm", 1)), "attribute \"perm\" must hold integers");
  EXPECT_EQ(said(17, "LayerNormalization", {"x", "x"}, attribute("stash_type", 10)),
            "stash_type must be FLOAT or DOUBLE, got FLOAT16");
  EXPECT_EQ(said(23, "QuantizeLinear", {"x", "x"}, attribute("precision", 16)),
            "precision must be FLOAT or DOUBLE, got BFLOAT16");
  EXPECT_EQ(said(23, "Attention", {"x", "x", "x"}, attribute("softmax_precision", 10)),
            "softmax_precision must be FLOAT or DOUBLE, got FLOAT16");
  EXPECT_EQ(said(18, "Split", {"x"}, attribute("num_outputs", -1)),
            "num_outputs must be the number of outputs, 1, got -1");
}

TEST_F(OnnxOperatorTest, NormsOfZerosAndScalesThatStretch) {
  model_.floats("x", {1, 2}, {0, 0});
  y("LpNormalization", {"x"});
  EXPECT_EQ(floats(), (Array<float>{{0, 0}}));
  begin();
  model_.floats("x", {1, 2}, {1, 2});
  model_.floats("scale", {2, 2}, {1, 1, 1, 1});
  y("LayerNormalization", {"x", "scale"});
  EXPECT_EQ(refusal<ShapeError>(), "scale must broadcast to x (1, 2), got (2, 2)");
  begin();
  model_.floats("x", {1, 2}, {1, 2});
  model_.floats("skip", {1, 2}, {1, 0});
  model_.floats("scale", {2}, {1, 1});
  model_.floats("bias", {2}, {-2, -1});
  y("SkipSimplifiedLayerNormalization", {"x", "skip", "scale", "bias"}, {}, "com.microsoft");
  EXPECT_NEAR(floats()(0, 0), 0, 1e-6F);
  EXPECT_NEAR(floats()(0, 1), std::sqrt(2.0F), 1e-3F);
}

// ---- Windows ----

TEST_F(OnnxOperatorTest, EndsOfTransposedConvolutions) {
  const auto transposed = [&](const std::vector<MessageWriter>& attributes) {
    begin();
    model_.floats("x", {1, 1, 3}, {1, 2, 3});
    model_.floats("w", {1, 1, 1}, {1});
    y("ConvTranspose", {"x", "w"}, attributes);
  };
  transposed({attribute("pads", Integers{1, 0})});
  EXPECT_EQ(floats(), (Array<float>{{{2, 3}}}));
  transposed({attribute("pads", Integers{0, 2})});
  EXPECT_EQ(floats(), shaped({1, 1, 1}, std::vector<float>{1}));
  transposed({attribute("pads", Integers{2, 2})});
  EXPECT_EQ(refusal<ShapeError>(), "pads leave nothing of axis 2 of 3 elements");
  transposed({attribute("output_shape", Integers{2})});
  EXPECT_EQ(floats(), (Array<float>{{{2, 3}}}));
  transposed({attribute("output_shape", Integers{2}), attribute("auto_pad", "SAME_UPPER")});
  EXPECT_EQ(floats(), (Array<float>{{{1, 2}}}));
  transposed({attribute("output_shape", Integers{6})});
  EXPECT_EQ(floats(), (Array<float>{{{1, 2, 3, 0, 0, 0}}}));  // as ONNX Runtime within a stride
  transposed({attribute("output_shape", Integers{5}), attribute("auto_pad", "SAME_UPPER")});
  EXPECT_EQ(floats(), (Array<float>{{{1, 2, 3, 0, 0}}}));
  begin();
  model_.floats("x", {1, 1, 3}, {1, 2, 3});
  model_.floats("w", {1, 1, 1, 1}, {1});
  y("ConvTranspose", {"x", "w"});
  EXPECT_EQ(refusal<ShapeError>(), "x must have 4 axes, got (1, 1, 3)");
}

TEST_F(OnnxOperatorTest, WindowsThatDoNotFit) {
  const auto of = [&](const char* op, const std::vector<MessageWriter>& attributes) {
    begin();
    model_.floats("x", {1, 1, 2}, {1, 2});
    model_.floats("w", {1, 1, 3}, {1, 2, 3});
    y(op, std::string(op) == "Conv" ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"},
      attributes);
  };
  const MessageWriter kernel = attribute("kernel_shape", Integers{2});
  of("MaxPool", {kernel, attribute("pads", Integers{0, 2})});
  EXPECT_EQ(refusal<ValueError>(), "pads must be less than a window, got 0 and 2");
  of("Conv", {attribute("ceil_mode", 1)});
  EXPECT_EQ(error(), "attribute \"ceil_mode\" is not supported");
  of("Conv", {});
  EXPECT_EQ(refusal<ShapeError>(), "no window of 3 elements fits axis 2 of x (1, 1, 2)");
  of("Conv", {attribute("strides", Integers{0})});
  EXPECT_EQ(refusal<ValueError>(), "strides must hold numbers from 1, got 0");
  of("Conv", {attribute("pads", Integers{1, -1})});
  EXPECT_EQ(error(), "pads must hold numbers from 0, got -1");
  begin();
  model_.floats("x", {1, 1, 1, 1, 1}, {1});
  y("Conv", {"x", "x"});
  EXPECT_EQ(refusal<ValueError>(), "1 or 2 axes behind the channels are supported, got 3");
}

/// The numbers are those of ONNX Runtime.
TEST_F(OnnxOperatorTest, TheLastWindowsOfPoolsMayEndBehindThePads) {
  const auto of = [&](const char* op, const std::vector<float>& x, std::int64_t kernel,
                      const std::vector<MessageWriter>& attributes) {
    begin();
    model_.floats("x", {1, 1, static_cast<std::int64_t>(x.size())}, x);
    std::vector<MessageWriter> all{attribute("kernel_shape", Integers{kernel}), attribute("ceil_mode", 1)};
    all.insert(all.end(), attributes.begin(), attributes.end());
    y(op, {"x"}, all);
    return floats();
  };
  const auto expect_near = [](const Array<float>& got, const Array<float>& expected) {
    ASSERT_EQ(got.shape(), expected.shape());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got.data()[i], expected.data()[i], 1e-6F);
  };
  const MessageWriter three = attribute("strides", Integers{3}), counts = attribute("count_include_pad", 1);
  expect_near(of("MaxPool", {5, -1, 2}, 4, {three}), shaped({1, 1, 1}, std::vector<float>{5}));
  expect_near(of("AveragePool", {5, -1, 2}, 4, {three}), shaped({1, 1, 1}, std::vector<float>{2}));
  expect_near(of("AveragePool", {5, -1, 2}, 4, {three, counts}), shaped({1, 1, 1}, std::vector<float>{2}));
  const MessageWriter two = attribute("strides", Integers{2}), pads = attribute("pads", Integers{0, 1});
  expect_near(of("MaxPool", {1, 2, 3, 4}, 3, {two, pads}), (Array<float>{{{3, 4}}}));
  expect_near(of("AveragePool", {1, 2, 3, 4}, 3, {two, pads}), (Array<float>{{{2, 3.5F}}}));
  expect_near(of("AveragePool", {1, 2, 3, 4, 6}, 4, {three, pads, counts}),
              (Array<float>{{{2.5F, 10.0F / 3}}}));
  expect_near(of("AveragePool", {1, 2, 3, 4, 6}, 4, {three, pads}), (Array<float>{{{2.5F, 5}}}));
  of("MaxPool", {1, 2, 3, 4}, 3, {});
  begin();
  model_.floats("x", {1, 1, 2}, {1, 2});
  y("MaxPool", {"x"}, {attribute("kernel_shape", Integers{5}), attribute("ceil_mode", 1)});
  EXPECT_THROW(graph()({}), ShapeError);  // of steps of 1, no window begins in x
}

TEST_F(OnnxOperatorTest, ScalesOfResizedAxes) {
  const auto resized = [&](const std::vector<float>& x, const std::vector<float>& scales, std::int64_t opset,
                           const std::vector<MessageWriter>& attributes) {
    begin(opset);
    model_.floats("x", {static_cast<std::int64_t>(x.size())}, x);
    model_.floats("scales", {1}, scales);
    if (opset == 9) {
      y("Upsample", {"x", "scales"}, attributes);
    } else {
      y("Resize", {"x", "", "scales"}, attributes);
    }
    return floats();
  };
  const MessageWriter linear = attribute("mode", "linear");
  EXPECT_EQ(resized({0, 2}, {2}, 9, {linear}), (Array<float>{0, 1, 2, 2}));
  EXPECT_EQ(resized({0, 2}, {2}, 17, {linear}), (Array<float>{0, 0.5F, 1.5F, 2}));
  EXPECT_EQ(
      resized({5, 7}, {0.5F}, 17, {linear, attribute("coordinate_transformation_mode", "align_corners")}),
      Array<float>{5});
  const Array<float> same =
      resized({0, 1, 2, 3}, {1.2F}, 17, {linear, attribute("coordinate_transformation_mode", "asymmetric")});
  ASSERT_EQ(same.shape(), Shape{4});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(same(i), static_cast<float>(i) / 1.2F, 1e-6F);
  const Array<float> symmetric = resized(
      {0, 1, 2}, {1.5F}, 19, {linear, attribute("coordinate_transformation_mode", "half_pixel_symmetric")});
  ASSERT_EQ(symmetric.shape(), Shape{4});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(symmetric(i), static_cast<float>(i) / 1.5F, 1e-6F);
  // before opset 11 a shorter axis has the next elements, as ONNX Runtime's
  begin(10);
  model_.floats("x", {4}, {1, 2, 3, 4});
  model_.floats("scales", {1}, {0.6F});
  y("Resize", {"x", "scales"});
  EXPECT_EQ(floats(), (Array<float>{1, 3}));
  begin(10);
  y("Upsample", {});
  EXPECT_EQ(error(), "there is no such operator after operator set 9");
  begin(18);
  y("Resize", {}, {attribute("antialias", 1)});
  EXPECT_EQ(error(), "antialias is not supported");
}

// ---- Recurrent layers ----

TEST_F(OnnxOperatorTest, StatesOfLayersWithTheBatchFirst) {
  model_.floats("x", {2, 1, 1}, {0, 0});
  model_.floats("w", {1, 1, 1}, {1});
  model_.floats("h", {2, 1, 1}, {1, 2});
  model_.node("RNN", {"x", "w", "w", "", "", "h"}, {"", "y"},
              {attribute("layout", 1), attribute("hidden_size", 1)});
  const Array<float> y = floats();
  ASSERT_EQ(y.shape(), (Shape{2, 1, 1}));
  EXPECT_NEAR(y(0, 0, 0), std::tanh(1.0F), 1e-6F);
  EXPECT_NEAR(y(1, 0, 0), std::tanh(2.0F), 1e-6F);
}

/// A sequence without steps has an output and states of 0, also with an initial state, and is not read.
TEST_F(OnnxOperatorTest, SequencesWithoutSteps) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [op, gates] : {std::pair{"RNN", 1}, {"LSTM", 4}, {"GRU", 3}}) {
    for (const char* const direction : {"forward", "reverse", "bidirectional"}) {
      const std::int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
      for (const std::int64_t output : {0, 1}) {
        begin();
        model_.floats("x", {2, 2, 1}, {1, nan, 2, nan});
        const auto weights = static_cast<std::size_t>(directions * gates);
        model_.floats("w", {directions, gates, 1}, std::vector<float>(weights, 0.5F));
        model_.integers("lengths", {2}, {2, 0});
        model_.floats("h", {directions, 2, 1},
                      std::vector<float>(static_cast<std::size_t>(2 * directions), 1));
        model_.node(op, {"x", "w", "w", "", "lengths", "h"},
                    output == 0 ? std::vector<std::string>{"y"} : std::vector<std::string>{"", "y"},
                    {attribute("direction", direction)});
        const Array<float> y = floats();  // (steps, directions, batch, 1) or (directions, batch, 1)
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_EQ(y.data()[i] == 0, i % 2 == 1) << op << direction << output;
        }
      }
    }
  }
}

TEST_F(OnnxOperatorTest, RecurrentLayersThatAreNoneOfXgrads) {
  model_.floats("x", {2, 1, 1}, {1, 2});
  model_.floats("w", {1, 1, 1}, {1});
  model_.integers("short", {1}, {-1});
  const ModelBuilder constants = model_;
  y("RNN", {"x", "w", "w", "", "short"});
  EXPECT_EQ(refusal<ValueError>(), "sequence_lens must be from 0 to 2, got -1");
  model_ = constants;
  y("RNN", {"x", "w", "w"}, {attribute("hidden_size", 3)});
  EXPECT_EQ(refusal<ShapeError>(), "hidden_size must be that of R, 1, got 3");
  model_ = constants;
  y("RNN", {"x", "w", "w"}, {texts("activations", {"Sigmoid"})});
  EXPECT_EQ(error(), "activations \"Sigmoid\" are not supported");
  model_ = constants;
  y("RNN", {"x", "w", "w"}, {attribute("direction", "backward")});
  EXPECT_EQ(error(), "direction must be forward, reverse or bidirectional, got \"backward\"");
}

// ---- Attention ----

/// One head of one sequence of two, whose values are 2 and 4.
TEST_F(OnnxOperatorTest, AMaskAndABiasOfAttention) {
  model_.floats("x", {1, 2, 1}, {2, 4});
  model_.floats("w", {1, 3}, {0, 0, 1});
  model_.integers("mask", {1, 2}, {1, 0});
  model_.floats("bias", {1, 1, 2, 2}, {0, 1, 1, 0});
  const MessageWriter heads = attribute("num_heads", 1);
  const ModelBuilder constants = model_;
  y("Attention", {"x", "w", "", "mask", "", "bias"}, {heads}, "com.microsoft");
  EXPECT_EQ(floats(), shaped({1, 2, 1}, std::vector<float>{2, 2}));
  model_ = constants;
  y("Attention", {"x", "w", "", "", "", "bias"}, {heads}, "com.microsoft");
  EXPECT_GT(floats()(0, 0, 0), 3);
  model_ = constants;
  y("Attention", {"x", "w"}, {attribute("num_heads", 0)}, "com.microsoft");
  EXPECT_EQ(error(), "num_heads must be at least 1, got 0");
  begin(23);
  y("Attention", {}, {number("softcap", 2)});
  EXPECT_EQ(error(), "softcap is not supported");
  begin(23);
  model_.floats("x", {1, 2, 1}, {2, 4});
  y("Attention", {"x", "x", "x"});
  EXPECT_EQ(refusal<ValueError>(), "q_num_heads and kv_num_heads must be at least 1");
}

TEST_F(OnnxOperatorTest, EmbeddingsOfPositionsAndTypes) {
  model_.integers("ids", {1, 2}, {0, 0});
  model_.integers("places", {1, 2}, {1, 0});
  model_.integers("types", {2, 1}, {0, 0});
  model_.floats("table", {2, 2}, {1, 2, 30, 40});
  model_.floats("one", {2}, {1, 1});
  const ModelBuilder constants = model_;
  model_.node("EmbedLayerNormalization", {"ids", "", "table", "table", "table", "one", "one", "", "places"},
              {"", "", "y"}, {}, "com.microsoft");
  EXPECT_EQ(floats(), (Array<float>{{{31, 42}, {2, 4}}}));
  model_ = constants;
  y("EmbedLayerNormalization", {"ids", "types", "table", "table", "table", "one", "one"}, {},
    "com.microsoft");
  EXPECT_EQ(refusal<ShapeError>(), "types must have the shape of the ids (1, 2), got (2, 1)");
}

// ---- Integers that stand for floats ----

TEST_F(OnnxOperatorTest, ZeroPointsOfRowsAndFilters) {
  model_.integers("a", {2, 1}, {5, 5});
  model_.integers("b", {1, 1}, {1});
  model_.integers("zeros", {2}, {1, 2});
  y("MatMulInteger", {"a", "b", "zeros"});
  EXPECT_EQ(integers(), shaped({2, 1}, Integers{4, 3}));
  begin();
  model_.integers("a", {1, 2}, {5, 5});
  model_.integers("b", {2, 1}, {1, 1});
  model_.integers("zeros", {2, 2}, {1, 2, 3, 4});
  y("MatMulInteger", {"a", "b", "zeros"});
  EXPECT_EQ(refusal<ShapeError>(), "zero points (2, 2) do not fit (1, 2)");
  begin();
  model_.integers("a", {1, 1}, {-70000});
  model_.integers("b", {1, 1}, {1});
  y("MatMulInteger", {"a", "b"});
  EXPECT_EQ(refusal<ValueError>(),
            "integers without their zero point must be between -65535 and 65535, got -70000");
  begin();
  model_.integers("x", {1, 1, 1}, {1});
  model_.integers("w", {2, 1, 1}, {5, 5});
  model_.integers("zero", {}, {0});
  model_.integers("zeros", {2}, {1, 2});
  y("ConvInteger", {"x", "w", "zero", "zeros"});
  EXPECT_EQ(integers(), shaped({1, 2, 1}, Integers{4, 3}));
}

TEST_F(OnnxOperatorTest, ScalesOfColumnsAndABias) {
  const auto begin_with_scale = [&] {
    begin();
    model_.floats("one", {}, {1});
    model_.initializer(ModelBuilder::tensor("zero", 2, {}, std::string(1, '\0')));
    model_.initializer(ModelBuilder::tensor("ten", 2, {}, std::string(1, '\n')));
  };
  begin_with_scale();
  model_.integers("a", {1, 1}, {2});
  model_.integers("b", {1, 2}, {3, 3});
  model_.floats("scales", {2}, {1, 10});
  y("QLinearMatMul", {"a", "one", "zero", "b", "scales", "zero", "one", "ten"});
  EXPECT_EQ(integers(), (Ids{{16, 70}}));
  begin_with_scale();
  model_.integers("x", {1, 1, 1}, {2});
  model_.integers("w", {2, 1, 1}, {3, 4});
  model_.integers("bias", {2}, {10, 20});
  y("QLinearConv", {"x", "one", "zero", "w", "one", "zero", "one", "zero", "bias"});
  EXPECT_EQ(integers(), shaped({1, 2, 1}, Integers{16, 28}));
}

/// A weight that is no constant is multiplied by the operator itself.
TEST_F(OnnxOperatorTest, ProductsOfQuantizedFloatsHaveABias) {
  model_.floats("x", {1, 1}, {2});
  model_.integers("three", {1, 1}, {3});
  model_.floats("one", {}, {1});
  model_.floats("bias", {1}, {10});
  model_.node("Identity", {"three"}, {"w"});
  y("DynamicQuantizeMatMul", {"x", "w", "one", "", "bias"}, {}, "com.microsoft");
  EXPECT_NEAR(floats()(0, 0), 16, 1e-5F);
}

TEST_F(OnnxOperatorTest, EndsOfQuantizedRanges) {
  model_.floats("x", {3}, {0, 0, 0});
  model_.node("DynamicQuantizeLinear", {"x"}, {"q", "y", "zero"});
  EXPECT_EQ(*floats().data(), 1);
  begin(21);
  model_.floats("x", {3}, {-1e6F, 1e6F, NAN});
  model_.floats("scale", {}, {1});
  model_.initializer(ModelBuilder::tensor("zero", 5, {}, std::string(2, '\0')));
  y("QuantizeLinear", {"x", "scale", "zero"});
  EXPECT_EQ(integers(), (Ids{-32768, 32767, -32768}));
}

// ---- Constants ----

TEST_F(OnnxOperatorTest, ConstantsOfEachKind) {
  y("Constant", {}, {attribute("value_int", 5)});
  EXPECT_EQ(integers(), Ids(Shape{}, 5));
  begin();
  y("Constant", {}, {attribute("value_ints", Integers{5, 6})});
  EXPECT_EQ(integers(), (Ids{5, 6}));
  begin();
  y("Constant", {}, {number("value_float", 0.5F)});
  EXPECT_EQ(floats(), Array<float>(Shape{}, 0.5F));
  begin();
  y("Constant", {}, {numbers("value_floats", {0.5F, 2})});
  EXPECT_EQ(floats(), (Array<float>{0.5F, 2}));
  begin();
  MessageWriter doubles;
  doubles.integers(1, Integers{2});
  doubles.integer(2, 11);
  const std::vector<double> elements{0.5, 2};
  doubles.bytes(10, std::as_bytes(std::span(elements)));
  y("Constant", {}, {tensor("value", doubles)});
  EXPECT_EQ(floats(), (Array<float>{0.5F, 2}));
  begin();
  MessageWriter conditions;
  conditions.integers(1, Integers{2});
  conditions.integer(2, 9);
  conditions.integers(5, Integers{1, 0});
  y("Constant", {}, {tensor("value", conditions)});
  EXPECT_EQ(std::get<xgrad::Mask>(graph()({}).at("y")), (xgrad::Mask{true, false}));
}

TEST_F(OnnxOperatorTest, ShapesAreFilled) {
  model_.integers("shape", {1}, {2});
  const ModelBuilder constants = model_;
  y("ConstantOfShape", {"shape"});
  EXPECT_EQ(floats(), (Array<float>{0, 0}));
  model_ = constants;
  y("ConstantOfShape", {"shape"},
    {tensor("value", ModelBuilder::tensor("", 7, {2}, ModelBuilder::raw(Integers{1, 2})))});
  EXPECT_EQ(refusal<ShapeError>(), "value must be one element, got (2)");
  begin();
  model_.floats("start", {}, {1});
  model_.floats("limit", {}, {INFINITY});
  y("Range", {"start", "limit", "start"});
  EXPECT_EQ(refusal<ValueError>(), "the number of elements must be below 1e15, got inf");
  begin();
  model_.initializer(ModelBuilder::tensor("x", 13, {1}, ModelBuilder::raw(Integers{least})));
  y("Identity", {"x"});
  EXPECT_EQ(error(), "model: integers of 2^63 and more are not supported");
}

}  // namespace operators_test
