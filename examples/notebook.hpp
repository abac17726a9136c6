#pragma once

// What the notebook programs share: words as Python prints them, and the backward section at their end.

#include <cmath>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>

#include <xgrad/xgrad.hpp>

namespace examples {

/// ['my', 'shoes']
inline std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "'" : ", '") + word + "'";
  return "[" + text + "]";
}

/// sum(y[i] cos(i)) over the flat index i: a loss in which every element counts differently.
template <class T>
xgrad::Variable<T> cosine_sum(const xgrad::Variable<T>& y) {
  const xgrad::Variable<T> weights(
      xt::cast<T>(xt::cos(xt::arange<double>(0, static_cast<double>(y.size())))));
  return sum(y * reshape(weights, y.shape()));
}

inline void print_gradients(const std::vector<xgrad::NamedParameter<float>>& gradients) {
  for (const auto& [name, gradient] : gradients)
    std::cout << "\ngradient of " << name << ":\n" << gradient << '\n';
}

/// The gradients that backward() left in leaves.
inline void print_leaf_gradients(const std::vector<xgrad::NamedParameter<float>>& leaves) {
  for (const auto& [name, leaf] : leaves) print_gradients({{name, leaf.grad()}});
}

/// The same values as a leaf in double, which gradient checks need.
inline xgrad::Variable<double> in_double(const xgrad::Variable<float>& x) {
  return xgrad::Variable<double>(xt::cast<double>(x.value()), true);
}

/// Loads a module with weights of float.
inline void load_in_double(const xgrad::Module<double>& module, const xgrad::StateDict<float>& weights) {
  xgrad::StateDict<double> state;
  for (const auto& [name, array] : weights) state[name] = xt::cast<double>(array);
  module.load_state_dict(state);
}

/// Checks the gradients of a loss, as a function of weights in double, against finite differences, and that
/// it is the loss whose gradients were printed. Returns whether both hold.
inline bool report_gradcheck(const xgrad::Variable<float>& printed, const xgrad::CheckedFunction& loss,
                             const std::vector<xgrad::Variable<double>>& weights) {
  std::size_t count = 0;
  for (const xgrad::Variable<double>& weight : weights) count += weight.size();
  const xgrad::Variable<double> again = loss(weights);
  const xgrad::GradcheckReport report = xgrad::gradcheck(loss, weights);
  std::cout << "\nthe same loss in double:\n"
            << again.detach() << "\ngradient check of " << count
            << " numbers in double: " << (report ? "passed" : report.worst) << '\n';
  return report && std::abs(again.item() - printed.item()) < 1e-5;
}

/// Says whether a module of the library gives what the steps gave, and returns it.
inline bool report_same(const std::string& module, const xgrad::Variable<double>& steps,
                        const xgrad::Variable<double>& output) {
  const bool same = xt::amax(xt::abs(steps.value() - output.value()))() < 1e-12;
  std::cout << "\nthe library's " << module << (same ? " gives the same output" : " gives another output")
            << '\n';
  return same;
}

}  // namespace examples
