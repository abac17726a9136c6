#pragma once

#include <vector>

#include "../../models/module.hpp"
#include "../../train/optimizers/adam.hpp"

namespace xgrad::pretrained {

/// Parameter groups of AdamW for fine-tuning: weight decay for weights, none for biases and LayerNorms.
/// https://huggingface.co/docs/transformers/main_classes/trainer
///
///   xgrad::AdamW<float> optimizer(decay_groups(model.trainable_parameters(), {.lr = 5e-5, .weight_decay =
///   0.01}));
template <class T>
std::vector<ParameterGroup<T, AdamWOptions>> decay_groups(const std::vector<NamedParameter<T>>& parameters,
                                                          AdamWOptions options = {});

}  // namespace xgrad::pretrained
