#pragma once

// The learning rate of the training programs.

#include <algorithm>
#include <cstddef>

#include <xgrad/train/lr_scheduler.hpp>

namespace apps {

/// The optimizer's rate rises linearly in `warmup` of the steps, then falls along half a cosine wave to
/// `least`.
inline xgrad::LRScheduler<float> warmup_and_cosine(xgrad::Optimizer<float>& optimizer, std::size_t steps,
                                                   std::size_t warmup, double least = 0) {
  const std::size_t rise = std::max<std::size_t>(warmup, 1), fall = steps > rise ? steps - rise : 1;
  return xgrad::SequentialLR<float>(
      optimizer,
      {xgrad::LinearLR<float>(optimizer,
                              {.start_factor = 1 / static_cast<double>(rise), .total_iters = rise}),
       xgrad::CosineAnnealingLR<float>(optimizer, fall, least)},
      {rise});
}

}  // namespace apps
