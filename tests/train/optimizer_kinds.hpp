#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <xgrad/train/optimizers/adagrad.hpp>
#include <xgrad/train/optimizers/adam.hpp>
#include <xgrad/train/optimizers/muon.hpp>
#include <xgrad/train/optimizers/rmsprop.hpp>
#include <xgrad/train/optimizers/sgd.hpp>

namespace xgrad_tests {

/// All optimizers but LBFGS, whose step() takes a closure.
struct OptimizerKind {
  const char* name;
  std::function<std::shared_ptr<xgrad::Optimizer<float>>(const std::vector<xgrad::Variable<float>>&)> make;
};

template <class O, class Options>
OptimizerKind optimizer_kind(const char* name, const Options& options) {
  return {name, [options](const std::vector<xgrad::Variable<float>>& all) {
            return std::make_shared<O>(all, options);
          }};
}

inline std::vector<OptimizerKind> optimizer_kinds() {
  return {optimizer_kind<xgrad::SGD<float>>("SGD", xgrad::SGDOptions{.lr = 0.01}),
          optimizer_kind<xgrad::SGD<float>>("SGD with momentum",
                                            xgrad::SGDOptions{.lr = 0.01, .momentum = 0.9, .dampening = 0.5}),
          optimizer_kind<xgrad::Adagrad<float>>("Adagrad", xgrad::AdagradOptions{.lr_decay = 0.1}),
          optimizer_kind<xgrad::RMSprop<float>>("RMSprop", xgrad::RMSpropOptions{}),
          optimizer_kind<xgrad::RMSprop<float>>("RMSprop, centered, with momentum",
                                                xgrad::RMSpropOptions{.momentum = 0.9, .centered = true}),
          optimizer_kind<xgrad::Adam<float>>("Adam", xgrad::AdamOptions{}),
          optimizer_kind<xgrad::Adam<float>>("Adam with amsgrad", xgrad::AdamOptions{.amsgrad = true}),
          optimizer_kind<xgrad::AdamW<float>>("AdamW", xgrad::AdamWOptions{}),
          optimizer_kind<xgrad::NAdam<float>>("NAdam", xgrad::NAdamOptions{}),
          optimizer_kind<xgrad::RAdam<float>>("RAdam", xgrad::RAdamOptions{}),
          optimizer_kind<xgrad::Muon<float>>("Muon", xgrad::MuonOptions{})};
}

}  // namespace xgrad_tests
