#include <xgrad/train/schedule.hpp>

#include <cmath>

#include <xgrad/graph/error.hpp>

namespace xgrad {

double cosine_schedule(std::size_t step, std::size_t total_steps, std::size_t warmup_steps) {
  if (warmup_steps > total_steps) {
    detail::fail<ValueError>("cosine_schedule: warmup_steps must be at most total_steps, got ", warmup_steps,
                             " and ", total_steps);
  }
  if (step < warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (step >= total_steps) return 0;
  const double done =
      static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
  return (1 + std::cos(3.14159265358979323846 * done)) / 2;
}

}  // namespace xgrad
