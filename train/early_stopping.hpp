#pragma once

#include "../base/detail/by_name.hpp"
#include "stateful.hpp"

namespace xgrad {

/// Which scores are better.
enum class Better {
  higher,  ///< such as accuracies
  lower    ///< such as losses
};

struct EarlyStoppingOptions {
  detail::ByName by_name = {};
  std::size_t patience = 5;  ///< evaluations without an improvement before stopping
  double min_delta = 0;      ///< an improvement must exceed this
  Better better = Better::higher;
};

/// Monitors a score on a validation set, by default one such as the accuracy, of which higher is better; for
/// a loss, {.better = Better::lower} (Prechelt 1998).
class EarlyStopping : public Stateful {
 public:
  /// Throws ValueError for a patience of 0 and a min_delta that is negative, infinite or nan.
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  /// Takes the score of one evaluation. Returns true if it is the best so far, for saving the weights; nan
  /// never is.
  bool update(double score);

  bool should_stop() const { return since_best_ >= options_.patience; }

  /// The best score; before the first update -inf, or inf where lower is better.
  double best() const { return best_; }

 protected:
  void list_state(StateArchive& state) override;

 private:
  EarlyStoppingOptions options_;
  double best_;
  std::size_t since_best_ = 0;
};

}  // namespace xgrad
