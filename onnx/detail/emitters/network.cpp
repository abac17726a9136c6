#include "emitters.hpp"

#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "../../../ops/attention/qkv_attention.hpp"
#include "../../../ops/attention/rotary.hpp"
#include "../../../ops/attention/self_attention.hpp"
#include "../../../ops/index/embedding.hpp"
#include "../../../ops/norm/channel_norms.hpp"
#include "../../../ops/norm/layer_norm.hpp"
#include "../../../ops/norm/rms_norm.hpp"
#include "../../../ops/norm/softmax.hpp"
#include "../../../ops/product/linear.hpp"
#include "../../../ops/product/matmul.hpp"

namespace xgrad::onnx::detail {
namespace {

std::vector<std::int64_t> counting(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

template <class T>
std::string last_axes_swapped(Exporter<T>& to, const std::string& x, std::size_t rank) {
  if (rank == 2) return to.graph().transposed(x);
  std::vector<std::int64_t> perm = counting(rank);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return to.transposed(x, perm);
}

template <class T>
std::string linear(Exporter<T>& to, const std::string& x, const std::string& weight,
                   const std::string& bias) {
  const std::string product = to.graph().node("MatMul", {x, to.graph().transposed(weight)});
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

/// In place of a weight.
template <class T>
std::string ones_for(Exporter<T>& to, const Shape& shape) {
  const std::vector<T> ones(element_count(shape), T{1});
  const std::string name = to.graph().new_name("ones");
  to.graph().initializer(name, shape, std::span<const T>(ones));
  return name;
}

template <class T>
void emit_layer_norm(Exporter<T>& to, const OpPair<T>& op) {
  std::string x = to.name_of(op, "x");
  if (op.info() == ops::add_layer_norm) x = to.graph().node("Add", {x, to.name_of(op, "residual")});
  const auto& normalized = op.template attribute<std::vector<std::int64_t>>("normalized_shape");
  GraphWriter::Names inputs{x, op.has("weight") ? to.name_of(op, "weight")
                                                : ones_for(to, Shape(normalized.begin(), normalized.end()))};
  if (op.has("bias")) inputs.push_back(to.name_of(op, "bias"));
  to.result(
      op, to.graph().node("LayerNormalization", inputs,
                          AttributeWriter()
                              .integer("axis", -static_cast<std::int64_t>(normalized.size()))
                              .number("epsilon", static_cast<float>(op.template attribute<double>("eps")))));
}

/// Of single operators: GroupNormalization is of operator set 21, and has a fixed number of groups.
template <class T>
void emit_group_norm(Exporter<T>& to, const OpPair<T>& op) {
  const auto [groups, others] = op.template arrays<std::int64_t>("num_groups");
  const std::size_t place = op.place("x");
  const auto channels = [&](const TracedOp<T>& call) {
    return static_cast<std::int64_t>(call.inputs[place].shape()[1]);
  };
  const bool is_instance_norm = groups == channels(op.first) && others == channels(op.second);
  const std::int64_t count = is_instance_norm ? 0 : op.template attribute<std::int64_t>("num_groups");
  const std::string x = to.name_of(op, "x");
  const std::string rows = to.graph().node("Reshape", {x, to.graph().integers({0, count, -1})});
  const std::string centred = to.graph().node("Sub", {rows, to.reduced("ReduceMean", rows, {-1}, true)});
  const std::string variance =
      to.reduced("ReduceMean", to.graph().node("Mul", {centred, centred}), {-1}, true);
  const std::string deviation = to.graph().node(
      "Sqrt", {to.graph().node("Add", {variance, to.number(op.template attribute<double>("eps"))})});
  std::string y = to.graph().node(
      "Reshape", {to.graph().node("Div", {centred, deviation}), to.graph().node("Shape", {x})});
  std::vector<std::int64_t> by_channel(op.shape("x").size() - 1, 1);
  by_channel[0] = -1;
  const auto of_channels = [&](const char* input) {
    return to.graph().node("Reshape", {to.name_of(op, input), to.graph().integers(by_channel)});
  };
  if (op.has("weight")) y = to.graph().node("Mul", {y, of_channels("weight")});
  if (op.has("bias")) y = to.graph().node("Add", {y, of_channels("bias")});
  to.result(op, y);
}

/// Of single operators: RMSNormalization is of operator set 23.
template <class T>
void emit_rms_norm(Exporter<T>& to, const OpPair<T>& op) {
  const std::string x = to.name_of(op, "x");
  const std::size_t count = op.template attribute<std::vector<std::int64_t>>("normalized_shape").size();
  std::vector<std::int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), -static_cast<std::int64_t>(count));
  const std::string square = to.reduced("ReduceMean", to.graph().node("Mul", {x, x}), axes, true);
  const std::string root = to.graph().node(
      "Sqrt", {to.graph().node("Add", {square, to.number(op.template attribute<double>("eps"))})});
  std::string y = to.graph().node("Div", {x, root});
  if (op.has("weight")) {
    std::string weight = to.name_of(op, "weight");
    if (const double offset = op.template attribute<double>("offset"); offset != 0)
      weight = to.graph().node("Add", {weight, to.number(offset)});
    y = to.graph().node("Mul", {y, weight});
  }
  to.result(op, y);
}

/// Of single operators: RotaryEmbedding is of operator set 23.
template <class T>
void emit_rotary(Exporter<T>& to, const OpPair<T>& op) {
  const std::int64_t heads = op.template attribute<std::int64_t>("num_heads");
  const bool interleaved = op.template attribute<bool>("interleaved");
  const auto rank = static_cast<std::int64_t>(op.shape("x").size());
  const auto width = static_cast<std::int64_t>(op.shape("x").back());
  const auto pairs = static_cast<std::int64_t>(op.shape("cos").back());
  const std::int64_t rest = width / heads - 2 * pairs;
  std::vector<std::int64_t> split(static_cast<std::size_t>(rank) + 1, 0);
  split[static_cast<std::size_t>(rank) - 1] = heads;
  split[static_cast<std::size_t>(rank)] = -1;
  const std::string by_head = to.graph().node("Reshape", {to.name_of(op, "x"), to.graph().integers(split)});
  const auto part = [&](const std::string& x, std::int64_t begin, std::int64_t end, std::int64_t step) {
    return to.graph().node("Slice", {x, to.graph().integers({begin}), to.graph().integers({end}),
                                     to.graph().integers({-1}), to.graph().integers({step})});
  };
  const std::string a = interleaved ? part(by_head, 0, 2 * pairs, 2) : part(by_head, 0, pairs, 1);
  const std::string b = interleaved ? part(by_head, 1, 2 * pairs, 2) : part(by_head, pairs, 2 * pairs, 1);
  const auto angle = [&](const char* name) {
    return to.graph().node("Unsqueeze", {to.name_of(op, name), to.graph().integers({-2})});
  };
  const std::string cos = angle("cos"), sin = angle("sin");
  const auto product = [&](const std::string& x, const std::string& by) {
    return to.graph().node("Mul", {x, by});
  };
  std::string first = to.graph().node("Sub", {product(a, cos), product(b, sin)});
  std::string second = to.graph().node("Add", {product(b, cos), product(a, sin)});
  const auto joined = [&](const GraphWriter::Names& parts) {
    return to.graph().node("Concat", parts, AttributeWriter().integer("axis", -1));
  };
  GraphWriter::Names turned{first, second};
  if (interleaved) {
    for (std::string& one : turned) one = to.graph().node("Unsqueeze", {one, to.graph().integers({-1})});
    std::vector<std::int64_t> flat(static_cast<std::size_t>(rank) + 1, 0);
    flat.back() = 2 * pairs;
    turned = {to.graph().node("Reshape", {joined(turned), to.graph().integers(flat)})};
  }
  if (rest > 0) turned.push_back(part(by_head, 2 * pairs, 2 * pairs + rest, 1));
  std::vector<std::int64_t> whole(static_cast<std::size_t>(rank), 0);
  whole.back() = width;
  const std::string y = turned.size() > 1 ? joined(turned) : turned.front();
  to.result(op, to.graph().node("Reshape", {y, to.graph().integers(whole)}));
}

/// x with each head along the axis `times` times in a row.
template <class T>
std::string heads_repeated(Exporter<T>& to, const std::string& x, std::size_t axis, std::int64_t times) {
  std::vector<std::int64_t> repeats(axis + 4, 1), factors(axis + 3, 1);
  repeats[axis + 1] = factors[axis] = times;
  const std::string apart =
      to.graph().node("Unsqueeze", {x, to.graph().integers({static_cast<std::int64_t>(axis) + 1})});
  const std::string repeated = to.graph().node("Expand", {apart, to.graph().integers(repeats)});
  const std::string shape =
      to.graph().node("Mul", {to.graph().node("Shape", {x}), to.graph().integers(factors)});
  return to.graph().node("Reshape", {repeated, shape});
}

/// Of q, k and v with `rank` axes, in heads if there are any; `scores` is the shape of the scores.
template <class T>
std::string attention(Exporter<T>& to, const OpPair<T>& op, GraphWriter::Names qkv, std::size_t rank,
                      const std::string& bias, const std::pair<Shape, Shape>& scores) {
  const std::int64_t heads = op.template attribute<std::int64_t>("num_heads");
  const std::int64_t kv_heads =
      op.has_attribute("num_kv_heads") ? op.template attribute<std::int64_t>("num_kv_heads") : heads;
  const bool has_num_keys = op.has_attribute("num_keys");
  for (std::size_t i = 1; i < 3 && has_num_keys; ++i) {
    const auto integers = [&](std::int64_t value) { return to.graph().integers({value}); };
    qkv[i] = to.graph().node("Slice",
                             {qkv[i], integers(0), integers(op.template attribute<std::int64_t>("num_keys")),
                              integers(static_cast<std::int64_t>(rank) - 2)});
  }
  if (heads == 0) {
    qkv[1] = last_axes_swapped(to, qkv[1], rank);
  } else {
    std::vector<std::int64_t> split(rank + 1, 0), perm = counting(rank + 1);
    split[rank] = -1;
    std::swap(perm[rank - 2], perm[rank - 1]);
    std::vector<std::int64_t> turned = perm;  // of k, whose last two axes are swapped, too
    std::swap(turned[rank - 1], turned[rank]);
    for (std::size_t i = 0; i < 3; ++i) {
      split[rank - 1] = i == 0 ? heads : kv_heads;
      qkv[i] = to.transposed(to.graph().node("Reshape", {qkv[i], to.graph().integers(split)}),
                             i == 1 ? turned : perm);
      if (i > 0 && kv_heads != heads) qkv[i] = heads_repeated(to, qkv[i], rank - 2, heads / kv_heads);
    }
    ++rank;
  }
  std::string s = to.graph().node("MatMul", {qkv[0], qkv[1]});
  s = to.graph().node("Mul", {s, to.number(op.template attribute<double>("scale"))});
  if (op.has_attribute("softcap")) {
    const std::string cap = to.number(op.template attribute<double>("softcap"));
    s = to.graph().node("Mul", {to.graph().node("Tanh", {to.graph().node("Div", {s, cap})}), cap});
  }
  if (!bias.empty()) s = to.graph().node("Add", {s, bias});
  const auto shown = [&](const std::string& condition) {
    s = to.graph().node("Where",
                        {condition, s, to.number(static_cast<double>(std::numeric_limits<T>::lowest()))});
  };
  if (op.has_attribute("attn_mask"))
    shown(std::apply([&](const Mask& a, const Mask& b) { return to.condition(a, b); },
                     op.template arrays<Mask>("attn_mask")));
  const bool is_causal = op.template attribute<bool>("is_causal");
  if (is_causal || op.has_attribute("window_left") || op.has_attribute("window_right")) {
    const SymbolicShape shape = to.explained(scores.first, scores.second);
    const auto range = [&](const SymbolicLength& length) {
      const std::string count = to.graph().node("Squeeze", {to.list({length}), to.graph().integers({0})});
      return to.graph().node("Range", {to.graph().integer(0), count, to.graph().integer(1)});
    };
    const std::string keys =
        has_num_keys
            ? to.graph().node("Range", {to.graph().integer(0),
                                        to.graph().integer(op.template attribute<std::int64_t>("num_keys")),
                                        to.graph().integer(1)})
            : range(shape.back());
    std::string queries = range(shape[shape.size() - 2]);
    if (op.has_attribute("first_query")) {
      const auto first = op.template attribute<std::int64_t>("first_query");
      queries = to.graph().node("Add", {queries, to.graph().integer(first)});
    }
    queries = to.graph().node("Unsqueeze", {queries, to.graph().integers({1})});
    if (is_causal) shown(to.graph().node("LessOrEqual", {keys, queries}));
    const auto end_of_window = [&](const char* name, const char* step) {
      return to.graph().node(step, {queries, to.graph().integer(op.template attribute<std::int64_t>(name))});
    };
    if (op.has_attribute("window_left"))
      shown(to.graph().node("GreaterOrEqual", {keys, end_of_window("window_left", "Sub")}));
    if (op.has_attribute("window_right"))
      shown(to.graph().node("LessOrEqual", {keys, end_of_window("window_right", "Add")}));
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
void emit_qkv_attention(Exporter<T>& to, const OpPair<T>& op) {
  const Shape qkv = op.shape("qkv");
  const std::int64_t heads = std::max<std::int64_t>(op.template attribute<std::int64_t>("num_heads"), 1);
  const std::int64_t kv_heads =
      op.has_attribute("num_kv_heads") ? op.template attribute<std::int64_t>("num_kv_heads") : heads;
  const std::int64_t width = static_cast<std::int64_t>(qkv.back()) / (heads + 2 * kv_heads);
  GraphWriter::Names parts;
  std::int64_t begin = 0;
  for (const std::int64_t of_part : {heads, kv_heads, kv_heads}) {
    const std::int64_t end = begin + of_part * width;
    parts.push_back(to.graph().node(
        "Slice", {to.name_of(op, "qkv"), to.graph().integers({begin}), to.graph().integers({end}),
                  to.graph().integers({static_cast<std::int64_t>(qkv.size()) - 1})}));
    begin = end;
  }
  const auto scores = [](const TracedOp<T>& one) {
    return Shape{one.inputs[0].shape(-2), one.inputs[0].shape(-2)};
  };
  to.result(op, attention(to, op, parts, qkv.size(), to.name_if_given(op, "attn_bias"),
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
  add_emitter(all, &emit_group_norm<T>, {&ops::group_norm});
  add_emitter(all, &emit_rms_norm<T>, {&ops::rms_norm});
  add_emitter(all, &emit_rotary<T>, {&ops::rotary});
  add_emitter(all, &emit_softmax<T>, {&ops::softmax, &ops::log_softmax});
  add_emitter(all, &emit_matmul<T>, {&ops::matmul});
  add_emitter(all, &emit_attention<T>, {&ops::scaled_dot_product_attention});
  add_emitter(all, &emit_qkv_attention<T>, {&ops::qkv_attention});
  add_emitter(all, &emit_self_attention<T>, {&ops::self_attention});
  add_emitter(all, &emit_embedding<T>, {&ops::embedding});
}

template void add_network_emitters(EmitterTable<float>&);
template void add_network_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
