#include "emitters.hpp"

#include <algorithm>
#include <string_view>

#include "../../../ops/recurrent/recurrent.hpp"

namespace xgrad::onnx::detail {
namespace {

/// How ONNX names a layer, and the places of its gates in those of xgrad.
struct Cell {
  const char* name;
  std::vector<std::int64_t> gates;
};

Cell cell_of(const OpInfo& op) {
  if (op == ops::lstm) return {"LSTM", {0, 3, 1, 2}};
  if (op == ops::gru) return {"GRU", {1, 0, 2}};
  return {"RNN", {0}};
}

/// Weights or a bias with the gates in ONNX's order.
template <class T>
std::string reordered(Exporter<T>& to, const std::string& weights, const Cell& cell, std::size_t width) {
  if (cell.gates.size() == 1) return weights;
  const auto size = static_cast<std::int64_t>(width);
  GraphWriter::Names parts;
  for (const std::int64_t gate : cell.gates) {
    parts.push_back(
        to.sliced(weights, 0, to.graph().integers({gate * size}), to.graph().integers({(gate + 1) * size})));
  }
  return to.graph().node("Concat", parts, AttributeWriter().integer("axis", 0));
}

/// One direction of a layer, whose rows are the steps of sequences of the same length.
template <class T>
void emit_recurrent(Exporter<T>& to, const OpPair<T>& op) {
  if (op.first.output > 0) return to.result(op, to.several()[op.first.output]);
  // until the node is made: it may be refused, but its other results follow
  to.several().assign(3, "missing");
  const Cell cell = cell_of(op.info());
  const auto [first, second] = op.template arrays<std::vector<std::int64_t>>("batch_sizes");
  for (const auto& counts : {first, second})
    if (counts.front() != counts.back()) refuse("of sequences of different lengths");
  if (op.info() == ops::lstm && op.has("weight_hr")) refuse("with projections, which ONNX lacks");
  const std::size_t width = op.shape("weight_hh")[1];
  const auto sizes = [](const std::vector<std::int64_t>& counts) {
    return Shape{counts.size(), static_cast<std::size_t>(counts.front())};
  };
  SymbolicShape steps = to.explained(sizes(first), sizes(second));
  steps.push_back({op.shape("x").back()});
  const std::string direction_axis = to.graph().integers({0});
  const auto with_direction = [&](const std::string& x) {
    return to.graph().node("Unsqueeze", {x, direction_axis});
  };
  const auto weights = [&](const char* name) { return reordered(to, to.name_of(op, name), cell, width); };
  GraphWriter::Names inputs{to.graph().node("Reshape", {to.name_of(op, "x"), to.list(steps)}),
                            with_direction(weights("weight_ih")), with_direction(weights("weight_hh")), ""};
  if (op.has("bias_ih") && op.has("bias_hh")) {
    inputs[3] = with_direction(to.graph().node("Concat", {weights("bias_ih"), weights("bias_hh")},
                                               AttributeWriter().integer("axis", 0)));
  }
  inputs.emplace_back();  // the lengths
  for (const std::string_view state : {"h0", "c0"}) {
    const bool is_input = state == "h0" || op.info() == ops::lstm;
    inputs.push_back(is_input && op.has(state) ? with_direction(to.name_of(op, state)) : "");
  }
  while (inputs.back().empty()) inputs.pop_back();
  AttributeWriter attributes;
  attributes.integer("hidden_size", static_cast<std::int64_t>(width));
  if (op.template attribute<bool>("reverse")) attributes.text("direction", "reverse");
  if (op.info() == ops::gru) attributes.integer("linear_before_reset", 1);
  if (op.info() == ops::rnn && op.template attribute<std::string>("nonlinearity") != "tanh")
    attributes.texts("activations", {"Relu"});
  GraphWriter::Names results =
      to.graph().nodes(cell.name, inputs, attributes, op.info() == ops::lstm ? 3 : 2);
  // (steps, 1, batch, width), and (1, batch, width) for the states after the last step
  results[0] =
      to.graph().node("Reshape", {results[0], to.graph().integers({-1, static_cast<std::int64_t>(width)})});
  for (std::size_t i = 1; i < results.size(); ++i)
    results[i] = to.graph().node("Squeeze", {results[i], direction_axis});
  to.several() = results;
  to.result(op, results[0]);
}

}  // namespace

template <class T>
void add_recurrent_emitters(EmitterTable<T>& all) {
  add_emitter(all, &emit_recurrent<T>, {&ops::lstm, &ops::gru, &ops::rnn});
}

template void add_recurrent_emitters(EmitterTable<float>&);
template void add_recurrent_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
