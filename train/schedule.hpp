#pragma once

#include <cstddef>

namespace xgrad {

/// The factor of the learning rate in a step, counted from 0: it rises linearly to 1 in warmup_steps, then
/// falls along half a cosine wave to 0 at total_steps (Loshchilov and Hutter 2016, arXiv:1608.03983). Throws
/// ValueError for more warmup_steps than total_steps.
double cosine_schedule(std::size_t step, std::size_t total_steps, std::size_t warmup_steps = 0);

}  // namespace xgrad
