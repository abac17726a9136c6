#include "recorded_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <typeinfo>
#include <unordered_set>
#include <vector>

#include "../watch.hpp"
#include "leaf.hpp"
#include "node_set.hpp"

namespace xgrad::detail {
namespace {

/// For each gradient and source, whether the graph of the gradient, above `start`, has the source; without
/// `deep`, whether its last op has it, which is faster to find.
template <class T>
class Reached {
 public:
  Reached(std::uint64_t start, const Sources<T>& sources, std::span<const Variable<T>> gradients,
          bool deep = true)
      : sources_(sources.all()), table_(gradients.size() * sources_.size(), 0) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined() || !gradients[i].requires_grad()) continue;
      const Ref<Node<T>>& last = Access<T>::node(gradients[i]);
      if (deep) {
        visit(start, last, row(i));
      } else {
        mark(*last, row(i));
        if (last->order > start)
          for (const Ref<Node<T>>& input : last->inputs())
            if (input) mark(*input, row(i));
      }
    }
  }

  bool operator()(std::size_t gradient, std::size_t source) const {
    return table_[gradient * sources_.size() + source] != 0;
  }

  /// Whether each gradient has a source, and each source with a graph is in one, unless there is an input
  /// without a gradient now, for which it may be.
  bool is_plausible(const Node<T>& owner, std::span<const Variable<T>> gradients) const {
    const auto any = [](std::size_t count, const auto& is_so) {
      std::size_t i = 0;
      while (i < count && !is_so(i)) ++i;
      return i < count;
    };
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined() && !any(sources_.size(), [&](std::size_t s) { return (*this)(i, s); }))
        return false;
    }
    const auto inputs = owner.inputs();
    if (any(gradients.size(), [&](std::size_t i) { return inputs[i] && !gradients[i].defined(); }))
      return true;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      if (sources_[s].variable->requires_grad() &&
          !any(gradients.size(), [&](std::size_t i) { return (*this)(i, s); }))
        return false;
    }
    return true;
  }

 private:
  std::uint8_t* row(std::size_t gradient) { return table_.data() + gradient * sources_.size(); }

  void mark(const Node<T>& node, std::uint8_t* row) const {
    for (std::size_t s = 0; s < sources_.size(); ++s)
      if (Access<T>::node(*sources_[s].variable).get() == &node) row[s] = 1;
  }

  void visit(std::uint64_t start, const Ref<Node<T>>& from, std::uint8_t* row) {
    NodeSet<T> seen;
    std::vector<const Node<T>*, PoolAllocator<const Node<T>*>> next;
    const auto add = [&](const Ref<Node<T>>& node) {
      if (node && seen.insert(node).second) next.push_back(node.get());
    };
    add(from);
    while (!next.empty()) {
      const Node<T>& node = *next.back();
      next.pop_back();
      mark(node, row);
      if (node.order <= start) continue;
      for (const Ref<Node<T>>& input : node.inputs()) add(input);
    }
  }

  std::span<const typename Sources<T>::Source> sources_;
  std::vector<std::uint8_t, PoolAllocator<std::uint8_t>> table_;
};

/// Backwards, by the types of their nodes, that were seen to use the gradient of a result by ops: they are
/// not called again where nothing else has a graph, as at the end of many functions.
thread_local std::unordered_set<const std::type_info*> known_to_use_ops;

/// x with each element changed by about `step` times itself, or times the largest where it is 0.
template <class T>
Variable<T> changed(const Variable<T>& x, T step) {
  Variable<T> y = empty<T>(x.shape());
  const T *const from = data(x), *const end = from + x.size();
  T largest = 0;
  for (const T* element = from; element != end; ++element)
    if (std::isfinite(*element)) largest = std::max(largest, std::abs(*element));
  if (largest == 0) largest = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T part = step * static_cast<T>(1 + (i * 7 + 3) % 11) / 8;
    data(y)[i] = from[i] == 0 ? part * largest : from[i] * (1 + part);
  }
  return y;
}

/// Whether an element depends smoothly on what was changed by a step for `far` and by a quarter of it for
/// `near`. A jump, as of the mask of relu at 0, is as large for both: the derivative is 0 on both sides.
template <class T>
bool depends(const Variable<T>& at, const Variable<T>& near, const Variable<T>& far) {
  const auto comparable = [&](const Variable<T>& other) {
    return other.defined() && same_shape(other.shape(), at.shape());
  };
  if (!comparable(near) || !comparable(far)) return false;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const T small = std::abs(data(near)[i] - data(at)[i]), large = std::abs(data(far)[i] - data(at)[i]);
    if (small > 0 && small < large * T(0.6) && std::isfinite(large)) return true;
  }
  return false;
}

}  // namespace

template <class T>
void recorded_gradients(const Node<T>& owner, const Sources<T>& sources, Needs needs, Variable<T>* grads,
                        void (*backward)(const void* context, Variable<T>* grads), const void* context) {
  const std::uint64_t start = next_order(0);
  const std::span<const Variable<T>> gradients(grads, owner.inputs().size());
  backward(context, grads);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!needs[i]) grads[i] = {};
  const auto again = [&] {
    std::vector<Variable<T>> found(gradients.size());
    backward(context, found.data());
    return found;
  };
  const auto all = sources.all();
  const bool is_constant =
      std::none_of(all.begin(), all.end(), [](const auto& one) { return one.variable->requires_grad(); });
  const std::type_info& type = typeid(owner);
  if (is_constant && known_to_use_ops.contains(&type)) return;
  for (const bool deep : {false, true})
    if (Reached<T>(start, sources, gradients, deep).is_plausible(owner, gradients)) return;
  const Unwatched unwatched;
  for (const auto& source : all) {
    if (!source.variable->requires_grad())
      Access<T>::node(*source.variable) = Ref<Node<T>>(new LeafNode<T>(source.variable->shape()));
  }
  const std::uint64_t before = next_order(0);
  const std::vector<Variable<T>> with_graphs = again();
  const Reached<T> reached(before, sources, with_graphs);
  if (is_constant && reached.is_plausible(owner, with_graphs)) {
    known_to_use_ops.insert(&type);
    return;
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    Variable<T>& source = *all[s].variable;
    std::vector<std::size_t> unreached;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined() && !reached(i, s)) unreached.push_back(i);
    if (unreached.empty()) continue;
    const Variable<T> as_it_was = source;
    const T step = std::sqrt(std::numeric_limits<T>::epsilon());
    source = changed(as_it_was, step);
    const std::vector<Variable<T>> far = again();
    source = changed(as_it_was, step / 4);
    const std::vector<Variable<T>> near = again();
    source = as_it_was;
    for (const std::size_t i : unreached) {
      if (!depends(gradients[i], near[i], far[i])) continue;
      const std::size_t position = all[s].position;
      fail<GraphError>("backward: the gradient of input ", i, " that '", owner.op->name,
                       "' returned has no graph to ",
                       position == Sources<T>::gradient ? "the gradient of its result"
                                                        : "saved value " + std::to_string(position),
                       ", with which it changes; with create_graph, a backward must compute by ops on "
                       "Variables, not on their arrays, or be marked with once()");
    }
  }
}

template void recorded_gradients(const Node<float>&, const Sources<float>&, Needs, Variable<float>*,
                                 void (*)(const void*, Variable<float>*), const void*);
template void recorded_gradients(const Node<double>&, const Sources<double>&, Needs, Variable<double>*,
                                 void (*)(const void*, Variable<double>*), const void*);

}  // namespace xgrad::detail
