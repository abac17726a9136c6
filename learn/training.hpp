#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "partial_encoder.hpp"

namespace learn {

struct TrainingSettings {
  std::uint64_t seed = 0;
  std::size_t steps = 1000;  ///< of the whole training, which the learning rate follows
  double lr = 3e-3;          ///< the highest learning rate
  std::size_t heads = 4, layers = 1;
  Parts parts = {};
};

struct TrainedStep {
  double loss;
  double lr;
  double grad_norm;  ///< before clipping
};

/// The training of train_toy_encoder, a step at a time: with all parts it has its losses, bit for bit.
class Training {
 public:
  static constexpr std::size_t d_model = 32, d_ff = 64, batch = 64;

  /// Throws xgrad::ValueError for invalid settings.
  explicit Training(const TrainingSettings& settings);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  std::size_t steps_done() const;
  bool is_done() const;

  /// Makes the next step. Throws xgrad::ValueError if all are done.
  TrainedStep step();

  /// What the model makes of the notebook's sentence, in which one of the words that can be hidden is: the
  /// data of a report (docs/report_format.md) with the graph and the attention of that question, and with
  /// predictions for all of them. Throws xgrad::ValueError unless `question` is below the number of these.
  std::string look(std::size_t question) const;

  /// The questions about the notebook's sentence: the places of the hidden word and of its clue.
  static std::vector<std::pair<std::size_t, std::size_t>> questions();

 private:
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

}  // namespace learn
