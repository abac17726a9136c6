#include "world.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "../base/detail/system/launcher.hpp"
#include "../base/error.hpp"

namespace xgrad::mpi {
namespace {

using Clock = std::chrono::steady_clock;

/// MPI counts in int: longer messages go in pieces.
constexpr std::size_t longest_piece = std::size_t{1} << 30;
static_assert(longest_piece <= std::numeric_limits<int>::max());

void check(int error) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  detail::fail<std::runtime_error>("mpi: ", std::string(text, static_cast<std::size_t>(length)));
}

/// A message on its way.
struct Piece {
  std::size_t rank;
  std::size_t bytes;
  bool incoming;
};

}  // namespace

/// The messages of one transfer.
class World::Messages : public Transfer {
 public:
  Messages(World& world, int channel) : world_(world), channel_(channel) { world.under_way_.push_back(this); }
  ~Messages() override {
    // MPI would go on to write where the bytes were.
    if (left_ > 0) world_.abort("ended while messages were on their way");
    std::erase(world_.under_way_, this);
  }

  void send(std::size_t rank, std::span<const std::byte> bytes) {
    each_piece(bytes, [&](std::span<const std::byte> piece) {
      MPI_Request& request = add({rank, piece.size(), false});
      check(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, static_cast<int>(rank),
                      channel_, MPI_COMM_WORLD, &request));
    });
  }

  void receive(std::size_t rank, std::span<std::byte> bytes) {
    each_piece(bytes, [&](std::span<std::byte> piece) {
      MPI_Request& request = add({rank, piece.size(), true});
      check(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, static_cast<int>(rank),
                      channel_, MPI_COMM_WORLD, &request));
    });
  }

  bool done() override {
    try {
      return all_done();
    } catch (const std::exception& error) {
      world_.abort(error.what());
      throw;  // abort() does not return
    }
  }

  /// Adds the ranks that something has to come from or go to.
  void add_missing(std::set<std::size_t>& ranks) const {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (requests_[i] != MPI_REQUEST_NULL) ranks.insert(pieces_[i].rank);
  }

 private:
  bool all_done() {
    if (left_ == 0) return true;
    int count = 0;
    finished_.resize(requests_.size());
    statuses_.resize(requests_.size());
    const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                   finished_.data(), statuses_.data());
    if (error != MPI_ERR_IN_STATUS) check(error);
    for (int i = 0; i < count; ++i) {
      const Piece& piece = pieces_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])];
      check_finished(piece, statuses_[static_cast<std::size_t>(i)], error);
    }
    left_ -= static_cast<std::size_t>(count);
    world_.done_ += static_cast<std::size_t>(count);
    return left_ == 0;
  }

  template <class Byte, class F>
  static void each_piece(std::span<Byte> bytes, const F& f) {
    do {
      const std::size_t length = std::min(bytes.size(), longest_piece);
      f(bytes.first(length));
      bytes = bytes.subspan(length);
    } while (!bytes.empty());
  }

  MPI_Request& add(Piece piece) {
    pieces_.push_back(piece);
    ++left_;
    return requests_.emplace_back(MPI_REQUEST_NULL);
  }

  static void check_finished(const Piece& piece, const MPI_Status& status, int error) {
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const bool truncated = error == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS;
    if (truncated && !piece.incoming) check(status.MPI_ERROR);
    if (!piece.incoming || (!truncated && static_cast<std::size_t>(bytes) == piece.bytes)) return;
    detail::fail<std::runtime_error>("mpi: a message from rank ", piece.rank, " must have ", piece.bytes,
                                     " bytes, got ", truncated ? "more" : std::to_string(bytes));
  }

  World& world_;
  int channel_;
  std::vector<Piece> pieces_;
  std::vector<MPI_Request> requests_;
  std::size_t left_ = 0;  // of the requests
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
};

World::World(WorldOptions options) : options_(options), exceptions_(std::uncaught_exceptions()) {
  const std::size_t launched = detail::launched_processes();
  if (launched == 0) return;
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) throw std::runtime_error("mpi: there has been a World before, or MPI_Init");
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  started_ = true;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, size = 1;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check(MPI_Comm_size(MPI_COMM_WORLD, &size));
  rank_ = static_cast<std::size_t>(rank);
  size_ = static_cast<std::size_t>(size);
  if (size_ < launched) {
    MPI_Finalize();
    detail::fail<std::runtime_error>("mpi: mpirun has started ", launched, " processes, but this one sees ",
                                     size_, ": it was started by another MPI's mpirun");
  }
}

World::~World() {
  if (!started_) return;
  if (size_ > 1 && std::uncaught_exceptions() > exceptions_) abort("ended by an exception");
  if (size_ > 1) {
    // MPI_Finalize would wait for ever for a rank that hangs. Rank 0 may still have much to print and to
    // write.
    options_.timeout *= 10;
    const std::byte here{};
    all_gather(*this, {&here, 1});
  }
  MPI_Finalize();
}

std::unique_ptr<Communicator::Transfer> World::start(int channel, std::span<const Outgoing> out,
                                                     std::span<const Incoming> in) {
  auto messages = std::make_unique<Messages>(*this, channel);
  try {
    for (const Incoming& message : in) messages->receive(message.rank, message.bytes);
    for (const Outgoing& message : out) messages->send(message.rank, message.bytes);
  } catch (const std::exception& error) {
    abort(error.what());
  }
  return messages;
}

void World::wait_until(const std::function<bool()>& done) {
  Clock::duration waited{};
  Clock::time_point last = Clock::now();
  bool warned = false;
  std::size_t seen = done_;
  // Others may have work for the processor: there can be more ranks than cores.
  constexpr std::size_t spins = 1000;
  // The time that the whole run was stopped does not count.
  constexpr Clock::duration longest_pause = std::chrono::milliseconds(100);
  for (std::size_t polls = 0; !done(); ++polls) {
    if (polls < spins) continue;
    sched_yield();
    const Clock::time_point now = Clock::now();
    waited += std::min(now - std::exchange(last, now), longest_pause);
    if (std::exchange(seen, done_) != done_) waited = {};
    if (!warned && waited > options_.timeout / 10) {
      warned = true;
      std::fprintf(stderr, "rank %zu: waiting for rank %s\n", rank_, missing().c_str());
    }
    if (waited > options_.timeout) {
      abort(detail::join({"waited ", detail::number_text(std::chrono::duration<double>(waited).count()),
                          " s for rank ", missing()}));
    }
  }
}

/// The ranks that something has to come from or go to, "1, 3".
std::string World::missing() const {
  std::set<std::size_t> ranks;
  for (const Messages* messages : under_way_) messages->add_missing(ranks);
  std::string text;
  for (const std::size_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

void World::abort(const std::string& why) {
  // If all ranks have the same to say, rank 0 says it, and its MPI_Abort ends the others meanwhile.
  if (rank_ != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::fprintf(stderr, "rank %zu: %s\n", rank_, why.c_str());
  std::fflush(nullptr);
  if (!started_) std::_Exit(1);
  // MPICH's mpiexec drops what it has not yet read from a rank when that rank aborts.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);  // MPI_Abort does not return
}

}  // namespace xgrad::mpi
