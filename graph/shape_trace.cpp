#include "shape_trace.hpp"

#include <algorithm>
#include <iomanip>

namespace xgrad {

constinit thread_local ShapeTrace* detail::shape_trace = nullptr;

ShapeTrace::ShapeTrace() noexcept : outer_(detail::shape_trace) { detail::shape_trace = this; }

ShapeTrace::~ShapeTrace() { detail::shape_trace = outer_; }

std::ostream& operator<<(std::ostream& out, const ShapeTrace& trace) {
  std::size_t name_width = 0, shape_width = 0;
  for (const ShapeTrace::Row& row : trace.rows_) {
    name_width = std::max(name_width, row.name.size() + 1);
    shape_width = std::max(shape_width, to_string(row.shape).size());
  }
  for (const ShapeTrace::Row& row : trace.rows_) {
    if (!row.step.empty()) out << "↓ " << row.step << '\n';
    out << std::left << std::setw(static_cast<int>(name_width) + 1) << row.name + ":"
        << std::setw(static_cast<int>(shape_width) + 2) << to_string(row.shape) << row.axes << '\n';
  }
  return out;
}

}  // namespace xgrad
