#include "fit.hpp"

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "../base/detail/bytes/checksum.hpp"
#include "../base/random.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "../train/detail/fit_loop.hpp"

namespace xgrad::mpi {
namespace {

void check_same_run(Communicator& ranks, std::size_t steps, std::size_t first_step) {
  const std::string random = get_rng_state();
  check_agreement(ranks, {{"xgrad's version", XGRAD_VERSION},
                          {"the precision of matrix products", to_string(matmul_precision_in_use())},
                          {"the number of steps", std::to_string(steps)},
                          {"the first step", std::to_string(first_step)},
                          {"the checksum of the default generator's state",
                           std::to_string(detail::checksum(std::as_bytes(std::span(random))))}});
  const std::string processors = disagreement(
      ranks, {{"OpenBLAS's processor", blas_core_name()}, {"the set of instructions", instruction_set()}});
  if (!processors.empty() && ranks.rank() == 0)
    std::fprintf(stderr, "warning: %s; another number of ranks can have other bits\n", processors.c_str());
}

}  // namespace

TrainingLog fit(Communicator& ranks, std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                FitOptions options) {
  if (ranks.rank() > 0) {
    options.progress = false;
    options.metrics.clear();
    options.save = options.observe = options.observe_step = {};
  }
  const auto agree = [&ranks](bool& stopped, bool& interrupted, bool& failed) {
    const std::vector<std::uint64_t> counts = all_sum(ranks, {stopped, interrupted, failed});
    stopped = counts[0] > 0, interrupted = counts[1] > 0, failed = counts[2] > 0;
  };
  try {
    check_same_run(ranks, steps, options.first_step);
    return detail::fit_loop(steps, step, options, agree);
  } catch (const std::exception& error) {
    if (ranks.size() > 1) ranks.abort(error.what());
    throw;
  }
}

}  // namespace xgrad::mpi
