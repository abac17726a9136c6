#pragma once

// Compares folders of pretrained decoders, and what they generate, with what PyTorch and Hugging Face gave.

#include <fstream>
#include <optional>

#include <xgrad/generation.hpp>
#include <xgrad/pretrained/detail/family.hpp>

#include "../temporary_folder.hpp"
#include "golden_folder.hpp"

namespace xgrad_tests {

/// A folder with case.json, its inputs and what is expected, perhaps with generation.json and the same
/// configuration in another spelling.
class DecoderFolder : public GoldenFolder {
 public:
  explicit DecoderFolder(const std::string& path)
      : GoldenFolder(path, {.f64 = 1e-11, .f32 = 1e-6}),
        config_(xgrad::pretrained::Config::from_folder(path)),
        files_(xgrad::pretrained::detail::info_of(config_.model_type).files) {
    for (const std::string& file : weight_files()) {
      const Tensors stored(file);
      for (const std::string& name : stored.names("")) {
        const std::string modern = xgrad::pretrained::detail::modern_name(name, files_);
        for (const auto& part : xgrad::pretrained::detail::parts_of(files_.stored_as, modern))
          tensor_of_[files_.prefix + part.parameter] = files_.prefix + modern;
      }
    }
  }

  /// Whether the library has a class for the folder; else the reason that it has none.
  static std::optional<std::string> reason_to_skip(const std::string& path) {
    const json about = read_json(path + "/case.json");
    const auto name = entry_as<std::string>(about, "architecture");
    const auto model_type = entry_as<std::string>(read_json(path + "/config.json"), "model_type");
    for (const auto* const family : xgrad::pretrained::detail::all_families())
      if (family->is_causal && model_type == family->model_type) return std::nullopt;
    return name + " is a family that is still to come";
  }

  Tally run() {
    attempt("double", [&] { compare_all<double>("double"); });
    attempt("float", [&] { compare_all<float>("float"); });
    attempt("saved", [&] { compare_saved(); });
    for (const char* const other : {"config_v4.json", "config_v5.json"}) {
      if (std::filesystem::exists(path_ + "/" + other)) attempt(other, [&] { compare_spelling(other); });
    }
    if (std::filesystem::exists(path_ + "/generation.json")) {
      attempt("tokens", [&] { compare_tokens<double>(); });
      attempt("tokens", [&] { compare_tokens<float>(); });
    }
    print_summary();
    return tally_;
  }

 protected:
  std::string tensor_of(const std::string& parameter) const override {
    const auto found = tensor_of_.find(parameter);
    return found == tensor_of_.end() ? parameter : found->second;
  }

 private:
  using Input = xgrad::pretrained::Input;
  using LoadOptions = xgrad::pretrained::LoadOptions;
  template <class T>
  using Classifier = xgrad::pretrained::CausalSequenceClassifier<T>;
  template <class T>
  using CausalLM = xgrad::pretrained::CausalLM<T>;

  bool is_classifier() const { return architecture_.ends_with("ForSequenceClassification"); }

  Input input(const std::string& name) const {
    return {inputs_.array<std::int64_t>(name + ".input_ids"),
            inputs_.array<std::int64_t>(name + ".attention_mask")};
  }
  Ids labels(const std::string& name) const { return inputs_.array<std::int64_t>(name + ".labels"); }

  /// What is called with a model of the folder's class.
  template <class T, class F>
  void with_model(const std::string& folder, const F& f) const {
    if (is_classifier()) {
      f(Classifier<T>::from_folder(folder, quiet()));
    } else {
      f(CausalLM<T>::from_folder(folder, quiet()));
    }
  }
  static LoadOptions quiet() {
    return {.note = [](const std::string&) {}};
  }

  template <class T>
  void compare_all(const char* type) {
    type_ = type;
    with_model<T>(path_, [&](const auto& model) { compare_outputs<T>(model); });
    if (!case_.contains("train")) return;
    with_model<T>(path_, [&](const auto& model) {
      follow_losses(trained<T>(model));
      compare_trained<T>(model);
    });
    if (!case_.at("train").contains("dropout")) return;
    with_model<T>(path_, [&](const auto& model) {
      model.train();
      follow_dropout_losses(trained<T>(model));
    });
  }

  template <class T, class Model>
  TrainedModel<T> trained(const Model& model) const {
    return {model.trainable_parameters(),
            [this, model](const std::string& batch) { return model.loss(input(batch), labels(batch)); }};
  }

  template <class T, class Model>
  void compare_outputs(const Model& model) {
    for (const std::string batch : {"batch", "left_padded", "longest", "one_token"}) {
      const auto seen = model.decoder()(input(batch), {.hidden_states = true, .attentions = true});
      for (std::size_t i = 0; i < seen.hidden_states.size(); ++i)
        compare_tokens_of<T>(batch, ".hidden_states." + std::to_string(i), seen.hidden_states[i]);
      for (std::size_t i = 0; i < seen.attentions.size(); ++i)
        compare_tokens_of<T>(batch, ".attentions." + std::to_string(i), seen.attentions[i]);
      const Variable<T> logits = model(input(batch));
      compare_tokens_of<T>(batch, ".logits", logits);
      const std::string loss_name = batch + ".loss";
      if (!expected_.has(loss_name)) continue;
      const Variable<T> loss = model.loss(input(batch), labels(batch));
      compare(loss_name, reshape(loss, expected_.at(loss_name).shape));
      if (std::is_same_v<T, float> && expected_.has("f32." + loss_name)) {
        compare("f32." + loss_name, reshape(loss, expected_.at("f32." + loss_name).shape));
        compare_tokens_of<T>(batch, ".logits", logits, "f32.");
      }
      if (batch != "batch") continue;
      loss.backward();
      compare_gradients(tensors_of<T>(model, [](const Variable<T>& one) {
        return one.has_grad() ? one.grad().value() : Array<T>(one.shape(), T{0});
      }));
      for (const auto& [name, parameter] : model.trainable_parameters()) parameter.zero_grad();
    }
  }

  /// Something of each parameter, under the names of files.
  template <class T, class Model, class F>
  StateDict<T> tensors_of(const Model& model, const F& f) const {
    StateDict<T> found;
    for (const auto& [name, parameter] : model.trainable_parameters()) found.emplace(name, f(parameter));
    return xgrad::pretrained::detail::as_stored(files_.stored_as, files_.prefix, std::move(found));
  }

  /// Of rows of padding there are zeros in the file.
  template <class T>
  void compare_tokens_of(const std::string& batch, const std::string& what, const Variable<T>& got,
                         const std::string& before = "") {
    const std::string name = before + batch + what;
    if (!expected_.has(name)) return;
    const Ids tokens = *input(batch).attention_mask;
    Array<T> seen(got.value());
    const std::size_t width = seen.shape().back(), rows = seen.size() / width, length = tokens.shape(1);
    for (std::size_t row = 0; seen.dimension() > 2 && row < rows; ++row) {
      if (tokens(row / (rows / tokens.shape(0)), row % length) == 0)
        std::fill_n(seen.data() + row * width, width, T{0});
    }
    compare(name, Variable<T>(std::move(seen)));
  }

  /// In float, steps on gradients that are 0 but for rounding are anything up to the rate: those of biases of
  /// keys, which differ only as their positions turn them.
  template <class T, class Model>
  void compare_trained(const Model& model) {
    const auto tensors = tensors_of<T>(model, [](const Variable<T>& one) { return one.value(); });
    const json& differing = case_.contains("trained_differs_in_float32")
                                ? case_.at("trained_differs_in_float32")
                                : json::object();
    for (const auto& [tensor, values] : tensors) {
      const std::string name = "trained." + tensor;
      if (!expected_.has(name)) continue;
      const bool is_of_keys = tensor.ends_with("k_proj.bias");
      if (std::is_same_v<T, float> && (is_of_keys || differing.contains(tensor))) continue;
      const double allowed = std::is_same_v<T, float> ? training_rounding : 1e-6;
      compare(name, Variable<T>(values), largest(name), allowed);
    }
  }

  /// The files that a folder has.
  std::vector<std::string> weight_files() const {
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(path_)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("model") && name.ends_with(".safetensors")) files.push_back(file.path().string());
    }
    return files;
  }

  /// What is saved are the tensors of the files, in their type, but for buffers.
  void compare_saved() {
    type_ = "saved";
    const TemporaryFolder folder;
    const std::string dtype = config_.dtype;
    const std::map<std::string, xgrad::DType> half{{"bfloat16", xgrad::DType::BF16},
                                                   {"float16", xgrad::DType::F16}};
    with_model<float>(path_, [&](const auto& model) {
      xgrad::pretrained::SaveOptions options;
      if (half.contains(dtype)) options.dtype = half.at(dtype);
      save_folder(model, folder.path("model"), options);
      save_folder(model, folder.path("floats"));
    });
    const Tensors saved(folder.path("model/model.safetensors"));
    std::set<std::string> left;
    for (const std::string& name : saved.names("")) left.insert(name);
    for (const std::string& file : weight_files()) {
      const Tensors stored(file);
      for (const std::string& own_name : stored.names("")) {
        std::string name = own_name;
        const std::string modern = xgrad::pretrained::detail::modern_name(name, files_);
        if (modern.empty()) continue;
        if (!saved.has(name)) name = files_.prefix + name;  // an old file
        left.erase(name);
        const bool same = saved.has(name) && saved.at(name).dtype == stored.at(own_name).dtype &&
                          std::ranges::equal(saved.at(name).bytes, stored.at(own_name).bytes);
        note("saved " + name, 0, same);
      }
    }
    for (const std::string& name : left)
      note("saved " + name + ", which is no tensor of the file", INFINITY, false);
    with_model<double>(folder.path("floats"), [&](const auto& model) {
      compare_tokens_of<double>("batch", ".logits", model(input("batch")));
    });
  }

  /// The same model by the other spelling of its configuration.
  void compare_spelling(const std::string& other) {
    type_ = other;
    const TemporaryFolder folder;
    const std::string copy = folder.path("model");
    std::filesystem::copy(path_, copy, std::filesystem::copy_options::recursive);
    std::filesystem::remove(copy + "/config.json");
    std::filesystem::copy_file(path_ + "/" + other, copy + "/config.json");
    with_model<double>(copy, [&](const auto& model) {
      for (const std::string batch : {"batch", "longest"})
        compare_tokens_of<double>(batch, ".logits", model(input(batch)));
    });
  }

  /// The tokens that are written, of greedy searches alone and in a batch, with and without a cache.
  template <class T>
  void compare_tokens() {
    type_ = "tokens";
    const json about = read_json(path_ + "/generation.json");
    const auto prompts = lists_of(list_entry(about, "prompts"));
    const auto model = CausalLM<T>::from_folder(path_, quiet());
    const json& cases = list_entry(about, "cases");
    const bool may_disagree =
        std::any_of(cases.begin(), cases.end(), [](const json& one) { return one.contains("disagree"); });
    for (const json& one : cases) {
      const std::string reason = entry(one, "options").value("num_beams", 1) > 1 ? "beams are still to come"
                                 : may_disagree && !one.contains("disagree")
                                     ? "angles are those of the longest text of a batch"
                                     : "";
      if (!reason.empty()) {
        if (std::is_same_v<T, double>) skip(entry_as<std::string>(one, "name"), reason);
        continue;
      }
      compare_written(model, one, prompts);
    }
  }

  /// The options of a case over those of the folder.
  xgrad::generation::GenerationOptions options_of(const json& changed) const {
    json all = read_json(path_ + "/generation_config.json");
    all.update(changed);
    const TemporaryFolder folder;
    folder.write("generation_config.json", all.dump());
    auto options = xgrad::generation::GenerationOptions::from_folder(folder.path(""));
    if (!options.eos_token_ids) options.eos_token_ids = std::vector<std::int64_t>();
    return options;
  }

  /// With a cache and without, in a batch and alone: the tokens that each prompt has alone without a cache,
  /// also where Hugging Face's cache keeps keys of a shorter text.
  template <class T>
  void compare_written(const CausalLM<T>& model, const json& one,
                       const std::vector<std::vector<std::int64_t>>& prompts) {
    const json disagree = one.value("disagree", json::object());
    xgrad::generation::GenerationOptions options = options_of(entry(one, "options"));
    if (options.max_length) {  // that of all sequences, with the padding before their prompts
      std::size_t longest = 0;
      for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
      options.max_new_tokens = *options.max_length - longest;
    }
    const char* const kind = "single_no_cache";
    const auto want = lists_of(disagree.contains(kind) ? disagree.at(kind) : list_entry(one, "sequences"));
    for (const bool use_cache : {true, false}) {
      const std::string name = entry_as<std::string>(one, "name") + (use_cache ? ", " : " without a cache, ");
      options.use_cache = use_cache;
      if (options.do_sample) xgrad::manual_seed(entry_as<std::uint64_t>(one, "seed"));
      note(name + "in a batch", 0, generate(model, prompts, options) == want);
      if (options.do_sample) continue;
      std::vector<std::vector<std::int64_t>> alone;
      for (const auto& prompt : prompts) alone.push_back(generate(model, {prompt}, options).front());
      note(name + "alone", 0, alone == want);
    }
  }

  static std::vector<std::vector<std::int64_t>> lists_of(const json& lists) {
    std::vector<std::vector<std::int64_t>> all;
    for (const json& list : lists) all.push_back(as<std::vector<std::int64_t>>(list, "tokens"));
    return all;
  }

  void skip(const std::string& name, const std::string& reason) {
    ++tally_.skipped;
    std::cout << "skipped " << path_ << ": " << name << ", as " << reason << '\n';
  }

  xgrad::pretrained::Config config_;
  xgrad::pretrained::detail::NamesInFiles files_;
  std::map<std::string, std::string> tensor_of_;  // by parameter
};

}  // namespace xgrad_tests
