#include "distributions.hpp"

#include <cmath>
#include <limits>

#include "../ops/index/indexing.hpp"
#include "../ops/index/masked_fill.hpp"
#include "../ops/loss/losses.hpp"
#include "../ops/norm/softmax.hpp"
#include "../ops/pointwise/arithmetic.hpp"
#include "../ops/pointwise/broadcast.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "../ops/pointwise/logarithms.hpp"
#include "../ops/reduce/reductions.hpp"
#include "../ops/shape/shapes.hpp"

namespace xgrad {
namespace {

constexpr double half_ln_2_pi = 0.91893853320467274178;

template <class T>
constexpr T infinite = std::numeric_limits<T>::infinity();

Shape joined(Shape front, const Shape& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

template <class T>
void check_one_given(const char* name, const ProbsOrLogits<T>& parameters) {
  if (parameters.probs.defined() == parameters.logits.defined())
    detail::fail<ValueError>(name, ": one of probs and logits must be given");
}

/// Throws ValueError "Normal: loc must not be nan".
template <class T>
void check_no_nan(const char* distribution, const char* argument, const Variable<T>& values) {
  for (const T one : values.value())
    if (std::isnan(one)) detail::fail<ValueError>(distribution, ": ", argument, " must not be nan");
}

/// Probabilities away from 0 and 1, whose logarithms are finite.
template <class T>
Variable<T> inner(const Variable<T>& probs) {
  constexpr T epsilon = std::numeric_limits<T>::epsilon();
  return clamp(probs, epsilon, T{1} - epsilon);
}

/// p (a - b), the terms of a divergence: 0 where p is 0, else inf where q is.
template <class T>
Variable<T> divergences(const Variable<T>& p, const Variable<T>& q, const Variable<T>& difference) {
  const Mask never = xt::equal(p.value(), T{0}), excluded = xt::equal(q.value(), T{0});
  return masked_fill(masked_fill(p * difference, excluded, infinite<T>), never, T{0});
}

}  // namespace

template <class T>
Normal<T>::Normal(const Variable<T>& loc, const Variable<T>& scale) {
  const Shape shape = detail::broadcast_shape("Normal", loc.shape(), scale.shape(), "loc", "scale");
  check_no_nan("Normal", "loc", loc);
  for (const T one : scale.value())
    if (!(one > 0)) detail::fail<ValueError>("Normal: scale must be above 0, got ", one);
  loc_ = broadcast_to(loc, shape);
  scale_ = broadcast_to(scale, shape);
}

template <class T>
Variable<T> Normal<T>::log_prob(const std::type_identity_t<Variable<T>>& value) const {
  check_no_nan("Normal", "value", value);
  return square((value - loc_) / scale_) * T(-0.5) - log(scale_) - static_cast<T>(half_ln_2_pi);
}

template <class T>
Variable<T> Normal<T>::entropy() const {
  return log(scale_) + static_cast<T>(0.5 + half_ln_2_pi);
}

template <class T>
Variable<T> Normal<T>::rsample(const Shape& sample_shape, Generator& generator) const {
  const Variable<T> e(normal<T>(joined(sample_shape, loc_.shape()), 0, 1, generator));
  return loc_ + e * scale_;
}

template <class T>
Variable<T> Normal<T>::sample(const Shape& sample_shape, Generator& generator) const {
  const NoGrad guard;
  return rsample(sample_shape, generator);
}

template <class T>
Bernoulli<T>::Bernoulli(const ProbsOrLogits<T>& parameters) {
  check_one_given("Bernoulli", parameters);
  if (parameters.logits.defined()) {
    logits_ = parameters.logits;
    check_no_nan("Bernoulli", "logits", logits_);
    probs_ = sigmoid(logits_);
    return;
  }
  probs_ = parameters.probs;
  for (const T one : probs_.value())
    if (!(one >= 0 && one <= 1)) detail::fail<ValueError>("Bernoulli: probs must be in [0, 1], got ", one);
  const Variable<T> p = inner(probs_);
  logits_ = log(p) - log1p(-p);
}

template <class T>
Variable<T> Bernoulli<T>::log_prob(const std::type_identity_t<Variable<T>>& value) const {
  for (const T one : value.value())
    if (one != 0 && one != 1) detail::fail<ValueError>("Bernoulli: value must be 0 or 1, got ", one);
  const Shape shape = detail::broadcast_shape("Bernoulli", logits_.shape(), value.shape(), "logits", "value");
  return -binary_cross_entropy_with_logits(broadcast_to(logits_, shape), broadcast_to(value, shape),
                                           {.reduction = Reduction::none});
}

template <class T>
Variable<T> Bernoulli<T>::entropy() const {
  return binary_cross_entropy_with_logits(logits_, probs_, {.reduction = Reduction::none});
}

template <class T>
Variable<T> Bernoulli<T>::sample(const Shape& sample_shape, Generator& generator) const {
  const NoGrad guard;
  return bernoulli(broadcast_to(probs_, joined(sample_shape, probs_.shape())).value(), generator);
}

template <class T>
Categorical<T>::Categorical(const ProbsOrLogits<T>& parameters) {
  check_one_given("Categorical", parameters);
  const Variable<T>& given = parameters.probs.defined() ? parameters.probs : parameters.logits;
  if (given.dimension() == 0 || given.shape().back() == 0)
    detail::fail<ShapeError>("Categorical: there must be an axis of classes, got ", given.shape());
  if (parameters.logits.defined()) {
    logits_ = log_softmax(given, -1);
    for (const T one : logits_.value()) {
      if (std::isnan(one))
        detail::fail<ValueError>(
            "Categorical: logits must not be nan or inf, nor all -inf along the last axis");
    }
    probs_ = softmax(given, -1);
    return;
  }
  for (const T one : given.value())
    if (!(one >= 0)) detail::fail<ValueError>("Categorical: probs must be at least 0, got ", one);
  const Variable<T> total = sum(given, Dims{-1}, {.keepdim = true});
  for (const T one : total.value()) {
    if (!(one > 0 && one < infinite<T>))
      detail::fail<ValueError>("Categorical: the sum of probs must be above 0 and finite, got ", one);
  }
  probs_ = given / total;
  logits_ = log(inner(probs_));
}

template <class T>
Variable<T> Categorical<T>::log_prob(const Ids& value) const {
  const std::size_t classes = logits_.shape().back();
  for (const std::int64_t id : value) {
    if (id < 0 || id >= static_cast<std::int64_t>(classes))
      detail::fail<IndexError>("Categorical: value must be in [0, ", classes, "), got ", id);
  }
  const Shape batch(logits_.shape().begin(), logits_.shape().end() - 1);
  const Shape value_shape(value.shape().begin(), value.shape().end());
  const Shape shape = detail::broadcast_shape("Categorical", batch, value_shape, "the parameters", "value");
  Ids index = xt::broadcast(value, shape);
  index.reshape(joined(shape, {1}));
  const Variable<T> all = broadcast_to(logits_, joined(shape, {classes}));
  return reshape(gather(all, -1, index), shape);
}

template <class T>
Variable<T> Categorical<T>::entropy() const {
  return -sum(probs_ * clamp(logits_, std::numeric_limits<T>::lowest()), Dims{-1});
}

template <class T>
Ids Categorical<T>::sample(const Shape& sample_shape, Generator& generator) const {
  const Shape& shape = probs_.shape();
  const std::size_t classes = shape.back(), rows = probs_.size() / classes;
  const std::size_t count = element_count(sample_shape);
  Array<T> weights = probs_.value();
  weights.reshape({rows, classes});
  const Shape batch(shape.begin(), shape.end() - 1);
  Ids found = Ids::from_shape(joined(sample_shape, batch));
  if (found.size() == 0) return found;
  const Ids drawn =
      multinomial(weights, static_cast<std::ptrdiff_t>(count), {.replacement = true}, generator);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < count; ++i) found.data()[i * rows + r] = drawn.data()[r * count + i];
  return found;
}

template <class T>
Variable<T> kl_divergence(const Normal<T>& p, const Normal<T>& q) {
  const Variable<T> ratio = square(p.scale() / q.scale()), apart = square((p.loc() - q.loc()) / q.scale());
  return (ratio + apart - T{1} - log(ratio)) * T(0.5);
}

template <class T>
Variable<T> kl_divergence(const Bernoulli<T>& p, const Bernoulli<T>& q) {
  const Variable<T> ones =
      divergences(p.probs(), q.probs(), log_sigmoid(p.logits()) - log_sigmoid(q.logits()));
  const Variable<T> zeros =
      divergences(T{1} - p.probs(), T{1} - q.probs(), log_sigmoid(-p.logits()) - log_sigmoid(-q.logits()));
  return ones + zeros;
}

template <class T>
Variable<T> kl_divergence(const Categorical<T>& p, const Categorical<T>& q) {
  return sum(divergences(p.probs(), q.probs(), p.logits() - q.logits()), Dims{-1});
}

#define XGRAD_INSTANTIATE(T)                                                    \
  template class Normal<T>;                                                     \
  template class Bernoulli<T>;                                                  \
  template class Categorical<T>;                                                \
  template Variable<T> kl_divergence(const Normal<T>&, const Normal<T>&);       \
  template Variable<T> kl_divergence(const Bernoulli<T>&, const Bernoulli<T>&); \
  template Variable<T> kl_divergence(const Categorical<T>&, const Categorical<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
