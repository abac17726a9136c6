#include "emitters.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "../../ops/index/indexing.hpp"
#include "../../ops/pointwise/broadcast.hpp"
#include "../../ops/shape/shapes.hpp"

namespace xgrad::onnx::detail {
namespace {

template <class T>
void emit_reshape(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op, to.reshaped(to.name_of(op, 0), op.shape(0), op.second.inputs[0].shape(),
                            op.first.result.shape(), op.second.result.shape()));
}

template <class T>
void emit_permute(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op, to.transposed(to.name_of(op, 0), op.template attribute<std::vector<std::int64_t>>("dims")));
}

template <class T>
void emit_expand(Exporter<T>& to, const OpPair<T>& op) {
  const SymbolicShape shape = to.explained(op.first.result.shape(), op.second.result.shape());
  to.result(op, to.graph().node("Expand", {to.name_of(op, 0), to.list(shape)}));
}

template <class T>
void emit_joined(Exporter<T>& to, const OpPair<T>& op) {
  const std::int64_t axis = op.template attribute<std::int64_t>("dim");
  GraphWriter::Names parts;
  for (std::size_t i = 0; i < op.first.inputs.size(); ++i) {
    parts.push_back(to.name_of(op, i));
    if (op.info() == ops::stack)
      parts.back() = to.graph().node("Unsqueeze", {parts.back(), to.graph().integers({axis})});
  }
  to.result(op, to.graph().node("Concat", parts, AttributeWriter().integer("axis", axis)));
}

/// A bound of a slice, as a list of one: a number, one counted from the end, or a length.
template <class T>
std::string slice_bound(Exporter<T>& to, const OpPair<T>& op, const char* name) {
  const auto axis = static_cast<std::size_t>(op.template attribute<std::int64_t>("dim"));
  const auto asked = [&](const TracedOp<T>& one) { return std::get<std::int64_t>(one.attributes.at(name)); };
  if (asked(op.first) == asked(op.second)) return to.graph().integers({asked(op.first)});
  const auto place = [&](const TracedOp<T>& one) {
    const auto length = static_cast<std::int64_t>(one.inputs[0].shape()[axis]);
    const std::int64_t from_begin = asked(one) < 0 ? asked(one) + length : asked(one);
    return std::pair(std::clamp<std::int64_t>(from_begin, 0, length), length);
  };
  const auto [first, first_length] = place(op.first);
  const auto [second, second_length] = place(op.second);
  const std::int64_t rest = first - first_length;
  if (rest == second - second_length)
    return to.graph().integers({rest == 0 ? std::numeric_limits<std::int64_t>::max() : rest});
  const auto length = to.lengths().explain(static_cast<std::size_t>(first), static_cast<std::size_t>(second));
  if (!length)
    refuse("whose " + std::string(name) + " is " + std::to_string(first) + " and " + std::to_string(second));
  return to.list({*length});
}

/// slice and select: the part along one axis.
template <class T>
void emit_part(Exporter<T>& to, const OpPair<T>& op) {
  const std::string x = to.name_of(op, 0);
  const auto axis = op.template attribute<std::int64_t>("dim");
  if (!op.has_attribute("end"))
    return to.result(
        op, to.graph().node("Gather", {x, to.graph().integer(op.template attribute<std::int64_t>("start"))},
                            AttributeWriter().integer("axis", axis)));
  const std::string start = slice_bound(to, op, "start"), end = slice_bound(to, op, "end"),
                    axes = to.graph().integers({axis}),
                    steps = to.graph().integers({op.template attribute<std::int64_t>("step")});
  to.result(op, to.graph().node("Slice", {x, start, end, axes, steps}));
}

template <class T>
void emit_index_select(Exporter<T>& to, const OpPair<T>& op) {
  const std::string places =
      std::apply([&](const Ids& a, const Ids& b) { return to.ids(a, b); }, op.template arrays<Ids>("index"));
  to.result(op,
            to.graph().node("Gather", {to.name_of(op, 0), places},
                            AttributeWriter().integer("axis", op.template attribute<std::int64_t>("dim"))));
}

}  // namespace

template <class T>
void add_shape_emitters(EmitterTable<T>& all) {
  add_emitter(all, &emit_part<T>, {&ops::slice, &ops::select});
  add_emitter(all, &emit_joined<T>, {&ops::cat, &ops::stack});
  add_emitter(all, &emit_reshape<T>, {&ops::reshape});
  add_emitter(all, &emit_permute<T>, {&ops::permute});
  add_emitter(all, &emit_expand<T>, {&ops::broadcast_to});
  add_emitter(all, &emit_index_select<T>, {&ops::index_select});
}

template void add_shape_emitters(EmitterTable<float>&);
template void add_shape_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
