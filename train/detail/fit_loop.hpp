#pragma once

#include "../trainer.hpp"

namespace xgrad::detail {

/// Called after each step with what ends the run of this process; sets what has ended that of another.
using AgreeOnEnd = std::function<void(bool& stopped, bool& interrupted, bool& failed)>;

/// fit() of several processes that train together, if there is an agree(); then SIGUSR1 ends the run, too.
TrainingLog fit_loop(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                     const FitOptions& options, const AgreeOnEnd& agree);

}  // namespace xgrad::detail
