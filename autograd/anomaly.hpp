#pragma once

#include "../base/error.hpp"
#include "../graph/watch.hpp"

namespace xgrad {

/// A nan that DetectAnomaly found.
struct AnomalyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// While one lives, the first op on this thread whose result holds a nan, and the first whose backward
/// returns one, throws an AnomalyError that names it: "detect_anomaly: the result (3) of 'log' is nan at (1),
/// and no input is". Each result is read once more, so training is slower.
/// https://pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly
class [[nodiscard]] DetectAnomaly : public Watcher {
  void on_op(const OpEvent<float>& event) override;
  void on_op(const OpEvent<double>& event) override;
  void on_backward_end(const BackwardEvent<float>& event) override;
  void on_backward_end(const BackwardEvent<double>& event) override;
};

}  // namespace xgrad
