#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace xgrad::mpi {

/// Communication of the processes of one training run, called ranks as in MPI. A communicator only transfers
/// bytes; its users compute sums. All ranks make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;  ///< of this process, below size()
  virtual std::size_t size() const = 0;  ///< number of ranks

  /// Bytes to send to another rank.
  struct Outgoing {
    std::size_t rank;
    std::span<const std::byte> bytes;
  };
  /// Destination of the bytes received from another rank.
  struct Incoming {
    std::size_t rank;
    std::span<std::byte> bytes;
  };

  /// Messages in transit. Their buffers must outlive it.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// True if all messages are complete; not called again after it returned true.
    virtual bool done() = 0;

   protected:
    Transfer() = default;
  };

  /// Starts to send and receive all of these. Messages from one rank to another on one channel, a number from
  /// 0 to 32,767, arrive in the order of sending, and must have the expected length.
  virtual std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                          std::span<const Incoming> in) = 0;

  /// Polls until done() is true, while started transfers proceed. Ends the run after a timeout.
  virtual void wait_until(const std::function<bool()>& done) = 0;

  /// Sends and receives all of these, on channel 0, and waits for completion.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in);

  /// Ends the run of all ranks after a failure of this one, for which the others would wait; `why` is shown
  /// with the rank. Processes end here; ranks that are threads return, and the calls in which the others wait
  /// throw.
  virtual void abort(const std::string& why) = 0;

 protected:
  Communicator() = default;
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
};

/// The bytes of all ranks, in rank order. Each rank passes the same number.
std::vector<std::byte> all_gather(Communicator& ranks, std::span<const std::byte> mine);

/// The bytes of rank 0, on all ranks; ignores those of the others.
std::vector<std::byte> broadcast(Communicator& ranks, std::vector<std::byte> bytes);

/// The sums of these numbers over all ranks, such as counts of correct answers and of all answers: integers,
/// so that the order does not matter.
std::vector<std::uint64_t> all_sum(Communicator& ranks, const std::vector<std::uint64_t>& mine);

/// Strings by name that must be the same on all ranks: options, versions, checksums.
using Agreement = std::map<std::string, std::string>;

/// Throws ValueError on all ranks, with the same text, unless all ranks pass the same:
/// "rank 1 differs from rank 0: --steps is '100', not '200'; --lr is missing".
void check_agreement(Communicator& ranks, const Agreement& mine);

/// The error text of check_agreement(), on all ranks; empty if all agree.
std::string disagreement(Communicator& ranks, const Agreement& mine);

/// The numbers of all ranks, in rank order. Each rank passes the same number.
std::vector<std::uint64_t> all_gather_numbers(Communicator& ranks, std::span<const std::uint64_t> mine);

}  // namespace xgrad::mpi
