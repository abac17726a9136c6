// ONNX files: the graph, and what small ones compute
// seeds: tests/data/onnx tests/fuzz/seeds/onnx
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <xgrad/base/error.hpp>
#include <xgrad/graph/grad_mode.hpp>
#include <xgrad/onnx/graph.hpp>

#include "../onnx/model_builder.hpp"
#include "protobuf_mutator.hpp"

using xgrad::FileError, xgrad::Ids, xgrad::IndexError, xgrad::Mask, xgrad::Shape, xgrad::ShapeError,
    xgrad::ValueError, xgrad::Variable;
using xgrad::onnx::Graph, xgrad::onnx::Value, xgrad::onnx::ValueDescription, xgrad::onnx::Values;

namespace {

constexpr std::size_t few = 64;

/// Whether a call cannot take long: few nodes, none of which makes as much as its inputs say, on few numbers.
bool is_small(const Graph<float>& graph) {
  std::size_t nodes = 0;
  for (const auto& [name, count] : graph.operators()) nodes += count;
  for (const char* name :
       {"ConstantOfShape", "Expand", "Range", "Tile", "Pad", "Resize", "Upsample", "OneHot", "Conv",
        "ConvTranspose", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool"})
    if (graph.operators().contains(name)) return false;
  for (const auto& [name, parameter] : graph.named_parameters())
    if (parameter.size() > few) return false;
  return nodes <= 6;
}

/// An input of ones, or nothing for a large one. Open lengths are 2.
std::vector<Value<float>> example(const ValueDescription& input) {
  Shape shape;
  std::size_t count = 1;
  if (input.shape) {
    for (const auto& length : *input.shape) {
      shape.push_back(length.fixed.value_or(2));
      if (shape.back() > few || (count *= shape.back()) > few) return {};
    }
  }
  if (input.type == "BOOL") return {Mask(shape, true)};
  const bool is_integer = input.type.find("INT") != input.type.npos;
  if (is_integer) return {Ids(shape, 1)};
  return {Variable<float>(xgrad::Array<float>(shape, 1.0F))};
}

void run(const Graph<float>& graph) {
  Values<float> given;
  for (const ValueDescription& input : graph.inputs()) {
    const auto value = example(input);
    if (value.empty()) return;
    given.emplace(input.name, value[0]);
  }
  const xgrad::NoGrad guard;
  fuzz::accepts<ValueError, ShapeError, IndexError>([&] {
    fuzz::require(graph(given).size() <= graph.outputs().size(), "outputs are those that are listed");
  });
}

std::string valid_model() {
  xgrad_tests::ModelBuilder builder;
  builder.input("x", 1, {-1, 2});
  builder.output("y");
  builder.floats("w", {2, 2}, {1, 2, 3, 4});
  builder.node("MatMul", {"x", "w"}, {"h"});
  builder.node("Softmax", {"h"}, {"y"}, {xgrad_tests::ModelBuilder::attribute("axis", -1)});
  return builder.bytes();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string valid = valid_model();
  return fuzz::mutate_message(data, size, most, seed, valid);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepts<FileError>([&] {
    const Graph<float> graph("input", std::as_bytes(std::span(data, size)));
    if (is_small(graph)) run(graph);
  });
  return 0;
}
