#include "early_stopping.hpp"

#include <cmath>
#include <limits>

#include "../base/error.hpp"

namespace xgrad {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(options),
      best_(options.better == Better::lower ? std::numeric_limits<double>::infinity()
                                            : -std::numeric_limits<double>::infinity()) {
  if (options.patience == 0) detail::fail<ValueError>("EarlyStopping: patience must be at least 1, got 0");
  if (!(options.min_delta >= 0 && std::isfinite(options.min_delta))) {
    detail::fail<ValueError>("EarlyStopping: min_delta must be finite and at least 0, got ",
                             options.min_delta);
  }
}

bool EarlyStopping::update(double score) {
  const bool better = options_.better == Better::lower ? score < best_ - options_.min_delta
                                                       : score > best_ + options_.min_delta;
  if (better) best_ = score;
  since_best_ = better ? 0 : since_best_ + 1;
  return better;
}

void EarlyStopping::list_state(StateArchive& state) {
  state.keep(best_, since_best_);
  state.number("best", best_);
  state.number("since_best", since_best_);
  state.check([this] {  // nothing would be better than nan
    if (std::isnan(best_)) detail::fail<ValueError>("EarlyStopping: 'best' must be a number, got ", best_);
  });
}

}  // namespace xgrad
