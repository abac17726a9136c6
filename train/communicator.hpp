#pragma once

#include <cstddef>
#include <span>

namespace xgrad {

/// How the processes of one training run, called ranks as in MPI, send each other bytes. It moves them and
/// nothing else: whoever uses it does the sums. All ranks make the same calls in the same order.
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

  /// Sends and receives all of these and returns when that is done. What goes from one rank to another
  /// arrives in the order in which it was sent, and has to be as long as it is expected to be.
  virtual void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) = 0;

 protected:
  Communicator() = default;
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
};

}  // namespace xgrad
