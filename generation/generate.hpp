#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../models/autoregressive_model.hpp"
#include "../tokenizers/tokenizer.hpp"
#include "generation_options.hpp"

namespace xgrad::generation {

/// Called with the number of a text and its next token; generation ends if it returns false.
using OnToken = std::function<bool(std::size_t text, std::int64_t token)>;

/// What happens when a text has as many tokens as the model has positions.
enum class ContextEnd {
  error,
  slide,  ///< the model forgets the first half of the text
};

/// The tokens after prompts: of each the most probable one, or one that is drawn with do_sample, after what
/// the options change, up to the first end token, which is the last then, or to max_new_tokens or max_length.
/// Without eos_token_ids the model's own are meant. num_return_sequences texts of a prompt follow
/// each other.
///
/// Prompts of a call may differ in length: no padding is needed, and without do_sample each has the tokens
/// that it has alone, unless two are as probable but for rounding: where products are of rounded numbers,
/// those of one row may be rounded otherwise than those of several. With do_sample, all texts draw from the
/// default generator in the order of PyTorch, one after the other for each token, also those that have ended.
/// Several threads may share a model.
///
/// Throws ValueError for a prompt without tokens or of max_length or more, for a module in training mode,
/// where logits are no numbers, for options out of range, for num_beams, which is not built here, and for
/// stop_strings, which need a tokenizer; ShapeError for a text of more tokens than the model has positions,
/// unless the context slides; IndexError for ids out of range.
template <class T>
std::vector<std::vector<std::int64_t>> generate(const AutoregressiveModel<T>& model,
                                                const std::vector<std::vector<std::int64_t>>& prompts,
                                                const GenerationOptions& options = {},
                                                const OnToken& on_token = {},
                                                ContextEnd context_end = ContextEnd::error);

/// The same with the model's tokenizer, for stop_strings: a text also ends with a token that completes one of
/// them, as class StopStrings tells.
template <class T>
std::vector<std::vector<std::int64_t>> generate(const AutoregressiveModel<T>& model,
                                                const tokenizers::Tokenizer& tokenizer,
                                                const std::vector<std::vector<std::int64_t>>& prompts,
                                                const GenerationOptions& options = {},
                                                const OnToken& on_token = {},
                                                ContextEnd context_end = ContextEnd::error);

}  // namespace xgrad::generation
