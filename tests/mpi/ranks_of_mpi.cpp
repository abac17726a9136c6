// Tries one thing on the ranks that mpirun has started; the first argument says what
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <xgrad/base/detail/bytes/checksum.hpp>
#include <xgrad/files/training_checkpoint.hpp>
#include <xgrad/mpi.hpp>
#include <xgrad/train/data.hpp>

#include "sharded_training.hpp"

namespace {

using xgrad::mpi::World;

void expect(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

/// Messages of many lengths, several between any two ranks.
void messages(World& world) {
  const std::size_t lengths[] = {0, 1, 3, 100000, 5000000, 0, 17};
  const auto byte = [](std::size_t from, std::size_t to, std::size_t number, std::size_t place) {
    return static_cast<std::byte>((from * 31 + to * 17 + number * 7 + place) % 251);
  };
  std::vector<std::vector<std::byte>> sent, received;
  std::vector<World::Outgoing> out;
  std::vector<World::Incoming> in;
  sent.reserve(64);
  received.reserve(64);
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    if (rank == world.rank()) continue;
    for (std::size_t number = 0; number < std::size(lengths); ++number) {
      auto& bytes = sent.emplace_back(lengths[number]);
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte(world.rank(), rank, number, i);
      out.push_back({rank, bytes});
      in.push_back({rank, received.emplace_back(lengths[number])});
    }
  }
  for (int times = 0; times < 3; ++times) {
    for (auto& bytes : received) std::fill(bytes.begin(), bytes.end(), std::byte{255});
    world.exchange(out, in);
    auto bytes = received.begin();
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) continue;
      for (std::size_t number = 0; number < std::size(lengths); ++number, ++bytes)
        for (std::size_t i = 0; i < bytes->size(); ++i)
          expect((*bytes)[i] == byte(rank, world.rank(), number, i), "a byte has changed");
    }
  }
}

/// Transfers on channels of their own may be started in another order on each rank, and asked in any.
void channels(World& world) {
  constexpr int count = 5;
  std::vector<std::vector<std::size_t>> received(count, std::vector<std::size_t>(world.size(), 99));
  std::vector<std::size_t> sent(count);
  std::vector<std::unique_ptr<World::Transfer>> transfers;
  for (int i = 0; i < count; ++i) {
    const int channel = (i + static_cast<int>(world.rank())) % count;
    const auto place = static_cast<std::size_t>(channel);
    sent[place] = 10 * place + world.rank();
    std::vector<World::Outgoing> out;
    std::vector<World::Incoming> in;
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) continue;
      out.push_back({rank, std::as_bytes(std::span(&sent[place], 1))});
      in.push_back({rank, std::as_writable_bytes(std::span(&received[place][rank], 1))});
    }
    transfers.push_back(world.start(channel, out, in));
  }
  world.wait_until([&] {
    std::erase_if(transfers, [](const auto& transfer) { return transfer->done(); });
    return transfers.empty();
  });
  for (std::size_t channel = 0; channel < count; ++channel)
    for (std::size_t rank = 0; rank < world.size(); ++rank)
      expect(rank == world.rank() || received[channel][rank] == 10 * channel + rank, "another channel's");
}

/// The bits of a training by all ranks are those of a training by one process.
void training(World& world) {
  for (const std::size_t shards : {4, 6, 8}) {
    const std::vector<float> together = xgrad_tests::trained(shards, &world),
                             alone = xgrad_tests::trained(shards);
    expect(together.size() == alone.size() &&
               std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)) == 0,
           "the bits are not those of one process");
  }
}

void other_length(World& world, std::size_t length) {
  const std::vector<std::byte> sent(8);
  std::vector<std::byte> received(length);
  const World::Outgoing out[] = {{1 - world.rank(), sent}};
  const World::Incoming in[] = {{1 - world.rank(), received}};
  world.exchange(out, in);
}

/// All ranks train; rank 1 does something else before its third step.
void interrupted(World& world, const std::function<void()>& something) {
  const xgrad::TrainingLog log =
      xgrad::mpi::fit(world, 10,
                      [&](std::size_t step) {
                        if (step == 3 && world.rank() == 1) something();
                        return xgrad::StepResult{.loss = static_cast<double>(all_sum(world, {1})[0])};
                      },
                      {.progress = false});
  std::printf("rank %zu: %zu steps%s\n", world.rank(), log.steps, log.interrupted ? ", interrupted" : "");
}

/// What a loss that is not finite throws can be caught where there is one rank.
void caught(World& world) {
  try {
    xgrad::mpi::fit(world, 1, [](std::size_t) { return xgrad::StepResult{.loss = std::nan("")}; },
                    {.progress = false});
  } catch (const std::runtime_error& error) {
    std::printf("caught: %s\n", error.what());
  }
}

/// Trains from the checkpoint that `path` names, or from the beginning, saves after each step, and prints the
/// bits of the end. In step `kill_at` rank `victim` is killed.
void run(World& world, const std::string& path, std::size_t kill_at, std::size_t victim) {
  const xgrad_tests::Task task;
  xgrad::AdamW<float> optimizer(task.parameters(), {.lr = 1e-2});
  xgrad::BatchSampler batches(13, {.batch_size = 5});
  const xgrad::TrainingParts parts{
      {"encoder", task.encoder}, {"head", task.head}, {"optimizer", optimizer}, {"batches", batches}};
  std::size_t first_step = 0;
  const std::uint64_t there = world.rank() == 0 && std::filesystem::exists(path) ? 1 : 0;
  // Only rank 0 sees the file.
  if (all_sum(world, {there})[0] > 0) {
    std::vector<std::byte> bytes;
    if (world.rank() == 0) {
      const xgrad::MappedFile file(path);
      bytes.assign(file.bytes().begin(), file.bytes().end());
    }
    first_step = load_checkpoint(path, broadcast(world, std::move(bytes)), parts);
  }
  xgrad::mpi::ShardedStep<float> sharded(optimizer.parameters(), {.shards = 4, .seed = 5, .ranks = &world});
  xgrad::mpi::fit(world, 20,
                  [&](std::size_t step) {
                    const auto loss =
                        sharded.backward(step, batches.next(), [&](std::span<const std::size_t> examples) {
                          if (step == kill_at && world.rank() == victim) std::raise(SIGKILL);
                          return task.loss(examples);
                        });
                    optimizer.step();
                    return xgrad::StepResult{.loss = loss.mean()};
                  },
                  {.progress = false,
                   .first_step = first_step,
                   .save = [&](std::size_t done) { save_checkpoint(parts, path, done); },
                   .save_every = 1});
  std::uint64_t bits = 0;
  for (const auto& parameter : task.parameters()) {
    const auto& value = parameter.value();
    bits = xgrad::detail::checksum(std::as_bytes(std::span(value.data(), value.size())), bits);
  }
  if (world.rank() == 0)
    std::printf("%zu steps from %zu, bits %llx\n", std::size_t{20}, first_step,
                static_cast<unsigned long long>(bits));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    const double timeout = what == "hang" ? 2 : what == "hang_at_end" ? 0.2 : 100;
    World world({.timeout = std::chrono::duration<double>(timeout)});
    xgrad::manual_seed(1);
    const std::map<std::string, std::function<void()>> tries = {
        {"messages", [&] { messages(world); }},
        {"channels", [&] { channels(world); }},
        {"training", [&] { training(world); }},
        {"shorter", [&] { other_length(world, 9); }},
        {"longer", [&] { other_length(world, 7); }},
        {"run", [&] { run(world, argv[2], std::stoul(argv[3]), std::stoul(argv[4])); }},
        {"size", [&] { std::printf("rank %zu of %zu\n", world.rank(), world.size()); }},
        {"exception", [&] { interrupted(world, [] { throw std::runtime_error("no disk"); }); }},
        {"exception_outside_of_fit",
         [&] {
           if (world.rank() == 1) throw std::runtime_error("no disk");
           all_sum(world, {1});
         }},
        {"caught", [&] { caught(world); }},
        {"exit", [&] { interrupted(world, [] { std::exit(3); }); }},
        {"kill", [&] { interrupted(world, [] { std::raise(SIGKILL); }); }},
        {"hang", [&] { interrupted(world, [] { std::raise(SIGSTOP); }); }},
        {"hang_at_end",
         [&] {
           if (world.rank() == 1) std::raise(SIGSTOP);
         }},
        {"signal", [&] { interrupted(world, [] { std::raise(SIGTERM); }); }},
    };
    tries.at(what)();
    if (world.rank() == 0) std::printf("done\n");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
