// Training steps that ranks share: time, waiting, overlap and bytes, beside MPI_Allreduce
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <xgrad/base/detail/bytes/checksum.hpp>
#include <xgrad/mpi.hpp>
#include <xgrad/ops/product/matmul_precision.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/configs.hpp"
#include "../encoder/encoder.hpp"

using bench::Config, bench::config_names, bench::config_of, bench::median, bench::quantile, bench::Size;
using xgrad::Ids, xgrad::Variable, xgrad::mpi::World;

namespace {

using Clock = std::chrono::steady_clock;
using Chosen = std::span<const std::size_t>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Waits for all ranks, and leaves the processor to the others meanwhile.
void wait_quietly() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

/// A model, its optimizer and a batch, the same on every rank.
class Training {
 public:
  explicit Training(const Size& size) : size_(size), all_(size.batch) {
    xgrad::manual_seed(0);
    model_.emplace(size);
    optimizer_.emplace(model_->parameters(), xgrad::AdamOptions{.lr = 1e-3});
    ids_ = xgrad::randint(bench::pad_id + 1, static_cast<std::int64_t>(size.vocab), {size.batch, size.seq});
    labels_ = xgrad::randint(0, static_cast<std::int64_t>(size.classes), {size.batch});
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  xgrad::WeightedLoss<float> loss(Chosen examples) const {
    Ids ids = Ids::from_shape({examples.size(), size_.seq}), labels = Ids::from_shape({examples.size()});
    for (std::size_t i = 0; i < examples.size(); ++i) {
      std::copy_n(&ids_(examples[i], 0), size_.seq, &ids(i, 0));
      labels(i) = labels_(examples[i]);
    }
    return {cross_entropy((*model_)(ids), labels, {.reduction = xgrad::Reduction::sum}),
            static_cast<double>(examples.size())};
  }

  Chosen all() const { return all_; }
  xgrad::Adam<float>& optimizer() { return *optimizer_; }

 private:
  Size size_;
  std::optional<bench::Encoder> model_;
  std::optional<xgrad::Adam<float>> optimizer_;
  Ids ids_, labels_;
  std::vector<std::size_t> all_;
};

/// One way to make the same training step.
class Way {
 public:
  Way(std::string name, const Size& size, bool alone)
      : name_(std::move(name)), training_(size), alone_(alone) {}
  virtual ~Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  void step() {
    const Clock::time_point start = Clock::now();
    gradients();
    training_.optimizer().step();
    times_.push_back(1e3 * seconds_since(start));
  }

  const std::string& name() const { return name_; }
  bool is_alone() const { return alone_; }  ///< whether rank 0 does it without the others
  const std::vector<double>& times() const { return times_; }
  void forget_times() { times_.clear(); }
  Training& training() { return training_; }
  virtual const xgrad::mpi::ShardedStep<float>* sharded() const { return nullptr; }

 protected:
  virtual void gradients() = 0;

 private:
  std::string name_;
  Training training_;
  bool alone_;
  std::vector<double> times_;  // of each step, in ms
};

/// The mean of the whole batch, and of each rank's part if there are several, whose gradients MPI adds up.
class Whole : public Way {
 public:
  Whole(std::string name, const Size& size, const World* world)
      : Way(std::move(name), size, world == nullptr), world_(world) {}

 private:
  void gradients() override {
    const auto mine = world_ != nullptr
                          ? xgrad::detail::part(training().all().size(), world_->rank(), world_->size())
                          : xgrad::detail::Range{0, training().all().size()};
    training().optimizer().zero_grad();
    const auto batch = static_cast<float>(training().all().size());
    (training().loss(training().all().subspan(mine.begin, mine.size())).sum / batch).backward();
    if (world_ != nullptr) add_up();
  }

  void add_up() {
    packed_.clear();
    for (const Variable<float>& parameter : training().optimizer().parameters()) {
      const Variable<float> gradient = parameter.grad();
      packed_.insert(packed_.end(), gradient.value().begin(), gradient.value().end());
    }
    MPI_Allreduce(MPI_IN_PLACE, packed_.data(), static_cast<int>(packed_.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    const float* from = packed_.data();
    for (const Variable<float>& parameter : training().optimizer().parameters()) {
      Variable<float> gradient = parameter.grad();
      std::copy_n(from, gradient.size(), xgrad::detail::mutable_data(gradient));
      from += gradient.size();
    }
  }

  const World* world_;
  std::vector<float> packed_;
};

class Sharded : public Way {
 public:
  Sharded(std::string name, const Size& size, xgrad::mpi::ShardedStepOptions options)
      : Way(std::move(name), size, options.ranks == nullptr),
        sharded_(training().optimizer().parameters(), options) {}

  const xgrad::mpi::ShardedStep<float>* sharded() const override { return &sharded_; }

 private:
  void gradients() override {
    sharded_.backward(step_++, training().all(),
                      [this](Chosen examples) { return training().loss(examples); });
  }

  xgrad::mpi::ShardedStep<float> sharded_;
  std::size_t step_ = 0;
};

/// Those that rank 0 makes alone are null on the others.
std::vector<std::unique_ptr<Way>> ways(const Size& size, World& world, std::size_t bucket_bytes) {
  std::vector<std::unique_ptr<Way>> all;
  const auto sharded = [&](std::string name, xgrad::mpi::ShardedStepOptions options) {
    const bool takes_part = options.ranks != nullptr || world.rank() == 0;
    all.push_back(takes_part ? std::make_unique<Sharded>(std::move(name), size, options) : nullptr);
  };
  all.push_back(world.rank() == 0 ? std::make_unique<Whole>("1 rank", size, nullptr) : nullptr);
  sharded("1 rank, 8 shards", {.shards = 8});
  if (world.size() == 1) return all;
  constexpr std::size_t everything = std::size_t{1} << 40;
  const std::size_t count = world.size();
  const std::string ranks = std::to_string(count) + " ranks, ";
  all.push_back(std::make_unique<Whole>(ranks + "MPI_Allreduce", size, &world));
  sharded(ranks + std::to_string(count) + " shards, sent at the end",
          {.shards = count, .ranks = &world, .bucket_bytes = everything});
  sharded(ranks + std::to_string(count) + " shards",
          {.shards = count, .ranks = &world, .bucket_bytes = bucket_bytes});
  if (count < 8) sharded(ranks + "8 shards", {.shards = 8, .ranks = &world, .bucket_bytes = bucket_bytes});
  return all;
}

/// Makes steps of all ways, in turns.
void measure(std::vector<std::unique_ptr<Way>>& all, const World& world, double seconds) {
  constexpr std::size_t rounds = 9;
  std::vector<int> calls;
  for (const auto& way : all) {
    if (world.size() > 1) wait_quietly();
    for (int warm_up = 0; warm_up < 3 && way; ++warm_up) way->step();
    int count = 0;
    if (world.rank() == 0)
      count = static_cast<int>(std::max(1.0, std::ceil(1e3 * seconds / rounds / quantile(way->times(), 0))));
    if (world.size() > 1) MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    calls.push_back(count);
    if (way) way->forget_times();
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (world.size() > 1) wait_quietly();
      for (int call = 0; call < calls[i] && all[i]; ++call) all[i]->step();
    }
  }
  if (world.size() > 1) wait_quietly();
}

/// Of a rank in a step, in ms: what it waits, and how long it computes while gradients are on their way. What
/// ranks have told each other is of all steps but the last, of which three were to warm up.
xgrad::mpi::RankTimes mean_times(const Way& way, std::size_t ranks) {
  xgrad::mpi::RankTimes mean;
  const double per_step = 1e3 / static_cast<double>(ranks * (way.times().size() + 2));
  for (const xgrad::mpi::RankTimes& times : way.sharded()->rank_times()) {
    mean.waiting += per_step * times.waiting;
    mean.overlapping += per_step * times.overlapping;
  }
  return mean;
}

void print(const Config& config, const std::vector<std::unique_ptr<Way>>& all, const World& world) {
  const Size& size = config.size;
  std::printf("\n%s: %zu x %zu tokens, %zu rank%s, %zu thread%s each; OpenBLAS core %s\n", config.name,
              size.batch, size.seq, world.size(), world.size() == 1 ? "" : "s", xgrad::num_threads(),
              xgrad::num_threads() == 1 ? "" : "s", xgrad::blas_core_name());
  std::printf("%-34s %8s %8s %8s %8s %8s %8s\n", "", "step ms", "", "/ 1 rank", "waiting", "meantime", "MB");
  std::printf("%-34s %8s %8s %8s %8s %8s %8s\n", "", "median", "min", "", "ms", "ms", "sent");
  for (const auto& way : all) {
    const double middle = median(way->times());
    std::printf("%-34s %8.4g %8.4g %8.3f", way->name().c_str(), middle, quantile(way->times(), 0),
                middle / median(all.front()->times()));
    if (way->sharded() != nullptr && !way->is_alone()) {
      const xgrad::mpi::RankTimes mean = mean_times(*way, world.size());
      std::printf(" %8.3g %8.3g %8.3f", mean.waiting, mean.overlapping,
                  1e-6 * static_cast<double>(way->sharded()->bytes_sent()));
    }
    std::printf("\n");
  }
  if (world.size() > 1) {
    const double at_the_end = mean_times(*all[3], world.size()).waiting,
                 meanwhile = mean_times(*all[4], world.size()).waiting;
    std::printf("sending during the backward pass hides %.0f %% of the waiting\n",
                100 * (1 - meanwhile / at_the_end));
  }
  std::fflush(stdout);
}

/// What a resumed run begins with: all ranks compare their parameters and take the state of rank 0, which is
/// the parameters and two moments of each.
void measure_start(Training& training, World& world) {
  const std::vector<Variable<float>> parameters = training.optimizer().parameters();
  std::vector<std::byte> state;
  for (int copy = 0; copy < 3 && world.rank() == 0; ++copy) {
    for (const Variable<float>& parameter : parameters) {
      const auto bytes = std::as_bytes(std::span(parameter.value().data(), parameter.size()));
      state.insert(state.end(), bytes.begin(), bytes.end());
    }
  }
  state = xgrad::mpi::broadcast(
      world, std::move(state));  // the first time is that of the system, which finds memory
  wait_quietly();
  const Clock::time_point start = Clock::now();
  std::uint64_t sum = 0;
  for (const Variable<float>& parameter : parameters)
    sum = xgrad::detail::checksum(std::as_bytes(std::span(parameter.value().data(), parameter.size())), sum);
  xgrad::mpi::check_agreement(world, {{"the checksum of the parameters", std::to_string(sum)}});
  const double agreement = seconds_since(start);
  state = xgrad::mpi::broadcast(world, std::move(state));
  wait_quietly();
  const double both = seconds_since(start);
  if (world.rank() == 0)
    std::printf("before the first step: %.3g s to agree, %.3g s for %.4g MB of state from rank 0\n",
                agreement, both - agreement, 1e-6 * static_cast<double>(state.size()));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> configs{"small", "medium"};
  double seconds = 3;
  std::size_t bucket_bytes = xgrad::mpi::ShardedStepOptions().bucket_bytes;
  apps::CommandLine app(
      "Prints the time of a training step (zero_grad, forward, backward, Adam) of one rank and of all, in "
      "turns; of "
      "all, how long a rank waits for the others, how long it computes while gradients are on their way, and "
      "what "
      "it sends in a step. To be started by mpirun.");
  app.add_option("--config", configs, "Sizes of the encoder, as of bench_encoder")
      ->check(apps::one_of(config_names()))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "Time of each line")
      ->check(apps::in_range(1e-3, 1000.0))
      ->capture_default_str();
  app.add_option("--bucket", bucket_bytes, "Bytes of a bucket")
      ->check(apps::in_range<std::size_t>(1, std::size_t{1} << 40))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("bench_ranks", [&] {
    World world;
    for (const std::string& name : configs) {
      const Config& config = config_of(name);
      std::vector<std::unique_ptr<Way>> all = ways(config.size, world, bucket_bytes);
      measure(all, world, seconds);
      if (world.rank() == 0) print(config, all, world);
      if (world.size() > 1) measure_start(all.back()->training(), world);
    }
    return 0;
  });
}
