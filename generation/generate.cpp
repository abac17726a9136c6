#include "generate.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "../base/detail/arrays/expression.hpp"
#include "../base/error.hpp"
#include "../graph/grad_mode.hpp"
#include "../models/module.hpp"
#include "logits_processors.hpp"
#include "sampling.hpp"
#include "stop_strings.hpp"

namespace xgrad::generation {
namespace {

using tokenizers::Tokenizer;
using Tokens = std::vector<std::vector<std::int64_t>>;  // of texts

template <class T>
void check_call(const AutoregressiveModel<T>& model, const GenerationOptions& options) {
  const auto* const module = dynamic_cast<const Module<T>*>(&model);  // a model need not be one
  if (module != nullptr && module->training())
    throw ValueError("generate: the model must be in evaluation mode: call eval()");
  options.check();
  if (options.num_beams != 1)
    xgrad::detail::fail<ValueError>("generate: num_beams must be 1, got ", options.num_beams);
}

/// A text with its prompt, of which the model has forgotten the first tokens, and those that it has in a
/// cache.
struct Text {
  std::vector<std::int64_t> tokens;
  std::size_t prompt_length, most;  // tokens
  std::size_t forgotten = 0, cached = 0;
  bool ended = false;

  std::span<const std::int64_t> seen() const {
    return std::span<const std::int64_t>(tokens).subspan(forgotten);
  }
};

/// The texts of a call, with a cache for each that is still being written.
template <class T>
class Texts {
 public:
  Texts(const AutoregressiveModel<T>& model, bool use_cache, ContextEnd end)
      : model_(model), use_cache_(use_cache), slides_(end == ContextEnd::slide) {}

  void add(Text text) {
    active_.push_back(all_.size());
    caches_.push_back(model_.new_cache());
    all_.push_back(std::move(text));
  }

  std::vector<Text>& all() { return all_; }
  bool have_ended() const { return active_.empty(); }

  /// (texts that have not ended, vocab_size), of the tokens after them.
  Variable<T> logits() {
    std::vector<std::int64_t> fresh;
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      Text& text = all_[active_[i]];
      if (fit(text) || !use_cache_) {
        caches_[i] = model_.new_cache();
        text.cached = 0;
      }
      const std::span<const std::int64_t> seen = text.seen();
      fresh.insert(fresh.end(), seen.begin() + static_cast<std::ptrdiff_t>(text.cached), seen.end());
      lengths.push_back(seen.size() - text.cached);
      text.cached = seen.size();
    }
    const Ids tokens = xgrad::detail::array_of<std::int64_t>(std::span<const std::int64_t>(fresh));
    Variable<T> logits = model_.next_logits(tokens, lengths, caches_);
    if (logits.dimension() != 2 || logits.shape()[0] != active_.size())
      xgrad::detail::fail<ShapeError>("generate: next_logits of ", active_.size(), " sequences must be (",
                                      active_.size(), ", vocab_size), got ", logits.shape());
    return logits;
  }

  /// Lets go of the caches of texts that have ended.
  void release() {
    for (std::size_t i = active_.size(); i-- > 0;) {
      if (!all_[active_[i]].ended) continue;
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      caches_.erase(caches_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

 private:
  /// Forgets the first half of a text that is longer than the model's positions, and tells whether its cache
  /// is outdated by that. Throws ShapeError where the context does not slide.
  bool fit(Text& text) const {
    const std::optional<std::size_t> max_length = model_.max_length();
    if (!max_length || text.seen().size() <= *max_length) return false;
    if (!slides_)
      xgrad::detail::fail<ShapeError>("generate: a text must have at most ", *max_length,
                                      " tokens, as many as the model has positions, got ",
                                      text.seen().size());
    text.forgotten = text.tokens.size() - std::max<std::size_t>(*max_length / 2, 1);
    return true;
  }

  const AutoregressiveModel<T>& model_;
  bool use_cache_, slides_;
  std::vector<Text> all_;
  std::vector<std::size_t> active_;  // of `all_`
  std::vector<KeyValueCache<T>> caches_;
};

template <class T>
Tokens written_by(const AutoregressiveModel<T>& model, const Tokens& prompts, const GenerationOptions& given,
                  const StopStrings& stop_strings, const OnToken& on_token, ContextEnd context_end) {
  check_call(model, given);
  const NoGrad no_grad;
  GenerationOptions options = given;
  if (!options.eos_token_ids) options.eos_token_ids = model.eos_token_ids();
  const std::vector<std::int64_t>& ends = *options.eos_token_ids;
  Texts<T> texts(model, options.use_cache, context_end);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty())
      xgrad::detail::fail<ValueError>("generate: a prompt must have tokens, got none in prompt ", i);
    const std::size_t length = prompts[i].size(), most = options.length_limit(length);
    if (length >= most)
      xgrad::detail::fail<ValueError>(
          "generate: max_length must be above the number of tokens of a prompt, got ", most, " for the ",
          length, " of prompt ", i);
    for (std::size_t copy = 0; copy < options.num_return_sequences; ++copy)
      texts.add({.tokens = prompts[i], .prompt_length = length, .most = most});
  }
  Tokens written(texts.all().size());
  while (!texts.have_ended()) {
    const Variable<T> all_logits = texts.logits();
    Array<T> logits(all_logits.value());
    const std::size_t size = logits.shape(1);
    T* row = logits.data();
    for (std::size_t i = 0; i < texts.all().size(); ++i) {
      Text& text = texts.all()[i];
      if (text.ended) {
        if (options.do_sample) skip_token(size);
        continue;
      }
      const std::span<T> numbers(row, size);
      row += size;
      process_logits<T>(options, text.tokens, text.prompt_length, numbers);
      const std::int64_t token = next_token<T>(options, numbers);
      written[i].push_back(token);
      text.tokens.push_back(token);
      text.ended = text.tokens.size() >= text.most ||
                   std::find(ends.begin(), ends.end(), token) != ends.end() || stop_strings.end(text.tokens);
      if (on_token && !on_token(i, token)) return written;
    }
    texts.release();
  }
  return written;
}

}  // namespace

template <class T>
Tokens generate(const AutoregressiveModel<T>& model, const Tokens& prompts, const GenerationOptions& options,
                const OnToken& on_token, ContextEnd context_end) {
  if (!options.stop_strings.empty())
    throw ValueError("generate: stop_strings need the tokenizer of the model, got none");
  return written_by(model, prompts, options, StopStrings({}, StopStrings::BytesOf()), on_token, context_end);
}

template <class T>
Tokens generate(const AutoregressiveModel<T>& model, const Tokenizer& tokenizer, const Tokens& prompts,
                const GenerationOptions& options, const OnToken& on_token, ContextEnd context_end) {
  return written_by(model, prompts, options, StopStrings(options.stop_strings, tokenizer), on_token,
                    context_end);
}

#define XGRAD_INSTANTIATE(T)                                                                       \
  template Tokens generate(const AutoregressiveModel<T>&, const Tokens&, const GenerationOptions&, \
                           const OnToken&, ContextEnd);                                            \
  template Tokens generate(const AutoregressiveModel<T>&, const Tokenizer&, const Tokens&,         \
                           const GenerationOptions&, const OnToken&, ContextEnd);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::generation
