#include "model.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "../base/detail/folder_files.hpp"
#include "../base/detail/tell.hpp"
#include "../base/file.hpp"
#include "../files/safetensors.hpp"
#include "detail/family.hpp"
#include "detail/weights.hpp"

namespace xgrad::pretrained {
template <class T>
Model<T>::Model(const Config& config, const std::string& task)
    : Module<T>(detail::info_of(config.model_type).class_name + task), config_(config) {}

template <class T>
Model<T>::Model(const Config& config, const Module<T>& body) : Module<T>(body), config_(config) {}

namespace {

/// Files that the saved one does not replace: other weights, which transformers or this library reads, and
/// adapters, which transformers adds.
std::vector<std::string> other_weights(const std::string& folder) {
  std::vector<std::string> names{"model.safetensors.index.json", "pytorch_model.bin",
                                 "pytorch_model.bin.index.json", "adapter_config.json",
                                 "adapter_model.safetensors",    "adapter_model.bin"};
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if ((name.starts_with("model-") && name.ends_with(".safetensors")) ||
        (name.starts_with("pytorch_model-") && name.ends_with(".bin")))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

void check_save(const std::string& folder) {
  std::vector<std::string> names = other_weights(folder);
  names.emplace_back("modules.json");
  xgrad::detail::refuse_leftovers(folder, names);
}

template <class T>
void save_folder(const Model<T>& model, const std::string& folder) {
  check_save(folder);
  detail::save_with_modules(model, folder);
}

template <class T>
void detail::save_with_modules(const Model<T>& model, const std::string& folder) {
  xgrad::detail::refuse_leftovers(folder, other_weights(folder));
  xgrad::detail::make_folder(folder);
  const bool is_double = std::is_same_v<T, double>;
  const std::string text = model.config().json(model.architecture(), is_double ? "float64" : "float32");
  const detail::FamilyInfo& family = detail::info_of(model.config().model_type);
  AtomicFile config(folder + "/config.json");  // written before the weights, so that both are new or old
  config.write(std::as_bytes(std::span(text)));
  save_safetensors(detail::as_stored(family.stored_as, family.prefix, model.state_dict()),
                   folder + "/model.safetensors", {{"format", "pt"}});
  config.commit();
}

void detail::load(const std::string& folder, const LoadOptions& options, const char* head,
                  const std::function<std::string(const Config&, Weights&)>& build) {
  Config config = Config::from_folder(folder);
  Weights weights(folder, config);
  if (options.problem_type) config.problem_type = options.problem_type;
  if (options.labels) {
    if (options.labels->empty()) throw ValueError("from_folder: labels must have one or more, got none");
    if (*head != '\0' && options.labels->size() != config.id2label.size()) weights.forget(head);
    config.id2label = *options.labels;
  }
  const std::string type = build(config, weights);
  if (options.complete) weights.refuse_missing(type);
  for (const std::string& note : weights.notes()) xgrad::detail::tell(options.note, note);
}

void detail::build_fresh(const std::function<void(Weights&)>& build, const Config& config) {
  config.check();
  Weights weights(config);
  build(weights);
}

template class Model<float>;
template class Model<double>;
template void save_folder(const Model<float>&, const std::string&);
template void save_folder(const Model<double>&, const std::string&);
template void detail::save_with_modules(const Model<float>&, const std::string&);
template void detail::save_with_modules(const Model<double>&, const std::string&);

}  // namespace xgrad::pretrained
