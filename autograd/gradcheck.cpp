#include "gradcheck.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "../ops/reduce/reductions.hpp"

namespace xgrad {
namespace {

using V = Variable<double>;

/// Numbers away from 0, of either sign: a weight of 0 or 1 could hide a mistake.
Array<double> random_like(const Shape& shape, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  Array<double> x = Array<double>::from_shape(shape);
  for (double& element : x.storage()) element = uniform(random) * (random() % 2 == 0 ? 1 : -1);
  return x;
}

/// The gradients of y, undefined for inputs that it does not depend on.
std::vector<V> gradients_of(const V& y, const std::vector<V>& inputs, const V& seed, bool create_graph) {
  if (!y.requires_grad()) return std::vector<V>(inputs.size());
  return grad(y, inputs, {.seed = seed, .create_graph = create_graph, .allow_unused = true});
}

std::string number(double x) { return detail::number_text(x); }

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// "input 0, element (1, 2)"
std::string place(const std::vector<V>& inputs, std::size_t input, std::size_t element) {
  const Shape& shape = inputs[input].shape();
  Shape index(shape.size(), 0);
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    index[axis] = element % shape[axis];
  return "input " + std::to_string(input) + ", element " + to_string(index);
}

void check_inputs(const char* name, const std::vector<V>& inputs) {
  if (inputs.empty()) detail::fail<ValueError>(name, ": inputs must not be empty");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad() || !inputs[i].is_leaf())
      detail::fail<ValueError>(name, ": input ", i, " must be a leaf that requires a gradient");
  }
}

/// Compares the gradients computed with create_graph to those computed without.
GradcheckReport compare_paths(const CheckedFunction& f, const std::vector<V>& inputs, const V& seed) {
  GradcheckReport report;
  const std::vector<V> plain = gradients_of(f(inputs), inputs, seed, false);
  const std::vector<V> recorded = gradients_of(f(inputs), inputs, seed, true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t k = 0; k < inputs[i].size(); ++k) {
      const double a = plain[i].defined() ? plain[i].value().data()[k] : 0;
      const double b = recorded[i].defined() ? recorded[i].value().data()[k] : 0;
      const double difference = std::abs(a - b);
      if (equal(a, b) || difference <= 1e-9 * (1 + std::abs(a))) continue;
      report = {false, place(inputs, i, k) + ": without create_graph " + number(a) + ", with it " + number(b),
                difference};
      return report;
    }
  }
  return report;
}

/// Compares the gradients of one function to its differences.
class Check {
 public:
  Check(const CheckedFunction& f, const std::vector<V>& inputs, const GradcheckOptions& options)
      : f_(f), inputs_(inputs), options_(options), random_(options.seed) {}

  GradcheckReport run() {
    const V y = f_(inputs_);
    weights_ = random_like(y.shape(), random_);
    const double first = value(), second = value();
    if (!equal(first, second)) {
      refuse("two evaluations differ: " + number(first) + " and " + number(second), std::abs(first - second));
      return report_;
    }
    const std::vector<Array<double>> analytic = gradients(y), again = gradients(f_(inputs_));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (std::size_t k = 0; k < analytic[i].size(); ++k) {
        const double a = analytic[i].data()[k], b = again[i].data()[k];
        if (!equal(a, b)) {
          refuse(place(inputs_, i, k) + ": two backward passes differ: " + number(a) + " and " + number(b),
                 std::abs(a - b));
          return report_;
        }
      }
    }
    if (options_.projections == 0) {
      check_elements(analytic);
    } else {
      check_directions(analytic);
    }
    return report_;
  }

 private:
  /// sum(w f(inputs))
  double value() const {
    const NoGrad guard;
    return sum(f_(inputs_) * V(weights_)).item();
  }

  std::vector<Array<double>> gradients(const V& y) const {
    const std::vector<V> found = gradients_of(y, inputs_, V(weights_), false);
    std::vector<Array<double>> result;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      result.push_back(found[i].defined() ? found[i].value()
                                          : Array<double>(xt::zeros<double>(inputs_[i].shape())));
    }
    return result;
  }

  void check_elements(const std::vector<Array<double>>& analytic) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Array<double> before = inputs_[i].value();
      const Restore restore(inputs_[i], before);
      for (std::size_t k = 0; k < before.size(); ++k) {
        const double up = moved(i, k, before.data()[k] + options_.eps);
        const double down = moved(i, k, before.data()[k] - options_.eps);
        detail::mutable_data(inputs_[i])[k] = before.data()[k];
        compare(place(inputs_, i, k), analytic[i].data()[k], (up - down) / (2 * options_.eps));
      }
    }
  }

  double moved(std::size_t input, std::size_t element, double to) const {
    detail::mutable_data(inputs_[input])[element] = to;
    return value();
  }

  void check_directions(const std::vector<Array<double>>& analytic) {
    for (std::size_t n = 0; n < options_.projections; ++n) {
      std::vector<Array<double>> direction, before;
      double slope = 0;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        direction.push_back(random_like(inputs_[i].shape(), random_));
        before.push_back(inputs_[i].value());
        for (std::size_t k = 0; k < before[i].size(); ++k)
          slope += direction[i].data()[k] * analytic[i].data()[k];
      }
      std::vector<std::unique_ptr<Restore>> restore;
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        restore.push_back(std::make_unique<Restore>(inputs_[i], before[i]));
      const auto along = [&](double distance) {
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
          double* x = detail::mutable_data(inputs_[i]);
          for (std::size_t k = 0; k < before[i].size(); ++k) {
            x[k] = before[i].data()[k] + distance * direction[i].data()[k];
          }
        }
        return value();
      };
      const double up = along(options_.eps), down = along(-options_.eps);
      compare("direction " + std::to_string(n), slope, (up - down) / (2 * options_.eps));
    }
  }

  /// Puts an input's elements back, also after an exception.
  struct Restore {
    Restore(const V& input, const Array<double>& elements) : input(input), elements(elements) {}
    Restore(const Restore&) = delete;
    ~Restore() { std::copy_n(elements.data(), elements.size(), detail::mutable_data(input)); }
    const V& input;
    const Array<double>& elements;
  };

  void compare(const std::string& where, double analytic, double numeric) {
    const double difference = std::abs(analytic - numeric);
    const double allowed = options_.atol + options_.rtol * std::abs(numeric);
    const bool right = difference <= allowed;
    const double badness =
        std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference / allowed;
    if (!right) report_.ok = false;
    if (report_.worst.empty() || badness > worst_badness_) {
      worst_badness_ = badness;
      report_.worst = where + ": analytic " + number(analytic) + ", numeric " + number(numeric) +
                      ", difference " + number(difference);
      report_.difference = difference;
    }
  }

  void refuse(std::string why, double difference) {
    report_.ok = false;
    report_.worst = std::move(why);
    report_.difference = difference;
  }

  const CheckedFunction& f_;
  const std::vector<V>& inputs_;
  GradcheckOptions options_;
  std::mt19937_64 random_;
  Array<double> weights_;
  GradcheckReport report_;
  double worst_badness_ = 0;  // in units of what is allowed
};

}  // namespace

GradcheckReport gradcheck(const CheckedFunction& f, const std::vector<Variable<double>>& inputs,
                          GradcheckOptions options) {
  check_inputs("gradcheck", inputs);
  const EnableGrad guard;
  return Check(f, inputs, options).run();
}

GradcheckReport gradgradcheck(const CheckedFunction& f, const std::vector<Variable<double>>& inputs,
                              GradcheckOptions options) {
  check_inputs("gradgradcheck", inputs);
  const EnableGrad guard;
  std::mt19937_64 random(options.seed + 1);
  std::vector<V> all = inputs, weights;
  all.emplace_back(random_like(f(inputs).shape(), random), true);
  for (const V& input : inputs) weights.emplace_back(random_like(input.shape(), random));

  GradcheckReport same = compare_paths(f, inputs, all.back().detach());
  if (!same) return same;
  const CheckedFunction weighted_gradients = [&](const std::vector<V>& at) {
    const EnableGrad guard;
    const std::vector<V> first(at.begin(), at.end() - 1);
    const std::vector<V> grads = gradients_of(f(first), first, at.back(), true);
    V total(0.0);
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].defined()) total = total + sum(grads[i] * weights[i]);
    }
    return total;
  };
  return gradcheck(weighted_gradients, all, options);
}

}  // namespace xgrad
