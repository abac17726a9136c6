#include "recorded_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_set>

#include "../../base/detail/scoped_value.hpp"
#include "../watch.hpp"
#include "leaf.hpp"

namespace xgrad::detail {
namespace {

/// For each gradient and source, whether the graph of the gradient, above `start`, has the source.
template <class T>
class Reached {
 public:
  Reached(std::uint64_t start, const Sources<T>& sources, std::span<const Variable<T>> gradients)
      : sources_(sources.all()), rows_(gradients.size(), std::vector<bool>(sources_.size())) {
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined()) visit(start, Access<T>::node(gradients[i]).get(), rows_[i]);
  }

  bool operator()(std::size_t gradient, std::size_t source) const { return rows_[gradient][source]; }

  /// Whether each gradient has a source, and each source with a graph is in one.
  bool is_plausible(std::span<const Variable<T>> gradients) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (gradients[i].defined() && std::find(rows_[i].begin(), rows_[i].end(), true) == rows_[i].end())
        return false;
    }
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const bool found = std::any_of(rows_.begin(), rows_.end(), [s](const auto& row) { return row[s]; });
      if (!found && sources_[s].variable->requires_grad()) return false;
    }
    return true;
  }

 private:
  void visit(std::uint64_t start, const Node<T>* from, std::vector<bool>& row) {
    std::unordered_set<const Node<T>*> seen;
    std::vector<const Node<T>*> next;
    const auto add = [&](const Node<T>* node) {
      if (node != nullptr && seen.insert(node).second) next.push_back(node);
    };
    add(from);
    while (!next.empty()) {
      const Node<T>& node = *next.back();
      next.pop_back();
      for (std::size_t s = 0; s < sources_.size(); ++s)
        if (Access<T>::node(*sources_[s].variable).get() == &node) row[s] = true;
      if (node.order <= start) continue;
      for (const Ref<Node<T>>& input : node.inputs()) add(input.get());
    }
  }

  std::span<const typename Sources<T>::Source> sources_;
  std::vector<std::vector<bool>> rows_;
};

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
void check_recorded(const Node<T>& owner, std::uint64_t start, const Sources<T>& sources,
                    std::span<const Variable<T>> gradients,
                    const std::function<std::vector<Variable<T>>()>& again) {
  if (Reached<T>(start, sources, gradients).is_plausible(gradients)) return;
  const Unwatched unwatched;
  const auto all = sources.all();
  for (const auto& source : all) {
    if (!source.variable->requires_grad())
      Access<T>::node(*source.variable) = Ref<Node<T>>(new LeafNode<T>(source.variable->shape()));
  }
  const std::uint64_t before = next_order(0);
  const std::vector<Variable<T>> with_graphs = again();
  const Reached<T> reached(before, sources, with_graphs);
  const ScopedValue<bool> off(recording, false);
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

template void check_recorded(const Node<float>&, std::uint64_t, const Sources<float>&,
                             std::span<const Variable<float>>,
                             const std::function<std::vector<Variable<float>>()>&);
template void check_recorded(const Node<double>&, std::uint64_t, const Sources<double>&,
                             std::span<const Variable<double>>,
                             const std::function<std::vector<Variable<double>>()>&);

}  // namespace xgrad::detail
