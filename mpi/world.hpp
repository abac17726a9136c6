#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "../train/communicator.hpp"

namespace xgrad::mpi {

struct WorldOptions {
  /// How long to wait for other ranks, while nothing comes from any, before the run is ended; they are named
  /// after a tenth of this. At the end of the program both are ten times as long, as rank 0 may have much to
  /// print and to write.
  std::chrono::duration<double> timeout = std::chrono::minutes(2);
};

/// The processes that mpirun has started, by MPI; one rank, and no MPI, for a process that it has not. One
/// lives in a process, made at the beginning of main() and used by the thread that
/// made it.
/// https://www.mpi-forum.org/docs/mpi-3.1/mpi31-report.pdf
class World : public Communicator {
 public:
  /// Throws std::runtime_error if mpirun belongs to another MPI than the one that this program is linked to,
  /// which would make each process the only rank of a run of its own, and if a World has been there before.
  explicit World(WorldOptions options = {});

  /// Waits for the other ranks to end, too; but if an exception passes by, ends the run of all.
  ~World() override;

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }

  // These two, and done() of a transfer, end the run of all ranks, with a line that says why, when the time
  // is over, for a message of another length than expected, and for an error of MPI.
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
  std::size_t done_ = 0;  // messages
  std::size_t rank_ = 0, size_ = 1;
  bool started_ = false;
  int exceptions_;  // that were on their way when this was made
};

}  // namespace xgrad::mpi
