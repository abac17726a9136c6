#include "walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <xgrad/report.hpp>
#include <xgrad/xgrad.hpp>

namespace learn {
namespace {

using xgrad::Ids, xgrad::TensorLabels, xgrad::Variable;
using Words = std::vector<std::string>;

constexpr std::size_t most_words = 10, most_features = 8, d_ff = 8;
constexpr std::uint64_t seed = 123;  // the notebook's

void check(const WalkSettings& settings) {
  using xgrad::detail::fail, xgrad::ValueError;
  const std::size_t n = settings.words.size(), d = settings.d_model;
  if (n < 1 || n > most_words)
    fail<ValueError>("The sentence must have 1 to ", most_words, " words, and has ", n, ".");
  if (d < 1 || d > most_features)
    fail<ValueError>("d_model must be 1 to ", most_features, ", and is ", d, ".");
  if (settings.heads < 1 || d % settings.heads != 0)
    fail<ValueError>("The heads must share d_model evenly: ", d, " numbers are not ", settings.heads,
                     " equal parts.");
  if (settings.asked >= n)
    fail<ValueError>("There is no word at place ", settings.asked, " of ", n, " to be asked for.");
  std::vector<bool> hidden(n);
  for (const std::size_t place : settings.hidden) {
    if (place >= n) fail<ValueError>("There is no word at place ", place, " of ", n, " to be hidden.");
    hidden[place] = true;
  }
  if (std::find(hidden.begin(), hidden.end(), false) == hidden.end())
    fail<ValueError>("All words are hidden: one must be left to look at.");
}

/// The notebook seeds before it makes a module.
template <class Module, class... Arguments>
Module seeded(Arguments... arguments) {
  xgrad::manual_seed(seed);
  return Module(arguments...);
}

/// The weights, drawn as the notebook does.
class Weights {
 public:
  Weights(std::size_t vocabulary, std::size_t d_model)
      : embed(seeded<xgrad::Embedding<float>>(vocabulary, d_model)),
        positions(seeded<xgrad::Embedding<float>>(most_words, d_model)),
        W_Q(seeded<xgrad::Linear<float>>(d_model, d_model, false)),
        W_K(d_model, d_model, false),
        W_V(d_model, d_model, false),
        out_proj(d_model, d_model, false),
        norm1(d_model),
        run_before(d_model, d_ff),
        linear1(d_model, d_ff),
        linear2(d_ff, d_model),
        norm2(d_model),
        head(d_model, vocabulary) {}

  std::vector<xgrad::NamedParameter<float>> named() const {
    std::vector<xgrad::NamedParameter<float>> all;
    const auto add = [&all](const std::string& prefix, const xgrad::Module<float>& module) {
      for (const auto& [name, parameter] : module.named_parameters())
        all.emplace_back(prefix + "." + name, parameter);
    };
    add("embed", embed);
    add("positions", positions);
    add("W_Q", W_Q);
    add("W_K", W_K);
    add("W_V", W_V);
    add("out_proj", out_proj);
    add("norm1", norm1);
    add("linear1", linear1);
    add("linear2", linear2);
    add("norm2", norm2);
    add("head", head);
    return all;
  }

  xgrad::Embedding<float> embed, positions;
  xgrad::Linear<float> W_Q, W_K, W_V, out_proj;
  xgrad::LayerNorm<float> norm1;

 private:
  xgrad::FeedForward<float> run_before;  // the notebook ran this cell twice: its draws count

 public:
  xgrad::Linear<float> linear1, linear2;
  xgrad::LayerNorm<float> norm2;
  xgrad::Linear<float> head;
};

void apply(const std::vector<Edit>& edits, const std::vector<xgrad::NamedParameter<float>>& parameters) {
  using xgrad::detail::fail, xgrad::ValueError;
  for (const Edit& edit : edits) {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const auto& parameter) { return parameter.first == edit.parameter; });
    if (found == parameters.end()) fail<ValueError>("There are no weights called ", edit.parameter, ".");
    Variable<float> parameter = found->second;
    if (edit.index >= parameter.size())
      fail<ValueError>(edit.parameter, " has ", parameter.size(), " numbers, and none at ", edit.index, ".");
    xgrad::Array<float> changed = parameter.value();
    changed.data()[edit.index] = edit.value;
    parameter.assign(changed);
  }
}

/// The words with each one once, in the order in which they come: a word's id is its place.
Words vocabulary_of(const Words& words) {
  Words vocabulary;
  for (const std::string& word : words) {
    if (std::find(vocabulary.begin(), vocabulary.end(), word) == vocabulary.end()) vocabulary.push_back(word);
  }
  return vocabulary;
}

Ids ids_of(const Words& words, const Words& vocabulary) {
  Ids ids = Ids::from_shape({words.size()});
  for (std::size_t i = 0; i < words.size(); ++i)
    ids(i) = std::find(vocabulary.begin(), vocabulary.end(), words[i]) - vocabulary.begin();
  return ids;
}

}  // namespace

std::string walk(const WalkSettings& settings) {
  check(settings);
  const Words& words = settings.words;
  const Words vocabulary = vocabulary_of(words);
  const std::size_t n = words.size(), d_model = settings.d_model, heads = settings.heads,
                    d_head = d_model / heads;
  const Ids ids = ids_of(words, vocabulary);
  const Weights weights(vocabulary.size(), d_model);
  const auto parameters = weights.named();
  apply(settings.edits, parameters);

  xgrad::Recording<float> recording;
  const auto show = [&](const std::string& name, const Variable<float>& x, const TensorLabels& labels = {}) {
    recording.tensor("", name, x, labels);
  };
  const TensorLabels of_words{.rows = words};
  const TensorLabels of_heads{.axes = {"head"}, .rows = words};
  const TensorLabels of_pairs{.axes = {"head"}, .rows = words, .columns = words};
  for (const auto& [name, parameter] : parameters)
    show(name, parameter, name == "embed.weight" ? TensorLabels{.rows = vocabulary} : TensorLabels{});

  recording.tensor("", "ids", ids, {.columns = words});
  const Variable<float> embedded = weights.embed(ids);
  show("embedded", embedded, of_words);
  const Variable<float> table = slice(weights.positions.weight(), 0, 0, static_cast<std::ptrdiff_t>(n));
  const Variable<float> x = settings.positions ? embedded + table : embedded;
  show("x", x, of_words);

  const auto split_heads = [&](const Variable<float>& y) {
    return transpose(reshape(y, {n, heads, d_head}), 0, 1);  // (heads, n, d_head)
  };
  const Variable<float> Q = weights.W_Q(x), K = weights.W_K(x), V = weights.W_V(x);
  show("Q", Q, of_words);
  show("K", K, of_words);
  show("V", V, of_words);
  const Variable<float> q = split_heads(Q), k = split_heads(K), v = split_heads(V);
  show("q", q, of_heads);
  show("k", k, of_heads);
  show("v", v, of_heads);
  Variable<float> scores = matmul(q, transpose(k, -1, -2)) / std::sqrt(static_cast<float>(d_head));
  if (!settings.hidden.empty()) {
    xgrad::Mask hidden = xgrad::Mask::from_shape({n});
    hidden.fill(false);
    for (const std::size_t place : settings.hidden) hidden(place) = true;
    scores = masked_fill(scores, hidden, -std::numeric_limits<float>::infinity());
  }
  show("scores", scores, of_pairs);
  const Variable<float> shares = softmax(scores, -1);
  show("weights", shares, of_pairs);
  const Variable<float> context = matmul(shares, v);
  show("context", context, of_heads);
  const Variable<float> joined = reshape(transpose(context, 0, 1), {n, d_model});
  show("joined", joined, of_words);
  const Variable<float> attended = weights.out_proj(joined);
  show("attended", attended, of_words);

  const Variable<float> sum_1 = settings.residual ? x + attended : attended;
  show("sum_1", sum_1, of_words);
  const Variable<float> normed_1 = weights.norm1(sum_1);
  show("normed_1", normed_1, of_words);
  const Variable<float> before_relu = weights.linear1(normed_1);
  show("before_relu", before_relu, of_words);
  const Variable<float> inner = relu(before_relu);
  show("inner", inner, of_words);
  const Variable<float> fed = weights.linear2(inner);
  show("fed", fed, of_words);
  const Variable<float> sum_2 = settings.residual ? normed_1 + fed : fed;
  show("sum_2", sum_2, of_words);
  const Variable<float> encoded = weights.norm2(sum_2);
  show("encoded", encoded, of_words);

  const Variable<float> logits = weights.head(encoded);
  show("logits", logits, {.rows = words, .columns = vocabulary});
  Ids answers = Ids::from_shape({n});
  answers.fill(-100);  // not asked for
  answers(settings.asked) = ids(settings.asked);
  const Variable<float> loss = cross_entropy(logits, answers);
  show("loss", loss);

  xgrad::Report report("an encoder block");
  report.step(0).recorded({"", {words}}, recording, loss, parameters);
  return report.json();
}

}  // namespace learn
