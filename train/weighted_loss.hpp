#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../graph/variable.hpp"

namespace xgrad {

/// The loss of some examples as a sum, and its divisor for the mean: the number of examples or words.
template <class T>
struct WeightedLoss {
  Variable<T> sum;         ///< one element
  double weight;           ///< at least 0
  std::size_t tokens = 0;  ///< as in StepResult
};

/// The loss of a batch.
struct BatchLoss {
  double sum = 0;
  double weight = 0;
  std::size_t tokens = 0;
  double mean() const { return sum / weight; }
};

/// Sets the gradients of the parameters, which must have none before, to those of the mean loss: those of the
/// sum, divided by the weight at the end. Throws ValueError for a parameter that has one, and for a weight
/// that is not positive and finite.
template <class T>
BatchLoss backward_mean(const WeightedLoss<T>& loss, const std::vector<Variable<T>>& parameters);

namespace detail {

/// The seed of the random numbers of a part of a batch.
std::array<std::uint32_t, 6> key_of_shard(std::uint64_t seed, std::uint64_t step, std::uint64_t shard);

}  // namespace detail
}  // namespace xgrad
