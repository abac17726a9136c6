#include "summary.hpp"

#include <algorithm>

namespace xgrad {
namespace {

struct Row {
  std::string name, shape, count;
};

template <class T>
void add_rows(const detail::ModuleState<T>& state, std::size_t depth, std::vector<Row>& rows) {
  const std::string indent(2 * depth, ' ');
  for (const auto& [name, weight] : state.weights) {
    std::string count = detail::weight_dtype_name(weight.dtype());
    if (weight.is_trainable())
      count = (weight.variable().requires_grad() ? "" : "frozen ") + std::to_string(weight.variable().size());
    rows.push_back({indent + name, to_string(weight.shape()), std::move(count)});
  }
  for (const auto& [name, buffer] : state.buffers)
    rows.push_back({indent + name, to_string(buffer.shape()), "buffer"});
  for (const auto& [name, child] : state.children) {
    rows.push_back({indent + name + ": " + child->type, "", ""});
    add_rows(*child, depth + 1, rows);
  }
}

}  // namespace

template <class T>
std::string summary(const Module<T>& model) {
  std::vector<Row> rows{{model.type(), "shape", "parameters"}};
  add_rows(model.state(), 1, rows);
  rows.push_back({"total", "", std::to_string(model.parameter_count())});
  std::size_t name_width = 0, shape_width = 0, count_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    shape_width = std::max(shape_width, row.shape.size());
    count_width = std::max(count_width, row.count.size());
  }
  std::string table;
  for (const Row& row : rows) {
    std::string line = row.name + std::string(name_width - row.name.size() + 2, ' ');
    line += row.shape + std::string(shape_width - row.shape.size() + 2 + count_width - row.count.size(), ' ');
    line += row.count;
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + '\n';
  }
  return table;
}

template std::string summary(const Module<float>&);
template std::string summary(const Module<double>&);

}  // namespace xgrad
