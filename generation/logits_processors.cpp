#include "logits_processors.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "../base/error.hpp"
#include "detail/probabilities.hpp"

namespace xgrad::generation {
namespace {

using detail::check_numbers, detail::entropy_of, detail::probabilities_of, detail::to_log_probabilities;
using Options = GenerationOptions;
using TokenIds = std::vector<std::int64_t>;

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// What a processor is given.
template <class T>
struct Task {
  const Options& options;
  std::span<const std::int64_t> tokens;
  std::size_t prompt_length;
  std::span<T> logits;

  std::size_t index_of(const char* option, std::int64_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size())
      xgrad::detail::fail<IndexError>("generation: ", option, " must have ids below ", logits.size(),
                                      ", the number of logits, got ", id);
    return static_cast<std::size_t>(id);
  }

  void exclude(const char* option, const TokenIds& ids) const {
    for (const std::int64_t id : ids) logits[index_of(option, id)] = minus_infinity<T>;
  }

  /// All but these.
  void force(const char* option, const TokenIds& ids) const {
    std::fill(logits.begin(), logits.end(), minus_infinity<T>);
    for (const std::int64_t id : ids) logits[index_of(option, id)] = 0;
  }

  /// Whether the text ends with the sequence but for its last id.
  bool may_complete(const TokenIds& sequence) const {
    const std::size_t before = sequence.size() - 1;
    return before <= tokens.size() && std::equal(sequence.begin(), sequence.end() - 1,
                                                 tokens.end() - static_cast<std::ptrdiff_t>(before));
  }
};

TokenIds ends_of(const Options& options) { return options.eos_token_ids.value_or(TokenIds()); }

/// The fewest tokens that sampling keeps: beams need one that is no end.
std::size_t least_kept(const Options& options) {
  return options.num_beams == 1 ? 1 : options.eos_token_ids ? options.eos_token_ids->size() + 1 : 2;
}

/// The places 0 ... count - 1 from the last in an order on; those that are not asked for are not sorted.
template <class Less>
class FromTheLast {
 public:
  FromTheLast(std::size_t count, const Less& less) : heap_(count), less_(less) {
    std::iota(heap_.begin(), heap_.end(), std::size_t{0});
    std::make_heap(heap_.begin(), heap_.end(), less_);
  }

  std::size_t next() {
    std::pop_heap(heap_.begin(), heap_.end(), less_);
    const std::size_t place = heap_.back();
    heap_.pop_back();
    return place;
  }

 private:
  std::vector<std::size_t> heap_;
  Less less_;
};

/// The last of the `count` largest numbers.
template <class T>
T largest_of(std::span<const T> numbers, std::size_t count) {
  check_numbers(numbers);
  std::vector<T> sorted(numbers.begin(), numbers.end());
  const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count, sorted.size()) - 1);
  std::nth_element(sorted.begin(), place, sorted.end(), std::greater<T>());
  return *place;
}

/// Excludes tokens of less than this probability, but for the most probable ones.
template <class T>
void exclude_improbable(const Task<T>& task, const std::vector<T>& p, T least) {
  const T kept = largest_of<T>(task.logits, least_kept(task.options));
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < least && task.logits[i] < kept) task.logits[i] = minus_infinity<T>;
  }
}

// ---- processors, in the order of the table below ----

template <class T>
void bias_sequences(const Task<T>& task) {
  // Sequences that may be completed are equal if their last ids and lengths are; the last bias of them
  // counts.
  std::map<std::pair<std::size_t, std::size_t>, double> found;
  for (const auto& [ids, bias] : task.options.sequence_bias) {
    for (const std::int64_t id : ids) task.index_of("sequence_bias", id);
    if (task.may_complete(ids)) found[{static_cast<std::size_t>(ids.back()), ids.size()}] = bias;
  }
  // Sums of biases are added, so that an infinite one meets a finite logit.
  std::vector<T> biases(task.logits.size());
  for (const auto& [end, bias] : found) biases[end.first] += static_cast<T>(bias);
  for (std::size_t i = 0; i < biases.size(); ++i) task.logits[i] += biases[i];
}

template <class T>
void penalize_repetitions(const Task<T>& task) {
  const T penalty = static_cast<T>(task.options.repetition_penalty);
  std::vector<bool> done(task.logits.size());
  for (const std::int64_t id : task.tokens) {
    const auto i = static_cast<std::size_t>(id);
    if (i >= done.size() || done[i]) continue;
    done[i] = true;
    T& logit = task.logits[i];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

template <class T>
void exclude_repeated_ngrams(const Task<T>& task) {
  const std::size_t size = task.options.no_repeat_ngram_size;
  const auto& tokens = task.tokens;
  if (tokens.size() < size) return;
  const auto end = tokens.last(size - 1);  // of the text, which a token would complete
  for (std::size_t begin = 0; begin + size <= tokens.size(); ++begin) {
    const auto next = static_cast<std::size_t>(tokens[begin + size - 1]);
    if (next < task.logits.size() &&
        std::equal(end.begin(), end.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin)))
      task.logits[next] = minus_infinity<T>;
  }
}

template <class T>
void exclude_bad_words(const Task<T>& task) {
  const TokenIds ends = ends_of(task.options);
  for (const TokenIds& ids : task.options.bad_words_ids) {
    for (const std::int64_t id : ids) task.index_of("bad_words_ids", id);
    const bool is_end = ids.size() == 1 && std::find(ends.begin(), ends.end(), ids[0]) != ends.end();
    if (!is_end && task.may_complete(ids))
      task.logits[static_cast<std::size_t>(ids.back())] = minus_infinity<T>;
  }
}

template <class T>
void exclude_ends_before_length(const Task<T>& task) {
  if (task.tokens.size() < task.options.min_length) task.exclude("eos_token_id", ends_of(task.options));
}

template <class T>
void exclude_ends_before_new_tokens(const Task<T>& task) {
  if (task.tokens.size() - task.prompt_length < *task.options.min_new_tokens)
    task.exclude("eos_token_id", ends_of(task.options));
}

template <class T>
void force_begin(const Task<T>& task) {
  if (task.tokens.size() == 1) task.force("forced_bos_token_id", {*task.options.forced_bos_token_id});
}

template <class T>
void force_end(const Task<T>& task) {
  if (task.tokens.size() + 1 == task.options.length_limit(task.prompt_length))
    task.force("forced_eos_token_id", task.options.forced_eos_token_ids);
}

template <class T>
void remove_invalid(const Task<T>& task) {
  constexpr T largest = std::numeric_limits<T>::max();
  for (T& logit : task.logits) logit = std::isnan(logit) ? 0 : std::clamp(logit, -largest, largest);
}

template <class T>
void favour_ends(const Task<T>& task) {
  const auto [start, factor] = *task.options.exponential_decay_length_penalty;
  const std::size_t written = task.tokens.size() - task.prompt_length;
  if (written <= start) return;
  const double growth = std::pow(factor, static_cast<double>(written - start)) - 1;
  for (const std::int64_t id : ends_of(task.options)) {
    T& logit = task.logits[task.index_of("eos_token_id", id)];
    if (std::isfinite(logit)) logit += std::abs(logit) * static_cast<T>(growth);
  }
}

template <class T>
void suppress(const Task<T>& task) {
  task.exclude("suppress_tokens", task.options.suppress_tokens);
}

template <class T>
void suppress_at_begin(const Task<T>& task) {
  // A forced first token is not the begin.
  const bool is_forced = task.prompt_length <= 1 && task.options.forced_bos_token_id;
  if (task.tokens.size() == task.prompt_length + (is_forced ? 1 : 0))
    task.exclude("begin_suppress_tokens", task.options.begin_suppress_tokens);
}

template <class T>
void divide_by_temperature(const Task<T>& task) {
  for (T& logit : task.logits) logit /= static_cast<T>(task.options.temperature);
}

template <class T>
void keep_top_k(const Task<T>& task) {
  const T least = largest_of<T>(task.logits, std::max(task.options.top_k, least_kept(task.options)));
  for (T& logit : task.logits) {
    if (logit < least) logit = minus_infinity<T>;
  }
}

template <class T>
void keep_top_p(const Task<T>& task) {
  const std::vector<T> p = probabilities_of<T>(task.logits);
  const std::size_t kept = least_kept(task.options);
  const T excluded = static_cast<T>(1 - task.options.top_p);
  const auto& logits = task.logits;
  FromTheLast order(p.size(), [logits](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] < logits[b] : a < b;
  });
  double left = std::accumulate(p.begin(), p.end(), 0.0);  // of this token and all behind it
  std::vector<T> result(p.size(), minus_infinity<T>);
  for (std::size_t count = 0; count < p.size(); ++count) {
    const std::size_t i = order.next();
    if (count >= kept && static_cast<T>(left) <= excluded) break;
    result[i] = logits[i];
    left -= p[i];
  }
  std::copy(result.begin(), result.end(), logits.begin());
}

template <class T>
void keep_min_p(const Task<T>& task) {
  const std::vector<T> p = probabilities_of<T>(task.logits);
  exclude_improbable(task, p, static_cast<T>(*task.options.min_p) * *std::max_element(p.begin(), p.end()));
}

template <class T>
void keep_typical(const Task<T>& task) {
  const std::vector<T> p = probabilities_of<T>(task.logits);
  std::vector<T> log_p(task.logits.begin(), task.logits.end());
  to_log_probabilities<T>(log_p);
  const T entropy = entropy_of<T>(log_p);
  std::vector<T> distances;
  for (const T one : log_p) distances.push_back(std::abs(-one - entropy));
  FromTheLast order(p.size(), [&](std::size_t a, std::size_t b) {
    return distances[a] != distances[b] ? distances[a] > distances[b] : a > b;
  });
  const std::size_t kept = least_kept(task.options);
  std::vector<bool> is_kept(p.size());
  std::optional<T> farthest;
  double sum = 0;
  for (std::size_t count = 0; count < p.size(); ++count) {
    const std::size_t i = order.next();
    if (count >= kept && farthest && distances[i] > *farthest) break;
    is_kept[i] = true;
    sum += p[i];
    if (!farthest && (static_cast<T>(sum) >= static_cast<T>(task.options.typical_p) || count + 1 == p.size()))
      farthest = distances[i];
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!is_kept[i]) task.logits[i] = minus_infinity<T>;
  }
}

template <class T>
void cut_epsilon(const Task<T>& task) {
  exclude_improbable(task, probabilities_of<T>(task.logits), static_cast<T>(task.options.epsilon_cutoff));
}

template <class T>
void cut_eta(const Task<T>& task) {
  std::vector<T> log_p(task.logits.begin(), task.logits.end());
  to_log_probabilities<T>(log_p);
  const T epsilon = static_cast<T>(task.options.eta_cutoff);
  exclude_improbable(task, probabilities_of<T>(task.logits),
                     std::min(epsilon, std::sqrt(epsilon) * std::exp(-entropy_of<T>(log_p))));
}

template <class T>
void normalize(const Task<T>& task) {
  to_log_probabilities(task.logits);
}

/// A class of Hugging Face's, the options that ask for it, and what it does.
template <class T>
struct Processor {
  const char* name;
  bool (*is_used)(const Options&);
  void (*process)(const Task<T>&);
};

bool has_ends(const Options& options) { return !ends_of(options).empty(); }

template <class T>
constexpr Processor<T> processors[] = {
    {"SequenceBiasLogitsProcessor", [](const Options& o) { return !o.sequence_bias.empty(); },
     bias_sequences<T>},
    {"RepetitionPenaltyLogitsProcessor", [](const Options& o) { return o.repetition_penalty != 1; },
     penalize_repetitions<T>},
    {"NoRepeatNGramLogitsProcessor", [](const Options& o) { return o.no_repeat_ngram_size > 0; },
     exclude_repeated_ngrams<T>},
    {"NoBadWordsLogitsProcessor", [](const Options& o) { return !o.bad_words_ids.empty(); },
     exclude_bad_words<T>},
    {"MinLengthLogitsProcessor", [](const Options& o) { return o.min_length > 0 && has_ends(o); },
     exclude_ends_before_length<T>},
    {"MinNewTokensLengthLogitsProcessor",
     [](const Options& o) { return o.min_new_tokens.value_or(0) > 0 && has_ends(o); },
     exclude_ends_before_new_tokens<T>},
    {"ForcedBOSTokenLogitsProcessor", [](const Options& o) { return o.forced_bos_token_id.has_value(); },
     force_begin<T>},
    {"ForcedEOSTokenLogitsProcessor", [](const Options& o) { return !o.forced_eos_token_ids.empty(); },
     force_end<T>},
    {"InfNanRemoveLogitsProcessor", [](const Options& o) { return o.remove_invalid_values; },
     remove_invalid<T>},
    {"ExponentialDecayLengthPenalty",
     [](const Options& o) { return o.exponential_decay_length_penalty.has_value(); }, favour_ends<T>},
    {"SuppressTokensLogitsProcessor", [](const Options& o) { return !o.suppress_tokens.empty(); },
     suppress<T>},
    {"SuppressTokensAtBeginLogitsProcessor",
     [](const Options& o) { return !o.begin_suppress_tokens.empty(); }, suppress_at_begin<T>},
    {"TemperatureLogitsWarper", [](const Options& o) { return o.do_sample && o.temperature != 1; },
     divide_by_temperature<T>},
    {"TopKLogitsWarper", [](const Options& o) { return o.do_sample && o.top_k != 0; }, keep_top_k<T>},
    {"TopPLogitsWarper", [](const Options& o) { return o.do_sample && o.top_p < 1; }, keep_top_p<T>},
    {"MinPLogitsWarper", [](const Options& o) { return o.do_sample && o.min_p.has_value(); }, keep_min_p<T>},
    {"TypicalLogitsWarper", [](const Options& o) { return o.do_sample && o.typical_p < 1; }, keep_typical<T>},
    {"EpsilonLogitsWarper", [](const Options& o) { return o.do_sample && o.epsilon_cutoff > 0; },
     cut_epsilon<T>},
    {"EtaLogitsWarper", [](const Options& o) { return o.do_sample && o.eta_cutoff > 0; }, cut_eta<T>},
    {"LogitNormalization", [](const Options& o) { return o.renormalize_logits; }, normalize<T>}};

}  // namespace

template <class T>
void process_logits(const Options& options, std::span<const std::int64_t> tokens, std::size_t prompt_length,
                    std::span<T> logits) {
  options.check();
  if (prompt_length > tokens.size())
    xgrad::detail::fail<ValueError>("generation: the prompt must be a part of the ", tokens.size(),
                                    " tokens, got ", prompt_length);
  if (logits.empty()) throw ValueError("generation: there must be logits, got none");
  const Task<T> task{options, tokens, prompt_length, logits};
  for (const Processor<T>& processor : processors<T>) {
    if (processor.is_used(options)) processor.process(task);
  }
}

std::vector<std::string> names_of_processors(const Options& options) {
  std::vector<std::string> names;
  for (const auto& processor : processors<float>) {
    if (processor.is_used(options)) names.emplace_back(processor.name);
  }
  return names;
}

template void process_logits(const Options&, std::span<const std::int64_t>, std::size_t, std::span<float>);
template void process_logits(const Options&, std::span<const std::int64_t>, std::size_t, std::span<double>);

}  // namespace xgrad::generation
