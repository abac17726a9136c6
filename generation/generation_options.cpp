#include "generation_options.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <set>
#include <span>
#include <type_traits>

#include "../base/detail/system/folder_files.hpp"
#include "../base/detail/text/json.hpp"
#include "../base/detail/text/json_tree.hpp"
#include "../base/error.hpp"

namespace xgrad::generation {
namespace {

using Options = GenerationOptions;
using xgrad::detail::Json;

/// What a number must be.
struct Rule {
  const char* must_be;
  bool (*holds)(double);
};
constexpr Rule any{"a number", [](double) { return true; }};
constexpr Rule from_0{"at least 0", [](double x) { return x >= 0; }};
constexpr Rule from_1{"at least 1", [](double x) { return x >= 1; }};
constexpr Rule sequences{"ids from 0 on, in no empty list", [](double x) { return x >= 0; }};
constexpr Rule above_0{"above 0", [](double x) { return x > 0; }};
constexpr Rule share{"from 0 to 1", [](double x) { return x >= 0 && x <= 1; }};
constexpr Rule share_above_0{"above 0 and at most 1", [](double x) { return x > 0 && x <= 1; }};
constexpr Rule texts{"texts with characters", [](double size) { return size > 0; }};
constexpr Rule cutoff{"at least 0 and below 1", [](double x) { return x >= 0 && x < 1; }};

/// Calls visit(name, member, rule) for every field.
template <class Visit>
void for_each_field(const Visit& visit) {
  visit("max_new_tokens", &Options::max_new_tokens, from_1);
  visit("max_length", &Options::max_length, from_1);
  visit("min_length", &Options::min_length, from_0);
  visit("min_new_tokens", &Options::min_new_tokens, from_0);
  visit("stop_strings", &Options::stop_strings, texts);
  visit("bos_token_id", &Options::bos_token_id, from_0);
  visit("eos_token_id", &Options::eos_token_ids, from_0);
  visit("pad_token_id", &Options::pad_token_id, from_0);
  visit("sequence_bias", &Options::sequence_bias, sequences);
  visit("repetition_penalty", &Options::repetition_penalty, above_0);
  visit("no_repeat_ngram_size", &Options::no_repeat_ngram_size, from_0);
  visit("bad_words_ids", &Options::bad_words_ids, sequences);
  visit("forced_bos_token_id", &Options::forced_bos_token_id, from_0);
  visit("forced_eos_token_id", &Options::forced_eos_token_ids, from_0);
  visit("remove_invalid_values", &Options::remove_invalid_values, any);
  visit("exponential_decay_length_penalty", &Options::exponential_decay_length_penalty, above_0);
  visit("suppress_tokens", &Options::suppress_tokens, from_0);
  visit("begin_suppress_tokens", &Options::begin_suppress_tokens, from_0);
  visit("do_sample", &Options::do_sample, any);
  visit("temperature", &Options::temperature, above_0);
  visit("top_k", &Options::top_k, from_0);
  visit("top_p", &Options::top_p, share);
  visit("min_p", &Options::min_p, share);
  visit("typical_p", &Options::typical_p, share_above_0);
  visit("epsilon_cutoff", &Options::epsilon_cutoff, cutoff);
  visit("eta_cutoff", &Options::eta_cutoff, cutoff);
  visit("renormalize_logits", &Options::renormalize_logits, any);
  visit("num_beams", &Options::num_beams, from_1);
  visit("num_return_sequences", &Options::num_return_sequences, from_1);
  visit("use_cache", &Options::use_cache, any);
}

/// What is not built here, and how files say that they do without it, where that is not null.
struct Unbuilt {
  const char *name, *neutral;
};
constexpr Unbuilt unbuilt[]{{"guidance_scale", "1"},
                            {"encoder_repetition_penalty", "1"},
                            {"encoder_no_repeat_ngram_size", "0"},
                            {"penalty_alpha", "0"},
                            {"num_beam_groups", "1"},
                            {"diversity_penalty", "0"},
                            {"token_healing", "false"},
                            {"top_h", "null"},
                            {"dola_layers", "null"},
                            {"constraints", "null"},
                            {"force_words_ids", "null"},
                            {"watermarking_config", "null"},
                            {"prompt_lookup_num_tokens", "null"},
                            {"max_time", "null"}};

/// Keys of beams, of the second model of speculative decoding, and of how a result is computed or shown.
constexpr const char* kept_keys[]{"early_stopping",
                                  "length_penalty",
                                  "low_memory",
                                  "cache_implementation",
                                  "cache_config",
                                  "return_legacy_cache",
                                  "max_cache_len",
                                  "prefill_chunk_size",
                                  "output_attentions",
                                  "output_hidden_states",
                                  "output_scores",
                                  "output_logits",
                                  "return_dict_in_generate",
                                  "decoder_start_token_id",
                                  "is_assistant",
                                  "num_assistant_tokens",
                                  "num_assistant_tokens_schedule",
                                  "assistant_confidence_threshold",
                                  "assistant_early_exit",
                                  "assistant_lookbehind",
                                  "target_lookbehind",
                                  "max_matching_ngram_size",
                                  "compile_config",
                                  "disable_compile",
                                  "_from_model_config",
                                  "transformers_version"};

// ---- reading ----

void read(const Json& json, const Rule& rule, double& value) {
  constexpr double most = std::numeric_limits<double>::max();
  value = json.number(-most, most);
  if (!rule.holds(value)) json.refuse(rule.must_be);
}

void read(const Json& json, const Rule& rule, std::int64_t& value) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  value = json.integer(-most, most);
  if (!rule.holds(static_cast<double>(value))) json.refuse(rule.must_be);
}

void read(const Json& json, const Rule& rule, std::size_t& value) {
  std::int64_t number;
  read(json, rule, number);
  if (number < 0) json.refuse("at least 0");
  value = static_cast<std::size_t>(number);
}

void read(const Json& json, const Rule&, bool& value) { value = json.boolean(); }

void read(const Json& json, const Rule&, std::string& value) { value = json.text(); }

template <class V>
void read(const Json& json, const Rule& rule, std::optional<V>& value);

/// A list, or one element.
template <class V>
void read(const Json& json, const Rule& rule, std::vector<V>& values) {
  values.clear();
  if (!json.is_array()) return read(json, rule, values.emplace_back());
  for (const Json& item : json.items()) read(item, rule, values.emplace_back());
}

/// Lists are no elements of lists that stand for one.
void read(const Json& json, const Rule& rule, std::vector<std::vector<std::int64_t>>& values) {
  values.clear();
  for (const Json& item : json.items()) read(item, rule, values.emplace_back());
}

std::array<Json, 2> two_of(const Json& json, const char* must_be) {
  const std::vector<Json> items = json.items();
  if (items.size() != 2) json.refuse(must_be);
  return {items[0], items[1]};
}

void read(const Json& json, const Rule& rule, std::pair<std::vector<std::int64_t>, double>& value) {
  const auto [ids, bias] = two_of(json, "a list of ids and a number");
  read(ids, rule, value.first);
  read(bias, any, value.second);
}

void read(const Json& json, const Rule& rule, std::pair<std::size_t, double>& value) {
  const auto [start, factor] = two_of(json, "a number of tokens and a factor");
  read(start, from_0, value.first);
  read(factor, rule, value.second);
}

template <class V>
void read(const Json& json, const Rule& rule, std::optional<V>& value) {
  read(json, rule, value.emplace());
}

// ---- checking: the first value that breaks the rule ----

template <class Number>
requires(std::is_arithmetic_v<Number>) std::optional<std::string> broken(const Rule& rule, Number value) {
  if constexpr (!std::is_same_v<Number, bool>) {
    if (!rule.holds(static_cast<double>(value))) return xgrad::detail::text(value);
  }
  return std::nullopt;
}

std::optional<std::string> broken(const Rule& rule, const std::string& value) {
  return rule.holds(static_cast<double>(value.size())) ? std::nullopt : std::optional("an empty one");
}

std::optional<std::string> broken(const Rule& rule, const std::pair<std::size_t, double>& value) {
  return broken(rule, value.second);
}

template <class V>
std::optional<std::string> broken(const Rule& rule, const std::optional<V>& value);

template <class V>
std::optional<std::string> broken(const Rule& rule, const std::vector<V>& values) {
  for (const V& value : values) {
    if (const auto found = broken(rule, value)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> broken(const Rule& rule, const std::vector<std::vector<std::int64_t>>& values) {
  for (const auto& ids : values) {
    if (const auto found = ids.empty() ? "an empty list" : broken(rule, ids)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> broken(const Rule& rule,
                                  const std::vector<std::pair<std::vector<std::int64_t>, double>>& values) {
  for (const auto& [ids, bias] : values) {
    if (const auto found = ids.empty() ? "an empty list" : broken(rule, ids)) return found;
  }
  return std::nullopt;
}

template <class V>
std::optional<std::string> broken(const Rule& rule, const std::optional<V>& value) {
  return value ? broken(rule, *value) : std::nullopt;
}

// ---- writing ----

template <class V>
xgrad::detail::JsonTree written(const V& value) {
  return value;
}

template <class V>
xgrad::detail::JsonTree written(const std::optional<V>& value) {
  return value ? xgrad::detail::JsonTree(*value) : xgrad::detail::JsonTree();
}

/// One end token is written without a list.
xgrad::detail::JsonTree written(const std::optional<std::vector<std::int64_t>>& ids) {
  if (!ids) return {};
  return ids->size() == 1 ? xgrad::detail::JsonTree(ids->front()) : xgrad::detail::JsonTree(*ids);
}

}  // namespace

Options Options::from_folder(const std::string& folder) {
  Options options;
  const std::string path = folder + "/generation_config.json";
  if (!xgrad::detail::exists(path)) return options;
  const Json json = Json::read(path);
  std::set<std::string> known;
  for_each_field([&](const char* name, auto member, const Rule& rule) {
    known.insert(name);
    if (const std::optional<Json> found = json.find(name)) {
      read(*found, rule, options.*member);
      if (broken(rule, options.*member)) found->refuse(rule.must_be);
    }
  });
  for (const auto& [name, neutral] : unbuilt) {
    known.insert(name);
    const std::optional<Json> found = json.find(name);
    if (found && xgrad::detail::JsonTree::parse(found->dump()) != xgrad::detail::JsonTree::parse(neutral))
      found->refuse(xgrad::detail::join({neutral, ", as others are not built"}));
  }
  for (const char* const name : kept_keys) {
    known.insert(name);
    if (const std::optional<Json> found = json.find(name)) options.other_keys[name] = found->dump();
  }
  for (const auto& [name, value] : json.members()) {
    if (!known.contains(name)) value.fail("is not known");
  }
  return options;
}

std::string Options::json() const {
  xgrad::detail::JsonTree json = xgrad::detail::JsonTree::object();
  for (const auto& [name, value] : other_keys) json[name] = xgrad::detail::JsonTree::parse(value);
  const Options defaults;
  for_each_field([&](const char* name, auto member, const Rule&) {
    if (this->*member != defaults.*member) json[name] = written(this->*member);
  });
  return json.dump(2) + "\n";
}

void Options::check() const {
  for_each_field([&](const char* name, auto member, const Rule& rule) {
    if (const std::optional<std::string> value = broken(rule, this->*member))
      xgrad::detail::fail<ValueError>("generation: ", name, " must be ", rule.must_be, ", got ", *value);
  });
}

}  // namespace xgrad::generation
