#pragma once

#include <stdexcept>
#include <string>

#include "../base/error.hpp"
#include "../graph/watch.hpp"

namespace xgrad {

/// Thrown by DetectAnomaly for a nan.
struct AnomalyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Detects nan on this thread for the lifetime of the object: the first op whose result has a nan, and the
/// first whose backward returns one, throws an AnomalyError that names it, after the module that called it:
/// "encoder.norm: detect_anomaly: the result (3) of 'log' is nan at (1), and no input is". Of a backward
/// whose op has points without a finite derivative, such as sqrt or eigh, the message names these. Reads each
/// result once more, so training is slower.
/// https://pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly
class [[nodiscard]] DetectAnomaly : public Watcher {
 public:
  [[nodiscard]] DetectAnomaly() = default;

 private:
  void on_op(const OpEvent<float>& event) override;
  void on_op(const OpEvent<double>& event) override;
  void on_backward_end(const BackwardEvent<float>& event) override;
  void on_backward_end(const BackwardEvent<double>& event) override;

  template <class T>
  void check(const OpEvent<T>& event);
  template <class T>
  void check(const BackwardEvent<T>& event);
};

}  // namespace xgrad
