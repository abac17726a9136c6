// Runs the op cases of a directory (cases.json and .npy files): values, gradients and refusals
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <regex>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <xgrad/xgrad.hpp>

#include "../../apps/program.hpp"
#include "../npy.hpp"
#include "deviation.hpp"
#include "json_file.hpp"

namespace {

using nlohmann::json;
using xgrad::Array, xgrad::Dims, xgrad::Ids, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad_tests::as, xgrad_tests::BadEntry, xgrad_tests::entry, xgrad_tests::entry_as,
    xgrad_tests::list_entry, xgrad_tests::read_npy;

/// The op is not one of those that xgrad has.
struct UnknownOp : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An input or a result: absent, numbers, ids or a mask.
template <class T>
struct Value {
  Variable<T> numbers = {};
  std::optional<Ids> ids = {};
  std::optional<Mask> mask = {};

  bool absent() const { return !numbers.defined() && !ids && !mask; }
};

/// The arguments of a call, with readable errors for those that are not what the op takes.
template <class T>
class Call {
 public:
  Call(std::vector<Value<T>> inputs, const json& attrs) : inputs_(std::move(inputs)), attrs_(attrs) {
    if (!attrs.is_object()) xgrad_tests::bad_entry("attrs", "an object", attrs);
  }

  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && !inputs_[i].absent(); }

  const Variable<T>& x(std::size_t i = 0) const {
    const Value<T>& value = at(i);
    if (!value.numbers.defined()) throw BadEntry("input " + std::to_string(i) + " must be numbers");
    return value.numbers;
  }
  Variable<T> optional(std::size_t i) const { return has(i) ? x(i) : Variable<T>(); }
  const Ids& ids(std::size_t i) const {
    if (!at(i).ids) throw BadEntry("input " + std::to_string(i) + " must be int64");
    return *at(i).ids;
  }
  const Mask& mask(std::size_t i) const {
    if (!at(i).mask) throw BadEntry("input " + std::to_string(i) + " must be bool");
    return *at(i).mask;
  }
  bool is_ids(std::size_t i) const { return at(i).ids.has_value(); }
  bool is_mask(std::size_t i) const { return at(i).mask.has_value(); }
  std::vector<Variable<T>> all() const {
    std::vector<Variable<T>> list;
    for (std::size_t i = 0; i < size(); ++i) list.push_back(x(i));
    return list;
  }

  const json& attr(const char* name) const { return entry(attrs_, name); }
  bool has_attr(const char* name) const { return attrs_.contains(name) && !attrs_.at(name).is_null(); }
  double number(const char* name) const {
    const json& value = attr(name);
    if (!value.is_string()) return as<double>(value, name);
    const auto text = as<std::string>(value, name);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (text == "inf") return infinity;
    if (text == "-inf") return -infinity;
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    xgrad_tests::bad_entry(name, "a number", value);
  }
  double number(const char* name, double absent) const { return has_attr(name) ? number(name) : absent; }
  std::optional<T> bound(const char* name) const {
    return has_attr(name) ? std::optional<T>(static_cast<T>(number(name))) : std::nullopt;
  }
  std::ptrdiff_t integer(const char* name) const { return entry_as<std::ptrdiff_t>(attrs_, name); }
  std::size_t count(const char* name) const { return entry_as<std::size_t>(attrs_, name); }
  int dim(const char* name = "dim") const { return entry_as<int>(attrs_, name); }
  bool flag(const char* name) const { return entry_as<bool>(attrs_, name); }
  std::string text(const char* name) const { return entry_as<std::string>(attrs_, name); }
  std::vector<std::ptrdiff_t> list(const char* name) const {
    return entry_as<std::vector<std::ptrdiff_t>>(attrs_, name);
  }
  std::vector<std::ptrdiff_t> list(const char* name, std::size_t size) const {
    list_entry(attrs_, name, size);
    return list(name);
  }

  /// A shape or axes as the library takes them.
  Dims dims(const char* name) const {
    if (attr(name).is_number()) return Dims(integer(name));
    const std::vector<std::ptrdiff_t> items = list(name);
    return Dims(items.begin(), items.end());
  }
  /// The axes that the attribute dim names; all axes of x without it.
  Dims axes() const {
    if (has_attr("dim")) return dims("dim");
    Shape every(x().dimension(), 0);
    for (std::size_t axis = 0; axis < every.size(); ++axis) every[axis] = axis;
    return every;
  }

 private:
  const Value<T>& at(std::size_t i) const {
    if (i >= inputs_.size()) throw BadEntry("input " + std::to_string(i) + " is missing");
    return inputs_[i];
  }

  std::vector<Value<T>> inputs_;
  const json& attrs_;
};

template <class T>
using Results = std::vector<Variable<T>>;
template <class T>
using Function = std::function<Results<T>(const Call<T>&)>;

/// a op b, where b may be the number attrs.other.
template <class T, class Op>
Function<T> binary(Op op) {
  return [op](const Call<T>& c) -> Results<T> {
    return {op(c.x(), c.size() > 1 ? c.x(1) : Variable<T>(static_cast<T>(c.number("other"))))};
  };
}

template <class T>
std::map<std::string, Function<T>> functions() {
  using R = Results<T>;
  using C = const Call<T>&;
  const auto number = [](C c, const char* name) { return static_cast<T>(c.number(name)); };
  std::map<std::string, Function<T>> f;

  f["identity"] = [](C c) -> R { return {c.x()}; };
  f["neg"] = [](C c) -> R { return {-c.x()}; };
  f["exp"] = [](C c) -> R { return {exp(c.x())}; };
  f["log"] = [](C c) -> R { return {log(c.x())}; };
  f["sqrt"] = [](C c) -> R { return {sqrt(c.x())}; };
  f["rsqrt"] = [](C c) -> R { return {rsqrt(c.x())}; };
  f["reciprocal"] = [](C c) -> R { return {reciprocal(c.x())}; };
  f["square"] = [](C c) -> R { return {square(c.x())}; };
  f["tanh"] = [](C c) -> R { return {tanh(c.x())}; };
  f["sigmoid"] = [](C c) -> R { return {sigmoid(c.x())}; };
  f["relu"] = [](C c) -> R { return {relu(c.x())}; };
  f["silu"] = [](C c) -> R { return {silu(c.x())}; };
  f["abs"] = [](C c) -> R { return {abs(c.x())}; };
  f["erf"] = [](C c) -> R { return {erf(c.x())}; };
  f["gelu"] = [](C c) -> R {
    const std::string form = c.text("approximate");
    if (form != "none" && form != "tanh") throw xgrad::ValueError("gelu: there is no form '" + form + "'");
    return {gelu(c.x(), form == "none" ? xgrad::Gelu::none : xgrad::Gelu::tanh)};
  };
  f["softplus"] = [=](C c) -> R { return {softplus(c.x(), number(c, "beta"), number(c, "threshold"))}; };
  f["clamp"] = [](C c) -> R { return {clamp(c.x(), c.bound("min"), c.bound("max"))}; };
  f["dropout"] = [](C c) -> R { return {dropout(c.x(), c.number("p"), c.flag("training"))}; };

  f["add"] = [=](C c) -> R {
    const T alpha = static_cast<T>(c.number("alpha", 1));
    if (c.size() == 1) return {add(c.x(), number(c, "other") * alpha)};
    return {alpha == 1 ? add(c.x(), c.x(1)) : add(c.x(), c.x(1), alpha)};
  };
  f["sub"] = [=](C c) -> R {
    const T alpha = static_cast<T>(c.number("alpha", 1));
    if (c.size() == 1) return {sub(c.x(), number(c, "other") * alpha)};
    return {alpha == 1 ? sub(c.x(), c.x(1)) : sub(c.x(), c.x(1), alpha)};
  };
  f["mul"] = [=](C c) -> R { return {c.size() == 1 ? mul(c.x(), number(c, "other")) : mul(c.x(), c.x(1))}; };
  f["div"] = [=](C c) -> R { return {c.size() == 1 ? div(c.x(), number(c, "other")) : div(c.x(), c.x(1))}; };
  f["pow"] = [=](C c) -> R {
    if (c.size() == 1) return {pow(c.x(), number(c, "other"))};
    return {pow(c.x(), c.is_ids(1) ? Variable<T>(xt::cast<T>(c.ids(1))) : c.x(1))};
  };
  f["maximum"] = binary<T>([](const auto& a, const auto& b) { return maximum(a, b); });
  f["minimum"] = binary<T>([](const auto& a, const auto& b) { return minimum(a, b); });
  f["where"] = [](C c) -> R { return {where(c.mask(0), c.x(1), c.x(2))}; };
  f["masked_fill"] = [=](C c) -> R { return {masked_fill(c.x(), c.mask(1), number(c, "value"))}; };

  f["matmul"] = [](C c) -> R { return {matmul(c.x(), c.x(1))}; };
  f["bmm"] = [](C c) -> R { return {bmm(c.x(), c.x(1))}; };
  f["gemm"] = [](C c) -> R {
    return {gemm(c.x(), c.x(1), c.optional(2),
                 {.alpha = c.number("alpha"),
                  .beta = c.number("beta"),
                  .trans_a = c.integer("transA") != 0,
                  .trans_b = c.integer("transB") != 0})};
  };
  f["linear"] = [](C c) -> R { return {linear(c.x(), c.x(1), c.optional(2))}; };

  f["sum"] = [](C c) -> R { return {sum(c.x(), c.axes(), c.flag("keepdim"))}; };
  f["mean"] = [](C c) -> R { return {mean(c.x(), c.axes(), c.flag("keepdim"))}; };
  f["amax"] = [](C c) -> R { return {amax(c.x(), c.axes(), c.flag("keepdim"))}; };
  f["amin"] = [](C c) -> R { return {amin(c.x(), c.axes(), c.flag("keepdim"))}; };
  f["logsumexp"] = [](C c) -> R { return {logsumexp(c.x(), c.axes(), c.flag("keepdim"))}; };
  f["var"] = [](C c) -> R {
    return {var(c.x(), c.axes(), {.correction = c.count("correction"), .keepdim = c.flag("keepdim")})};
  };

  f["reshape"] = [](C c) -> R { return {reshape(c.x(), c.dims("shape"))}; };
  f["flatten"] = [](C c) -> R { return {flatten(c.x(), c.dim("start_dim"), c.dim("end_dim"))}; };
  f["transpose"] = [](C c) -> R { return {transpose(c.x(), c.dim("dim0"), c.dim("dim1"))}; };
  f["permute"] = [](C c) -> R { return {permute(c.x(), c.dims("dims"))}; };
  f["unsqueeze"] = [](C c) -> R { return {unsqueeze(c.x(), c.dim())}; };
  f["squeeze"] = [](C c) -> R { return {c.has_attr("dim") ? squeeze(c.x(), c.dim()) : squeeze(c.x())}; };
  f["expand"] = [](C c) -> R { return {expand(c.x(), c.dims("shape"))}; };
  f["cat"] = [](C c) -> R { return {cat(c.all(), c.dim())}; };
  f["stack"] = [](C c) -> R { return {stack(c.all(), c.dim())}; };
  f["split"] = [](C c) -> R { return split(c.x(), c.list("sizes"), c.dim()); };
  f["narrow"] = [](C c) -> R { return {narrow(c.x(), c.dim(), c.integer("start"), c.integer("length"))}; };
  f["slice"] = [](C c) -> R {
    const auto dims = as<std::vector<int>>(c.attr("dims"), "dims");
    const auto starts = c.list("starts", dims.size()), ends = c.list("ends", dims.size()),
               steps = c.list("steps", dims.size());
    Variable<T> y = c.x();
    for (std::size_t i = 0; i < dims.size(); ++i) y = slice(y, dims[i], starts[i], ends[i], steps[i]);
    return {y};
  };
  f["select"] = [](C c) -> R { return {select(c.x(), c.dim(), c.integer("index"))}; };
  f["tril"] = [](C c) -> R { return {tril(c.x(), c.integer("diagonal"))}; };
  f["triu"] = [](C c) -> R { return {triu(c.x(), c.integer("diagonal"))}; };
  f["index_select"] = [](C c) -> R { return {index_select(c.x(), c.dim(), c.ids(1))}; };
  f["gather"] = [](C c) -> R { return {gather(c.x(), c.dim(), c.ids(1))}; };
  f["embedding"] = [](C c) -> R {
    xgrad::EmbeddingOptions options;
    if (c.has_attr("padding_idx")) options.padding_idx = c.integer("padding_idx");
    return {embedding(c.ids(1), c.x(), options)};
  };

  f["softmax"] = [](C c) -> R { return {softmax(c.x(), c.dim())}; };
  f["log_softmax"] = [](C c) -> R { return {log_softmax(c.x(), c.dim())}; };
  f["layer_norm"] = [](C c) -> R {
    return {layer_norm(c.x(), c.dims("normalized_shape"), c.optional(1), c.optional(2), c.number("eps"))};
  };
  const auto reduction = [](C c) {
    const std::string name = c.text("reduction");
    if (name == "none") return xgrad::Reduction::none;
    if (name == "mean") return xgrad::Reduction::mean;
    if (name == "sum") return xgrad::Reduction::sum;
    throw xgrad::ValueError("there is no reduction '" + name + "'");
  };
  f["mse_loss"] = [=](C c) -> R { return {mse_loss(c.x(), c.x(1), reduction(c))}; };
  f["nll_loss"] = [=](C c) -> R {
    return {nll_loss(
        c.x(), c.ids(1),
        {.weight = c.optional(2), .ignore_index = c.integer("ignore_index"), .reduction = reduction(c)})};
  };
  f["cross_entropy"] = [=](C c) -> R {
    const xgrad::CrossEntropyOptions<T> options{.weight = c.optional(2),
                                                .ignore_index = c.integer("ignore_index"),
                                                .reduction = reduction(c),
                                                .label_smoothing = c.number("label_smoothing")};
    return {c.is_ids(1) ? cross_entropy(c.x(), c.ids(1), options) : cross_entropy(c.x(), c.x(1), options)};
  };
  f["scaled_dot_product_attention"] = [](C c) -> R {
    xgrad::AttentionOptions options{.is_causal = c.flag("is_causal")};
    if (c.has_attr("scale")) options.scale = c.number("scale");
    xgrad::AttentionMask<T> mask;
    if (c.has(3)) mask = c.is_mask(3) ? xgrad::AttentionMask<T>(c.mask(3)) : xgrad::AttentionMask<T>(c.x(3));
    return {scaled_dot_product_attention(c.x(), c.x(1), c.x(2), mask, options)};
  };

  f["einsum"] = [](C c) -> R { return {einsum(c.text("equation"), c.all())}; };

  const auto packed = [](C c, std::size_t first) {
    return xgrad::MultiheadAttentionWeights<T>{c.x(first), c.x(first + 1), c.x(first + 2), c.x(first + 3)};
  };
  const auto padding = [](C c, std::size_t first) {
    xgrad::AttentionPadding masks;
    if (c.has(first)) masks.key_padding_mask = c.mask(first);
    if (c.has(first + 1)) masks.attn_mask = c.mask(first + 1);
    return masks;
  };
  f["multi_head_attention"] = [=](C c) -> R {
    return {multi_head_attention(c.x(), c.x(1), c.x(2), packed(c, 3), c.count("num_heads"), padding(c, 7))};
  };
  f["transformer_encoder_layer"] = [=](C c) -> R {
    const std::string activation = c.text("activation");
    if (activation != "relu" && activation != "gelu")
      throw xgrad::ValueError("there is no activation '" + activation + "'");
    return {transformer_encoder_layer(
        c.x(), {packed(c, 1), c.x(5), c.x(6), c.x(7), c.x(8), c.x(9), c.x(10), c.x(11), c.x(12)},
        {.num_heads = c.count("num_heads"),
         .activation = activation == "relu" ? xgrad::Activation::relu : xgrad::Activation::gelu,
         .norm_first = c.flag("norm_first"),
         .eps = c.number("eps")},
        padding(c, 13))};
  };

  const auto optimize = [](C c, const auto& make) -> R {
    const Variable<T> parameter(c.x().value(), true);
    auto optimizer = make(std::vector<Variable<T>>{parameter});
    for (std::size_t step = 1; step < c.size(); ++step) {
      parameter.zero_grad();
      sum(parameter * c.x(step).detach()).backward();
      optimizer.step();
    }
    return {parameter.detach()};
  };
  f["optim_sgd"] = [=](C c) -> R {
    const xgrad::SGDOptions options{.lr = c.number("lr"),
                                    .momentum = c.number("momentum"),
                                    .dampening = c.number("dampening"),
                                    .weight_decay = c.number("weight_decay"),
                                    .nesterov = c.flag("nesterov")};
    return optimize(c, [&](auto parameters) { return xgrad::SGD<T>(parameters, options); });
  };
  f["optim_adam"] = [=](C c) -> R {
    const xgrad::AdamOptions options{.lr = c.number("lr"),
                                     .betas = {c.number("beta1"), c.number("beta2")},
                                     .eps = c.number("eps"),
                                     .weight_decay = c.number("weight_decay")};
    return optimize(c, [&](auto parameters) { return xgrad::Adam<T>(parameters, options); });
  };
  f["optim_adamw"] = [=](C c) -> R {
    const xgrad::AdamWOptions options{.lr = c.number("lr"),
                                      .betas = {c.number("beta1"), c.number("beta2")},
                                      .eps = c.number("eps"),
                                      .weight_decay = c.number("weight_decay")};
    return optimize(c, [&](auto parameters) { return xgrad::AdamW<T>(parameters, options); });
  };
  f["clip_grad_norm"] = [](C c) -> R {
    std::vector<Variable<T>> leaves;
    for (const Variable<T>& gradient : c.all()) {
      leaves.emplace_back(Array<T>(gradient.shape(), T{0}), true);
      leaves.back().backward(gradient.detach());
    }
    const double norm = clip_grad_norm(leaves, c.number("max_norm"));
    R results;
    for (const Variable<T>& leaf : leaves) results.push_back(leaf.grad());
    results.emplace_back(static_cast<T>(norm));
    return results;
  };
  return f;
}

template <class T>
Results<T> call(const std::string& op, const Call<T>& arguments) {
  static const std::map<std::string, Function<T>> all = functions<T>();
  const auto found = all.find(op);
  if (found == all.end()) throw UnknownOp("xgrad has no op '" + op + "'");
  return found->second(arguments);
}

/// The outputs of a program over the same ops: its nodes run in order, their results go by name.
template <class T>
Results<T> run_graph(const json& attrs, const std::vector<Value<T>>& inputs) {
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
    const Results<T> results = call<T>(op, Call<T>(std::move(arguments), entry(node, "attrs")));
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

  template <class T>
  Array<T> numbers(const json& file) const {
    return from_file(file, [](const std::string& path) { return read_npy<T>(path); });
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
    const auto compute = [&] {
      return op == "graph" ? run_graph<T>(attrs, inputs) : call<T>(op, {inputs, attrs});
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
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].is_null()) continue;
      const Variable<T>& input = inputs[i].numbers;
      if (!input.defined()) throw BadEntry("grad_inputs[" + std::to_string(i) + "] is not of numbers");
      const Array<T> got = input.has_grad() ? input.grad().value() : Array<T>(input.shape(), T{0});
      const std::string wrong =
          difference("gradient of input " + std::to_string(i), got, numbers<T>(gradients[i]), rtol, atol);
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

  template <class T, class Compute>
  std::string refusal(const json& test, const Compute& compute) const {
    try {
      const Results<T> outputs = compute();
      if (entry_as<std::string>(test, "error_kind") == "grad_shape") go_back(outputs, test);
    } catch (const BadEntry&) {
      throw;
    } catch (const UnknownOp&) {
      throw;
    } catch (const std::exception&) {
      return "";
    }
    return "was not refused";
  }

  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string folder, filter;
  CLI::App app("Runs every case of a directory and compares values, gradients and refusals.");
  app.add_option("DIR", folder, "directory with cases.json")->required()->check(CLI::ExistingDirectory);
  app.add_option("--filter", filter, "only cases whose id this regular expression finds");
  if (const std::optional<int> exit_code = apps::parse(app, argc, argv)) return *exit_code;

  return apps::run_program("conformance", [&] {
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
