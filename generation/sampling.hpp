#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "../base/random.hpp"
#include "generation_options.hpp"

namespace xgrad::generation {

/// The next token of a text with these logits, which process_logits has changed: the most probable one, of
/// equal ones the first; with do_sample, one that is drawn with the probabilities softmax(logits). It draws
/// PyTorch's torch.multinomial, argmax(p / e), where e = -log(1 - u) of a double u for each token; a batch
/// draws row by row. Throws ValueError for nan and if the largest logit is infinite.
template <class T>
std::int64_t next_token(const GenerationOptions& options, std::span<const T> logits,
                        Generator& generator = default_generator());

/// Leaves out the numbers that next_token draws with do_sample for a row of so many logits: in PyTorch, rows
/// of a batch are drawn also when their texts have ended.
void skip_token(std::size_t logits, Generator& generator = default_generator());

}  // namespace xgrad::generation
