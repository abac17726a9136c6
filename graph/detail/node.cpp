#include "node.hpp"

#include <algorithm>

#include "../grad_mode.hpp"
#include "op_node.hpp"

namespace xgrad::detail {

constinit thread_local bool recording = true;

namespace {

constinit thread_local std::uint64_t newest_order = 0;

/// Nodes whose last owner is gone, while one of them is being freed.
template <class T>
struct Dead {
  Node<T>* first;
  bool freeing;
};
template <class T>
constinit thread_local Dead<T> dead{};

}  // namespace

std::uint64_t next_order(std::uint64_t floor) noexcept {
  return newest_order = std::max(newest_order, floor) + 1;
}

template <class T>
void dispose(Node<T>* node) noexcept {
  Dead<T>& waiting = dead<T>;
  if (waiting.freeing) {
    node->next_dead = waiting.first;
    waiting.first = node;
    return;
  }
  waiting.freeing = true;
  while (node != nullptr) {
    delete node;
    node = waiting.first;
    if (node != nullptr) waiting.first = node->next_dead;
  }
  waiting.freeing = false;
}

void fail_changed(const char* op, std::size_t position, const Shape& shape) {
  fail<GraphError>("backward: value ", position, " that '", op, "' saved, of shape ", shape,
                   ", was changed in place after it was used; assign() only after backward()");
}

void fail_once(const char* op) {
  fail<GraphError>("backward: the backward of '", op,
                   "' computes on arrays (once), so its gradients cannot be differentiated");
}

template void dispose(Node<float>*) noexcept;
template void dispose(Node<double>*) noexcept;

}  // namespace xgrad::detail
