// Predicts training steps that up to 1,024 machines share, by SimGrid's network
#include <mpi.h>
#include <smpi/smpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <simgrid/version.h>
#include <simgrid/s4u.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../../base/error.hpp"
#include "../../graph/detail/element_sums.hpp"
#include "../../mpi/detail/gradient_exchange.hpp"
#include "../../mpi/detail/tree_sum.hpp"
#include "../encoder/configs.hpp"

namespace simgrid::smpi::colls {

void set_allreduce(const std::string& name);  // in no header

}  // namespace simgrid::smpi::colls

namespace {

using bench::Config, bench::config_names, bench::config_of, bench::Size;
using xgrad::mpi::Communicator;

struct Options {
  std::vector<std::size_t> ranks{16, 64, 256, 1024};
  std::vector<std::string> configs{"medium"};
  std::vector<double> steps;  // ms
  double bandwidth = 10;      // Gbit/s
  double latency = 12;        // us
  double memory = 10;         // GB/s
  std::size_t bucket_bytes = std::size_t{1} << 20;
  bool check = false;
};
Options options;  // ranks are threads of this process, and have no other way to be told

constexpr double flops_per_second = 1e9;  // of a simulated machine

void compute(double seconds) { smpi_execute_flops(seconds * flops_per_second); }

/// So many floats, each read and written.
void move(std::size_t n) { compute(static_cast<double>(2 * n * sizeof(float)) / (1e9 * options.memory)); }

/// What is sent is not looked at, unless with --check, and has not to be stored a thousand times.
std::byte* no_data(std::size_t bytes) {
  static std::vector<std::byte> buffer;
  if (buffer.size() < bytes) buffer.resize(std::max(bytes, options.bucket_bytes));
  return buffer.data();
}

/// Ranks of SimGrid's MPI, whose clock stands still while a rank computes.
class SimulatedRanks : public Communicator {
 public:
  SimulatedRanks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  std::size_t size() const override { return static_cast<std::size_t>(size_); }

  std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                  std::span<const Incoming> in) override {
    auto messages = std::make_unique<Messages>(*this);
    for (const Incoming& message : in) {
      const std::size_t bytes = message.bytes.size();
      MPI_Irecv(options.check ? message.bytes.data() : no_data(bytes), static_cast<int>(bytes), MPI_BYTE,
                static_cast<int>(message.rank), channel, MPI_COMM_WORLD, &messages->add());
    }
    for (const Outgoing& message : out) {
      const std::size_t bytes = message.bytes.size();
      MPI_Isend(options.check ? message.bytes.data() : no_data(bytes), static_cast<int>(bytes), MPI_BYTE,
                static_cast<int>(message.rank), channel, MPI_COMM_WORLD, &messages->add());
    }
    return messages;
  }

  /// The clock goes on while a rank waits, so it is not asked again and again, but told.
  void wait_until(const std::function<bool()>& done) override {
    waiting_ = true;
    while (!done()) {
      std::vector<MPI_Request*> places;
      std::vector<MPI_Request> requests;
      for (Messages* messages : under_way_) {
        for (MPI_Request& request : messages->requests) {
          if (request == MPI_REQUEST_NULL) continue;
          places.push_back(&request);
          requests.push_back(request);
        }
      }
      int count = 0;
      std::vector<int> finished(requests.size());
      MPI_Waitsome(static_cast<int>(requests.size()), requests.data(), &count, finished.data(),
                   MPI_STATUSES_IGNORE);
      for (int i = 0; i < count; ++i)
        *places[static_cast<std::size_t>(finished[static_cast<std::size_t>(i)])] = MPI_REQUEST_NULL;
    }
    waiting_ = false;
  }

  void abort(const std::string& why) override { throw std::runtime_error(why); }

 private:
  struct Messages : Transfer {
    explicit Messages(SimulatedRanks& ranks) : ranks(ranks) { ranks.under_way_.push_back(this); }
    ~Messages() override { std::erase(ranks.under_way_, this); }

    bool done() override {
      for (MPI_Request& request : requests) {
        int flag = request == MPI_REQUEST_NULL ? 1 : 0;
        if (flag == 0 && !ranks.waiting_) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) return false;
      }
      return true;
    }

    MPI_Request& add() { return requests.emplace_back(MPI_REQUEST_NULL); }

    SimulatedRanks& ranks;
    std::vector<MPI_Request> requests;
  };

  int rank_ = 0, size_ = 1;
  bool waiting_ = false;
  std::vector<Messages*> under_way_;
};

/// How many elements the parameters of bench_encoder's model have, in their order.
std::vector<std::size_t> parameter_sizes(const Size& size) {
  const std::size_t d = size.d_model, ff = size.d_ff;
  std::vector<std::size_t> sizes{size.vocab * d, size.seq * d};
  for (std::size_t layer = 0; layer < size.layers; ++layer)
    for (const std::size_t n : {d * d, d * d, d * d, d * d, d, d, d * ff, ff, ff * d, d, d, d})
      sizes.push_back(n);
  sizes.insert(sizes.end(), {d * size.classes, size.classes});
  return sizes;
}

/// Elements of one shard, of many magnitudes, so that the order of additions can be seen.
std::vector<float> shard(std::size_t number, std::size_t n) {
  std::mt19937 random(static_cast<std::uint32_t>(number));
  std::vector<float> elements(n);
  for (float& x : elements)
    x = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 60) - 60);
  return elements;
}

struct Sum {
  std::vector<float> elements;
  void add(const Sum& more) {
    std::transform(elements.begin(), elements.end(), more.elements.begin(), elements.begin(), std::plus<>());
  }
};

/// Of shards [begin, end).
xgrad::detail::TreeSum<Sum> sum_of(std::size_t begin, std::size_t end, std::size_t n) {
  xgrad::detail::TreeSum<Sum> tree(begin);
  for (; begin < end; ++begin) tree.push({1, {shard(begin, n)}});
  return tree;
}

using Exchange = xgrad::detail::GradientExchange<float>;

/// The step of one rank: a third of the time for the forward pass, the rest for the backward pass, in which
/// the gradient of a layer takes as much time as it has elements, and that of an embedding none.
void step(Communicator& ranks, Exchange& exchange, const std::vector<std::size_t>& sizes, double seconds) {
  const std::uint64_t mine[6] = {};
  xgrad::mpi::all_gather_numbers(ranks, mine);
  exchange.begin();
  compute(seconds / 3);
  double elements = 0;
  for (std::size_t i = 2; i < sizes.size(); ++i) elements += static_cast<double>(sizes[i]);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (i >= 2) compute(seconds * 2 / 3 * static_cast<double>(sizes[i]) / elements);
    move(sizes[i]);  // into the buckets
    exchange.give(i, {});
  }
  exchange.finish({});
  for (const std::size_t size : sizes) move(size);  // out of them
  xgrad::mpi::all_gather_numbers(ranks, std::span(mine).first(3));
}

/// Simulated seconds of f on all ranks.
template <class F>
double timed(const F& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  f();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

void predict(const Config& config, double step_seconds) {
  SimulatedRanks ranks;
  const std::vector<std::size_t> sizes = parameter_sizes(config.size);
  const auto exchange_of = [&](std::size_t bucket_bytes) {
    return Exchange(ranks, sizes, 3 + sizes.size(), ranks.size(), bucket_bytes);
  };
  Exchange exchange = exchange_of(options.bucket_bytes), one_bucket = exchange_of(std::size_t{1} << 40);
  const double alone = timed([&] { step(ranks, exchange, sizes, 0); });
  const double blocking = timed([&] { step(ranks, one_bucket, sizes, step_seconds); });
  const double overlapped = timed([&] { step(ranks, exchange, sizes, step_seconds); });
  if (ranks.rank() != 0) return;
  std::printf("%-10s %6zu %10.1f %12.1f %12.1f %10.1f %% %10.1f %%\n", config.name, ranks.size(),
              1e3 * step_seconds, 1e3 * alone, 1e3 * overlapped, 100 * step_seconds / blocking,
              100 * step_seconds / overlapped);
  std::fflush(stdout);
}

/// Throws unless every rank has the bits of the tree over all shards that one process adds up, and unless the
/// exchange takes at most 1.1 times as long as SimGrid's own algorithm of Rabenseifner, which adds in another
/// order.
void check() {
  SimulatedRanks ranks;
  constexpr std::size_t few = 64;  // those that can each send something to all others
  for (const std::size_t shards : {ranks.size(), ranks.size() + ranks.size() / 2}) {
    if (shards != ranks.size() && ranks.size() > few) continue;
    constexpr std::size_t n = 1500;
    const xgrad::detail::ShardedTree tree(shards, ranks.size());
    const auto mine = xgrad::detail::part(shards, ranks.rank(), ranks.size());
    Exchange exchange(ranks, {n / 3, n - n / 3}, 1, shards, 2000);
    auto given = sum_of(mine.begin, mine.end, n);
    std::vector<const float*> first, second;
    std::vector<const double*> counts;
    const double one = 1;
    for (const auto& node : given.nodes()) {
      first.push_back(node.sum.elements.data());
      second.push_back(node.sum.elements.data() + n / 3);
      counts.push_back(&one);
    }
    exchange.begin();
    exchange.give(1, second);
    exchange.give(0, first);
    exchange.finish(counts);
    static std::map<std::size_t, std::vector<float>> sums;  // of all ranks
    if (!sums.contains(shards)) sums[shards] = sum_of(0, shards, n).total().elements;
    const std::vector<float>& expected = sums[shards];
    for (const std::size_t parameter : {0, 1}) {
      exchange.take(parameter, [&](xgrad::detail::Range range, std::span<const float> sum) {
        const float* there = expected.data() + (parameter == 0 ? 0 : n / 3) + range.begin;
        if (std::memcmp(there, sum.data(), sum.size_bytes()) != 0)
          throw std::logic_error("rank " + std::to_string(ranks.rank()) + " has other bits");
      });
    }
  }
  constexpr std::size_t n = 50000;
  const xgrad::detail::ShardedTree tree(ranks.size(), ranks.size());
  std::vector<float> elements(n);
  const double theirs =
      timed([&] { MPI_Allreduce(MPI_IN_PLACE, elements.data(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
  xgrad::detail::TreeReduction<float> reduction(ranks, 1, tree, n);
  std::ranges::fill(reduction.node(0), 1.0F);
  const double ours = timed([&] {
    reduction.start();
    ranks.wait_until([&] { return reduction.advance(); });
  });
  if (ours > 1.1 * theirs)
    throw std::logic_error("the exchange takes " + std::to_string(ours / theirs) + " times as long");
  if (ranks.rank() == 0) {
    std::printf(
        "%zu ranks: the bits of one process; 0.2 MB in %.2f ms, by SimGrid's Rabenseifner in %.2f ms\n",
        ranks.size(), 1e3 * ours, 1e3 * theirs);
  }
}

void run_rank() {
  MPI_Init(nullptr, nullptr);
  try {
    if (options.check) check();
    for (std::size_t i = 0; i < options.steps.size(); ++i)
      predict(config_of(options.configs[i]), 1e-3 * options.steps[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulate_ranks: %s\n", error.what());
    std::_Exit(1);
  }
  MPI_Finalize();
}

namespace s4u = simgrid::s4u;

/// A machine that is linked to the switch in the middle of a star.
s4u::Host* add_machine(s4u::NetZone& star, const std::string& name) {
  const double bandwidth = options.bandwidth * 1e9 / 8, latency = options.latency * 1e-6;
#if SIMGRID_VERSION >= 40000
  s4u::Host* const host = star.add_host(name, flops_per_second);
  const s4u::Link* const link = star.add_split_duplex_link(name, bandwidth)->set_latency(latency);
  star.add_route(host, nullptr, {{link, s4u::LinkInRoute::Direction::UP}}, true);
#else
  s4u::Host* const host = star.create_host(name, flops_per_second);
  const s4u::Link* const link = star.create_split_duplex_link(name, bandwidth)->set_latency(latency);
  star.add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {{link, s4u::LinkInRoute::Direction::UP}},
                 true);
#endif
  return host;
}

/// Machines that are linked to one switch.
void simulate(std::size_t count) {
  std::vector<std::string> arguments{"simulate_ranks", "--log=root.thres:error"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  s4u::Engine engine(&argc, argv.data());
  SMPI_init();
  s4u::Engine::set_config("smpi/simulate-computation:no");
  s4u::Engine::set_config("network/model:SMPI");
  s4u::Engine::set_config("smpi/test:0");
  simgrid::smpi::colls::set_allreduce("rab");
#if SIMGRID_VERSION >= 40000
  s4u::NetZone* const zone = engine.get_netzone_root()->add_netzone_star("machines");
#else
  s4u::NetZone* const zone = s4u::create_star_zone("machines");
#endif
  std::vector<s4u::Host*> hosts;
  for (std::size_t i = 0; i < count; ++i) hosts.push_back(add_machine(*zone, "machine" + std::to_string(i)));
  zone->seal();
  SMPI_app_instance_register("ranks", nullptr, static_cast<int>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const s4u::ActorPtr actor = s4u::Actor::init("rank" + std::to_string(i), hosts[i]);
    actor->set_property("instance_id", "ranks");
    actor->set_property("rank", std::to_string(i));
    actor->start(run_rank);
  }
  engine.run();
  SMPI_finalize();
}

/// In a process of its own: SimGrid simulates once in each.
void simulate_apart(std::size_t count) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    simulate(count);
    std::fflush(nullptr);
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0)
    throw std::runtime_error("the simulation of " + std::to_string(count) + " ranks has failed");
}

}  // namespace

namespace xgrad::detail {

// Instead of the library's: additions take time on the clock of the simulation, or are made.
template <class T>
void ElementSums<T>::add(T* y, const T* a, std::size_t n) {
  if (options.check) {
    std::transform(y, y + n, a, y, std::plus<>());
  } else {
    compute(static_cast<double>(3 * n * sizeof(T)) / (1e9 * options.memory));
  }
}
template <class T>
void ElementSums<T>::add(T* y, const T* a, const T* b, const T* c, std::size_t n) {
  if (options.check) {
    for (std::size_t i = 0; i < n; ++i) y[i] = (y[i] + a[i]) + (b[i] + c[i]);
  } else {
    compute(static_cast<double>(5 * n * sizeof(T)) / (1e9 * options.memory));
  }
}
template struct ElementSums<float>;
template struct ElementSums<double>;

}  // namespace xgrad::detail

int main(int argc, char** argv) {
  apps::CommandLine app(
      "Predicts the time of a training step that many machines share, each of which has a shard of its own "
      "as large "
      "as the batch of bench_encoder. The exchange is the library's own code; computing takes as long as one "
      "machine "
      "was measured to take, and the network is SimGrid's model of one switch.");
  app.add_option("--ranks", options.ranks, "Numbers of machines")
      ->check(apps::in_range<std::size_t>(2, 4096))
      ->capture_default_str();
  app.add_option("--config", options.configs, "Sizes of the encoder")
      ->check(apps::one_of(config_names()))
      ->capture_default_str();
  app.add_option("--step", options.steps,
                 "How long one machine takes for a step of each, in ms, as bench_encoder prints it")
      ->check(apps::in_range(1e-3, 1e9));
  app.add_option("--bandwidth", options.bandwidth, "Of a machine's link, in Gbit/s")
      ->check(apps::in_range(1e-3, 1e4))
      ->capture_default_str();
  app.add_option("--latency", options.latency, "Of a machine's link, in microseconds")
      ->check(apps::in_range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--memory", options.memory, "How much additions and copies read and write, in GB/s")
      ->check(apps::in_range(1e-3, 1e6))
      ->capture_default_str();
  app.add_option("--bucket", options.bucket_bytes, "Bytes of a bucket")
      ->check(apps::in_range<std::size_t>(1, std::size_t{1} << 30))
      ->capture_default_str();
  app.add_flag("--check", options.check, "Send real numbers, and compare bits and time");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("simulate_ranks", [&] {
    if ((!options.check || !options.steps.empty()) && options.steps.size() != options.configs.size())
      throw std::invalid_argument("--step needs a time for each --config");
    if (!options.steps.empty()) {
      std::printf("%g Gbit/s, %g us a link; buckets of %zu bytes\n", options.bandwidth, options.latency,
                  options.bucket_bytes);
      std::printf("%-10s %6s %10s %12s %12s %12s %12s\n", "", "ranks", "1 rank ms", "exchange ms", "step ms",
                  "no overlap", "efficiency");
    }
    for (const std::size_t count : options.ranks) simulate_apart(count);
    return 0;
  });
}
