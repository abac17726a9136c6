#pragma once

// The processes that share a program's work: those that mpirun has started, if the program is built with MPI.

#ifdef XGRAD_APPS_MPI

#include <xgrad/mpi/world.hpp>

namespace apps {

using World = xgrad::mpi::World;

}  // namespace apps

#else

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <xgrad/train/communicator.hpp>

namespace apps {

/// This process alone.
class World : public xgrad::Communicator {
 public:
  /// Throws std::runtime_error if mpirun has started several processes, which would all do the same.
  World() {
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
      const char* count = std::getenv(variable);
      if (count != nullptr && std::string(count) != "1")
        throw std::runtime_error("started by mpirun, but built without MPI (XGRAD_BUILD_MPI)");
    }
  }

  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  std::unique_ptr<Transfer> start(int, std::span<const Outgoing>, std::span<const Incoming>) override {
    return nullptr;  // there is nobody else
  }
  void wait_until(const std::function<bool()>&) override {}
  void abort(const std::string&) override {}
};

}  // namespace apps

#endif
