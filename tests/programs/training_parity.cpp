// Trains the encoder of a directory (expected.json and .npy files) step by step and compares it with PyTorch
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../npy.hpp"
#include "deviation.hpp"
#include "json_file.hpp"

namespace {

using nlohmann::json;
using xgrad::Array, xgrad::AttentionMask, xgrad::Embedding, xgrad::Ids, xgrad::LayerNorm, xgrad::Linear;
using xgrad::Shape, xgrad::StateDict, xgrad::Variable;
using xgrad_tests::as, xgrad_tests::bad_entry, xgrad_tests::BadEntry, xgrad_tests::Deviation,
    xgrad_tests::entry, xgrad_tests::entry_as, xgrad_tests::list_entry, xgrad_tests::read_npy;

constexpr std::int64_t pad_id = 0;

struct Config {
  std::size_t d_model, heads, ff, layers, vocab, seq, batch, classes, batches, steps;
};

Config read_config(const json& config) {
  const auto size = [&](const char* name) {
    const json& value = entry(config, name);
    if (!value.is_number_unsigned() || value == 0)
      bad_entry(std::string("config.") + name, "a whole number of at least 1", value);
    return value.get<std::size_t>();
  };
  return {.d_model = size("d_model"),
          .heads = size("heads"),
          .ff = size("ff"),
          .layers = size("layers"),
          .vocab = size("vocab"),
          .seq = size("seq"),
          .batch = size("batch"),
          .classes = size("classes"),
          .batches = size("batches"),
          .steps = size("steps")};
}

/// A post-norm encoder layer under the directory's names.
template <class T>
class Block : public xgrad::Module<T> {
 public:
  explicit Block(const Config& config)
      : xgrad::Module<T>("Block"),
        heads_(config.heads),
        W_q_(this->child("W_q", Linear<T>(config.d_model, config.d_model, false))),
        W_k_(this->child("W_k", Linear<T>(config.d_model, config.d_model, false))),
        W_v_(this->child("W_v", Linear<T>(config.d_model, config.d_model, false))),
        W_o_(this->child("W_o", Linear<T>(config.d_model, config.d_model, false))),
        ln1_(this->child("ln1", LayerNorm<T>(config.d_model))),
        linear1_(this->child("linear1", Linear<T>(config.d_model, config.ff))),
        linear2_(this->child("linear2", Linear<T>(config.ff, config.d_model))),
        ln2_(this->child("ln2", LayerNorm<T>(config.d_model))) {}

  Variable<T> operator()(const Variable<T>& x, const AttentionMask<T>& mask) const {
    const Variable<T> heads =
        scaled_dot_product_attention(W_q_(x), W_k_(x), W_v_(x), mask, {.num_heads = heads_});
    const Variable<T> y = ln1_(x + W_o_(heads));
    return ln2_(y + linear2_(relu(linear1_(y))));
  }

 private:
  std::size_t heads_;
  Linear<T> W_q_, W_k_, W_v_, W_o_;
  LayerNorm<T> ln1_;
  Linear<T> linear1_, linear2_;
  LayerNorm<T> ln2_;
};

template <class T>
class Classifier : public xgrad::Module<T> {
 public:
  explicit Classifier(const Config& config)
      : xgrad::Module<T>("Classifier"),
        tok_emb_(this->child("tok_emb", Embedding<T>(config.vocab, config.d_model))),
        pos_emb_(this->child("pos_emb", Embedding<T>(config.seq, config.d_model))),
        classifier_(this->child("classifier", Linear<T>(config.d_model, config.classes))) {
    for (std::size_t i = 0; i < config.layers; ++i) {
      blocks_.push_back(this->child("blocks." + std::to_string(i), Block<T>(config)));
    }
  }

  /// The logits (batch, classes) of ids (batch, seq).
  Variable<T> operator()(const Ids& ids) const {
    Variable<T> x = tok_emb_(ids) + pos_emb_.weight();
    // Weights of exactly 0, as those of scores of -1e9 are beside a real one.
    const AttentionMask<T> mask = xgrad::padding_mask(ids, pad_id);
    for (const Block<T>& block : blocks_) x = block(x, mask);
    Array<T> real = Array<T>::from_shape({ids.shape(0), ids.shape(1), std::size_t{1}});
    for (std::size_t i = 0; i < ids.size(); ++i) real.data()[i] = ids.data()[i] == pad_id ? T{0} : T{1};
    const Variable<T> counted(std::move(real));
    return classifier_(sum(x * counted, {1}) / sum(counted, {1}));
  }

 private:
  Embedding<T> tok_emb_, pos_emb_;
  Linear<T> classifier_;
  std::vector<Block<T>> blocks_;
};

template <class T>
constexpr const char* type_name = sizeof(T) == sizeof(float) ? "float32" : "float64";

/// The fields of an optimizer; one that nobody asked for is refused at the end, as it might change the run.
class Settings {
 public:
  Settings(std::string name, const json& fields) : name_(std::move(name)), fields_(fields) {
    if (!fields.is_object()) bad_entry("optimizers." + name_, "an object", fields);
  }

  template <class V>
  V get(const char* field, V absent) {
    known_.insert(field);
    if (!fields_.contains(field)) return absent;
    if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, double>) {
      return as<V>(fields_.at(field), field_name(field));
    } else {
      const auto two = as<std::vector<double>>(fields_.at(field), field_name(field));
      if (two.size() != 2) throw BadEntry(field_name(field) + " must have 2 entries");
      return {two[0], two[1]};
    }
  }
  double lr() {
    known_.insert("lr");
    return as<double>(entry(fields_, "lr"), field_name("lr"));
  }
  void check_all_known() const {
    for (const auto& [field, value] : fields_.items()) {
      const bool off = value.is_null() || value == false;
      if (field != "note" && !off && known_.count(field) == 0) {
        throw std::runtime_error("optimizers." + name_ + ": xgrad has no " + field + " = " + value.dump());
      }
    }
  }

 private:
  std::string field_name(const char* field) const { return "optimizers." + name_ + "." + field; }

  std::string name_;
  const json& fields_;
  std::set<std::string> known_;
};

template <class T>
std::unique_ptr<xgrad::Optimizer<T>> make_optimizer(const std::string& name, const json& fields,
                                                    std::vector<Variable<T>> parameters) {
  Settings settings(name, fields);
  const auto adam_options = [&]<class Options>(const Options& absent) {
    return Options{.lr = settings.lr(),
                   .betas = settings.get("betas", absent.betas),
                   .eps = settings.get("eps", absent.eps),
                   .weight_decay = settings.get("weight_decay", absent.weight_decay)};
  };
  std::unique_ptr<xgrad::Optimizer<T>> optimizer;
  if (name == "sgd") {
    const xgrad::SGDOptions absent;
    optimizer = std::make_unique<xgrad::SGD<T>>(
        std::move(parameters),
        xgrad::SGDOptions{.lr = settings.lr(),
                          .momentum = settings.get("momentum", absent.momentum),
                          .dampening = settings.get("dampening", absent.dampening),
                          .weight_decay = settings.get("weight_decay", absent.weight_decay),
                          .nesterov = settings.get("nesterov", absent.nesterov)});
  } else if (name == "adam") {
    optimizer = std::make_unique<xgrad::Adam<T>>(std::move(parameters), adam_options(xgrad::AdamOptions{}));
  } else if (name == "adamw") {
    optimizer = std::make_unique<xgrad::AdamW<T>>(std::move(parameters), adam_options(xgrad::AdamWOptions{}));
  } else {
    throw std::runtime_error("optimizers: xgrad has no '" + name + "'");
  }
  settings.check_all_known();
  return optimizer;
}

class Parity {
 public:
  explicit Parity(std::string folder) : folder_(std::move(folder)) {
    expected_ = xgrad_tests::read_json(folder_ + "/expected.json");
    config_ = read_config(entry(expected_, "config"));
    for (const json& file : list_entry(expected_, "files"))
      entries_[entry_as<std::string>(file, "file")] = file;
    names_ = entry_as<std::vector<std::string>>(entry(expected_, "model"), "parameters");
    tokens_ = read_npy<std::int64_t>(folder_ + "/data/tokens.npy");
    labels_ = read_npy<std::int64_t>(folder_ + "/data/labels.npy");
    check_shape("data/tokens.npy", tokens_.shape(), {config_.batches, config_.batch, config_.seq});
    check_shape("data/labels.npy", labels_.shape(), {config_.batches, config_.batch});
    read_initial_weights();
  }

  void run() {
    first_step<float>();
    first_step<double>();
    const json& optimizers = entry(expected_, "optimizers");
    if (!optimizers.is_object()) bad_entry("optimizers", "an object", optimizers);
    for (const auto& [name, fields] : optimizers.items()) {
      train<float>(name, fields);
      train<double>(name, fields);
    }
  }

  std::size_t passed() const { return passed_; }
  std::size_t failed() const { return failed_; }

 private:
  static void check_shape(const std::string& what, const Shape& got, const Shape& want) {
    if (got != want) {
      throw std::runtime_error(what + " must have shape " + xgrad::to_string(want) + ", got " +
                               xgrad::to_string(got));
    }
  }

  /// Checks the sizes of config against the files, so that no wrong one asks for too much memory.
  void read_initial_weights() {
    for (const std::string& name : names_)
      initial_[name] = read_npy<float>(folder_ + "/init/" + name + ".npy");
    const auto check = [&](const char* name, const Shape& want) {
      if (initial_.count(name) == 0) throw std::runtime_error(std::string("model.parameters: no ") + name);
      check_shape(std::string("init/") + name + ".npy", initial_[name].shape(), want);
    };
    check("tok_emb.weight", {config_.vocab, config_.d_model});
    check("pos_emb.weight", {config_.seq, config_.d_model});
    check("blocks.0.linear1.weight", {config_.ff, config_.d_model});
    check("classifier.weight", {config_.classes, config_.d_model});
    if (config_.layers > names_.size()) throw std::runtime_error("model.parameters: fewer than layers");
  }

  template <class T>
  Classifier<T> make_model() const {
    Classifier<T> model(config_);
    StateDict<T> state;
    for (const auto& [name, array] : initial_) state[name] = Array<T>(array);
    model.load_state_dict(state);
    return model;
  }

  Ids batch_of(const Ids& all, std::size_t step) const {
    const Shape shape(all.shape().begin() + 1, all.shape().end());
    Ids batch = Ids::from_shape(shape);
    std::copy_n(all.data() + step % config_.batches * batch.size(), batch.size(), batch.data());
    return batch;
  }

  template <class T>
  void first_step() {
    const Classifier<T> model = make_model<T>();
    const Variable<T> logits = model(batch_of(tokens_, 0));
    cross_entropy(logits, batch_of(labels_, 0)).backward();
    const char* tolerance = sizeof(T) == sizeof(float) ? "abs_tol" : "abs_tol_float64";
    Worst worst;
    compare<T, double>("step0/logits.npy", logits.value(), tolerance, worst);
    for (const auto& [name, parameter] : model.named_parameters()) {
      compare<T, double>("step0/grad_" + name + ".npy", parameter.grad().value(), tolerance, worst);
    }
    std::cout << "step0 " << type_name<T> << ": logits and gradients " << worst << '\n';
  }

  template <class T>
  void train(const std::string& name, const json& fields) {
    const std::string type = type_name<T>, loss_file = name + "/loss_" + type;
    const auto tolerances = read_npy<double>(folder_ + "/" + loss_file + "_tol.npy");
    check_shape(loss_file + "_tol.npy", tolerances.shape(), {config_.steps});

    const Classifier<T> model = make_model<T>();
    const auto optimizer = make_optimizer<T>(name, fields, model.parameters());
    Array<T> losses = Array<T>::from_shape({config_.steps});
    for (std::size_t step = 0; step < config_.steps; ++step) {
      optimizer->zero_grad();
      const Variable<T> loss = cross_entropy(model(batch_of(tokens_, step)), batch_of(labels_, step));
      loss.backward();
      losses(step) = loss.item();
      optimizer->step();
    }

    Worst worst_loss, worst_weight;
    compare<T, T>(
        loss_file + ".npy", losses, [&](std::size_t step) { return tolerances(step); }, worst_loss);
    for (const auto& [parameter_name, parameter] : model.named_parameters()) {
      compare<T, T>(name + "/final_" + type + "/" + parameter_name + ".npy", parameter.value(), "abs_tol",
                    worst_weight);
    }
    std::cout << name << ' ' << type << ": losses of " << config_.steps << " steps " << worst_loss
              << "; final weights " << worst_weight << '\n';
  }

  /// The worst of several files.
  struct Worst {
    Deviation deviation = {};
    std::string file = {};

    friend std::ostream& operator<<(std::ostream& out, const Worst& worst) {
      if (worst.file.empty()) return out << "equal to the last bit";
      return out << "off by at most " << worst.deviation.distance << ", " << worst.deviation.excess
                 << " of the tolerance, in element " << worst.deviation.at << " of " << worst.file;
    }
  };

  template <class T, class File>
  void compare(const std::string& file, const Array<T>& got, const char* tolerance, Worst& worst) {
    const auto found = entries_.find(file);
    if (found == entries_.end()) throw std::runtime_error("files: there is no entry for " + file);
    const auto allowed = entry_as<double>(found->second, tolerance);
    if (!(allowed >= 0)) bad_entry(file + ": " + tolerance, "at least 0", allowed);
    compare<T, File>(
        file, got, [allowed](std::size_t) { return allowed; }, worst);
  }

  template <class T, class File, class Allowed>
  requires std::is_invocable_v<Allowed, std::size_t>
  void compare(const std::string& file, const Array<T>& got, const Allowed& allowed, Worst& worst) {
    const Array<File> want = read_npy<File>(folder_ + "/" + file);
    check_shape(file, want.shape(), got.shape());
    const Worst here{xgrad_tests::worst_deviation(got, want, allowed), file};
    if (here.deviation.excess > worst.deviation.excess) worst = here;
    const bool right = here.deviation.excess <= 1;
    ++(right ? passed_ : failed_);
    if (!right) std::cout << "FAILED  " << here << '\n';
  }

  std::string folder_;
  json expected_;
  Config config_;
  std::map<std::string, json> entries_;
  std::vector<std::string> names_;
  StateDict<float> initial_;
  Ids tokens_, labels_;
  std::size_t passed_ = 0, failed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  apps::CommandLine app("Follows PyTorch's training runs: losses, first gradients and final weights.");
  app.add_option("DIR", folder, "directory with expected.json")->required()->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  std::cout.precision(3);
  return apps::run_program("training_parity", [&] {
    Parity parity(folder);
    parity.run();
    std::cout << parity.passed() << " passed, " << parity.failed() << " failed\n";
    return parity.failed() > 0 ? 1 : 0;
  });
}
