#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "../base/array.hpp"
#include "../graph/watch.hpp"

namespace xgrad {

/// While one lives, it collects the shapes that the library's models and fused attention go through on this
/// thread, also those that the kernels never make.
/// Printed, it is the "shape evolution" table: names, shapes, axes, with the steps between.
class ShapeTrace : public Watcher {
 public:
  struct Row {
    std::string step;  ///< what was done to get here, empty if nothing
    std::string name;
    Shape shape;
    std::string axes;  ///< what the axes mean
  };

  const std::vector<Row>& rows() const noexcept { return rows_; }

  friend std::ostream& operator<<(std::ostream& out, const ShapeTrace& trace);

 private:
  void on_op(const OpEvent<float>& event) override;
  void on_op(const OpEvent<double>& event) override;
  void on_module_end(const RunningModule& module) noexcept override;

  template <class T>
  void add_op(const OpEvent<T>& event);
  void add_linear(const RunningModule& module, const Shape& x, const Shape& y);
  void add_attention(const Shape& q, const Shape& k, std::size_t v_width, std::size_t heads);

  std::vector<Row> rows_;
  Shape queries_;      // of the projection that came last
  Shape last_result_;  // of the op that came last
};

}  // namespace xgrad
