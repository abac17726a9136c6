// Trains a model on several processes: the same weights, to the last bit, for any number of them
#include <cstdio>

#include <xgrad/mpi.hpp>
#include <xgrad/xgrad.hpp>

int main() {
  xgrad::mpi::World world;  // one rank, if mpirun has not started this
  xgrad::manual_seed(0);    // on every rank: the same weights, and the same batches

  const xgrad::Array<float> x = xgrad::normal<float>({1000, 4}), noise = xgrad::normal<float>({1000, 1});
  const xgrad::Array<float> y = xt::view(x, xt::all(), xt::range(0, 1)) * 3.0f + 0.1f * noise;
  const xgrad::Linear<float> model(4, 1);
  xgrad::Adam<float> optimizer(model.parameters(), {.lr = 3e-2});
  xgrad::BatchSampler batches(1000, {.batch_size = 50});  // of all ranks together
  xgrad::mpi::ShardedStep<float> sharded(optimizer.parameters(), {.shards = 8, .ranks = &world});

  const auto loss_of = [&](std::span<const std::size_t> examples) {  // a shard: each rank computes some
    const auto answer = model(xt::view(x, xt::keep(examples), xt::all()));
    const auto target = xt::view(y, xt::keep(examples), xt::all());
    return xgrad::WeightedLoss<float>{.sum = mse_loss(answer, target, xgrad::Reduction::sum),
                                      .weight = static_cast<double>(examples.size())};
  };
  const auto step = [&](std::size_t number) -> xgrad::StepResult {
    const xgrad::BatchLoss loss = sharded.backward(number, batches.next(), loss_of);
    optimizer.step();
    return {.loss = loss.mean()};
  };
  const xgrad::TrainingLog log = xgrad::mpi::fit(world, 500, step);

  if (world.rank() == 0) {
    const xgrad::Variable<float> w = model.parameters()[0];
    std::printf("%zu ranks, loss %.9g, w", world.size(), log.losses.back());
    for (const float element : w.value()) std::printf(" %.9g", static_cast<double>(element));
    std::printf("\n");
  }
}
