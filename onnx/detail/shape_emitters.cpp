#include "emitters.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

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
    if (op.first.op == "stack")
      parts.back() = to.graph().node("Unsqueeze", {parts.back(), to.graph().integers({axis})});
  }
  to.result(op, to.graph().node("Concat", parts, AttributeWriter().integer("axis", axis)));
}

/// slice and select: the part along one axis.
template <class T>
void emit_part(Exporter<T>& to, const OpPair<T>& op) {
  const auto start = op.template attribute<std::int64_t>("start"),
             axis = op.template attribute<std::int64_t>("dim"),
             step = op.template attribute<std::int64_t>("step");
  const std::string x = to.name_of(op, 0);
  if (op.first.result.dimension() < op.shape(0).size())
    return to.result(op, to.graph().node("Gather", {x, to.graph().integer(start)},
                                         AttributeWriter().integer("axis", axis)));
  // where it ends, from the begin and from the end of the axis
  const auto place = static_cast<std::size_t>(axis);
  const auto ends = [&](const TracedOp<T>& one) {
    const auto length = static_cast<std::int64_t>(one.inputs[0].shape()[place]);
    const auto taken = static_cast<std::int64_t>(one.result.shape()[place]);
    const std::int64_t end = std::min(start + taken * step, length);
    return std::pair(end, end - length);
  };
  const auto [first_end, first_rest] = ends(op.first);
  const auto [second_end, second_rest] = ends(op.second);
  std::string end;
  if (first_end == second_end) {
    end = to.graph().integers({first_end});
  } else if (first_rest == second_rest) {
    end = to.graph().integers({first_rest == 0 ? std::numeric_limits<std::int64_t>::max() : first_rest});
  } else {
    const auto length =
        to.lengths().explain(static_cast<std::size_t>(first_end), static_cast<std::size_t>(second_end));
    if (!length)
      refuse("that ends at " + std::to_string(first_end) + " and at " + std::to_string(second_end));
    end = to.list({*length});
  }
  to.result(op, to.graph().node("Slice", {x, to.graph().integers({start}), end, to.graph().integers({axis}),
                                          to.graph().integers({step})}));
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
  for (const char* op : {"slice", "select"}) all[op] = &emit_part<T>;
  for (const char* op : {"cat", "stack"}) all[op] = &emit_joined<T>;
  all["reshape"] = &emit_reshape<T>;
  all["permute"] = &emit_permute<T>;
  all["broadcast_to"] = &emit_expand<T>;
  all["index_select"] = &emit_index_select<T>;
}

template void add_shape_emitters(EmitterTable<float>&);
template void add_shape_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
