#include "emitters.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "../../../ops/index/indexing.hpp"
#include "../../../ops/index/scatter.hpp"
#include "../../../ops/linalg/triangle.hpp"
#include "../../../ops/pointwise/broadcast.hpp"
#include "../../../ops/shape/rearrange.hpp"
#include "../../../ops/shape/shapes.hpp"

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

/// A place on an axis, and the length of the axis.
struct Place {
  std::int64_t place, length;
};

/// The place in both calls as a list of one: a number, one counted from the end, or a length. `what` is its
/// name in errors.
template <class T>
std::string place_on_axis(Exporter<T>& to, const std::string& what, const Place& first, const Place& second) {
  if (first.place == second.place) return to.graph().integers({first.place});
  const std::int64_t rest = first.place - first.length;
  if (rest == second.place - second.length)
    return to.graph().integers({rest == 0 ? std::numeric_limits<std::int64_t>::max() : rest});
  const auto length =
      to.lengths().explain(static_cast<std::size_t>(first.place), static_cast<std::size_t>(second.place));
  if (!length)
    refuse("whose " + what + " is " + std::to_string(first.place) + " and " + std::to_string(second.place));
  return to.list({*length});
}

/// A bound of a slice.
template <class T>
std::string slice_bound(Exporter<T>& to, const OpPair<T>& op, const char* name) {
  const auto axis = static_cast<std::size_t>(op.template attribute<std::int64_t>("dim"));
  const auto asked = [&](const TracedOp<T>& one) { return std::get<std::int64_t>(one.attributes.at(name)); };
  if (asked(op.first) == asked(op.second)) return to.graph().integers({asked(op.first)});
  const auto place = [&](const TracedOp<T>& one) -> Place {
    const auto length = static_cast<std::int64_t>(one.inputs[0].shape()[axis]);
    const std::int64_t from_begin = asked(one) < 0 ? asked(one) + length : asked(one);
    return {std::clamp<std::int64_t>(from_begin, 0, length), length};
  };
  return place_on_axis(to, name, place(op.first), place(op.second));
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
  to.result(op, to.sliced(x, axis, slice_bound(to, op, "start"), slice_bound(to, op, "end"),
                          op.template attribute<std::int64_t>("step")));
}

/// An item of index: an element, or a range with the count of its elements.
struct Item {
  Place start;
  std::int64_t count;
};

Item item_of(std::int64_t start, std::size_t length, std::size_t count) {
  return {{start, static_cast<std::int64_t>(length)}, static_cast<std::int64_t>(count)};
}

/// Elements and ranges of several axes, the last one first: so those before keep their numbers.
template <class T>
void emit_index(Exporter<T>& to, const OpPair<T>& op) {
  const auto& steps = op.template attribute<std::vector<std::int64_t>>("steps");
  const auto [first, second] = op.template arrays<std::vector<std::int64_t>>("starts");
  std::string y = to.name_of(op, 0);
  std::size_t kept =
      static_cast<std::size_t>(std::ranges::count_if(steps, [](auto step) { return step > 0; }));
  for (std::size_t axis = steps.size(); axis-- > 0;) {
    const auto number = static_cast<std::int64_t>(axis);
    const auto item = [&](const TracedOp<T>& one, std::int64_t start) {
      return item_of(start, one.inputs[0].shape()[axis], steps[axis] == 0 ? 1 : one.result.shape()[kept - 1]);
    };
    const Item a = item(op.first, first[axis]), b = item(op.second, second[axis]);
    const std::string start = place_on_axis(to, "start", a.start, b.start);
    if (steps[axis] == 0) {
      const std::string element = to.graph().node("Squeeze", {start, to.graph().integers({0})});
      y = to.graph().node("Gather", {y, element}, AttributeWriter().integer("axis", number));
      continue;
    }
    --kept;
    const auto end = [&](const Item& of) -> Place {
      return {std::min(of.start.place + of.count * steps[axis], of.start.length), of.start.length};
    };
    y = to.sliced(y, number, start, place_on_axis(to, "end", end(a), end(b)), steps[axis]);
  }
  to.result(op, y);
}

template <class T>
std::string element_ids(Exporter<T>& to, const OpPair<T>& op) {
  return std::apply([&](const Ids& a, const Ids& b) { return to.ids(a, b); },
                    op.template arrays<Ids>("index"));
}

template <class T>
void emit_gather(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op,
            to.graph().node("GatherElements", {to.name_of(op, 0), element_ids(to, op)},
                            AttributeWriter().integer("axis", op.template attribute<std::int64_t>("dim"))));
}

template <class T>
void emit_scatter_add(Exporter<T>& to, const OpPair<T>& op) {
  const Ids& index = op.template arrays<Ids>("index").first;
  if (!same_shape(index.shape(), op.shape("src"))) refuse("whose src has another shape than its index");
  const std::string places = element_ids(to, op);
  to.result(op, to.graph().node("ScatterElements", {to.name_of(op, "x"), places, to.name_of(op, "src")},
                                AttributeWriter()
                                    .integer("axis", op.template attribute<std::int64_t>("dim"))
                                    .text("reduction", "add")));
}

template <class T>
void emit_triangle(Exporter<T>& to, const OpPair<T>& op) {
  const std::string diagonal = to.graph().integer(op.template attribute<std::int64_t>("diagonal"));
  to.result(op, to.graph().node("Trilu", {to.name_of(op, 0), diagonal},
                                AttributeWriter().integer("upper", op.info() == ops::triu ? 1 : 0)));
}

template <class T>
void emit_flip(Exporter<T>& to, const OpPair<T>& op) {
  std::string y = to.name_of(op, 0);
  for (const std::int64_t axis : op.template attribute<std::vector<std::int64_t>>("dims")) {
    y = to.sliced(y, axis, to.graph().integers({-1}),
                  to.graph().integers({std::numeric_limits<std::int64_t>::min()}), -1);
  }
  to.result(op, y);
}

/// The end of x before its begin, along an axis of a fixed length.
template <class T>
void emit_roll(Exporter<T>& to, const OpPair<T>& op) {
  const auto axis = op.template attribute<std::int64_t>("dims");
  const auto place = static_cast<std::size_t>(axis);
  const auto length = static_cast<std::int64_t>(op.shape(0)[place]);
  if (op.shape(0)[place] != op.second.inputs[0].shape()[place]) refuse("along an axis of a variable length");
  const std::string x = to.name_of(op, 0);
  const std::int64_t moved = length == 0 ? 0 : op.template attribute<std::int64_t>("shifts") % length;
  const std::string cut = to.graph().integers({moved < 0 ? -moved : length - moved});
  const std::string end = to.sliced(x, axis, cut, to.graph().integers({length}));
  const std::string begin = to.sliced(x, axis, to.graph().integers({0}), cut);
  to.result(op, to.graph().node("Concat", {end, begin}, AttributeWriter().integer("axis", axis)));
}

template <class T>
void emit_pad(Exporter<T>& to, const OpPair<T>& op) {
  std::vector<std::int64_t> pads = op.template attribute<std::vector<std::int64_t>>("before");
  const auto& after = op.template attribute<std::vector<std::int64_t>>("after");
  pads.insert(pads.end(), after.begin(), after.end());
  to.result(op, to.graph().node("Pad", {to.name_of(op, 0), to.graph().integers(pads),
                                        to.number(op.template attribute<double>("value"))}));
}

template <class T>
void emit_repeat(Exporter<T>& to, const OpPair<T>& op) {
  const auto& repeats = op.template attribute<std::vector<std::int64_t>>("repeats");
  std::string x = to.name_of(op, 0);
  std::vector<std::int64_t> added(repeats.size() - op.shape(0).size());
  std::iota(added.begin(), added.end(), 0);
  if (!added.empty()) x = to.graph().node("Unsqueeze", {x, to.graph().integers(added)});
  to.result(op, to.graph().node("Tile", {x, to.graph().integers(repeats)}));
}

template <class T>
void emit_index_select(Exporter<T>& to, const OpPair<T>& op) {
  to.result(op,
            to.graph().node("Gather", {to.name_of(op, 0), element_ids(to, op)},
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
  add_emitter(all, &emit_index<T>, {&ops::index});
  add_emitter(all, &emit_gather<T>, {&ops::gather});
  add_emitter(all, &emit_scatter_add<T>, {&ops::scatter_add});
  add_emitter(all, &emit_triangle<T>, {&ops::tril, &ops::triu});
  add_emitter(all, &emit_flip<T>, {&ops::flip});
  add_emitter(all, &emit_roll<T>, {&ops::roll});
  add_emitter(all, &emit_pad<T>, {&ops::pad});
  add_emitter(all, &emit_repeat<T>, {&ops::repeat});
}

template void add_shape_emitters(EmitterTable<float>&);
template void add_shape_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
