#pragma once

#include "../base/detail/by_name.hpp"
#include "../base/random.hpp"
#include "../graph/variable.hpp"

// Distributions with parameters that may require gradients. Samples of a sample_shape come in front of the
// parameters' shape, from PyTorch's random stream; sample() has no gradient. Values and parameters broadcast.
// https://pytorch.org/docs/stable/distributions.html

namespace xgrad {

/// Numbers distributed normally. Throws ValueError unless every scale is above 0, and for a loc or a value
/// that is nan.
/// https://pytorch.org/docs/stable/distributions.html#normal
template <class T>
class Normal {
 public:
  Normal(const Variable<T>& loc, const Variable<T>& scale);

  const Variable<T>& loc() const { return loc_; }
  const Variable<T>& scale() const { return scale_; }

  /// -((value - loc) / scale)^2 / 2 - ln scale - ln(2 pi) / 2.
  Variable<T> log_prob(const std::type_identity_t<Variable<T>>& value) const;
  /// 1 / 2 + ln(2 pi) / 2 + ln scale.
  Variable<T> entropy() const;
  /// loc + e scale, for standard normal numbers e: it has the gradients of loc and scale.
  Variable<T> rsample(const Shape& sample_shape = {}, Generator& generator = default_generator()) const;
  Variable<T> sample(const Shape& sample_shape = {}, Generator& generator = default_generator()) const;

 private:
  Variable<T> loc_, scale_;  // of one shape
};

/// What Bernoulli and Categorical are made of: one of both.
template <class T>
struct ProbsOrLogits {
  detail::ByName by_name = {};
  Variable<T> probs = {};
  Variable<T> logits = {};
};

/// 1 with the probability probs = sigmoid(logits), else 0. Throws ValueError unless one of both is given, for
/// a probability outside [0, 1], and for logits that are nan.
/// https://pytorch.org/docs/stable/distributions.html#bernoulli
template <class T>
class Bernoulli {
 public:
  explicit Bernoulli(const ProbsOrLogits<T>& parameters);

  const Variable<T>& probs() const { return probs_; }
  /// ln(p / (1 - p)) of probs p, with p and 1 - p at least T's epsilon.
  const Variable<T>& logits() const { return logits_; }

  /// ln p where value is 1, ln(1 - p) where it is 0. Throws ValueError for another value.
  Variable<T> log_prob(const std::type_identity_t<Variable<T>>& value) const;
  /// -p ln p - (1 - p) ln(1 - p).
  Variable<T> entropy() const;
  Variable<T> sample(const Shape& sample_shape = {}, Generator& generator = default_generator()) const;

 private:
  Variable<T> probs_, logits_;
};

/// Classes 0 to K - 1 with the probabilities along the last axis of probs (..., K), which are divided by
/// their sum, or of softmax(logits). Throws ShapeError without such an axis, ValueError unless one of both is
/// given, for probabilities below 0 or whose sum is not above 0, and for logits that give none.
/// https://pytorch.org/docs/stable/distributions.html#categorical
template <class T>
class Categorical {
 public:
  explicit Categorical(const ProbsOrLogits<T>& parameters);

  const Variable<T>& probs() const { return probs_; }
  /// ln probs, of which each is at least T's epsilon and at most 1 less that.
  const Variable<T>& logits() const { return logits_; }

  /// ln of the probability of each class. Throws IndexError for one that is no class.
  Variable<T> log_prob(const Ids& value) const;
  /// Classes are integers: xt::cast<std::int64_t>(value).
  template <detail::NoIds E>
  Variable<T> log_prob(const E& value) const = delete;
  /// -sum(p ln p) along the last axis.
  Variable<T> entropy() const;
  Ids sample(const Shape& sample_shape = {}, Generator& generator = default_generator()) const;

 private:
  Variable<T> probs_, logits_;
};

/// The Kullback-Leibler divergence of p from q: the mean of ln p(x) - ln q(x) over x of p; inf where q
/// excludes what p does not. https://pytorch.org/docs/stable/distributions.html#module-torch.distributions.kl
template <class T>
Variable<T> kl_divergence(const Normal<T>& p, const Normal<T>& q);
template <class T>
Variable<T> kl_divergence(const Bernoulli<T>& p, const Bernoulli<T>& q);
template <class T>
Variable<T> kl_divergence(const Categorical<T>& p, const Categorical<T>& q);

}  // namespace xgrad
