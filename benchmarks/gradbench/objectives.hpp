#pragma once

// Objective functions of GradBench (https://github.com/gradbench/gradbench, evals/*/README.md), as loops over
// numbers: doubles, or those of a tape.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <variant>
#include <vector>

namespace gradbench {

template <class Number>
Number logsumexp(const Number* x, std::size_t n) {
  using std::exp, std::log;
  Number largest = x[0], sum = 0;
  for (std::size_t i = 1; i < n; ++i) {
    if (x[i] > largest) largest = x[i];
  }
  for (std::size_t i = 0; i < n; ++i) sum += exp(x[i] - largest);
  return log(sum) + largest;
}

/// gmm: the logarithm of the posterior probability of a mixture of k Gaussians in d dimensions, with n
/// points, and a Wishart prior (gamma = 1, m = 0) on their precision matrices Q^T Q. The parameters are alpha
/// (k), mu (k, d), q (k, d), the logarithms of Q's diagonals, and l (k, d (d - 1) / 2), what is below, by
/// columns.
struct Gmm {
  std::size_t d, k, n;
  std::vector<double> points;  ///< (n, d)

  std::size_t size() const { return k * (1 + 2 * d + below()); }
  std::size_t below() const { return d * (d - 1) / 2; }

  /// The terms that no parameter changes.
  double constant() const {
    const auto dims = static_cast<double>(d), components = static_cast<double>(k);
    double log_gamma = 0.25 * dims * (dims - 1) * std::log(std::numbers::pi);
    for (std::size_t j = 0; j < d; ++j) log_gamma += std::lgamma(0.5 * (dims + 1 - static_cast<double>(j)));
    return -0.5 * static_cast<double>(n) * dims * std::log(2 * std::numbers::pi) -
           components * (0.5 * (dims + 1) * dims * std::numbers::ln2 + log_gamma);
  }

  template <class Number>
  Number value(const std::vector<Number>& x) const {
    using std::exp;
    const Number* const alpha = x.data();
    const Number* const mu = alpha + k;
    const Number* const q = mu + k * d;
    const Number* const l = q + k * d;
    std::vector<Number> diagonal(k * d), log_det(k), centered(d), turned(d), beta(k);
    Number prior = 0;
    for (std::size_t c = 0; c < k; ++c) {
      log_det[c] = 0;
      for (std::size_t j = 0; j < d; ++j) {
        diagonal[c * d + j] = exp(q[c * d + j]);
        log_det[c] += q[c * d + j];
        prior += diagonal[c * d + j] * diagonal[c * d + j];
      }
      for (std::size_t j = 0; j < below(); ++j) prior += l[c * below() + j] * l[c * below() + j];
    }
    Number likelihood = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < k; ++c) {
        for (std::size_t j = 0; j < d; ++j) {
          centered[j] = points[i * d + j] - mu[c * d + j];
          turned[j] = diagonal[c * d + j] * centered[j];
        }
        const Number* entry = l + c * below();
        for (std::size_t column = 0; column < d; ++column) {
          for (std::size_t row = column + 1; row < d; ++row) turned[row] += *entry++ * centered[column];
        }
        Number distance = 0;
        for (std::size_t j = 0; j < d; ++j) distance += turned[j] * turned[j];
        beta[c] = alpha[c] + log_det[c] - 0.5 * distance;
      }
      likelihood += logsumexp(beta.data(), k);
    }
    return constant() + likelihood - static_cast<double>(n) * logsumexp(alpha, k) - 0.5 * prior;
  }
};

/// llsq: half the squared distance between a polynomial with m coefficients and the signs of n numbers t in
/// [-1, 1].
struct Llsq {
  std::size_t n, m;

  std::size_t size() const { return m; }
  double t(std::size_t i) const { return -1 + 2 * static_cast<double>(i) / static_cast<double>(n - 1); }
  static double sign(double t) { return (t > 0) - (t < 0); }

  template <class Number>
  Number value(const std::vector<Number>& x) const {
    Number sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      Number residual = sign(t(i));
      double power = 1;
      for (std::size_t j = 0; j < m; ++j) {
        residual -= x[j] * power;
        power *= t(i);
      }
      sum += residual * residual;
    }
    return 0.5 * sum;
  }
};

/// lse: log sum exp of n numbers.
struct LogSumExp {
  std::size_t n;

  std::size_t size() const { return n; }

  template <class Number>
  Number value(const std::vector<Number>& x) const {
    return logsumexp(x.data(), n);
  }
};

/// ode: the last element of y(2) for y' = (x_0, x_1 y_0, ..., x_n-1 y_n-2), y(0) = 0, by Runge and Kutta's
/// fourth-order method.
struct Ode {
  std::size_t n, steps;

  std::size_t size() const { return n; }
  double step() const { return 2 / static_cast<double>(steps); }

  template <class Number>
  Number value(const std::vector<Number>& x) const {
    std::vector<Number> y(n), k1(n), k2(n), k3(n), k4(n), moved(n);
    for (Number& element : y) element = 0;
    const auto slope = [&](const std::vector<Number>& at, std::vector<Number>& to) {
      to[0] = x[0];
      for (std::size_t i = 1; i < n; ++i) to[i] = x[i] * at[i - 1];
    };
    const auto move = [&](double length, const std::vector<Number>& along) {
      for (std::size_t i = 0; i < n; ++i) moved[i] = y[i] + length * along[i];
    };
    const double h = step();
    for (std::size_t s = 0; s < steps; ++s) {
      slope(y, k1);
      move(h / 2, k1);
      slope(moved, k2);
      move(h / 2, k2);
      slope(moved, k3);
      move(h, k3);
      slope(moved, k4);
      for (std::size_t i = 0; i < n; ++i) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
    return y[n - 1];
  }
};

/// lstm: the mean negative log-likelihood of the characters that follow each other in a sequence, n numbers
/// each, under layers of LSTM cells with diagonal weights. The parameters are for each layer four rows of
/// weights and four of biases, of the forget, input and output gates and the change, then three rows: the
/// weights of the input, and the weights and biases of the output.
struct Lstm {
  std::size_t n, layers, characters;
  std::vector<double> sequence;  ///< (characters, n)
  std::vector<double> state;     ///< (2 layers, n): the hidden and the cell state of each layer at first

  std::size_t size() const { return (8 * layers + 3) * n; }
  double count() const { return static_cast<double>((characters - 1) * n); }

  template <class Number>
  Number value(const std::vector<Number>& x) const {
    using std::exp, std::log, std::tanh;
    const auto sigmoid = [](const Number& number) { return Number(1 / (1 + exp(-number))); };
    const Number* const last = x.data() + 8 * layers * n;
    std::vector<Number> states(state.begin(), state.end()), signal(n), predicted(n);
    Number total = 0;
    for (std::size_t t = 0; t + 1 < characters; ++t) {
      for (std::size_t i = 0; i < n; ++i) signal[i] = sequence[t * n + i] * last[i];
      for (std::size_t layer = 0; layer < layers; ++layer) {
        const Number* const w = x.data() + 8 * layer * n;
        const Number* const b = w + 4 * n;
        Number* const hidden = states.data() + 2 * layer * n;
        Number* const cell = hidden + n;
        for (std::size_t i = 0; i < n; ++i) {
          const Number forget = sigmoid(signal[i] * w[i] + b[i]);
          const Number in = sigmoid(hidden[i] * w[n + i] + b[n + i]);
          const Number out = sigmoid(signal[i] * w[2 * n + i] + b[2 * n + i]);
          const Number change = tanh(hidden[i] * w[3 * n + i] + b[3 * n + i]);
          cell[i] = cell[i] * forget + in * change;
          hidden[i] = out * tanh(cell[i]);
          signal[i] = hidden[i];
        }
      }
      Number sum = 2;
      for (std::size_t i = 0; i < n; ++i) {
        predicted[i] = signal[i] * last[n + i] + last[2 * n + i];
        sum += exp(predicted[i]);
      }
      const Number log_sum = log(sum);
      for (std::size_t i = 0; i < n; ++i) total += sequence[(t + 1) * n + i] * (predicted[i] - log_sum);
    }
    return -total / count();
  }
};

using Objective = std::variant<Gmm, Llsq, LogSumExp, Ode, Lstm>;

/// The value of an objective, in plain loops.
double plain_value(const Objective& objective, const std::vector<double>& x);

/// The value, and in `gradient` the derivatives, from the tape of CoDiPack
/// (https://github.com/SciCompKL/CoDiPack).
double codipack_gradient(const Objective& objective, const std::vector<double>& x,
                         std::vector<double>& gradient);

/// The same from that of Adept (https://www.met.reading.ac.uk/clouds/adept/).
double adept_gradient(const Objective& objective, const std::vector<double>& x,
                      std::vector<double>& gradient);

}  // namespace gradbench
