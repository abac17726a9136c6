// Gradients of GradBench's objective functions on one thread, beside CoDiPack's and Adept's where these are
// found
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/ops/product/matmul_precision.hpp>
#include <xgrad/xgrad.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "gradbench/objectives.hpp"
#include "in_turns.hpp"

namespace {

using gradbench::Gmm, gradbench::Llsq, gradbench::LogSumExp, gradbench::Lstm, gradbench::Ode;
using xgrad::Array, xgrad::Ids, xgrad::Shape;
using V = xgrad::Variable<double>;

struct Tape {
  const char* name;
  double (*gradient)(const gradbench::Objective&, const std::vector<double>& x,
                     std::vector<double>& gradient);
};

const std::vector<Tape> tapes{
#ifdef XGRAD_BENCH_CODIPACK
    {"CoDiPack", gradbench::codipack_gradient},
#endif
#ifdef XGRAD_BENCH_ADEPT
    {"Adept", gradbench::adept_gradient},
#endif
};

std::ptrdiff_t length(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

/// The next n elements of x, in this shape.
V take(const V& x, std::size_t& start, const Shape& shape) {
  std::size_t n = 1;
  for (const std::size_t axis : shape) n *= axis;
  const V part = narrow(x, 0, length(start), length(n));
  start += n;
  return reshape(part, xgrad::Dims(shape));
}

/// Where each element of the matrices Q stands in a row of exp(q), l and one 0.
Ids places_in_rows(const Gmm& f) {
  Ids places(Shape{f.d * f.d}, length(f.d + f.below()));
  std::ptrdiff_t next = length(f.d);
  for (std::size_t column = 0; column < f.d; ++column) {
    places(column * f.d + column) = length(column);
    for (std::size_t row = column + 1; row < f.d; ++row) places(row * f.d + column) = next++;
  }
  return places;
}

V value(const Gmm& f, const V& x) {
  std::size_t start = 0;
  const V alpha = take(x, start, {f.k}), mu = take(x, start, {f.k, f.d, 1}), q = take(x, start, {f.k, f.d}),
          l = take(x, start, {f.k, f.below()});
  const V entries = xgrad::cat({exp(q), l, V(Array<double>(Shape{f.k, 1}, 0.0))}, 1);
  const V Q = index_select(entries, 1, places_in_rows(f));
  const V Q_mu = matmul(reshape(Q, {length(f.k), length(f.d), length(f.d)}), mu);
  Array<double> points(Shape{f.n, f.d});
  std::copy(f.points.begin(), f.points.end(), points.begin());
  const V turned = linear(V(std::move(points)), reshape(Q, {-1, length(f.d)}), -flatten(Q_mu));
  const V distances = sum(reshape(square(turned), {length(f.n), length(f.k), length(f.d)}), {2});
  const V beta = alpha + sum(q, {1}) - 0.5 * distances;
  return f.constant() + sum(logsumexp(beta, {1})) - static_cast<double>(f.n) * logsumexp(alpha, {0}) -
         0.5 * sum(square(entries));
}

V value(const Llsq& f, const V& x) {
  Array<double> powers(Shape{f.n, f.m}), signs(Shape{f.n});
  for (std::size_t i = 0; i < f.n; ++i) {
    const double t = f.t(i);
    signs(i) = Llsq::sign(t);
    double power = 1;
    for (std::size_t j = 0; j < f.m; ++j) {
      powers.data()[i * f.m + j] = power;
      power *= t;
    }
  }
  return 0.5 * sum(square(V(std::move(signs)) - matmul(V(std::move(powers)), x)));
}

/// Of single ops, as GradBench wants it, not xgrad's logsumexp.
V value(const LogSumExp&, const V& x) {
  const V largest = amax(x);
  return log(sum(exp(x - largest))) + largest;
}

V value(const Ode& f, const V& x) {
  const auto slope = [&](const V& y) { return x * pad(y, {1, -1}, xgrad::Padding::constant, 1.0); };
  V y(Array<double>(Shape{f.n}, 0.0));
  const double h = f.step();
  for (std::size_t s = 0; s < f.steps; ++s) {
    const V k1 = slope(y), k2 = slope(add(y, k1, h / 2)), k3 = slope(add(y, k2, h / 2)),
            k4 = slope(add(y, k3, h));
    y = add(y, add(k1 + k4, k2 + k3, 2.0), h / 6);
  }
  return select(y, 0, -1);
}

V value(const Lstm& f, const V& x) {
  const auto row = [&](const std::vector<double>& rows, std::size_t i) {
    Array<double> numbers(Shape{f.n});
    std::copy_n(rows.data() + i * f.n, f.n, numbers.begin());
    return V(std::move(numbers));
  };
  std::size_t start = 0;
  std::vector<V> w, b, hidden, cell;
  for (std::size_t layer = 0; layer < f.layers; ++layer) {
    w.push_back(take(x, start, {4 * f.n}));
    b.push_back(take(x, start, {4 * f.n}));
    hidden.push_back(row(f.state, 2 * layer));
    cell.push_back(row(f.state, 2 * layer + 1));
  }
  const V of_input = take(x, start, {f.n}), of_output = take(x, start, {f.n}), bias = take(x, start, {f.n});
  V input = row(f.sequence, 0), total(0.0);
  for (std::size_t t = 0; t + 1 < f.characters; ++t) {
    V signal = input * of_input;
    for (std::size_t layer = 0; layer < f.layers; ++layer) {
      const V gates = xgrad::cat({signal, hidden[layer], signal, hidden[layer]}) * w[layer] + b[layer];
      const std::vector<V> parts = split(gates, length(f.n));
      cell[layer] = cell[layer] * sigmoid(parts[0]) + sigmoid(parts[1]) * tanh(parts[3]);
      signal = hidden[layer] = sigmoid(parts[2]) * tanh(cell[layer]);
    }
    const V predicted = signal * of_output + bias;
    input = row(f.sequence, t + 1);
    total = total + sum(input * (predicted - log(sum(exp(predicted)) + 2.0)));
  }
  return -total / f.count();
}

struct Problem {
  std::string name;
  gradbench::Objective objective;
  std::vector<double> x;
};

std::vector<double> drawn(std::size_t n, double low, double high) {
  const Array<double> numbers = xgrad::uniform<double>({n}, low, high);
  return {numbers.begin(), numbers.end()};
}

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const auto& [d, k] : {std::pair<std::size_t, std::size_t>{2, 5}, {20, 25}, {64, 25}}) {
    Gmm f{d, k, 1000, drawn(1000 * d, 0, 1)};
    const std::size_t size = f.size();
    all.push_back({"gmm d" + std::to_string(d) + " k" + std::to_string(k) + " n1000", std::move(f),
                   drawn(size, -0.5, 0.5)});
  }
  all.push_back({"llsq n1024 m128", Llsq{1024, 128}, drawn(128, -1, 1)});
  all.push_back({"lse n1000000", LogSumExp{1000000}, drawn(1000000, -1, 1)});
  for (const std::size_t n : {4, 100}) {
    all.push_back({"ode n" + std::to_string(n) + " 100 steps", Ode{n, 100}, drawn(n, 0.5, 1.5)});
  }
  Lstm lstm{14, 2, 1024, drawn(1024 * 14, 0, 1), drawn(4 * 14, -1, 1)};
  const std::size_t size = lstm.size();
  all.push_back({"lstm l2 c1024", std::move(lstm), drawn(size, -1, 1)});
  return all;
}

/// Throws if two libraries differ by more than rounding, which in the derivative of lse's largest element is
/// that of the difference of two ones.
void compare(const Problem& problem, const char* what, const std::vector<double>& got,
             const std::vector<double>& want) {
  double largest = 0;
  for (const double element : want) largest = std::max(largest, std::abs(element));
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= 1e-8 * largest)) {
      char text[200];
      std::snprintf(text, sizeof text, "%s: element %zu of the %s is %.17g, not %.17g", problem.name.c_str(),
                    i, what, got[i], want[i]);
      throw std::runtime_error(text);
    }
  }
}

void run(const Problem& problem, double seconds) {
  Array<double> numbers(Shape{problem.x.size()});
  std::copy(problem.x.begin(), problem.x.end(), numbers.begin());
  const V x(numbers, true);
  const auto xgrad_value = [&] {
    return std::visit([&](const auto& f) { return value(f, x); }, problem.objective);
  };
  std::vector<double> gradient(problem.x.size());

  const V y = xgrad_value(), dx = grad(y, {x})[0];
  const double plain = gradbench::plain_value(problem.objective, problem.x);
  compare(problem, "value", {y.item()}, {plain});
  for (const Tape& tape : tapes) {
    compare(problem, "value", {tape.gradient(problem.objective, problem.x, gradient)}, {plain});
    compare(problem, "gradient", {dx.value().begin(), dx.value().end()}, gradient);
  }

  std::vector<bench::DoSoManyTimes> runs{[&](std::size_t calls) {
                                           for (; calls > 0; --calls)
                                             gradbench::plain_value(problem.objective, problem.x);
                                         },
                                         [&](std::size_t calls) {
                                           const xgrad::NoGrad guard;
                                           for (; calls > 0; --calls) xgrad_value();
                                         },
                                         [&](std::size_t calls) {
                                           for (; calls > 0; --calls)
                                             static_cast<void>(grad(xgrad_value(), {x}));
                                         }};
  for (const Tape& tape : tapes) {
    runs.push_back([&](std::size_t calls) {
      for (; calls > 0; --calls) tape.gradient(problem.objective, problem.x, gradient);
    });
  }
  const std::vector<double> us = bench::measure(runs, seconds);
  std::printf("%-20s %9zu %12.4g %12.4g %12.4g %10.2f", problem.name.c_str(), problem.x.size(), us[0], us[1],
              us[2], us[2] / us[0]);
  for (std::size_t i = 0; i < tapes.size(); ++i) std::printf(" %12.4g %12.2f", us[3 + i], us[3 + i] / us[2]);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter;
  double seconds = 0.5;
  apps::CommandLine app(
      "Prints the time of GradBench's objective functions and of their gradients, on one thread.");
  app.add_option("--filter", filter, "Only the functions whose name matches this regular expression");
  app.add_option("--seconds", seconds, "CPU time of each measurement")
      ->check(apps::in_range(1e-4, 100.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_gradbench", [&] {
    const std::regex wanted(filter);
    xgrad::manual_seed(0);
    xgrad::set_num_threads(1);
    std::printf("OpenBLAS core: %s; float64, us per call\n", xgrad::blas_core_name());
    std::printf("%-20s %9s %12s %12s %12s %10s", "", "", "plain loops", "xgrad", "xgrad", "gradient");
    for (const Tape& tape : tapes) std::printf(" %12s %12s", tape.name, tape.name);
    std::printf("\n%-20s %9s %12s %12s %12s %10s", "function", "variables", "value", "value", "gradient",
                "/ plain");
    for (std::size_t i = 0; i < tapes.size(); ++i) std::printf(" %12s %12s", "gradient", "/ xgrad");
    std::printf("\n");
    for (const Problem& problem : problems()) {
      if (std::regex_search(problem.name, wanted)) run(problem, seconds);
    }
    return 0;
  });
}
