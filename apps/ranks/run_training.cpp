#include "run_training.hpp"

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#ifdef XGRAD_APPS_MPI
#include <xgrad/mpi/world.hpp>

#include "mpi_ranks.hpp"
#else
#include <xgrad/base/detail/system/launcher.hpp>
#endif
#include <xgrad/ops/product/matmul_precision.hpp>

#include "../common/program.hpp"
#include "../training/ranks.hpp"

namespace apps {

int detail::run_on_ranks(const char* name, RunOptions& options, const std::function<int()>& body) {
#ifdef XGRAD_APPS_MPI
  xgrad::mpi::World world;
  MpiRanks ranks(world);
  if (world.size() > 1 || options.shards) options.ranks = &ranks;
#else
  if (xgrad::detail::launched_processes() > 1 || xgrad::detail::launched_rank().value_or(0) > 0)
    throw std::runtime_error("started by mpirun, but built without MPI (XGRAD_COMPONENTS has no mpi)");
  if (options.shards)
    throw std::runtime_error("--shards needs a build with MPI (XGRAD_COMPONENTS has no mpi)");
#endif
  options.program = name;
  xgrad::set_float32_matmul_precision(options.precision);
  const std::string in_use = to_string(xgrad::matmul_precision_in_use());
  if (in_use != options.precision && options.leads()) {
    std::fprintf(stderr, "--precision %s is no faster on this processor: computing with %s\n",
                 options.precision.c_str(), in_use.c_str());
  }
  if (!options.leads()) {
    for (std::string* file : {&options.metrics, &options.log, &options.report}) file->clear();
    if (std::freopen("/dev/null", "w", stdout) == nullptr) throw std::runtime_error("cannot open /dev/null");
  }
  try {
    check_files(options);
    return body();
  } catch (const std::exception& error) {
    if (options.ranks != nullptr) options.ranks->abort(error.what());
    throw;
  }
}

}  // namespace apps
