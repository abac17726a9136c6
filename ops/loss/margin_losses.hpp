#pragma once

#include "losses.hpp"

// Losses that are 0 beyond a margin. Targets of 1 and -1 are numbers without a gradient.
// https://pytorch.org/docs/stable/nn.functional.html#loss-functions

namespace xgrad {

struct MarginLossOptions {
  detail::ByName by_name = {};
  double margin = 0;
  Reduction reduction = Reduction::mean;
};

/// loss = max(0, margin - target (input1 - input2)), reduced: input1 is to be larger where target is 1,
/// smaller where it is -1. The three broadcast.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.margin_ranking_loss.html
template <class T>
Variable<T> margin_ranking_loss(const Variable<T>& input1, const Variable<T>& input2,
                                const std::type_identity_t<Variable<T>>& target,
                                MarginLossOptions options = {});

/// loss = 1 - c where target is 1, max(0, c - margin) where it is -1, reduced, for the cosine c of the angle
/// between rows of input1 and input2, (N, D) with target (N), or (D) with target (). c = a.b / sqrt((a.a +
/// 1e-12) (b.b + 1e-12)). Throws ShapeError for other shapes and ValueError for another target.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.cosine_embedding_loss.html
template <class T>
Variable<T> cosine_embedding_loss(const Variable<T>& input1, const Variable<T>& input2,
                                  const std::type_identity_t<Variable<T>>& target,
                                  MarginLossOptions options = {});

struct HingeEmbeddingOptions {
  detail::ByName by_name = {};
  double margin = 1;
  Reduction reduction = Reduction::mean;
};

/// loss = input where target is 1, max(0, margin - input) where it is -1, reduced, for a distance input. One
/// must broadcast to the other. Throws ValueError for another target.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.hinge_embedding_loss.html
template <class T>
Variable<T> hinge_embedding_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                                 HingeEmbeddingOptions options = {});

/// loss = ln(1 + e^(-target input)), reduced, without overflow. One must broadcast to the other.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.soft_margin_loss.html
template <class T>
Variable<T> soft_margin_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                             Reduction reduction = Reduction::mean);

struct TripletMarginOptions {
  detail::ByName by_name = {};
  double margin = 1;
  double p = 2;  ///< of the norm
  double eps = 1e-6;
  bool swap = false;  ///< the distance of positive to negative counts where it is the smaller one
  Reduction reduction = Reduction::mean;
};

/// loss = max(0, margin + d(anchor, positive) - d(anchor, negative)), reduced, with d(a, b) the p-norm of
/// a - b + eps along the last axis. The three broadcast. Throws ShapeError for operands without an axis.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.triplet_margin_loss.html
template <class T>
Variable<T> triplet_margin_loss(const Variable<T>& anchor, const Variable<T>& positive,
                                const Variable<T>& negative, TripletMarginOptions options = {});

template <class T>
struct MultiMarginOptions {
  detail::ByName by_name = {};
  int p = 1;  ///< 1 or 2
  double margin = 1;
  Variable<T> weight = {};  ///< of each class (C); it gets no gradient
  Reduction reduction = Reduction::mean;
};

/// loss = sum over the classes c but the target's t of weight[t] max(0, margin - input[t] + input[c])^p / C,
/// reduced, for input (N, C) and target (N), or (C) and () or (1); an input () has one class. Throws
/// IndexError for a target out of range, ShapeError for other shapes, ValueError for another p.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.multi_margin_loss.html
template <class T>
Variable<T> multi_margin_loss(const Variable<T>& input, const Ids& target,
                              const MultiMarginOptions<std::type_identity_t<T>>& options = {});
/// Targets are integers: xt::cast<std::int64_t>(target).
template <class T, detail::NoIds E>
Variable<T> multi_margin_loss(const Variable<T>& input, const E& target,
                              const MultiMarginOptions<std::type_identity_t<T>>& options = {}) = delete;

}  // namespace xgrad
