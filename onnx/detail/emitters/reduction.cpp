#include "emitters.hpp"

#include <algorithm>
#include <cmath>

#include "../../../ops/reduce/reductions.hpp"
#include "../../../ops/reduce/scans.hpp"

namespace xgrad::onnx::detail {
namespace {

using Axes = std::vector<std::int64_t>;

const std::map<std::string, const char*>& reductions() {
  static const std::map<std::string, const char*> names = {
      {ops::sum.name, "ReduceSum"},   {ops::mean.name, "ReduceMean"},
      {ops::amax.name, "ReduceMax"},  {ops::amin.name, "ReduceMin"},
      {ops::prod.name, "ReduceProd"}, {ops::logsumexp.name, "ReduceLogSumExp"}};
  return names;
}

template <class T>
void emit_reduction(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op, to.reduced(reductions().at(op.info().name), to.name_of(op, 0),
                           op.template attribute<Axes>("dim"), op.template attribute<bool>("keepdim")));
}

/// Of infinite orders and 1, other ops are recorded.
template <class T>
void emit_norm(Exporter<T>& to, const OpPair<T>& op) {
  const double p = op.template attribute<double>("ord");
  const auto& axes = op.template attribute<Axes>("dim");
  const bool keepdim = op.template attribute<bool>("keepdim");
  const std::string x = to.name_of(op, 0);
  if (p == 0) refuse("whose ord is 0");
  if (p == 2) return to.result(op, to.reduced("ReduceL2", x, axes, keepdim));
  const std::string powers = to.graph().node("Pow", {to.graph().node("Abs", {x}), to.number(p)});
  const std::string sum = to.reduced("ReduceSum", powers, axes, keepdim);
  to.result(op, to.graph().node("Pow", {sum, to.number(1 / p)}));
}

/// The product of the lengths of axes.
template <class T>
SymbolicLength count_along(Exporter<T>& to, const OpPair<T>& op, const Axes& axes) {
  const SymbolicShape shape = to.explained(op.shape(0), op.second.inputs[0].shape());
  SymbolicLength count{1};
  for (const std::int64_t axis : axes) {
    const SymbolicLength& length = shape[static_cast<std::size_t>(axis)];
    count.factor *= length.factor;
    count.axes.insert(count.axes.end(), length.axes.begin(), length.axes.end());
  }
  return count;
}

/// sum((x - mean)^2) / (n - correction), or its root.
template <class T>
void emit_dispersion(Exporter<T>& to, const OpPair<T>& op) {
  const auto& axes = op.template attribute<Axes>("dim");
  const bool keepdim = op.template attribute<bool>("keepdim");
  const double correction = op.template attribute<double>("correction");
  const std::string x = to.name_of(op, 0);
  const std::string centred = to.graph().node("Sub", {x, to.reduced("ReduceMean", x, axes, true)});
  const std::string squares = to.graph().node("Mul", {centred, centred});
  std::string y;
  if (correction == 0) {
    y = to.reduced("ReduceMean", squares, axes, keepdim);
  } else {
    const SymbolicLength count = count_along(to, op, axes);
    std::string divisor;
    if (count.is_fixed()) {
      divisor = to.number(std::max(0.0, static_cast<double>(count.factor) - correction));
    } else {
      const std::string length = to.graph().node("Squeeze", {to.list({count}), to.graph().integers({0})});
      const std::string number =
          to.graph().node("Cast", {length}, AttributeWriter().integer("to", Exporter<T>::float_type));
      divisor = to.graph().node("Sub", {number, to.number(correction)});
    }
    y = to.graph().node("Div", {to.reduced("ReduceSum", squares, axes, keepdim), divisor});
  }
  to.result(op, op.info() == ops::std ? to.graph().node("Sqrt", {y}) : y);
}

template <class T>
void emit_cumsum(Exporter<T>& to, const OpPair<T>& op) {
  const std::string axis = to.graph().integer(op.template attribute<std::int64_t>("dim"));
  to.result(op, to.graph().node("CumSum", {to.name_of(op, 0), axis}));
}

}  // namespace

template <class T>
void add_reduction_emitters(EmitterTable<T>& all) {
  for (const auto& [op, name] : reductions()) all[op] = &emit_reduction<T>;
  add_emitter(all, &emit_norm<T>, {&ops::norm});
  add_emitter(all, &emit_dispersion<T>, {&ops::var, &ops::std});
  add_emitter(all, &emit_cumsum<T>, {&ops::cumsum});
}

template void add_reduction_emitters(EmitterTable<float>&);
template void add_reduction_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
