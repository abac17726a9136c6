#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../base/error.hpp"
#include "../../ops/index/indexing.hpp"
#include "../../ops/loss/cross_entropy.hpp"
#include "../../ops/loss/losses.hpp"
#include "../../ops/shape/shapes.hpp"
#include "../config.hpp"

// Not installed: losses of heads.
namespace xgrad::pretrained::detail {

inline constexpr std::int64_t ignored_label = -100;

/// The rows of hidden states (batch, length, size) that have a label, and the labels: what is ignored need
/// not be computed. Without any label all rows.
template <class T>
std::pair<Variable<T>, Ids> labelled(const Variable<T>& hidden, const Ids& labels) {
  if (labels.dimension() != 2 || labels.shape(0) != hidden.shape(0) || labels.shape(1) != hidden.shape(1))
    xgrad::detail::fail<ShapeError>("loss: labels must be (batch, length), got ", labels.shape(),
                                    " for hidden states ", hidden.shape());
  const std::span<const std::int64_t> all(labels.data(), labels.size());
  std::vector<std::int64_t> rows, kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == ignored_label) continue;
    rows.push_back(static_cast<std::int64_t>(i));
    kept.push_back(all[i]);
  }
  const Variable<T> flat = flatten(hidden, 0, 1);
  if (rows.empty() || rows.size() == labels.size()) return {flat, xgrad::detail::array_of<std::int64_t>(all)};
  const auto ids_of = [](const std::vector<std::int64_t>& numbers) {
    return xgrad::detail::array_of<std::int64_t>(std::span<const std::int64_t>(numbers));
  };
  return {index_select(flat, 0, ids_of(rows)), ids_of(kept)};
}

/// The reduced cross-entropy of logits (..., classes) and labels of the shape in front.
template <class T>
Variable<T> class_loss(const Variable<T>& logits, const Ids& labels, Reduction reduction = Reduction::mean,
                       std::int64_t ignored = ignored_label) {
  const std::size_t classes = logits.shape(logits.dimension() - 1);
  Ids flat = labels;
  flat.reshape({labels.size()});
  return cross_entropy(reshape(logits, {-1, static_cast<std::ptrdiff_t>(classes)}), flat,
                       {.ignore_index = ignored, .reduction = reduction});
}

/// The loss of targets (batch, labels), or (batch) for one label: the mean squared error for regression, else
/// the mean binary cross-entropy.
template <class T>
Variable<T> target_loss(const Variable<T>& logits, const Array<T>& targets, std::size_t labels,
                        std::optional<ProblemType> problem_type) {
  const bool one = labels == 1;
  const bool fits =
      same_shape(targets.shape(), logits.shape()) || (one && same_shape(targets.shape(), {logits.shape(0)}));
  if (!fits)
    xgrad::detail::fail<ShapeError>("SequenceClassifier: targets must be (batch, labels), got ",
                                    targets.shape(), " for logits ", logits.shape());
  const Variable<T> wanted = reshape(Variable<T>(targets), logits.shape());
  const ProblemType problem =
      problem_type.value_or(one ? ProblemType::regression : ProblemType::multi_label_classification);
  return problem == ProblemType::regression ? mse_loss(logits, wanted)
                                            : binary_cross_entropy_with_logits(logits, wanted);
}

}  // namespace xgrad::pretrained::detail
