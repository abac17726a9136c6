#include "tree_sum.hpp"

namespace xgrad::detail {
namespace {

struct Nothing {
  void add(const Nothing&) const {}
};

}  // namespace

std::vector<std::size_t> tree_nodes(std::size_t first, std::size_t end) {
  TreeSum<Nothing> tree(first);
  for (; first < end; ++first) tree.push({1, {}});
  std::vector<std::size_t> counts;
  for (const auto& node : tree.nodes()) counts.push_back(node.count);
  return counts;
}

}  // namespace xgrad::detail
