#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <xgrad/base/array.hpp>
#include <xgrad/graph/watch.hpp>

namespace examples {

/// While one lives, it collects the shapes that the library's models and fused attention go through on this
/// thread, also those that the kernels never make.
/// Printed, it is the "shape evolution" table: names, shapes, axes, with the steps between.
class ShapeTrace : public xgrad::Watcher {
 public:
  struct Row {
    std::string step;  ///< what was done to get here, empty if nothing
    std::string name;
    xgrad::Shape shape;
    std::string axes;  ///< what the axes mean
  };

  const std::vector<Row>& rows() const noexcept { return rows_; }

  friend std::ostream& operator<<(std::ostream& out, const ShapeTrace& trace);

 private:
  void on_op(const xgrad::OpEvent<float>& event) override;
  void on_op(const xgrad::OpEvent<double>& event) override;
  void on_module_end(const xgrad::RunningModule& module) noexcept override;

  template <class T>
  void add_op(const xgrad::OpEvent<T>& event);
  void add_linear(const xgrad::RunningModule& module, const xgrad::Shape& x, const xgrad::Shape& y);
  void add_attention(const xgrad::Shape& q, const xgrad::Shape& k, std::size_t v_width, std::size_t heads);

  std::vector<Row> rows_;
  xgrad::Shape queries_;      // of the projection that came last
  xgrad::Shape last_result_;  // of the op that came last
};

}  // namespace examples
