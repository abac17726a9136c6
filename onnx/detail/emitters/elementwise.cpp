#include "emitters.hpp"

#include <cmath>
#include <limits>
#include <tuple>

#include "../../../graph/record.hpp"
#include "../../../kernels/pointwise/elementwise.hpp"
#include "../../../ops/index/masked_fill.hpp"
#include "../../../ops/index/where.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/gated.hpp"
#include "../../../ops/pointwise/rounding.hpp"
#include "../operators/unary.hpp"

namespace xgrad::onnx::detail {
namespace {

/// Ops of single elements that are one operator of ONNX.
template <class T>
const std::map<std::string, const char*>& unary_names() {
  static const std::map<std::string, const char*> names = [] {
    std::map<std::string, const char*> all = {{ops::alias.name, "Identity"}};
    for (const UnaryOperator<T>& one : unary_operators<T>()) all.emplace(one.op->name, one.name);
    return all;
  }();
  return names;
}

const std::map<std::string, const char*>& binary_operators() {
  static const std::map<std::string, const char*> names = {
      {ops::add.name, "Add"},     {ops::sub.name, "Sub"},       {ops::mul.name, "Mul"},
      {ops::div.name, "Div"},     {ops::pow.name, "Pow"},       {ops::maximum.name, "Max"},
      {ops::minimum.name, "Min"}, {ops::masked_mul.name, "Mul"}};
  return names;
}

template <class T>
void emit_unary(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op, to.graph().node(unary_names<T>().at(op.info().name), {to.name_of(op, 0)}));
}

template <class T>
void emit_binary(Exporter<T>& to, const OpPair<T>& op) {
  const std::string second =
      op.has(1) ? to.name_of(op, 1) : to.number(op.template attribute<double>(op.info().attributes.front()));
  to.result(op, to.graph().node(binary_operators().at(op.info().name), {to.name_of(op, 0), second}));
}

template <class T>
void emit_composed_unary(Exporter<T>& to, const OpPair<T>& op) {
  const std::string x = to.name_of(op, 0);
  if (op.info() == ops::rsqrt)
    return to.result(op, to.graph().node("Reciprocal", {to.graph().node("Sqrt", {x})}));
  if (op.info() == ops::square) return to.result(op, to.graph().node("Mul", {x, x}));
  if (op.info() == ops::cube)
    return to.result(op, to.graph().node("Mul", {to.graph().node("Mul", {x, x}), x}));
  to.result(op, to.graph().node("Mul", {x, to.graph().node("Sigmoid", {x})}));  // silu
}

/// Of a number that is an attribute in xgrad and in ONNX.
template <class T>
void emit_with_alpha(Exporter<T>& to, const OpPair<T>& op) {
  const char* const name = op.info() == ops::elu ? "Elu" : op.info() == ops::celu ? "Celu" : "LeakyRelu";
  const auto alpha = static_cast<float>(op.template attribute<double>(op.info().attributes.front()));
  to.result(op, to.graph().node(name, {to.name_of(op, 0)}, AttributeWriter().number("alpha", alpha)));
}

/// clip(x + 3, 0, 6) / 6, as HardSigmoid has a rounded slope.
template <class T>
void emit_hardsigmoid(Exporter<T>& to, const OpPair<T>& op) {
  const std::string sum = to.graph().node("Add", {to.name_of(op, 0), to.number(3)});
  const std::string within = to.graph().node("Clip", {sum, to.number(0), to.number(6)});
  to.result(op, to.graph().node("Div", {within, to.number(6)}));
}

/// log(1 + e^(beta x)) / beta, and x where beta x is above the threshold: with floats that is the same from
/// 20 on.
template <class T>
void emit_softplus(Exporter<T>& to, const OpPair<T>& op) {
  const double beta = op.template attribute<double>("beta"),
               threshold = op.template attribute<double>("threshold");
  const std::string x = to.name_of(op, 0);
  const std::string steep = beta == 1 ? x : to.graph().node("Mul", {x, to.number(beta)});
  std::string y = to.graph().node("Softplus", {steep});
  if (beta != 1) y = to.graph().node("Div", {y, to.number(beta)});
  if (std::is_same_v<T, double> || threshold < 20) {
    const std::string is_linear = to.graph().node("Greater", {steep, to.number(threshold)});
    y = to.graph().node("Where", {is_linear, x, y});
  }
  to.result(op, y);
}

/// Selu has its constants as floats.
template <class T>
void emit_selu(Exporter<T>& to, const OpPair<T>& op) {
  const std::string x = to.name_of(op, 0);
  if (std::is_same_v<T, float>) return to.result(op, to.graph().node("Selu", {x}));
  const std::string below = to.graph().node("Min", {x, to.number(0)});
  const std::string bent = to.graph().node("Sub", {to.graph().node("Exp", {below}), to.number(1)});
  const std::string scaled = to.graph().node("Mul", {bent, to.number(kernels::selu_alpha)});
  const std::string y = to.graph().node("Add", {to.graph().node("Relu", {x}), scaled});
  to.result(op, to.graph().node("Mul", {y, to.number(kernels::selu_scale)}));
}

template <class T>
void emit_log_sigmoid(Exporter<T>& to, const OpPair<T>& op) {
  const std::string y = to.graph().node("Softplus", {to.graph().node("Neg", {to.name_of(op, 0)})});
  to.result(op, to.graph().node("Neg", {y}));
}

/// x tanh(softplus(x)), which has an operator since operator set 18.
template <class T>
void emit_mish(Exporter<T>& to, const OpPair<T>& op) {
  const std::string x = to.name_of(op, 0);
  if (to.graph().opset() >= 18) return to.result(op, to.graph().node("Mish", {x}));
  const std::string share = to.graph().node("Tanh", {to.graph().node("Softplus", {x})});
  to.result(op, to.graph().node("Mul", {x, share}));
}

/// Mod of floats has the sign of a; remainder that of b.
template <class T>
void emit_modulo(Exporter<T>& to, const OpPair<T>& op) {
  const std::string b = to.name_of(op, 1);
  const std::string rest =
      to.graph().node("Mod", {to.name_of(op, 0), b}, AttributeWriter().integer("fmod", 1));
  if (op.info() == ops::fmod) return to.result(op, rest);
  const std::string signs =
      to.graph().node("Mul", {to.graph().node("Sign", {rest}), to.graph().node("Sign", {b})});
  const std::string differ = to.graph().node("Less", {signs, to.number(0)});
  to.result(op, to.graph().node("Where", {differ, to.graph().node("Add", {rest, b}), rest}));
}

/// x / 2 (1 + erf(x / sqrt 2)), or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which runtimes fuse.
template <class T>
std::string gelu(Exporter<T>& to, const std::string& x, bool exact) {
  std::string inner;
  if (exact) {
    inner = to.graph().node("Erf", {to.graph().node("Div", {x, to.number(std::sqrt(2.0))})});
  } else {
    const std::string cube = to.graph().node("Pow", {x, to.number(3)});
    const std::string sum = to.graph().node("Add", {x, to.graph().node("Mul", {cube, to.number(0.044715)})});
    inner =
        to.graph().node("Tanh", {to.graph().node("Mul", {sum, to.number(std::sqrt(2 / std::acos(-1.0)))})});
  }
  const std::string product = to.graph().node("Mul", {x, to.graph().node("Add", {inner, to.number(1)})});
  return to.graph().node("Mul", {product, to.number(0.5)});
}

template <class T>
void emit_gelu(Exporter<T>& to, const OpPair<T>& op) {
  const bool exact = op.template attribute<std::string>("approximate") == "none";
  to.result(op, gelu(to, to.name_of(op, 0), exact));
}

template <class T>
void emit_gated(Exporter<T>& to, const OpPair<T>& op) {
  const std::string gate = to.name_of(op, "gate"), f = op.template attribute<std::string>("function");
  std::string opened;
  if (f == "relu") {
    opened = to.graph().node("Relu", {gate});
  } else if (f == "gelu" || f == "gelu_tanh") {
    opened = gelu(to, gate, f == "gelu");
  } else {
    opened = to.graph().node("Sigmoid", {gate});
    if (f == "silu") opened = to.graph().node("Mul", {gate, opened});
  }
  to.result(op, to.graph().node("Mul", {opened, to.name_of(op, "x")}));
}

template <class T>
void emit_hardtanh(Exporter<T>& to, const OpPair<T>& op) {
  const auto bound = [&](const char* name) { return to.number(op.template attribute<double>(name)); };
  to.result(op, to.graph().node("Clip", {to.name_of(op, 0), bound("min_val"), bound("max_val")}));
}

template <class T>
void emit_clamp(Exporter<T>& to, const OpPair<T>& op) {
  const auto bound = [&](const char* name) {
    return op.has_attribute(name) ? to.number(op.template attribute<double>(name)) : std::string();
  };
  to.result(op, to.graph().node("Clip", {to.name_of(op, 0), bound("min"), bound("max")}));
}

template <class T>
void emit_where(Exporter<T>& to, const OpPair<T>& op) {
  const std::string choice = std::apply([&](const Mask& a, const Mask& b) { return to.condition(a, b); },
                                        op.template arrays<Mask>("condition"));
  to.result(op, to.graph().node("Where", {choice, to.name_of(op, "a"), to.name_of(op, "b")}));
}

/// Masks are derived from what they show.
template <class T>
void emit_masked_fill(Exporter<T>& to, const OpPair<T>& op) {
  const auto [first, second] = op.template arrays<Mask>("mask");
  const std::string shown = to.condition(Mask(!first), Mask(!second));
  const std::string filled = to.number(op.template attribute<double>("value"));
  to.result(op, to.graph().node("Where", {shown, to.name_of(op, 0), filled}));
}

}  // namespace

template <class T>
void add_elementwise_emitters(EmitterTable<T>& all) {
  for (const auto& [op, name] : unary_names<T>()) all[op] = &emit_unary<T>;
  for (const auto& [op, name] : binary_operators()) all[op] = &emit_binary<T>;
  add_emitter(all, &emit_composed_unary<T>, {&ops::rsqrt, &ops::square, &ops::cube, &ops::silu});
  add_emitter(all, &emit_gelu<T>, {&ops::gelu});
  add_emitter(all, &emit_gated<T>, {&ops::gated});
  add_emitter(all, &emit_clamp<T>, {&ops::clamp});
  add_emitter(all, &emit_hardtanh<T>, {&ops::hardtanh});
  add_emitter(all, &emit_with_alpha<T>, {&ops::elu, &ops::celu, &ops::leaky_relu});
  add_emitter(all, &emit_hardsigmoid<T>, {&ops::hardsigmoid});
  add_emitter(all, &emit_softplus<T>, {&ops::softplus});
  add_emitter(all, &emit_selu<T>, {&ops::selu});
  add_emitter(all, &emit_log_sigmoid<T>, {&ops::log_sigmoid});
  add_emitter(all, &emit_mish<T>, {&ops::mish});
  add_emitter(all, &emit_modulo<T>, {&ops::fmod, &ops::remainder});
  add_emitter(all, &emit_where<T>, {&ops::where});
  add_emitter(all, &emit_masked_fill<T>, {&ops::masked_fill});
}

template void add_elementwise_emitters(EmitterTable<float>&);
template void add_elementwise_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
