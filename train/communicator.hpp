#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace xgrad {

/// How the processes of one training run, called ranks as in MPI, send each other bytes. It moves them and
/// nothing else: its users compute the sums. All ranks make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;  ///< of this process, below size()
  virtual std::size_t size() const = 0;  ///< how many ranks there are

  /// Bytes for another rank.
  struct Outgoing {
    std::size_t rank;
    std::span<const std::byte> bytes;
  };
  /// Where the bytes of another rank go.
  struct Incoming {
    std::size_t rank;
    std::span<std::byte> bytes;
  };

  /// Messages on their way. The bytes have to stay where they are until it is done.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// Whether all have gone and come; once it is true it is not asked again.
    virtual bool done() = 0;

   protected:
    Transfer() = default;
  };

  /// Begins to send and receive all of these. What goes from one rank to another on one channel, a number
  /// from 0 to 32,767, arrives in the order in which it was sent, and has to be as long as it is expected to
  /// be.
  virtual std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                          std::span<const Incoming> in) = 0;

  /// Asks until it is true: what transfers that have been started bring about. Ends the run if that takes too
  /// long.
  virtual void wait_until(const std::function<bool()>& done) = 0;

  /// Sends and receives all of these, on channel 0, and returns when that is done.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in);

  /// Ends the run of all ranks, as this one cannot go on and the others would wait for it; `why` is shown
  /// with the rank. Processes end here; ranks that are threads return, and the others have an exception where
  /// they wait.
  virtual void abort(const std::string& why) = 0;

 protected:
  Communicator() = default;
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
};

/// The bytes of all ranks, in their order. Each rank gives as many.
std::vector<std::byte> all_gather(Communicator& ranks, std::span<const std::byte> mine);

/// The bytes of rank 0, on all ranks; what the others give does not matter.
std::vector<std::byte> broadcast(Communicator& ranks, std::vector<std::byte> bytes);

/// The sums of these numbers over all ranks, such as of how many answers were right and how many there were:
/// whole numbers, so that the order does not matter.
std::vector<std::uint64_t> all_sum(Communicator& ranks, const std::vector<std::uint64_t>& mine);

/// Texts by name, which have to be the same on all ranks: options, versions, checksums.
using Agreement = std::map<std::string, std::string>;

/// Throws ValueError on all ranks, with the same text, unless all have the same: "rank 1 differs from rank 0:
/// --steps is '100', not '200'; --lr is missing".
void check_agreement(Communicator& ranks, const Agreement& mine);

namespace detail {

/// The text of what check_agreement() throws, on all ranks; empty if it throws nothing.
std::string disagreement(Communicator& ranks, const Agreement& mine);

/// Some of many things, one after the other.
struct Range {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// Part i of n things that are cut into `parts`.
inline Range part(std::size_t n, std::size_t i, std::size_t parts) {
  return {n * i / parts, n * (i + 1) / parts};
}

/// The numbers of all ranks, in their order. Each rank gives as many.
std::vector<std::uint64_t> all_gather_numbers(Communicator& ranks, std::span<const std::uint64_t> mine);

/// A checksum of bytes, continued from another: FNV-1a (Fowler, Noll and Vo 1991) of 64 bits.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t before = 14695981039346656037U);

}  // namespace detail
}  // namespace xgrad
