#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../base/detail/by_name.hpp"

namespace xgrad::generation {

/// How the next tokens are chosen: the fields of generation_config.json, with Hugging Face's names (plural
/// for lists) and defaults. https://huggingface.co/docs/transformers/main_classes/text_generation
struct GenerationOptions {
  xgrad::detail::ByName by_name = {};

  // ---- lengths, in tokens ----
  std::optional<std::size_t> max_new_tokens = {};  ///< behind the prompt; takes precedence over max_length
  std::optional<std::size_t> max_length = {};      ///< with the prompt; 20 new tokens if neither is given
  std::size_t min_length = 0;                      ///< no end token before, with the prompt
  std::optional<std::size_t> min_new_tokens = {};  ///< the same behind the prompt
  std::vector<std::string> stop_strings = {};

  // ---- special tokens ----
  std::optional<std::int64_t> bos_token_id = {};
  std::optional<std::vector<std::int64_t>> eos_token_ids = {};  ///< any of them ends a text
  std::optional<std::int64_t> pad_token_id = {};

  // ---- what is changed in all modes, in this order ----
  std::vector<std::pair<std::vector<std::int64_t>, double>> sequence_bias =
      {};                                ///< added to the last token's logit; the last one of equal sequences
  double repetition_penalty = 1;         ///< of tokens that the text has: s / penalty, s penalty if s < 0
  std::size_t no_repeat_ngram_size = 0;  ///< so many tokens in a row occur once; 0: any number of times
  std::vector<std::vector<std::int64_t>> bad_words_ids = {};  ///< sequences that are not written
  std::optional<std::int64_t> forced_bos_token_id = {};       ///< the second token of a text
  std::vector<std::int64_t> forced_eos_token_ids = {};        ///< any of them as the last of max_length
  bool remove_invalid_values = false;  ///< nan is 0, infinities are the largest numbers
  std::optional<std::pair<std::size_t, double>> exponential_decay_length_penalty = {};  ///< start, factor
  std::vector<std::int64_t> suppress_tokens = {};
  std::vector<std::int64_t> begin_suppress_tokens = {};  ///< as the first new token

  // ---- sampling, in this order; nothing of it is used without do_sample ----
  bool do_sample = false;
  double temperature = 1;
  std::size_t top_k = 50;            ///< only so many most probable tokens, and what equals the last; 0: all
  double top_p = 1;                  ///< only the most probable tokens that make this probability
  std::optional<double> min_p = {};  ///< only tokens with this share of the highest probability
  double typical_p = 1;              ///< only the tokens nearest to the entropy that make this probability
  double epsilon_cutoff = 0;         ///< only tokens of this probability; 0: all
  double eta_cutoff = 0;             ///< only tokens of min(eta, sqrt(eta) e^-entropy); 0: all
  bool renormalize_logits = false;   ///< log-probabilities at the end, also without do_sample

  std::size_t num_beams = 1;             ///< sampling keeps more tokens for beams
  std::size_t num_return_sequences = 1;  ///< texts for each prompt
  bool use_cache = true;

  /// JSON of keys that were read and only tell how a result is computed or shown.
  std::map<std::string, std::string> other_keys = {};

  /// Reads generation_config.json of a folder; the defaults if there is none. Keys of what is not built here
  /// must have values that change nothing. Throws FileError for another key: `model/generation_config.json:
  /// top_z: is not known`, for a value out of range, and for a broken file.
  static GenerationOptions from_folder(const std::string& folder);

  /// generation_config.json: what differs from the defaults.
  std::string json() const;

  /// Throws ValueError for a value out of range: `generation: top_p must be from 0 to 1, got 2`.
  void check() const;

  /// The tokens that a text may have with its prompt.
  std::size_t length_limit(std::size_t prompt_length) const {
    if (!max_new_tokens && max_length) return *max_length;
    return prompt_length + std::min(max_new_tokens.value_or(20), SIZE_MAX - prompt_length);
  }
};

}  // namespace xgrad::generation
