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
#include "../temporary_folder.hpp"
#include "../tokenizers/folder_cases.hpp"
#include "../tokenizers/library_cases.hpp"
#include "../tokenizers/library_characters.hpp"
#include "../tokenizers/normalizer_cases.hpp"
#include "../tokenizers/tokenizer_cases.hpp"
#include "../tokenizers/unicode_sweep.hpp"
#include "golden_folder.hpp"

namespace {

using nlohmann::json;
using namespace xgrad::pretrained;
using xgrad::Array, xgrad::Ids, xgrad::NamedParameter, xgrad::SafetensorsFile, xgrad::TensorView,
    xgrad::Variable;
using xgrad::tokenizers::EncodeOptions, xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;
using xgrad_tests::entry, xgrad_tests::entry_as, xgrad_tests::list_entry, xgrad_tests::Tally,
    xgrad_tests::Tensors;

template <class T>
using Arrays = std::map<std::string, Variable<T>>;

/// The labels of a batch, by head.
class Labels {
 public:
  Labels(const Tensors& tensors, std::string batch)
      : tensors_(&tensors), begin_(std::move(batch) + ".labels.") {}

  Ids ids(const std::string& head) const { return tensors_->array<std::int64_t>(begin_ + head); }
  template <class T>
  Array<T> numbers(const std::string& head) const {
    return tensors_->array<T>(begin_ + head);
  }
  bool are_numbers(const std::string& head) const {
    return tensors_->at(begin_ + head).dtype != xgrad::DType::I64;
  }

 private:
  const Tensors* tensors_;
  std::string begin_;
};

/// A model for a task, whatever its class.
template <class T>
struct Task {
  Encoder<T> encoder;
  xgrad::Module<T> module;
  std::vector<NamedParameter<T>> parameters;
  std::function<Arrays<T>(const Input&)> logits;  // by head
  std::function<Variable<T>(const Input&, const Labels&)> loss;
  std::function<void(const std::string&)> save;  // to a folder
};

LoadOptions quietly() {
  return {.labels = {}, .note = [](const std::string&) {}};
}

template <class T, class Model, class Logits, class Loss>
Task<T> task_of(const Model& model, Logits logits, Loss loss) {
  return {model.encoder(),
          model,
          model.trainable_parameters(),
          [model, logits](const Input& input) { return logits(model(input)); },
          [model, loss](const Input& input, const Labels& labels) { return loss(model, input, labels); },
          [model](const std::string& folder) { save_folder(model, folder); }};
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
        return model.loss(input, labels.ids(head));
      });
}

/// Sequences may have classes or numbers.
template <class T>
Task<T> of_sequences(const std::string& folder) {
  using Model = SequenceClassifier<T>;
  return task_of<T>(
      Model::from_folder(folder, quietly()),
      [](const Variable<T>& logits) {
        return Arrays<T>{{"sequence", logits}};
      },
      [](const Model& model, const Input& input, const Labels& labels) {
        if (labels.are_numbers("sequence")) return model.loss(input, labels.numbers<T>("sequence"));
        return model.loss(input, labels.ids("sequence"));
      });
}

/// A column of (batch, 2).
Ids column(const Ids& pairs, std::size_t i) {
  Ids column = Ids::from_shape({pairs.shape(0)});
  for (std::size_t row = 0; row < pairs.shape(0); ++row) column(row) = pairs(row, i);
  return column;
}

template <class T>
Task<T> load_task(const std::string& folder, const std::string& architecture) {
  const auto is = [&](const char* end) { return architecture.ends_with(end); };
  if (is("ForMaskedLM")) return one_head<T, MaskedLM<T>>(folder, "mlm");
  if (is("ForSequenceClassification")) return of_sequences<T>(folder);
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
          return model.loss(input, labels.ids("mlm"), labels.ids("nsp"));
        });
  }
  if (is("ForQuestionAnswering")) {
    using Model = QuestionAnswerer<T>;
    return task_of<T>(
        Model::from_folder(folder, quietly()),
        [](const typename Model::Logits& logits) {
          return Arrays<T>{{"span", xgrad::stack({logits.start, logits.end}, 2)}};
        },
        [](const Model& model, const Input& input, const Labels& labels) {
          const Ids span = labels.ids("span");
          return model.loss(input, column(span, 0), column(span, 1));
        });
  }
  if (is("Model")) {
    const auto encoder = Encoder<T>::from_folder(folder, quietly());
    return {encoder,
            encoder,
            encoder.named_parameters(),
            [](const Input&) { return Arrays<T>(); },
            [encoder](const Input& input, const Labels& labels) {
              return sum(encoder(input).last_hidden_state * Variable<T>(labels.numbers<T>("probe")));
            },
            [encoder](const std::string& to) { save_folder(encoder, to); }};
  }
  throw std::runtime_error(folder + "/case.json: xgrad has no " + architecture);
}

/// A model folder, its inputs and what PyTorch gave for them.
class Folder : public xgrad_tests::GoldenFolder {
 public:
  explicit Folder(const std::string& path) : GoldenFolder(path, {.f64 = 1e-12, .f32 = 1.2e-7}) {}

  Tally run() {
    attempt("tokens", [&] { compare_tokens(); });
    if (case_.contains("stored_as")) attempt("saved", [&] { compare_saved(); });
    attempt("double", [&] { compare_all<double>("double"); });
    attempt("float", [&] { compare_all<float>("float"); });
    print_summary();
    return tally_;
  }

 private:
  template <class T>
  void compare_all(const char* type) {
    type_ = type;
    compare_outputs<T>();
    if (case_.contains("dropout_loss_float32")) compare_dropout<T>();
    if (case_.contains("sentences")) attempt(type, [&] { compare_sentences<T>(); });
    if (case_.contains("pairs")) attempt(type, [&] { compare_pairs<T>(); });
    if (case_.contains("train")) {
      follow_training<T>();
      if (case_.at("train").contains("dropout")) follow_dropout<T>();
    }
  }

  Input input(const std::string& name) const {
    Input input{inputs_.array<std::int64_t>(name + ".input_ids"),
                inputs_.array<std::int64_t>(name + ".attention_mask")};
    if (inputs_.has(name + ".token_type_ids"))
      input.token_type_ids = inputs_.array<std::int64_t>(name + ".token_type_ids");
    return input;
  }
  Labels labels(const std::string& name) const { return {inputs_, name}; }

  /// The size of the terms that the loss adds up: of a probe's little may be left.
  double loss_scale() const {
    if (!inputs_.has("batch.labels.probe")) return largest("batch.loss");
    std::size_t layers = 0;
    while (expected_.has("batch.hidden_states." + std::to_string(layers + 1))) ++layers;
    const auto last = expected_.array<double>("batch.hidden_states." + std::to_string(layers));
    const Array<double> terms = xt::abs(last * inputs_.array<double>("batch.labels.probe"));
    return xt::sum(terms)();
  }

  /// Hidden states, attention or logits of a batch. In a window a padding token may see padding alone, which
  /// kernels treat differently: only tokens count there.
  template <class T>
  void compare_by_token(const std::string& name, const std::string& batch, const Variable<T>& got,
                        double allowed) {
    const Array<double> want = expected_.array<double>(name);
    const bool has_window = architecture_.starts_with("ModernBert") && got.dimension() > 2;
    if (!has_window || !xgrad::same_shape(got.shape(), want.shape()))
      return compare(name, got, largest(name), allowed);
    const Ids tokens = *input(batch).attention_mask;
    Array<T> seen(got.value());
    const std::size_t width = want.shape().back(), length = tokens.shape(1), rows = want.size() / width;
    for (std::size_t row = 0; row < rows; ++row) {
      if (tokens(row / (rows / tokens.shape(0)), row % length) != 0) continue;
      for (std::size_t i = row * width; i < (row + 1) * width; ++i)
        seen.data()[i] = static_cast<T>(want.data()[i]);
    }
    compare(name, Variable<T>(std::move(seen)), largest(name), allowed);
  }
  template <class T>
  void compare_by_token(const std::string& name, const std::string& batch, const Variable<T>& got) {
    compare_by_token(name, batch, got, tolerance<T>(expected_.at(name)));
  }
  void compare_ids(const std::string& name, const Ids& got, const Ids& want) {
    note(name, got == want ? 0 : INFINITY, got == want);
  }

  /// A folder may come without a tokenizer.
  void compare_tokens() {
    type_ = "tokens";
    if (!std::filesystem::exists(path_ + "/tokenizer_config.json")) return;
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
      const std::string name = "text " + std::to_string(i);
      note(name, 0, encoding.ids == all_ids[i].get<std::vector<std::int64_t>>());
      note(name, 0, are_shown_as(tokenizer, encoding.ids, all_tokens[i].get<std::vector<std::string>>()));
    }
  }

  /// The library shows the text that an unknown token stands for, and with an added token the blanks it took.
  static bool are_shown_as(const Tokenizer& tokenizer, const std::vector<std::int64_t>& ids,
                           const std::vector<std::string>& texts) {
    const auto is_shown_as = [&](std::int64_t id, const std::string& text) {
      const std::string token = tokenizer.token(id);
      const std::size_t begin = text.find(token);
      return id == tokenizer.unk_id() ||
             (begin != text.npos && text.find_first_not_of(" \t\r\n") >= begin &&
              text.find_first_not_of(" \t\r\n", begin + token.size()) == text.npos);
    };
    return std::equal(ids.begin(), ids.end(), texts.begin(), texts.end(), is_shown_as);
  }

  /// What is saved are the tensors of the file, which are not the parameters.
  void compare_saved() {
    type_ = "saved";
    const xgrad_tests::TemporaryFolder folder;
    load_task<float>(path_, architecture_).save(folder.path("model"));
    const Tensors stored(path_ + "/model.safetensors"), saved(folder.path("model/model.safetensors"));
    for (const std::string& name : stored.names(""))
      note("saved " + name, 0, saved.has(name) && saved.array<float>(name) == stored.array<float>(name));
    for (const std::string& name : saved.names(""))
      if (!stored.has(name)) note("saved " + name + ", which is no tensor of the file", INFINITY, false);
  }

  template <class T>
  void compare_sentences() {
    const auto embedder = SentenceEmbedder<T>::from_folder(path_, quietly());
    const json prompt_of = case_.value("prompt_of", json{{"sentences", ""}});
    for (const auto& [name, prompt_name] : prompt_of.items())
      compare_sentences(embedder, name, prompt_name.template get<std::string>());
  }

  template <class T>
  void compare_sentences(const SentenceEmbedder<T>& embedder, const std::string& name,
                         const std::string& prompt_name) {
    const std::string prompt = prompt_name.empty() ? "" : embedder.prompts().at(prompt_name);
    const auto sentences = entry_as<std::vector<std::string>>(case_, "sentences");
    std::vector<std::string> texts;
    for (const std::string& sentence : sentences) texts.push_back(prompt + sentence);
    const Batch batch = encode(embedder.tokenizer(), texts, {.max_length = embedder.max_length()});
    const Input want = input(name);
    compare_ids(name + ".input_ids", batch.input_ids, want.input_ids);
    compare_ids(name + ".attention_mask", *batch.attention_mask, *want.attention_mask);
    if (want.token_type_ids)
      compare_ids(name + ".token_type_ids", *batch.token_type_ids, *want.token_type_ids);
    compare(name + ".embedding", embedder.embed(batch, embedder.prompt_length(prompt)));
    compare(name + ".embedding", Variable<T>(embedder(sentences, {.batch_size = 5, .prompt = prompt})));
    embedder.encoder().skip_padding();
    EmbedOptions named;  // with the folder's default prompt, unless another one is asked for
    if (prompt_name.empty()) {
      named.prompt = "";
    } else if (case_.value("default_prompt_name", json()) != prompt_name) {
      named.prompt_name = prompt_name;
    }
    compare(name + ".embedding", Variable<T>(embedder(sentences, named)));
    embedder.encoder().skip_padding(false);
  }

  template <class T>
  void compare_pairs() {
    const auto encoder = CrossEncoder<T>::from_folder(path_, quietly());
    std::vector<std::string> texts, seconds;
    for (const json& pair : list_entry(case_, "pairs")) {
      texts.push_back(pair.at(0).get<std::string>());
      seconds.push_back(pair.at(1).get<std::string>());
    }
    const Batch batch = encode(encoder.tokenizer(), texts, seconds, {.max_length = encoder.max_length()});
    const Input want = input("pairs");
    compare_ids("pairs.input_ids", batch.input_ids, want.input_ids);
    compare_ids("pairs.attention_mask", *batch.attention_mask, *want.attention_mask);
    if (want.token_type_ids) compare_ids("pairs.token_type_ids", *batch.token_type_ids, *want.token_type_ids);
    // The reference is one of floats, and has no axis of labels for a single one.
    const auto compare_scores = [&](const std::string& name, const Variable<T>& scores) {
      const bool has_labels = expected_.at(name).shape.size() == 2;
      compare(name, has_labels ? scores : xgrad::flatten(scores), largest(name), float_rounding);
    };
    compare_scores("pairs.logits", encoder.classifier()(batch));
    compare_scores("pairs.scores", encoder.scores(batch));
    compare_scores("pairs.scores", Variable<T>(encoder(texts, seconds, {.batch_size = 3})));
  }

  template <class T>
  void compare_outputs() {
    const Task<T> task = load_task<T>(path_, architecture_);
    const EncoderOutput<T> output = task.encoder(input("batch"), {.hidden_states = true, .attentions = true});
    for (std::size_t i = 0; i < output.hidden_states.size(); ++i)
      compare_by_token("batch.hidden_states." + std::to_string(i), "batch", output.hidden_states[i]);
    for (std::size_t i = 0; i < output.attentions.size(); ++i) {
      const std::string name = "batch.attentions." + std::to_string(i);
      if (expected_.has(name)) compare_by_token(name, "batch", output.attentions[i]);
    }
    if (expected_.has("batch.pooler_output")) compare("batch.pooler_output", output.pooler_output);
    for (const std::string& name : expected_.names("")) {
      const std::size_t dot = name.find('.');
      const std::string batch = name.substr(0, dot);
      if (name.substr(dot + 1) == "last_hidden_state" && batch != "dropout" &&
          inputs_.has(batch + ".input_ids"))
        compare_by_token(name, batch, task.encoder(input(batch)).last_hidden_state);
    }
    for (const std::string batch : {"batch", "left_padded", "one_token"}) {
      for (const auto& [head, logits] : task.logits(input(batch))) {
        const std::string name = batch + ".logits." + head;
        if (!expected_.has(name)) continue;
        compare_by_token(name, batch, logits);
      }
    }
    if (!expected_.has("batch.loss")) return;
    const Variable<T> loss = task.loss(input("batch"), labels("batch"));
    compare("batch.loss", loss, loss_scale(), tolerance<T>(expected_.at("batch.loss")));
    loss.backward();
    xgrad::StateDict<T> gradients;
    for (const auto& [name, parameter] : task.parameters)
      if (parameter.has_grad()) gradients.emplace(name, parameter.grad().value());
    compare_gradients(gradients);
  }

  /// One pass in training mode: what it draws is in the order of Hugging Face's modules.
  template <class T>
  void compare_dropout() {
    const Task<T> task = load_task<T>(path_, architecture_);
    task.module.train();
    const auto again = [] { xgrad::manual_seed(7); };
    again();
    compare_by_token("dropout.last_hidden_state", "batch", task.encoder(input("batch")).last_hidden_state,
                     float_rounding);
    again();
    for (const auto& [head, logits] : task.logits(input("batch"))) {
      const std::string name = "dropout.logits." + head;
      if (expected_.has(name)) compare_by_token(name, "batch", logits, float_rounding);
    }
    again();
    compare("loss with dropout", task.loss(input("batch"), labels("batch")).item(),
            entry_as<double>(case_, "dropout_loss_float32"), float_rounding);
  }

  template <class T>
  xgrad_tests::TrainedModel<T> trained(const Task<T>& task) const {
    return {task.parameters,
            [this, task](const std::string& batch) { return task.loss(input(batch), labels(batch)); }};
  }

  template <class T>
  void follow_training() {
    const Task<T> task = load_task<T>(path_, architecture_);
    follow_losses(trained(task));
    if (!std::is_same_v<T, double>) return;
    for (const auto& [name, parameter] : task.parameters) {
      if (expected_.has("trained." + name)) compare("trained." + name, parameter, 1.0, 1e-5);
    }
  }

  template <class T>
  void follow_dropout() {
    const Task<T> task = load_task<T>(path_, architecture_);
    task.module.train();
    follow_dropout_losses(trained(task));
  }
};

/// A folder whose weights or tokenizer must be refused, or nothing if it is none.
std::optional<Tally> compare_refusal(const std::string& folder) {
  const json about = xgrad_tests::read_json(folder + "/case.json");
  if (!about.contains("refuse") && !about.contains("refuse_tokenizer")) return std::nullopt;
  Tally tally;
  try {
    if (about.contains("refuse")) {
      Encoder<float>::from_folder(folder, quietly());
    } else {
      Tokenizer::from_folder(folder);
    }
    std::cout << "FAILED  " << folder << ": must be refused\n";
    tally.count(false);
  } catch (const xgrad::FileError& error) {
    const bool ran = about.contains("must_not_exist") &&
                     std::filesystem::exists(entry_as<std::string>(about, "must_not_exist"));
    tally.count(!ran);
    std::cout << "refused: " << error.what() << (ran ? ", but was run" : "") << '\n';
  }
  return tally;
}

/// The texts and pairs of a folder with cases.json (TokenizerCases or LibraryCases), tokenizer_cases.json
/// (FolderCases) or unicode.json (LibraryCharacters).
template <class Cases>
Tally compare_tokenizer_cases(const std::string& folder) {
  Tally tally;
  const auto note = [&](const std::string& name, bool right) {
    tally.count(right);
    if (!right) std::cout << "FAILED  " << folder << ": " << name << '\n';
  };
  try {
    Cases(folder, note).compare();
  } catch (const xgrad::FileError& error) {
    note(error.what(), false);
  }
  std::cout << std::filesystem::path(folder).filename().string() << ": " << tally.passed + tally.failed
            << " comparisons of texts, pairs and batches\n";
  return tally;
}

/// The files of a folder "normalizers".
Tally compare_normalizers(const std::string& folder) {
  Tally tally;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const std::string path = file.path().string();
    xgrad_tests::compare_normalizer(path, [&](const std::string& name, bool right) {
      tally.count(right);
      if (!right) std::cout << "FAILED  " << path << ": " << name << '\n';
    });
  }
  std::cout << "normalizers: " << tally.passed + tally.failed << " comparisons\n";
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

/// The folders of that name below `root`.
std::set<std::string> folders_named(const std::string& name, const std::string& root) {
  std::set<std::string> folders;
  for (const auto& one : std::filesystem::recursive_directory_iterator(root)) {
    if (one.is_directory() && one.path().filename() == name) folders.insert(one.path().string());
  }
  return folders;
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
                 "directory with model folders (case.json), tokenizer cases (cases.json, "
                 "tokenizer_cases.json, normalizers) and characters (sweep.json, unicode.json), at any depth")
      ->required()
      ->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  std::cout.precision(3);
  return apps::run_program("pretrained_parity", [&] {
    const auto models = folders_with("case.json", root), cases = folders_with("cases.json", root),
               folder_cases = folders_with("tokenizer_cases.json", root),
               normalizers = folders_named("normalizers", root), sweeps = folders_with("sweep.json", root),
               characters = folders_with("unicode.json", root);
    if (models.empty() && cases.empty() && folder_cases.empty() && normalizers.empty() && sweeps.empty() &&
        characters.empty())
      throw std::runtime_error(
          root +
          ": must hold folders with case.json, cases.json, tokenizer_cases.json, sweep.json or unicode.json");
    Tally all;
    for (const std::string& folder : models) {
      const std::optional<Tally> refusal = compare_refusal(folder);
      all += refusal ? *refusal : Folder(folder).run();
    }
    for (const std::string& folder : cases) {
      const bool is_of_files = xgrad_tests::read_json(folder + "/cases.json").contains("settings");
      all += is_of_files ? compare_tokenizer_cases<xgrad_tests::TokenizerCases>(folder)
                         : compare_tokenizer_cases<xgrad_tests::LibraryCases>(folder);
    }
    for (const std::string& folder : folder_cases)
      all += compare_tokenizer_cases<xgrad_tests::FolderCases>(folder);
    for (const std::string& folder : characters)
      all += compare_tokenizer_cases<xgrad_tests::LibraryCharacters>(folder);
    for (const std::string& folder : normalizers) all += compare_normalizers(folder);
    for (const std::string& folder : sweeps) all += compare_characters(folder);
    std::cout << all.passed << " passed, " << all.failed << " failed\n";
    return all.failed > 0 ? 1 : 0;
  });
}
