#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "array.hpp"

namespace xgrad {

/// While one lives, it collects the shapes that models and attention go through on this thread. Traces nest:
/// the innermost collects. Printed, it is the "shape evolution" table: names, shapes, axes, with the steps
/// between.
class ShapeTrace {
 public:
  struct Row {
    std::string step;  ///< what was done to get here, empty if nothing
    std::string name;
    Shape shape;
    std::string axes;  ///< what the axes mean
  };

  ShapeTrace() noexcept;
  ~ShapeTrace();
  ShapeTrace(const ShapeTrace&) = delete;
  ShapeTrace& operator=(const ShapeTrace&) = delete;

  const std::vector<Row>& rows() const noexcept { return rows_; }
  void add(Row row) { rows_.push_back(std::move(row)); }

  friend std::ostream& operator<<(std::ostream& out, const ShapeTrace& trace);

 private:
  std::vector<Row> rows_;
  ShapeTrace* outer_;
};

namespace detail {

extern constinit thread_local ShapeTrace* shape_trace;

/// Adds a row to the trace, if there is one.
inline void trace_shape(const char* step, const char* name, const Shape& shape, const char* axes) {
  if (shape_trace != nullptr) [[unlikely]]
    shape_trace->add({step, name, shape, axes});
}

}  // namespace detail
}  // namespace xgrad
