// Runs the op cases of a directory (cases.json and .npy files): values, gradients and refusals
#include <cmath>
#include <iostream>
#include <map>
#include <new>
#include <optional>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../npy.hpp"
#include "../ops/common/call.hpp"
#include "deviation.hpp"
#include "json_file.hpp"

namespace {

using nlohmann::json;
using xgrad::Array, xgrad::Mask, xgrad::Variable;
using xgrad_tests::as, xgrad_tests::BadEntry, xgrad_tests::Call, xgrad_tests::entry, xgrad_tests::entry_as,
    xgrad_tests::list_entry, xgrad_tests::read_npy, xgrad_tests::Results, xgrad_tests::Value;

/// The op is not one of those that xgrad has.
struct UnknownOp : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Models and optimizers; the files in tests/ops say how ops are called.

/// What the parameters of a module are loaded from, by their names.
template <class T>
using Sources = std::map<std::string, Variable<T>>;

/// A parameter that was loaded: after the backward pass its gradient goes on to the source.
template <class T>
struct Loaded {
  Variable<T> parameter, source;
};

template <class T>
void load(const xgrad::Module<T>& module, const Sources<T>& sources, std::vector<Loaded<T>>& loaded) {
  xgrad::StateDict<T> state;
  for (const auto& [name, source] : sources) state[name] = source.value();
  module.load_state_dict(state);
  for (const auto& [name, parameter] : module.named_parameters())
    loaded.push_back({parameter, sources.at(name)});
}

/// Those of MultiHeadAttention; PyTorch has the weights of q, k and v in one array, and so their biases.
template <class T>
Sources<T> attention_sources(const Call<T>& c, std::size_t first, const std::string& prefix = "") {
  Sources<T> sources{{prefix + "out_proj.weight", c.x(first + 2)},
                     {prefix + "out_proj.bias", c.x(first + 3)}};
  const auto size = static_cast<std::ptrdiff_t>(c.x(first + 2).shape(0));
  std::ptrdiff_t start = 0;
  for (const char* const name : {"W_Q", "W_K", "W_V"}) {
    sources[prefix + name + ".weight"] = narrow(c.x(first), 0, start, size);
    sources[prefix + name + ".bias"] = narrow(c.x(first + 1), 0, start, size);
    start += size;
  }
  return sources;
}

/// Of PyTorch's masks, where true blocks: none, or one that broadcasts to (N, heads, L, S).
template <class T>
xgrad::AttentionMask<T> not_blocked(const std::optional<Mask>& blocked) {
  return blocked ? xgrad::AttentionMask<T>(Mask(!*blocked)) : xgrad::AttentionMask<T>();
}

/// key_padding_mask (N, S).
template <class T>
std::optional<Mask> blocked_keys(const Call<T>& c, std::size_t input) {
  if (!c.has(input)) return std::nullopt;
  Mask blocked = c.mask(input);
  if (blocked.dimension() != 2) throw BadEntry("key_padding_mask must have two axes");
  blocked.reshape({blocked.shape(0), 1, 1, blocked.shape(1)});
  return blocked;
}

/// attn_mask (L, S).
template <class T>
std::optional<Mask> blocked_scores(const Call<T>& c, std::size_t input) {
  if (!c.has(input)) return std::nullopt;
  Mask blocked = c.mask(input);
  if (blocked.dimension() == 2) blocked = reshape(blocked, {1, blocked.shape(0), blocked.shape(1)});
  return blocked;
}

/// Both, one after the other.
template <class T>
xgrad::AttentionMask<T> attention_mask(const Call<T>& c, std::size_t first) {
  std::optional<Mask> blocked = blocked_keys(c, first);
  if (const std::optional<Mask> scores = blocked_scores(c, first + 1))
    blocked = blocked ? Mask(*blocked || *scores) : *scores;
  return not_blocked<T>(blocked);
}

template <class T>
Variable<T> multi_head_attention(const Call<T>& c, std::vector<Loaded<T>>& loaded) {
  const xgrad::MultiHeadAttention<T> module(c.x(5).shape(0), c.count("num_heads"), {.bias = true});
  load(module, attention_sources(c, 3), loaded);
  return module(c.x(), c.x(1), c.x(2), attention_mask(c, 7));
}

template <class T>
xgrad::Activation activation(const Call<T>& c) {
  const std::string name = c.text("activation");
  if (name != "relu" && name != "gelu") throw xgrad::ValueError("there is no activation '" + name + "'");
  return name == "relu" ? xgrad::Activation::relu : xgrad::Activation::gelu;
}

/// Adds the weights and biases of layers, which are inputs one after another.
template <class T>
void add_layers(const Call<T>& c, std::size_t input, std::initializer_list<const char*> names,
                Sources<T>& sources) {
  for (const std::string name : names) {
    sources[name + ".weight"] = c.x(input++);
    sources[name + ".bias"] = c.x(input++);
  }
}

template <class T>
Variable<T> encoder_layer(const Call<T>& c, std::vector<Loaded<T>>& loaded) {
  const xgrad::TransformerEncoderLayer<T> module({.d_model = c.x(3).shape(0),
                                                  .heads = c.count("num_heads"),
                                                  .d_ff = c.x(5).shape(0),
                                                  .activation = activation(c),
                                                  .norm_first = c.flag("norm_first"),
                                                  .bias = true,
                                                  .eps = c.number("eps")});
  Sources<T> sources = attention_sources(c, 1, "self_attn.");
  add_layers(c, 5, {"feed_forward.linear1", "feed_forward.linear2", "norm1", "norm2"}, sources);
  load(module, sources, loaded);
  return module(c.x(), attention_mask(c, 13));
}

template <class T>
Variable<T> decoder_layer(const Call<T>& c, std::vector<Loaded<T>>& loaded) {
  const xgrad::TransformerDecoderLayer<T> module({.d_model = c.x(4).shape(0),
                                                  .heads = c.count("num_heads"),
                                                  .d_ff = c.x(10).shape(0),
                                                  .activation = activation(c),
                                                  .norm_first = c.flag("norm_first"),
                                                  .eps = c.number("eps"),
                                                  .is_causal = false});
  Sources<T> sources = attention_sources(c, 2, "self_attn.");
  sources.merge(attention_sources(c, 6, "multihead_attn."));
  add_layers(c, 10, {"feed_forward.linear1", "feed_forward.linear2", "norm1", "norm2", "norm3"}, sources);
  load(module, sources, loaded);
  return module(c.x(), c.x(1), not_blocked<T>(blocked_scores(c, 20)), not_blocked<T>(blocked_keys(c, 21)));
}

/// The first input after steps with the others as its gradients.
template <class T, class Optimizer, class Options>
Variable<T> optimized(const Call<T>& c, const Options& options) {
  const Variable<T> parameter(c.x().value(), true);
  Optimizer optimizer({parameter}, options);
  for (std::size_t step = 1; step < c.size(); ++step) {
    parameter.zero_grad();
    sum(parameter * c.x(step).detach()).backward();
    optimizer.step();
  }
  return parameter.detach();
}

template <class T>
bool flag_or_false(const Call<T>& c, const char* name) {
  return c.has_attr(name) && c.flag(name);
}

template <class Options, class T>
Options adam_options(const Call<T>& c) {
  Options options{.lr = c.number("lr"),
                  .betas = {c.number("beta1"), c.number("beta2")},
                  .eps = c.number("eps"),
                  .weight_decay = c.number("weight_decay")};
  options.maximize = flag_or_false(c, "maximize");
  if constexpr (requires { options.amsgrad; }) options.amsgrad = flag_or_false(c, "amsgrad");
  if constexpr (requires { options.momentum_decay; }) options.momentum_decay = c.number("momentum_decay");
  if constexpr (requires { options.decoupled_weight_decay; })
    options.decoupled_weight_decay = c.flag("decoupled_weight_decay");
  return options;
}

/// The rates of epochs 0 to `steps`.
template <class T>
Variable<T> scheduled(const Call<T>& c) {
  xgrad::SGD<T> optimizer({Variable<T>(T{0}, true)}, {.lr = c.number("lr")});
  std::optional<xgrad::LRScheduler<T>> scheduler;
  const std::string name = c.text("scheduler");
  if (name == "MultiStepLR") {
    const std::vector<std::ptrdiff_t> epochs = c.list("milestones");
    scheduler = xgrad::MultiStepLR<T>(optimizer, {epochs.begin(), epochs.end()}, c.number("gamma"));
  } else if (name == "ExponentialLR") {
    scheduler = xgrad::ExponentialLR<T>(optimizer, c.number("gamma"));
  } else if (name == "PolynomialLR") {
    scheduler = xgrad::PolynomialLR<T>(optimizer, c.count("total_iters"), c.number("power"));
  } else if (name == "CosineAnnealingWarmRestarts") {
    scheduler = xgrad::CosineAnnealingWarmRestarts<T>(
        optimizer, c.count("T_0"), {.T_mult = c.count("T_mult"), .eta_min = c.number("eta_min")});
  } else if (name == "OneCycleLR") {
    scheduler = xgrad::OneCycleLR<T>(
        optimizer, c.number("max_lr"), c.count("total_steps"),
        {.pct_start = c.number("pct_start"),
         .anneal_strategy = c.text("anneal_strategy") == "linear" ? xgrad::AnnealStrategy::linear
                                                                  : xgrad::AnnealStrategy::cos,
         .div_factor = c.number("div_factor"),
         .final_div_factor = c.number("final_div_factor"),
         .three_phase = c.flag("three_phase")});
  } else {
    throw UnknownOp("xgrad has no scheduler '" + name + "'");
  }
  const std::size_t steps = c.count("steps");
  Array<T> rates = Array<T>::from_shape({steps + 1});
  for (std::size_t epoch = 0; epoch <= steps; ++epoch) {
    if (epoch > 0) scheduler->step();
    rates(epoch) = static_cast<T>(optimizer.lr());
  }
  return rates;
}

template <class T>
Results<T> clipped(const Call<T>& c) {
  Results<T> leaves;
  for (const Variable<T>& gradient : c.all()) {
    leaves.emplace_back(Array<T>(gradient.shape(), T{0}), true);
    leaves.back().backward(gradient.detach());
  }
  const double norm = clip_grad_norm(leaves, c.number("max_norm"));
  Results<T> results;
  for (const Variable<T>& leaf : leaves) results.push_back(leaf.grad());
  results.emplace_back(static_cast<T>(norm));
  return results;
}

/// The distribution that the attribute `parameter`, probs or logits, says of input i.
template <template <class> class Distribution, class T>
Distribution<T> distribution(const Call<T>& c, std::size_t i = 0) {
  if (c.text("parameter") == "probs") return Distribution<T>({.probs = c.x(i)});
  return Distribution<T>({.logits = c.x(i)});
}

const xgrad_tests::Conformance others{
    {"normal_log_prob",
     []<class T>(const Call<T>& c) { return xgrad::Normal<T>(c.x(), c.x(1)).log_prob(c.x(2)); }},
    {"normal_entropy", []<class T>(const Call<T>& c) { return xgrad::Normal<T>(c.x(), c.x(1)).entropy(); }},
    {"normal_kl",
     []<class T>(const Call<T>& c) {
       return kl_divergence(xgrad::Normal<T>(c.x(), c.x(1)), xgrad::Normal<T>(c.x(2), c.x(3)));
     }},
    {"bernoulli_log_prob", [](const auto& c) { return distribution<xgrad::Bernoulli>(c).log_prob(c.x(1)); }},
    {"bernoulli_entropy", [](const auto& c) { return distribution<xgrad::Bernoulli>(c).entropy(); }},
    {"bernoulli_kl",
     [](const auto& c) {
       return kl_divergence(distribution<xgrad::Bernoulli>(c), distribution<xgrad::Bernoulli>(c, 1));
     }},
    {"categorical_log_prob",
     [](const auto& c) { return distribution<xgrad::Categorical>(c).log_prob(c.ids(1)); }},
    {"categorical_entropy", [](const auto& c) { return distribution<xgrad::Categorical>(c).entropy(); }},
    {"categorical_kl",
     [](const auto& c) {
       return kl_divergence(distribution<xgrad::Categorical>(c), distribution<xgrad::Categorical>(c, 1));
     }},
    {"optim_sgd",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::SGD<T>>(c, xgrad::SGDOptions{.lr = c.number("lr"),
                                                               .momentum = c.number("momentum"),
                                                               .dampening = c.number("dampening"),
                                                               .weight_decay = c.number("weight_decay"),
                                                               .nesterov = c.flag("nesterov"),
                                                               .maximize = flag_or_false(c, "maximize")});
     }},
    {"optim_adam",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::Adam<T>>(c, adam_options<xgrad::AdamOptions>(c));
     }},
    {"optim_adamw",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::AdamW<T>>(c, adam_options<xgrad::AdamWOptions>(c));
     }},
    {"optim_nadam",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::NAdam<T>>(c, adam_options<xgrad::NAdamOptions>(c));
     }},
    {"optim_radam",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::RAdam<T>>(c, adam_options<xgrad::RAdamOptions>(c));
     }},
    {"optim_rmsprop",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::RMSprop<T>>(
           c, xgrad::RMSpropOptions{.lr = c.number("lr"),
                                    .alpha = c.number("alpha"),
                                    .eps = c.number("eps"),
                                    .weight_decay = c.number("weight_decay"),
                                    .momentum = c.number("momentum"),
                                    .centered = c.flag("centered"),
                                    .maximize = flag_or_false(c, "maximize")});
     }},
    {"optim_adagrad",
     []<class T>(const Call<T>& c) {
       return optimized<T, xgrad::Adagrad<T>>(
           c, xgrad::AdagradOptions{.lr = c.number("lr"),
                                    .lr_decay = c.number("lr_decay"),
                                    .weight_decay = c.number("weight_decay"),
                                    .initial_accumulator_value = c.number("initial_accumulator_value"),
                                    .eps = c.number("eps"),
                                    .maximize = flag_or_false(c, "maximize")});
     }},
    {"lr_scheduler", [](const auto& c) { return scheduled(c); }},
    {"clip_grad_norm", [](const auto& c) { return clipped(c); }},
    {"identity", [](const auto& c) { return c.x(); }}};

template <class T>
Results<T> call(const std::string& op, const Call<T>& arguments, std::vector<Loaded<T>>& loaded) {
  if (op == "multi_head_attention") return {multi_head_attention(arguments, loaded)};
  if (op == "transformer_encoder_layer") return {encoder_layer(arguments, loaded)};
  if (op == "transformer_decoder_layer") return {decoder_layer(arguments, loaded)};
  const xgrad_tests::Adapter* const adapter = xgrad_tests::find_adapter(op);
  if (adapter == nullptr) throw UnknownOp("xgrad has no op '" + op + "'");
  return (*adapter)(arguments);
}

/// The outputs of a program over the same ops: its nodes run in order, their results go by name.
template <class T>
Results<T> run_graph(const json& attrs, const std::vector<Value<T>>& inputs, std::vector<Loaded<T>>& loaded) {
  std::map<std::string, Value<T>> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named["x" + std::to_string(i)] = inputs[i];
  const auto value = [&](const json& name) {
    if (name.is_null()) return Value<T>{};
    const auto found = named.find(as<std::string>(name, "a name"));
    if (found == named.end()) throw BadEntry("no value is named " + name.dump());
    return found->second;
  };
  for (const json& node : list_entry(attrs, "nodes")) {
    std::vector<Value<T>> arguments;
    for (const json& name : list_entry(node, "in")) arguments.push_back(value(name));
    const auto op = entry_as<std::string>(node, "op");
    const Results<T> results = call<T>(op, Call<T>(std::move(arguments), entry(node, "attrs")), loaded);
    const auto names = entry_as<std::vector<std::string>>(node, "out");
    if (results.size() != names.size()) throw BadEntry(op + " has another number of outputs");
    for (std::size_t i = 0; i < results.size(); ++i) named[names[i]] = {results[i]};
  }
  Results<T> outputs;
  for (const json& name : list_entry(attrs, "outputs")) {
    outputs.push_back(value(name).numbers);
    if (!outputs.back().defined()) xgrad_tests::bad_entry("an output", "the name of numbers", name);
  }
  return outputs;
}

/// What is wrong with `got`: its shape or its worst element; "" if nothing.
template <class T>
std::string difference(const std::string& what, const Array<T>& got, const Array<T>& want, double rtol,
                       double atol) {
  if (got.shape() != want.shape())
    return what + ": shape " + xgrad::to_string(got.shape()) + ", not " + xgrad::to_string(want.shape());
  const auto allowed = [&](std::size_t i) { return atol + rtol * std::abs(double{want.data()[i]}); };
  const xgrad_tests::Deviation worst = xgrad_tests::worst_deviation(got, want, allowed);
  if (worst.excess <= 1) return "";
  std::ostringstream text;
  text.precision(9);
  text << what << ": element " << worst.at << " of " << xgrad::to_string(want.shape()) << " is "
       << got.data()[worst.at] << ", not " << want.data()[worst.at] << " (" << worst.excess
       << " times the tolerance)";
  return text.str();
}

class Runner {
 public:
  explicit Runner(std::string folder) : folder_(std::move(folder)) {}

  /// What is wrong with the case; "" if it passes.
  std::string run(const json& test) const {
    const auto type = entry_as<std::string>(test, "dtype");
    if (type == "float32") return run_as<float>(test);
    if (type == "float64") return run_as<double>(test);
    throw BadEntry("dtype must be float32 or float64, got " + type);
  }

 private:
  /// What read(path) returns for a file of the case; its error is the case's.
  template <class Read>
  auto from_file(const json& file, const Read& read) const {
    const std::string path = folder_ + "/" + as<std::string>(file, "a file");
    try {
      return read(path);
    } catch (const std::exception& error) {
      throw BadEntry(error.what());
    }
  }

  /// Ids are numbers, too, where they are a result.
  template <class T>
  Array<T> numbers(const json& file) const {
    return from_file(file, [](const std::string& path) -> Array<T> {
      if (xgrad_tests::npy_type_of(path) == xgrad_tests::npy_type<std::int64_t>)
        return xt::cast<T>(read_npy<std::int64_t>(path));
      return read_npy<T>(path);
    });
  }

  template <class T>
  Value<T> read(const json& file) const {
    if (file.is_null()) return {};
    return from_file(file, [](const std::string& path) -> Value<T> {
      const std::string type = xgrad_tests::npy_type_of(path);
      if (type == xgrad_tests::npy_type<std::int64_t>) return {{}, read_npy<std::int64_t>(path)};
      if (type == xgrad_tests::npy_type<bool>) return {{}, {}, read_npy<bool>(path)};
      return {Variable<T>(read_npy<T>(path), true)};
    });
  }

  static double tolerance(const json& test, const char* name) {
    const auto value = entry_as<double>(test, name);
    if (!(value >= 0)) xgrad_tests::bad_entry(name, "at least 0", value);
    return value;
  }

  template <class T>
  std::string run_as(const json& test) const {
    std::vector<Value<T>> inputs;
    for (const json& file : list_entry(test, "inputs")) inputs.push_back(read<T>(file));
    const json& attrs = entry(test, "attrs");
    const auto op = entry_as<std::string>(test, "op");
    std::vector<Loaded<T>> loaded;
    const auto compute = [&] {
      return op == "graph" ? run_graph<T>(attrs, inputs, loaded) : call<T>(op, {inputs, attrs}, loaded);
    };

    if (test.contains("expect_error") && entry_as<bool>(test, "expect_error"))
      return refusal<T>(test, compute);
    const Results<T> outputs = compute();
    const json& files = list_entry(test, "outputs", outputs.size());
    const double rtol = tolerance(test, "rtol"), atol = tolerance(test, "atol");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string wrong =
          difference("output " + std::to_string(i), outputs[i].value(), numbers<T>(files[i]), rtol, atol);
      if (!wrong.empty()) return wrong;
    }
    const json& gradients = list_entry(test, "grad_inputs", inputs.size());
    if (entry(test, "grad_output").is_null()) return "";
    go_back(outputs, test);
    for (const auto& [parameter, source] : loaded) {
      if (parameter.has_grad()) source.backward(parameter.grad());
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].is_null()) continue;
      const Variable<T>& input = inputs[i].numbers;
      if (!input.defined()) throw BadEntry("grad_inputs[" + std::to_string(i) + "] is not of numbers");
      const Array<T> got = input.has_grad() ? input.grad().value() : Array<T>(input.shape(), T{0});
      const std::string wrong =
          difference("gradient of input " + std::to_string(i), got, numbers<T>(gradients[i]), rtol, atol);
      if (!wrong.empty()) return wrong;
    }
    if (!test.contains("second") || !loaded.empty()) return "";
    for (const Value<T>& input : inputs)
      if (input.numbers.defined()) input.numbers.zero_grad();
    return second_difference(compute(), inputs, test);
  }

  /// The seeds of the outputs, as leaves; undefined for outputs without one.
  template <class T>
  Results<T> seed_leaves(const Results<T>& outputs, const json& test) const {
    const json& given = entry(test, "grad_output");
    const json files =
        given.is_array() ? list_entry(test, "grad_output", outputs.size()) : json::array({given});
    Results<T> seeds;
    for (const json& file : files)
      seeds.push_back(file.is_null() ? Variable<T>() : Variable<T>(numbers<T>(file), true));
    return seeds;
  }

  /// What is wrong with the derivatives of the gradients' weighted sum, by the inputs and by the seeds.
  template <class T>
  std::string second_difference(const Results<T>& outputs, const std::vector<Value<T>>& inputs,
                                const json& test) const {
    const json& second = entry(test, "second");
    const json& weights = list_entry(second, "weights", inputs.size());
    const Results<T> seeds = seed_leaves<T>(outputs, test);
    Variable<T> total(0), weighted(0);
    for (std::size_t k = 0; k < seeds.size(); ++k)
      if (seeds[k].defined()) total = total + sum(outputs[k] * seeds[k]);
    std::vector<Variable<T>> by;
    std::vector<Array<T>> factors;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (weights[i].is_null()) continue;
      if (!inputs[i].numbers.defined())
        throw BadEntry("weights[" + std::to_string(i) + "] is not of numbers");
      by.push_back(inputs[i].numbers);
      factors.push_back(numbers<T>(weights[i]));
    }
    const Results<T> gradients = grad(total, by, {.create_graph = true, .allow_unused = true});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined()) weighted = weighted + sum(gradients[i] * factors[i]);
    if (weighted.requires_grad()) weighted.backward();

    const double rtol = tolerance(second, "rtol"), atol = tolerance(second, "atol");
    const auto compare = [&](const std::string& what, const Variable<T>& leaf,
                             const json& file) -> std::string {
      if (file.is_null()) return "";
      const Array<T> got = leaf.has_grad() ? leaf.grad().value() : Array<T>(leaf.shape(), T{0});
      return difference("second derivative by " + what, got, numbers<T>(file), rtol, atol);
    };
    const json& of_inputs = list_entry(second, "grad_inputs", inputs.size());
    const json& of_seeds = list_entry(second, "grad_seeds", seeds.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].numbers.defined()) continue;
      const std::string wrong = compare("input " + std::to_string(i), inputs[i].numbers, of_inputs[i]);
      if (!wrong.empty()) return wrong;
    }
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      if (!seeds[k].defined()) continue;
      const std::string wrong = compare("seed " + std::to_string(k), seeds[k], of_seeds[k]);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  /// One pass for each output adds up the same gradients as one pass from all of them.
  template <class T>
  void go_back(const Results<T>& outputs, const json& test) const {
    const bool many = entry(test, "grad_output").is_array();
    const json& files = many ? list_entry(test, "grad_output", outputs.size()) : test.at("grad_output");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      outputs[i].backward(Variable<T>(numbers<T>(many ? files[i] : files)), {.retain_graph = true});
    }
  }

  template <class... Errors>
  static bool is_one_of(const std::exception& error) {
    return ((dynamic_cast<const Errors*>(&error) != nullptr) || ...);
  }

  /// Whether xgrad says this kind of error so; what is wrong with axes may be their number, too.
  static bool is_right(const std::string& kind, const std::exception& error) {
    using xgrad::IndexError, xgrad::ShapeError, xgrad::ValueError;
    if (kind == "shape" || kind == "grad_shape") return is_one_of<ShapeError>(error);
    if (kind == "index") return is_one_of<IndexError>(error);
    if (kind == "value") return is_one_of<ValueError, IndexError>(error);  // padding_idx is an index here
    return is_one_of<IndexError, ShapeError, ValueError>(error);
  }

  /// What is wrong with the refusal of a case.
  template <class T, class Compute>
  std::string refusal(const json& test, const Compute& compute) const {
    const auto kind = entry_as<std::string>(test, "error_kind");
    const bool in_backward = kind == "grad_shape";
    Results<T> outputs;
    if (in_backward) outputs = compute();
    try {
      in_backward ? go_back(outputs, test) : static_cast<void>(compute());
    } catch (const BadEntry&) {
      throw;
    } catch (const UnknownOp&) {
      throw;
    } catch (const std::exception& error) {
      if (is_right(kind, error)) return "";
      return "was refused as no " + kind + " error is: " + error.what();
    }
    return "was not refused";
  }

  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string folder, filter;
  bool lists_ops = false;
  apps::CommandLine app("Runs every case of a directory and compares values, gradients and refusals.");
  app.add_option("DIR", folder, "directory with cases.json")->check(apps::existing_folder());
  app.add_option("--filter", filter, "only cases whose id this regular expression finds");
  app.add_flag("--ops", lists_ops, "print the names of the ops that cases may call");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("conformance", [&] {
    if (lists_ops) {
      for (const std::string& name : xgrad_tests::adapter_names()) std::cout << name << '\n';
      return 0;
    }
    if (folder.empty()) throw xgrad::ValueError("DIR is required");
    const std::regex wanted(filter);
    const json cases = xgrad_tests::read_json(folder + "/cases.json");
    if (!cases.is_array()) xgrad_tests::bad_entry(folder + "/cases.json", "a list of cases", cases);
    const Runner runner(folder);
    std::size_t passed = 0, failed = 0, skipped = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::string id = "case " + std::to_string(i), wrong;
      try {
        id = entry_as<std::string>(cases[i], "id");
        if (!std::regex_search(id, wanted)) continue;
        wrong = runner.run(cases[i]);
      } catch (const UnknownOp& unknown) {
        ++skipped;
        std::cout << "skipped " << id << "  " << unknown.what() << '\n';
        continue;
      } catch (const std::bad_alloc&) {
        wrong = "needs more memory than there is";
      } catch (const std::exception& error) {
        wrong = error.what();
      }
      ++(wrong.empty() ? passed : failed);
      if (!wrong.empty()) std::cout << "FAILED  " << id << "  " << wrong << '\n';
    }
    std::cout << passed << " passed, " << failed << " failed, " << skipped << " skipped\n";
    return failed > 0 ? 1 : 0;
  });
}
