#pragma once

// A training that any number of ranks can share.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <xgrad/base/random.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/models/transformer/encoder.hpp>
#include <xgrad/mpi/sharded_step.hpp>
#include <xgrad/ops.hpp>
#include <xgrad/train/clip_grad.hpp>
#include <xgrad/train/optimizers/adam.hpp>

namespace xgrad_tests {

inline std::vector<std::size_t> first_examples(std::size_t count) {
  std::vector<std::size_t> examples(count);
  std::iota(examples.begin(), examples.end(), std::size_t{0});
  return examples;
}

/// A sentence classifier with dropout, and sentences of different lengths and weights.
struct Task {
  Task() : encoder({.d_model = 8, .heads = 2, .d_ff = 16, .layers = 1, .dropout = 0.3}), head(8, 3) {}

  std::vector<xgrad::Variable<float>> parameters() const {
    std::vector<xgrad::Variable<float>> all = encoder.parameters();
    for (const xgrad::Variable<float>& parameter : head.parameters()) all.push_back(parameter);
    return all;
  }

  xgrad::WeightedLoss<float> loss(std::span<const std::size_t> examples) const {
    xgrad::Generator data(11);
    const xgrad::Array<float> all = xgrad::normal<float>({13, 4, 8}, 0, 1, data);
    xgrad::Array<float> x = xgrad::Array<float>::from_shape({examples.size(), 4, 8});
    xgrad::Ids y = xgrad::Ids::from_shape({examples.size() * 4});
    double weight = 0;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      std::copy_n(&all(examples[i], 0, 0), 32, &x(i, 0, 0));
      for (std::size_t j = 0; j < 4; ++j) {
        const bool counts = j <= examples[i] % 4;
        y(4 * i + j) = counts ? static_cast<std::int64_t>((examples[i] + j) % 3) : -100;
        weight += counts ? 1 : 0;
      }
    }
    const xgrad::Variable<float> scores = reshape(head(encoder(x)), {-1, 3});
    return {cross_entropy(scores, y, {.reduction = xgrad::Reduction::sum}), weight};
  }

  xgrad::TransformerEncoder<float> encoder;
  xgrad::Linear<float> head;
};

/// All bits that a run of three steps leaves behind.
inline std::vector<float> trained(std::size_t shards, xgrad::mpi::Communicator* ranks = nullptr,
                                  std::size_t bucket_bytes = 1000) {
  xgrad::Generator mine(3);
  const xgrad::UseGenerator use(mine);
  const Task task;
  xgrad::AdamW<float> optimizer(task.parameters(), {.lr = 1e-2});
  xgrad::mpi::ShardedStep<float> sharded(
      optimizer.parameters(), {.shards = shards, .seed = 5, .ranks = ranks, .bucket_bytes = bucket_bytes});
  std::vector<float> result;
  for (std::size_t step = 0; step < 3; ++step) {
    const std::vector<std::size_t> batch = first_examples(13 - 4 * step);
    const xgrad::BatchLoss loss = sharded.backward(
        step, batch, [&](std::span<const std::size_t> examples) { return task.loss(examples); });
    result.push_back(static_cast<float>(loss.mean()));
    result.push_back(static_cast<float>(clip_grad_norm(optimizer.parameters(), 0.5)));
    optimizer.step();
  }
  for (const xgrad::Variable<float>& parameter : task.parameters())
    result.insert(result.end(), parameter.value().begin(), parameter.value().end());
  return result;
}

}  // namespace xgrad_tests
