#include "emitters.hpp"

#include <cmath>
#include <limits>
#include <tuple>

#include "../../graph/record.hpp"
#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/pointwise/elementwise.hpp"
#include "../../ops/pointwise/gated.hpp"
#include "../../ops/pointwise/masked_fill.hpp"
#include "../../ops/pointwise/rounding.hpp"
#include "../../ops/pointwise/trigonometry.hpp"
#include "../../ops/pointwise/where.hpp"

namespace xgrad::onnx::detail {
namespace {

/// Ops that are one operator of ONNX.
const std::map<std::string, const char*>& unary_operators() {
  static const std::map<std::string, const char*> names = {
      {ops::exp.name, "Exp"},       {ops::log.name, "Log"},         {ops::sqrt.name, "Sqrt"},
      {ops::tanh.name, "Tanh"},     {ops::sigmoid.name, "Sigmoid"}, {ops::erf.name, "Erf"},
      {ops::relu.name, "Relu"},     {ops::abs.name, "Abs"},         {ops::reciprocal.name, "Reciprocal"},
      {ops::floor.name, "Floor"},   {ops::ceil.name, "Ceil"},       {ops::sin.name, "Sin"},
      {ops::cos.name, "Cos"},       {ops::sign.name, "Sign"},       {ops::round.name, "Round"},
      {ops::alias.name, "Identity"}};
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
  to.result(op, to.graph().node(unary_operators().at(op.info().name), {to.name_of(op, 0)}));
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
  for (const auto& [op, name] : unary_operators()) all[op] = &emit_unary<T>;
  for (const auto& [op, name] : binary_operators()) all[op] = &emit_binary<T>;
  add_emitter(all, &emit_composed_unary<T>, {&ops::rsqrt, &ops::square, &ops::cube, &ops::silu});
  add_emitter(all, &emit_gelu<T>, {&ops::gelu});
  add_emitter(all, &emit_gated<T>, {&ops::gated});
  add_emitter(all, &emit_clamp<T>, {&ops::clamp});
  add_emitter(all, &emit_where<T>, {&ops::where});
  add_emitter(all, &emit_masked_fill<T>, {&ops::masked_fill});
}

template void add_elementwise_emitters(EmitterTable<float>&);
template void add_elementwise_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
