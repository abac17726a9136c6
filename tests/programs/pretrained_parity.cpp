// Compares pretrained model folders, tokenizers and their training with what PyTorch and Hugging Face gave
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../pretrained/tokenizer_cases.hpp"
#include "../pretrained/unicode_sweep.hpp"
#include "deviation.hpp"
#include "json_file.hpp"

namespace {

using nlohmann::json;
using namespace xgrad::pretrained;
using xgrad::Array, xgrad::Ids, xgrad::NamedParameter, xgrad::SafetensorsFile, xgrad::TensorView,
    xgrad::Variable;
using xgrad_tests::entry, xgrad_tests::entry_as, xgrad_tests::list_entry;

/// How much was compared.
struct Tally {
  std::size_t passed = 0, failed = 0;

  void count(bool right) { ++(right ? passed : failed); }
  Tally& operator+=(const Tally& other) {
    passed += other.passed;
    failed += other.failed;
    return *this;
  }
};

/// The tensors of a file, by name.
class Tensors {
 public:
  explicit Tensors(const std::string& path) : path_(path), file_(path) {
    for (const TensorView& tensor : file_.tensors()) tensors_[tensor.name] = &tensor;
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  const TensorView& at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error(path_ + ": there is no tensor " + name);
    return *found->second;
  }
  template <class T>
  Array<T> array(const std::string& name) const {
    return xgrad::to_array<T>(at(name));
  }
  std::vector<std::string> names(const std::string& begin) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) {
      if (name.starts_with(begin)) names.push_back(name);
    }
    return names;
  }

 private:
  std::string path_;
  SafetensorsFile file_;
  std::map<std::string, const TensorView*> tensors_;
};

template <class T>
using Arrays = std::map<std::string, Variable<T>>;
using Labels = std::function<Ids(const std::string& head)>;

/// A model for a task, whatever its class.
template <class T>
struct Task {
  Encoder<T> encoder;
  xgrad::Module<T> module;
  std::vector<NamedParameter<T>> parameters;
  std::function<Arrays<T>(const Input&)> logits;  // by head
  std::function<Variable<T>(const Input&, const Labels&)> loss;
};

LoadOptions quietly() {
  return {.labels = {}, .note = [](const std::string&) {}};
}

template <class T, class Model, class Logits, class Loss>
Task<T> task_of(const Model& model, Logits logits, Loss loss) {
  return {model.encoder(), model, model.trainable_parameters(),
          [model, logits](const Input& input) { return logits(model(input)); },
          [model, loss](const Input& input, const Labels& labels) { return loss(model, input, labels); }};
}

/// For a model whose head gives one array of logits.
template <class T, class Model>
Task<T> one_head(const std::string& folder, const std::string& head) {
  return task_of<T>(
      Model::from_folder(folder, quietly()),
      [head](const Variable<T>& logits) {
        return Arrays<T>{{head, logits}};
      },
      [head](const Model& model, const Input& input, const Labels& labels) {
        return model.loss(input, labels(head));
      });
}

template <class T>
Task<T> load_task(const std::string& folder, const std::string& architecture) {
  const auto is = [&](const char* end) { return architecture.ends_with(end); };
  if (is("ForMaskedLM")) return one_head<T, MaskedLM<T>>(folder, "mlm");
  if (is("ForSequenceClassification")) return one_head<T, SequenceClassifier<T>>(folder, "sequence");
  if (is("ForTokenClassification")) return one_head<T, TokenClassifier<T>>(folder, "tokens");
  if (is("ForNextSentencePrediction")) return one_head<T, NextSentence<T>>(folder, "nsp");
  if (architecture == "ElectraForPreTraining") return one_head<T, Discriminator<T>>(folder, "replaced");
  if (architecture == "BertForPreTraining") {
    using Model = PreTraining<T>;
    return task_of<T>(
        Model::from_folder(folder, quietly()),
        [](const typename Model::Logits& logits) {
          return Arrays<T>{{"mlm", logits.tokens}, {"nsp", logits.next}};
        },
        [](const Model& model, const Input& input, const Labels& labels) {
          return model.loss(input, labels("mlm"), labels("nsp"));
        });
  }
  if (is("ForQuestionAnswering")) {
    using Model = QuestionAnswerer<T>;
    return task_of<T>(
        Model::from_folder(folder, quietly()),
        [](const typename Model::Logits& logits) {
          return Arrays<T>{{"start", logits.start}, {"end", logits.end}};
        },
        [](const Model& model, const Input& input, const Labels& labels) {
          return model.loss(input, labels("start"), labels("end"));
        });
  }
  if (is("Model")) {
    const auto encoder = Encoder<T>::from_folder(folder, quietly());
    return {encoder, encoder, {}, [](const Input&) { return Arrays<T>(); }, {}};
  }
  throw std::runtime_error(folder + "/case.json: xgrad has no " + architecture);
}

/// A model folder, its inputs and what PyTorch gave for them.
class Folder {
 public:
  explicit Folder(const std::string& path)
      : path_(path),
        case_(xgrad_tests::read_json(path + "/case.json")),
        inputs_(path + "/inputs.safetensors"),
        expected_(path + "/expected.safetensors"),
        architecture_(entry_as<std::string>(case_, "architecture")) {}

  Tally run() {
    compare_tokens();
    compare_all<double>("double");
    compare_all<float>("float");
    std::cout << std::filesystem::path(path_).filename().string() << ", " << architecture_ << ": "
              << tally_.passed + tally_.failed << " comparisons";
    for (const auto& [type, worst] : worst_) {
      if (worst.distance == 0) continue;
      std::cout << "; " << type << " off by at most " << worst.distance << " of the largest value ("
                << worst.name << ")";
    }
    std::cout << '\n';
    return tally_;
  }

 private:
  struct Worst {
    double distance = 0;
    std::string name = "nothing";
  };

  template <class T>
  void compare_all(const char* type) {
    type_ = type;
    compare_outputs<T>();
    if (case_.contains("sentences")) compare_sentences<T>();
    if (case_.contains("train")) {
      follow_training<T>();
      if (case_.at("train").contains("dropout")) follow_dropout<T>();
    }
  }

  Input input(const std::string& name) const {
    return {inputs_.array<std::int64_t>(name + ".input_ids"),
            inputs_.array<std::int64_t>(name + ".attention_mask"),
            inputs_.array<std::int64_t>(name + ".token_type_ids")};
  }
  Labels labels(const std::string& name) const {
    return [this, name](const std::string& head) {
      return inputs_.array<std::int64_t>(name + ".labels." + head);
    };
  }

  /// What a number of type T may be off, in units of the largest value: as far as rounding goes that is done
  /// in T and in the file.
  template <class T>
  static double tolerance(const TensorView& expected) {
    if (std::is_same_v<T, float>) return 2e-6;
    return expected.dtype == xgrad::DType::F64 ? 1e-12 : 1.2e-7;
  }

  double largest(const std::string& name) const {
    double largest = 0;
    for (const double value : expected_.array<double>(name)) largest = std::max(largest, std::abs(value));
    return largest;
  }

  template <class T>
  void compare(const std::string& name, const Variable<T>& got, double scale, double allowed) {
    const Array<double> want = expected_.array<double>(name);
    const bool fits = got.defined() && xgrad::same_shape(got.shape(), want.shape());
    const xgrad_tests::Deviation deviation =
        fits ? xgrad_tests::worst_deviation(got.value(), want, [&](std::size_t) { return scale * allowed; })
             : xgrad_tests::Deviation{};
    note(name, fits ? deviation.distance / std::max(scale, 1e-300) : INFINITY, deviation.excess <= 1 && fits);
  }
  template <class T>
  void compare(const std::string& name, const Variable<T>& got) {
    compare(name, got, largest(name), tolerance<T>(expected_.at(name)));
  }
  void compare(const std::string& name, double got, double want, double allowed) {
    const double distance = std::abs(got - want) / std::abs(want);
    note(name, distance, distance <= allowed || got == want);
  }

  void note(const std::string& name, double distance, bool right) {
    tally_.count(right);
    Worst& worst = worst_[type_];
    if (distance > worst.distance) worst = {distance, name};
    if (!right)
      std::cout << "FAILED  " << path_ << ": " << name << " in " << type_ << ", off by " << distance
                << " of the largest value\n";
  }

  void compare_ids(const std::string& name, const Ids& got, const Ids& want) {
    note(name, got == want ? 0 : INFINITY, got == want);
  }

  void compare_tokens() {
    type_ = "tokens";
    const Tokenizer tokenizer = Tokenizer::from_folder(path_);
    const auto max_length = entry_as<std::size_t>(case_, "max_length");
    const json& texts = list_entry(case_, "texts");
    const json& all_ids = list_entry(case_, "text_ids", texts.size());
    const json& all_tokens = list_entry(case_, "text_tokens", texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto first = texts[i].at(0).get<std::string>();
      const EncodeOptions options{.max_length = max_length};
      const Encoding encoding = texts[i].at(1).is_null()
                                    ? tokenizer.encode(first, options)
                                    : tokenizer.encode(first, texts[i].at(1).get<std::string>(), options);
      std::vector<std::string> tokens;
      for (const std::int64_t id : encoding.ids) tokens.push_back(tokenizer.token(id));
      const std::string name = "text " + std::to_string(i);
      note(name, 0, encoding.ids == all_ids[i].get<std::vector<std::int64_t>>());
      note(name, 0, tokens == all_tokens[i].get<std::vector<std::string>>());
    }
  }

  template <class T>
  void compare_sentences() {
    const auto embedder = SentenceEmbedder<T>::from_folder(path_, quietly());
    const auto sentences = entry_as<std::vector<std::string>>(case_, "sentences");
    const Batch batch = embedder.tokenizer().encode(sentences, {.max_length = embedder.max_length()});
    const Input want = input("sentences");
    compare_ids("sentences.input_ids", batch.input_ids, want.input_ids);
    compare_ids("sentences.attention_mask", *batch.attention_mask, *want.attention_mask);
    compare_ids("sentences.token_type_ids", *batch.token_type_ids, *want.token_type_ids);
    const Variable<T> hidden = embedder.encoder()(batch).last_hidden_state;
    compare("sentences.pooled", pool(hidden, batch, embedder.pooling()));
    compare("sentences.embedding", embedder.embed(batch));
    compare("sentences.embedding", Variable<T>(embedder(sentences, 5)));
    embedder.encoder().skip_padding();
    compare("sentences.embedding", Variable<T>(embedder(sentences)));
  }

  template <class T>
  void compare_outputs() {
    const Task<T> task = load_task<T>(path_, architecture_);
    const EncoderOutput<T> output = task.encoder(input("batch"), {.hidden_states = true, .attentions = true});
    for (std::size_t i = 0; i < output.hidden_states.size(); ++i)
      compare("batch.hidden_states." + std::to_string(i), output.hidden_states[i]);
    for (std::size_t i = 0; i < output.attentions.size(); ++i)
      compare("batch.attentions." + std::to_string(i), output.attentions[i]);
    if (expected_.has("batch.pooler_output")) compare("batch.pooler_output", output.pooler_output);
    for (const std::string& name : expected_.names("")) {
      const std::size_t dot = name.find('.');
      if (name.substr(dot + 1) == "last_hidden_state")
        compare(name, task.encoder(input(name.substr(0, dot))).last_hidden_state);
    }
    for (const auto& [head, logits] : task.logits(input("batch"))) compare("batch.logits." + head, logits);
    if (!expected_.has("batch.loss")) return;
    const Variable<T> loss = task.loss(input("batch"), labels("batch"));
    compare("batch.loss", loss);
    loss.backward();
    compare_gradients(task);
  }

  /// The gradient of a bias may be 0 but for rounding, as that of keys is, and those of keys and queries are
  /// what is left of larger numbers: the scale is that of the block,
  /// "grad.bert.encoder.layer.0.attention.self."
  template <class T>
  void compare_gradients(const Task<T>& task) {
    std::set<std::string> left;
    for (const std::string& name : expected_.names("grad.")) left.insert(name);
    for (const auto& [parameter_name, parameter] : task.parameters) {
      const std::string name = "grad." + parameter_name;
      if (left.erase(name) == 0) continue;
      const std::string block = name.substr(0, name.rfind('.', name.rfind('.') - 1) + 1);
      double scale = 0;
      for (const std::string& beside : expected_.names(block)) scale = std::max(scale, largest(beside));
      compare(name, parameter.grad(), scale, tolerance<T>(expected_.at(name)));
    }
    for (const std::string& name : left) note(name + ", which is no parameter", INFINITY, false);
  }

  template <class T>
  std::vector<double> train(const Task<T>& task, std::size_t steps, bool follow) {
    const json& run = case_.at("train");
    const auto total = entry_as<std::size_t>(run, "steps"), warm_up = entry_as<std::size_t>(run, "warm_up"),
               batches = entry_as<std::size_t>(run, "batches");
    xgrad::AdamW<T> optimizer(decay_groups(
        task.parameters,
        {.lr = entry_as<double>(run, "lr"), .weight_decay = entry_as<double>(run, "weight_decay")}));
    xgrad::LinearWarmupLR<T> schedule(optimizer, warm_up, total);
    std::vector<double> losses;
    for (std::size_t step = 0; step < steps; ++step) {
      const std::string batch = "train." + std::to_string(step % batches);
      optimizer.zero_grad();
      const Variable<T> loss = task.loss(input(batch), labels(batch));
      loss.backward();
      const double norm = clip_grad_norm(optimizer.parameters(), entry_as<double>(run, "clip_grad_norm"));
      if (follow && std::is_same_v<T, double>) {
        const std::string at = " of step " + std::to_string(step);
        compare("gradient norm" + at, norm, list_entry(run, "grad_norms", total)[step].template get<double>(),
                1e-9);
        compare("rate" + at, optimizer.lr(),
                list_entry(run, "learning_rates", total)[step].template get<double>(), 1e-15);
      }
      optimizer.step();
      schedule.step();
      losses.push_back(loss.item());
    }
    return losses;
  }

  void compare_losses(const std::string& name, const std::vector<double>& got, const json& want,
                      double allowed) {
    for (std::size_t step = 0; step < got.size(); ++step)
      compare(name + " of step " + std::to_string(step), got[step], want.at(step).get<double>(), allowed);
  }

  template <class T>
  void follow_training() {
    const json& run = case_.at("train");
    const auto steps = entry_as<std::size_t>(run, "steps");
    const Task<T> task = load_task<T>(path_, architecture_);
    const std::vector<double> losses = train(task, steps, true);
    if (std::is_same_v<T, double>) {
      compare_losses("loss", losses, list_entry(run, "losses", steps), 1e-9);
      for (const auto& [name, parameter] : task.parameters) {
        if (expected_.has("trained." + name)) compare("trained." + name, parameter, 1.0, 1e-5);
      }
    } else {
      compare_losses("loss", losses, list_entry(run, "losses_float32_torch", steps), 1e-5);
    }
  }

  template <class T>
  void follow_dropout() {
    const json& dropout = case_.at("train").at("dropout");
    const json& want = list_entry(dropout, std::is_same_v<T, double> ? "losses_float64" : "losses_float32");
    const Task<T> task = load_task<T>(path_, architecture_);
    task.module.train();
    xgrad::manual_seed(entry_as<std::uint64_t>(dropout, "seed"));
    compare_losses("loss with dropout", train(task, want.size(), false), want,
                   std::is_same_v<T, double> ? 1e-9 : 1e-5);
  }

  std::string path_;
  json case_;
  Tensors inputs_, expected_;
  std::string architecture_, type_;
  Tally tally_;
  std::map<std::string, Worst> worst_;
};

/// The texts and pairs of a folder with cases.json.
Tally compare_tokenizer_cases(const std::string& folder) {
  Tally tally;
  const auto note = [&](const std::string& name, bool right) {
    tally.count(right);
    if (!right) std::cout << "FAILED  " << folder << ": " << name << '\n';
  };
  xgrad_tests::TokenizerCases(folder, note).compare();
  std::cout << std::filesystem::path(folder).filename().string() << ": " << tally.passed + tally.failed
            << " texts and pairs\n";
  return tally;
}

Tally compare_characters(const std::string& folder) {
  Tally tally;
  const std::string path = folder + "/sweep.json";
  for (const auto& [name, wrong] : xgrad_tests::compare_every_character(xgrad_tests::read_json(path))) {
    tally.count(wrong == 0);
    if (wrong > 0)
      std::cout << "FAILED  " << path << ": " << name << ", of " << wrong << " characters otherwise\n";
  }
  std::cout << std::filesystem::path(folder).filename().string() << ": " << tally.passed + tally.failed
            << " comparisons of " << xgrad_tests::all_characters().size() << " characters\n";
  return tally;
}

/// The folders below `root` with a file of that name.
std::set<std::string> folders_with(const std::string& name, const std::string& root) {
  std::set<std::string> folders;
  for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
    if (file.path().filename() == name) folders.insert(file.path().parent_path().string());
  }
  return folders;
}

}  // namespace

int main(int argc, char** argv) {
  std::string root;
  apps::CommandLine app(
      "Compares folders of pretrained models and tokenizers with what Hugging Face and PyTorch gave.");
  app.add_option("DIR", root,
                 "directory with model folders (case.json), tokenizer cases (cases.json) and characters "
                 "(sweep.json), "
                 "at any depth")
      ->required()
      ->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  std::cout.precision(3);
  return apps::run_program("pretrained_parity", [&] {
    const auto models = folders_with("case.json", root), cases = folders_with("cases.json", root),
               sweeps = folders_with("sweep.json", root);
    if (models.empty() && cases.empty() && sweeps.empty())
      throw std::runtime_error(root + ": must hold folders with case.json, cases.json or sweep.json");
    Tally all;
    for (const std::string& folder : models) all += Folder(folder).run();
    for (const std::string& folder : cases) all += compare_tokenizer_cases(folder);
    for (const std::string& folder : sweeps) all += compare_characters(folder);
    std::cout << all.passed << " passed, " << all.failed << " failed\n";
    return all.failed > 0 ? 1 : 0;
  });
}
