#include "run_training.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#ifdef XGRAD_APPS_MPI
#include <xgrad/mpi/world.hpp>
#endif
#include <xgrad/base/detail/launcher.hpp>
#include <xgrad/ops/product/matmul_precision.hpp>
#include <xgrad/train/communicator.hpp>

#include "../common/program.hpp"

namespace apps {
namespace {

// The processes that share a program's work: those that mpirun has started, if the program is built with MPI.

#ifdef XGRAD_APPS_MPI

using World = xgrad::mpi::World;

#else

/// This process alone.
class World : public xgrad::Communicator {
 public:
  /// Throws std::runtime_error if mpirun has started several processes, which would all do the same.
  World() {
    if (xgrad::detail::launched_processes() > 1 || xgrad::detail::launched_rank().value_or(0) > 0)
      throw std::runtime_error("started by mpirun, but built without MPI (XGRAD_COMPONENTS has no mpi)");
  }

  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  std::unique_ptr<Transfer> start(int, std::span<const Outgoing>, std::span<const Incoming>) override {
    return nullptr;  // there is nobody else
  }
  void wait_until(const std::function<bool()>&) override {}
  void abort(const std::string&) override {}
};

#endif

}  // namespace

int detail::run_on_ranks(const char* name, RunOptions& options, const std::function<int()>& body) {
  World world;
  options.program = name;
  xgrad::set_float32_matmul_precision(options.precision);
  const std::string in_use = to_string(xgrad::matmul_precision_in_use());
  if (in_use != options.precision && world.rank() == 0) {
    std::fprintf(stderr, "--precision %s is no faster on this processor: computing with %s\n",
                 options.precision.c_str(), in_use.c_str());
  }
  const auto checked_body = [&] {
    check_files(options);
    return body();
  };
  if (world.size() == 1) return checked_body();
  options.ranks = &world;
  if (!options.leads()) {
    for (std::string* file : {&options.metrics, &options.log, &options.report}) file->clear();
    if (std::freopen("/dev/null", "w", stdout) == nullptr) throw std::runtime_error("cannot open /dev/null");
  }
  try {
    return checked_body();
  } catch (const std::exception& error) {
    world.abort(error.what());
    throw;
  }
}

}  // namespace apps
