#include "checkpoint.hpp"

#include <cstring>
#include <memory>
#include <mutex>

#include "../base/random.hpp"
#include "../graph/kernel_backward.hpp"
#include "../graph/record_many.hpp"
#include "detail/called_again.hpp"

namespace xgrad {
namespace {

/// What the default generator will draw.
std::shared_ptr<const Generator> drawn_next() {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  return std::make_shared<const Generator>(generator);
}

}  // namespace

template <class T>
Variable<T> detail::checkpoint(std::function<Variable<T>(const std::vector<Variable<T>>&)> f,
                               const std::vector<Variable<T>>& x) {
  using List = std::vector<Variable<T>>;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!x[i].defined()) fail<GraphError>("checkpoint: x[", i, "] is undefined");
  if (!grad_enabled()) return f(x);

  const std::shared_ptr<const Generator> random = drawn_next();
  List inputs = x, at;
  for (const Variable<T>& one : x) at.push_back(one.requires_grad() ? leaf_like(one) : one);
  const std::uint64_t start = next_order(0);
  Variable<T> y = f(at);
  if (!y.defined()) fail<GraphError>("checkpoint: f must return a variable, got an undefined one");
  if (!y.requires_grad()) return y;
  // What f reads besides x are inputs, too. Their values are not needed: f has them.
  for (Ref<Node<T>>& node : outer_nodes(y, at, start)) inputs.push_back(Access<T>::make({}, std::move(node)));
  y = y.detach();
  at.clear();

  auto backward = [f = std::move(f), random,
                   nodes = List(inputs.begin() + static_cast<std::ptrdiff_t>(x.size()), inputs.end())](
                      Variable<T> dy, Needs needs, const List& x, const Variable<T>& first) {
    const bool create_graph = grad_enabled();
    const EnableGrad guard;
    Generator again(*random);
    const UseGenerator same_numbers(again);
    List ends = called_again_with(x, needs);
    const Variable<T> y = f(ends);
    if (y.shape() != first.shape())
      fail<ShapeError>("checkpoint: f must return the same shape each time, first ", first.shape(), ", then ",
                       y.shape());
    if (y.size() > 0 && std::memcmp(data(y), data(first), y.size() * sizeof(T)) != 0)
      fail<GraphError>(
          "checkpoint: f must return the same values each time; what it reads, such as a parameter, may have "
          "changed");
    ends.insert(ends.end(), nodes.begin(), nodes.end());
    return needed_gradients(y, ends, ends.size(), needs, dy, create_graph);
  };
  return record_list<T>(ops::checkpoint, std::move(y), inputs, Attributes(), Saved(x, Output()),
                        ByOps{std::move(backward)});
}

template <class T>
Variable<T> detail::checkpoint_sequential(const Layers<T>& functions, std::size_t segments,
                                          const Variable<T>& x) {
  if (segments == 0 || functions.size() < segments) {
    detail::fail<ValueError>("checkpoint_sequential: segments must be from 1 to the number of functions ",
                             functions.size(), ", got ", segments);
  }
  const auto run = [](auto first, auto last) {
    return [part = std::vector(first, last)](const Variable<T>& from) {
      Variable<T> y = from;
      for (const auto& function : part) {
        const bool has_graph = grad_enabled() && y.requires_grad();
        y = function(y);
        if (has_graph && !y.requires_grad()) {
          detail::fail<GraphError>(
              "checkpoint_sequential: a function must return a variable that it computed by ops on its "
              "argument, got one of shape ",
              y.shape(), " without a graph");
        }
      }
      return y;
    };
  };
  const auto length = static_cast<std::ptrdiff_t>(functions.size() / segments);
  auto next = functions.begin();
  Variable<T> y = x;
  for (std::size_t i = 0; i + 1 < segments; ++i, next += length) y = checkpoint(run(next, next + length), y);
  return run(next, functions.end())(y);
}

#define XGRAD_INSTANTIATE(T)                                                                           \
  template Variable<T> detail::checkpoint(std::function<Variable<T>(const std::vector<Variable<T>>&)>, \
                                          const std::vector<Variable<T>>&);                            \
  template Variable<T> detail::checkpoint_sequential(const Layers<T>&, std::size_t, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
