#include "weighted_loss.hpp"

#include <cmath>

#include "../base/error.hpp"
#include "clip_grad.hpp"

namespace xgrad {

template <class T>
BatchLoss backward_mean(const WeightedLoss<T>& loss, const std::vector<Variable<T>>& parameters) {
  if (!(loss.weight > 0 && std::isfinite(loss.weight)))
    detail::fail<ValueError>("backward_mean: the weight must be positive and finite, got ", loss.weight);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].has_grad())
      detail::fail<ValueError>(
          "backward_mean: parameters must have no gradients before, got one of parameter ", i);
  }
  loss.sum.backward();
  detail::scale_gradients(parameters, static_cast<T>(1 / loss.weight));
  return {static_cast<double>(loss.sum.item()), loss.weight, loss.tokens};
}

std::array<std::uint32_t, 6> detail::key_of_shard(std::uint64_t seed, std::uint64_t step,
                                                  std::uint64_t shard) {
  std::array<std::uint32_t, 6> key;
  auto word = key.begin();
  for (const std::uint64_t number : {seed, step, shard}) {
    *word++ = static_cast<std::uint32_t>(number);
    *word++ = static_cast<std::uint32_t>(number >> 32);
  }
  return key;
}

template BatchLoss backward_mean(const WeightedLoss<float>&, const std::vector<Variable<float>>&);
template BatchLoss backward_mean(const WeightedLoss<double>&, const std::vector<Variable<double>>&);

}  // namespace xgrad
