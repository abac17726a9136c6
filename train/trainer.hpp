#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace xgrad {

struct FitOptions {
  bool progress = true;  ///< show step, loss, speed and time left on stderr
};

/// What a training run did.
struct TrainingLog {
  std::vector<double> losses;  ///< of each step that was done
  double seconds = 0;
  bool interrupted = false;  ///< by SIGINT or SIGTERM
};

/// Calls step(0), step(1), ..., step(steps - 1), each of which trains one step and returns its loss.
///
/// Progress is a bar on a terminal, and about ten lines otherwise. SIGINT (Ctrl-C) and SIGTERM end it after
/// the current step; the handlers that were there are put back at the end. Throws std::runtime_error "fit:
/// the loss of step 12 is nan" for a loss that is not finite, and whatever step throws.
TrainingLog fit(std::size_t steps, const std::function<double(std::size_t)>& step, FitOptions options = {});

}  // namespace xgrad
