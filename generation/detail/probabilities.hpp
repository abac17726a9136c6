#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../../base/error.hpp"

// Not installed: logits as probabilities. Sums are double.

namespace xgrad::generation::detail {

/// Throws ValueError for nan, which has no place in an order.
template <class T>
void check_numbers(std::span<const T> logits) {
  if (std::any_of(logits.begin(), logits.end(), [](T logit) { return std::isnan(logit); }))
    throw ValueError("generation: logits must be numbers, got nan");
}

/// Throws ValueError for nan, and unless the largest logit is finite.
template <class T>
T largest_finite(std::span<const T> logits) {
  check_numbers(logits);
  const T largest = *std::max_element(logits.begin(), logits.end());
  if (!std::isfinite(largest))
    xgrad::detail::fail<ValueError>("generation: the largest logit must be finite, got ", largest);
  return largest;
}

/// The softmax.
template <class T>
std::vector<T> probabilities_of(std::span<const T> logits) {
  const T largest = largest_finite(logits);
  std::vector<T> p(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(logits[i] - largest);
  for (T& one : p) one = static_cast<T>(one / sum);
  return p;
}

/// log softmax, in place.
template <class T>
void to_log_probabilities(std::span<T> logits) {
  const T largest = largest_finite<T>(logits);
  double sum = 0;
  for (const T logit : logits) sum += std::exp(logit - largest);
  const T log_sum = static_cast<T>(std::log(sum));
  for (T& logit : logits) logit = logit - largest - log_sum;
}

/// -sum p log p, where the terms of p = 0 are 0.
template <class T>
T entropy_of(std::span<const T> log_probabilities) {
  double sum = 0;
  for (const T log_p : log_probabilities) {
    const double p = std::exp(log_p);
    if (p > 0) sum -= p * log_p;
  }
  return static_cast<T>(sum);
}

}  // namespace xgrad::generation::detail
