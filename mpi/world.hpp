#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "communicator.hpp"

namespace xgrad::mpi {

struct WorldOptions {
  detail::ByName by_name = {};
  /// Timeout without any message from other ranks, after which the run ends; the missing ranks are named
  /// after a tenth of this. Both are ten times as long at the end of the program, where rank 0 may print and
  /// write a lot.
  std::chrono::duration<double> timeout = std::chrono::minutes(2);
};

/// The processes started by mpirun, through MPI; a single rank without MPI otherwise. A process has at most
/// one, created at the beginning of main() and used by the same thread.
/// https://www.mpi-forum.org/docs/mpi-3.1/mpi31-report.pdf
class World : public Communicator {
 public:
  /// Throws std::runtime_error if mpirun belongs to another MPI than the one linked, where each process would
  /// be the only rank of a separate run, and for a second World.
  explicit World(WorldOptions options = {});

  /// Waits for the other ranks to end; during stack unwinding, ends the run of all instead.
  ~World() override;

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }

  // These two, and done() of a transfer, end the run of all ranks, with a message, on a timeout, for a
  // message of unexpected length, and on an error of MPI.
  std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                  std::span<const Incoming> in) override;
  void wait_until(const std::function<bool()>& done) override;

  /// Writes "rank 1: why" to stderr and ends the processes of all ranks.
  void abort(const std::string& why) override;

 private:
  class Messages;

  std::string missing() const;

  WorldOptions options_;
  std::vector<const Messages*> under_way_;
  std::size_t done_ = 0;  // number of completed messages
  std::size_t rank_ = 0, size_ = 1;
  bool started_ = false;
  int exceptions_;  // in flight at construction
};

}  // namespace xgrad::mpi
