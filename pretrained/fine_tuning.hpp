#pragma once

#include <vector>

#include "../models/module.hpp"
#include "../train/adam.hpp"

namespace xgrad::pretrained {

/// The groups of AdamW for fine-tuning: weights decay, biases and the parameters of LayerNorms do not.
/// https://huggingface.co/docs/transformers/main_classes/trainer
///
///   xgrad::AdamW<float> optimizer(decay_groups(model.trainable_parameters(), {.lr = 5e-5, .weight_decay =
///   0.01}));
template <class T>
std::vector<ParameterGroup<T, AdamWOptions>> decay_groups(const std::vector<NamedParameter<T>>& parameters,
                                                          AdamWOptions options = {});

}  // namespace xgrad::pretrained
