#include "emitters.hpp"

#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "../../ops/attention/self_attention.hpp"
#include "../../ops/index/embedding.hpp"
#include "../../ops/norm/layer_norm.hpp"
#include "../../ops/norm/softmax.hpp"
#include "../../ops/product/linear.hpp"
#include "../../ops/product/matmul.hpp"
#include "../../ops/reduce/reductions.hpp"

namespace xgrad::onnx::detail {
namespace {

std::vector<std::int64_t> counting(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

template <class T>
std::string last_axes_swapped(Exporter<T>& to, const std::string& x, std::size_t rank) {
  std::vector<std::int64_t> perm = counting(rank);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return to.transposed(x, perm);
}

/// The weight keeps its layout, (out, in): runtimes turn it once.
template <class T>
std::string linear(Exporter<T>& to, const std::string& x, const std::string& weight,
                   const std::string& bias) {
  const std::string product = to.graph().node("MatMul", {x, to.transposed(weight, {1, 0})});
  return bias.empty() ? product : to.graph().node("Add", {product, bias});
}

template <class T>
void emit_linear(Exporter<T>& to, const OpPair<T>& op) {
  const std::string bias = to.name_if_given(op, "bias");
  const std::string x = to.name_of(op, "x"), weight = to.name_of(op, "weight");
  const std::string y = linear(to, x, weight, bias);
  to.result(op, op.info() == ops::linear_relu ? to.graph().node("Relu", {y}) : y);
}

template <class T>
void emit_matmul(Exporter<T>& to, const OpPair<T>& op) {
  const auto operand = [&](const char* input, const char* turned) {
    const std::string name = to.name_of(op, input);
    const bool is_turned = op.template attribute<bool>(turned);
    return is_turned ? last_axes_swapped(to, name, op.shape(input).size()) : name;
  };
  const std::string a = operand("a", "trans_a"), b = operand("b", "trans_b");
  to.result(op, to.graph().node("MatMul", {a, b}));
}

template <class T>
void emit_layer_norm(Exporter<T>& to, const OpPair<T>& op) {
  std::string x = to.name_of(op, "x");
  if (op.info() == ops::add_layer_norm) x = to.graph().node("Add", {x, to.name_of(op, "residual")});
  const auto& normalized = op.template attribute<std::vector<std::int64_t>>("normalized_shape");
  GraphWriter::Names inputs{x};
  if (op.has("weight")) {
    inputs.push_back(to.name_of(op, "weight"));
  } else {
    const Shape shape(normalized.begin(), normalized.end());
    const std::vector<T> ones(element_count(shape), T{1});
    inputs.push_back(to.graph().new_name("ones"));
    to.graph().initializer(inputs.back(), shape, std::span<const T>(ones));
  }
  if (op.has("bias")) inputs.push_back(to.name_of(op, "bias"));
  to.result(
      op, to.graph().node("LayerNormalization", inputs,
                          AttributeWriter()
                              .integer("axis", -static_cast<std::int64_t>(normalized.size()))
                              .number("epsilon", static_cast<float>(op.template attribute<double>("eps")))));
}

/// Of q, k and v with `rank` axes, in heads if there are any; `scores` is the shape of the scores.
template <class T>
std::string attention(Exporter<T>& to, const OpPair<T>& op, GraphWriter::Names qkv, std::size_t rank,
                      const std::string& bias, const std::pair<Shape, Shape>& scores) {
  const std::int64_t heads = op.template attribute<std::int64_t>("num_heads");
  if (heads == 0) {
    qkv[1] = last_axes_swapped(to, qkv[1], rank);
  } else {
    std::vector<std::int64_t> split(rank + 1, 0), perm = counting(rank + 1);
    split[rank - 1] = heads;
    split[rank] = -1;
    std::swap(perm[rank - 2], perm[rank - 1]);
    std::vector<std::int64_t> turned = perm;  // of k, whose last two axes are swapped, too
    std::swap(turned[rank - 1], turned[rank]);
    for (std::size_t i = 0; i < 3; ++i)
      qkv[i] = to.transposed(to.graph().node("Reshape", {qkv[i], to.graph().integers(split)}),
                             i == 1 ? turned : perm);
    ++rank;
  }
  std::string s = to.graph().node("MatMul", {qkv[0], qkv[1]});
  s = to.graph().node("Mul", {s, to.number(op.template attribute<double>("scale"))});
  if (!bias.empty()) s = to.graph().node("Add", {s, bias});
  const auto shown = [&](const std::string& condition) {
    s = to.graph().node("Where",
                        {condition, s, to.number(static_cast<double>(std::numeric_limits<T>::lowest()))});
  };
  if (op.has_attribute("attn_mask"))
    shown(std::apply([&](const Mask& a, const Mask& b) { return to.condition(a, b); },
                     op.template arrays<Mask>("attn_mask")));
  if (op.template attribute<bool>("is_causal")) {
    const SymbolicShape shape = to.explained(scores.first, scores.second);
    const auto range = [&](const SymbolicLength& length) {
      const std::string count = to.graph().node("Squeeze", {to.list({length}), to.graph().integers({0})});
      return to.graph().node("Range", {to.graph().integer(0), count, to.graph().integer(1)});
    };
    const std::string queries =
        to.graph().node("Unsqueeze", {range(shape[shape.size() - 2]), to.graph().integers({1})});
    shown(to.graph().node("LessOrEqual", {range(shape.back()), queries}));
  }
  const std::string weights = to.graph().node("Softmax", {s}, AttributeWriter().integer("axis", -1));
  const std::string y = to.graph().node("MatMul", {weights, qkv[2]});
  if (heads == 0) return y;
  std::vector<std::int64_t> perm = counting(rank), joined(rank - 1, 0);
  std::swap(perm[rank - 3], perm[rank - 2]);
  joined.back() = -1;
  return to.graph().node("Reshape", {to.transposed(y, perm), to.graph().integers(joined)});
}

template <class T>
void emit_attention(Exporter<T>& to, const OpPair<T>& op) {
  const auto scores = [](const TracedOp<T>& one) {
    return Shape{one.inputs[0].shape(-2), one.inputs[1].shape(-2)};
  };
  to.result(op, attention(to, op, {to.name_of(op, "q"), to.name_of(op, "k"), to.name_of(op, "v")},
                          op.shape("q").size(), to.name_if_given(op, "attn_bias"),
                          {scores(op.first), scores(op.second)}));
}

template <class T>
void emit_self_attention(Exporter<T>& to, const OpPair<T>& op) {
  if (op.has_attribute("lengths")) refuse("of packed sequences: switch skip_padding off");
  const auto scores = [](const TracedOp<T>& one) {
    return Shape{one.inputs[0].shape(-2), one.inputs[0].shape(-2)};
  };
  const std::string x = to.name_of(op, "x");
  GraphWriter::Names qkv;
  for (const std::string part : {"q", "k", "v"})
    qkv.push_back(linear(to, x, to.name_of(op, part + "_weight"), to.name_if_given(op, part + "_bias")));
  to.result(op, attention(to, op, qkv, op.shape("x").size(), to.name_if_given(op, "attn_bias"),
                          {scores(op.first), scores(op.second)}));
}

/// Axes are an attribute of all reductions but ReduceSum until operator set 18.
template <class T>
void emit_reduction(Exporter<T>& to, const OpPair<T>& op) {
  const auto& axes = op.template attribute<std::vector<std::int64_t>>("dim");
  const std::int64_t keepdims = op.template attribute<bool>("keepdim") ? 1 : 0;
  const std::string x = to.name_of(op, 0);
  AttributeWriter attributes;
  attributes.integer("keepdims", keepdims);
  if (op.info() == ops::sum)
    return to.result(op, to.graph().node("ReduceSum", {x, to.graph().integers(axes)}, attributes));
  attributes.integers("axes", axes);
  const char* const name = op.info() == ops::mean   ? "ReduceMean"
                           : op.info() == ops::amax ? "ReduceMax"
                                                    : "ReduceMin";
  to.result(op, to.graph().node(name, {x}, attributes));
}

template <class T>
void emit_softmax(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op,
            to.graph().node(op.info() == ops::softmax ? "Softmax" : "LogSoftmax", {to.name_of(op, 0)},
                            AttributeWriter().integer("axis", op.template attribute<std::int64_t>("dim"))));
}

template <class T>
void emit_embedding(Exporter<T>& to, const OpPair<T>& op) {
  const std::string places =
      std::apply([&](const Ids& a, const Ids& b) { return to.ids(a, b); }, op.template arrays<Ids>("ids"));
  to.result(op, to.graph().node("Gather", {to.name_of(op, 0), places}));
}

}  // namespace

template <class T>
void add_network_emitters(EmitterTable<T>& all) {
  add_emitter(all, &emit_linear<T>, {&ops::linear, &ops::linear_relu});
  add_emitter(all, &emit_layer_norm<T>, {&ops::layer_norm, &ops::add_layer_norm});
  add_emitter(all, &emit_reduction<T>, {&ops::sum, &ops::mean, &ops::amax, &ops::amin});
  add_emitter(all, &emit_softmax<T>, {&ops::softmax, &ops::log_softmax});
  add_emitter(all, &emit_matmul<T>, {&ops::matmul});
  add_emitter(all, &emit_attention<T>, {&ops::scaled_dot_product_attention});
  add_emitter(all, &emit_self_attention<T>, {&ops::self_attention});
  add_emitter(all, &emit_embedding<T>, {&ops::embedding});
}

template void add_network_emitters(EmitterTable<float>&);
template void add_network_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
