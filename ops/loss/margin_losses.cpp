#include "margin_losses.hpp"

#include <algorithm>
#include <limits>

#include "../index/indexing.hpp"
#include "../index/masked_fill.hpp"
#include "../index/where.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"
#include "detail/losses.hpp"

namespace xgrad {
namespace {

using detail::reduced_losses;

/// Where target is 1, not -1.
template <class T>
Mask is_positive(const char* op, const Variable<T>& target) {
  Mask positive = Mask::from_shape(target.shape());
  for (std::size_t i = 0; i < positive.size(); ++i) {
    const T label = target.value().data()[i];
    if (label != 1 && label != -1) detail::fail<ValueError>(op, ": target must be 1 or -1, got ", label);
    positive.data()[i] = label == 1;
  }
  return positive;
}

/// The p-norms of a - b + eps along the last axis.
template <class T>
Variable<T> distance(const Variable<T>& a, const Variable<T>& b, const TripletMarginOptions& options) {
  return norm(a - b + static_cast<T>(options.eps), static_cast<T>(options.p), Dims{-1});
}

}  // namespace

template <class T>
Variable<T> margin_ranking_loss(const Variable<T>& input1, const Variable<T>& input2,
                                const std::type_identity_t<Variable<T>>& target, MarginLossOptions options) {
  detail::check_operands("margin_ranking_loss", input1, input2, "input1", "input2");
  const Variable<T> difference = input2 - input1;
  detail::check_operands("margin_ranking_loss", difference, target);
  return reduced_losses(clamp(target * difference + static_cast<T>(options.margin), T{0}), options.reduction);
}

template <class T>
Variable<T> cosine_embedding_loss(const Variable<T>& input1, const Variable<T>& input2,
                                  const std::type_identity_t<Variable<T>>& target,
                                  MarginLossOptions options) {
  const Shape& shape = input1.shape();
  const std::size_t rank = shape.size();
  if (rank == 0 || rank > 2 || !same_shape(shape, input2.shape()) || target.dimension() + 1 != rank ||
      (rank == 2 && target.shape()[0] != shape[0])) {
    detail::fail<ShapeError>(
        "cosine_embedding_loss: input1 and input2 must be (N, D) and target (N), or (D) and (), got input1 ",
        shape, ", input2 ", input2.shape(), " and target ", target.shape());
  }
  const Mask positive = is_positive("cosine_embedding_loss", target);
  const Dims last{-1};
  Shape column = shape;
  column.back() = 1;
  const Variable<T> root_of_eps(Array<T>(column, T(1e-6)));
  // divided by sqrt(|x|^2 + 1e-12), without a square that leaves the range
  const auto scaled = [&](const Variable<T>& x) {
    return x / norm(cat({x, root_of_eps}, -1), T{2}, last, {.keepdim = true});
  };
  const Variable<T> cosine = sum(scaled(input1) * scaled(input2), last);
  const Variable<T> apart = clamp(cosine - static_cast<T>(options.margin), T{0});
  return reduced_losses(where(positive, T{1} - cosine, apart), options.reduction);
}

template <class T>
Variable<T> hinge_embedding_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                                 HingeEmbeddingOptions options) {
  detail::check_operands("hinge_embedding_loss", input, target);
  const Mask positive = is_positive("hinge_embedding_loss", target);
  const Variable<T> apart = clamp(static_cast<T>(options.margin) - input, T{0});
  return reduced_losses(where(positive, input, apart), options.reduction);
}

template <class T>
Variable<T> soft_margin_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                             Reduction reduction) {
  detail::check_operands("soft_margin_loss", input, target);
  return reduced_losses(softplus(-target * input, T(1), std::numeric_limits<T>::infinity()), reduction);
}

template <class T>
Variable<T> triplet_margin_loss(const Variable<T>& anchor, const Variable<T>& positive,
                                const Variable<T>& negative, TripletMarginOptions options) {
  for (const Variable<T>* const operand : {&anchor, &positive, &negative}) {
    if (operand->dimension() == 0) {
      detail::fail<ShapeError>("triplet_margin_loss: operands need an axis, got anchor ", anchor.shape(),
                               ", positive ", positive.shape(), " and negative ", negative.shape());
    }
  }
  const Variable<T> near = distance(anchor, positive, options);
  Variable<T> far = distance(anchor, negative, options);
  if (options.swap) far = minimum(far, distance(positive, negative, options));
  return reduced_losses(clamp(near - far + static_cast<T>(options.margin), T{0}), options.reduction);
}

template <class T>
Variable<T> multi_margin_loss(const Variable<T>& input, const Ids& target,
                              const MultiMarginOptions<std::type_identity_t<T>>& options) {
  const Shape& shape = input.shape();
  const std::size_t rank = shape.size();
  if (rank == 0) return multi_margin_loss(reshape(input, {1}), target, options);
  if (rank == 1 && target.shape() == Shape{1})
    return multi_margin_loss(reshape(input, {1, static_cast<std::ptrdiff_t>(shape[0])}), target, options);
  if (rank > 2 || target.dimension() + 1 != rank || shape[rank - 1] == 0 ||
      (rank == 2 && target.shape()[0] != shape[0])) {
    detail::fail<ShapeError>(
        "multi_margin_loss: input must be (N, C) and target (N), or (C) and (), with C above 0, got input ",
        shape, " and target ", target.shape());
  }
  if (options.p != 1 && options.p != 2)
    detail::fail<ValueError>("multi_margin_loss: p must be 1 or 2, got ", options.p);
  const std::size_t classes = shape[rank - 1];
  if (options.weight.defined() && options.weight.shape() != Shape{classes})
    detail::fail<ShapeError>("multi_margin_loss: weight must be (", classes, "), got ",
                             options.weight.shape());
  Shape column = shape;
  column[rank - 1] = 1;
  Ids index = Ids::from_shape(column);
  Mask own = Mask(shape, false);
  Array<T> shares = Array<T>::from_shape(column);
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::int64_t id = target.data()[i];
    if (id < 0 || id >= static_cast<std::int64_t>(classes)) {
      detail::fail<IndexError>("multi_margin_loss: target must be in [0, ", classes, "), got ", id);
    }
    index.data()[i] = id;
    own.data()[i * classes + static_cast<std::size_t>(id)] = true;
    const T weight = options.weight.defined() ? options.weight.value().data()[id] : T{1};
    shares.data()[i] = weight / static_cast<T>(classes);
  }
  const Variable<T> picked = gather(input, -1, index);
  const Variable<T> over = clamp(input - picked + static_cast<T>(options.margin), T{0});
  const Variable<T> each = masked_fill(options.p == 1 ? over : square(over), own, T{0});
  return reduced_losses(sum(detail::weighted(Variable<T>(std::move(shares)), each), Dims{-1}),
                        options.reduction);
}

#define XGRAD_INSTANTIATE(T)                                                                                \
  template Variable<T> margin_ranking_loss(const Variable<T>&, const Variable<T>&, const Variable<T>&,      \
                                           MarginLossOptions);                                              \
  template Variable<T> cosine_embedding_loss(const Variable<T>&, const Variable<T>&, const Variable<T>&,    \
                                             MarginLossOptions);                                            \
  template Variable<T> hinge_embedding_loss(const Variable<T>&, const Variable<T>&, HingeEmbeddingOptions); \
  template Variable<T> soft_margin_loss(const Variable<T>&, const Variable<T>&, Reduction);                 \
  template Variable<T> triplet_margin_loss(const Variable<T>&, const Variable<T>&, const Variable<T>&,      \
                                           TripletMarginOptions);                                           \
  template Variable<T> multi_margin_loss(const Variable<T>&, const Ids&, const MultiMarginOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
