#include "model.hpp"

#include <cstdio>

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

template <class T>
void save_folder(const Model<T>& model, const std::string& folder) {
  xgrad::detail::make_folder(folder);
  const bool is_double = std::is_same_v<T, double>;
  const std::string text = model.config().json(model.architecture(), is_double ? "float64" : "float32");
  const detail::FamilyInfo& family = detail::info_of(model.config().model_type);
  save_safetensors(detail::as_stored(family.stored_as, family.prefix, model.state_dict()),
                   folder + "/model.safetensors", {{"format", "pt"}});
  xgrad::detail::write_file(folder + "/config.json", text);
}

void detail::load(const std::string& folder, const LoadOptions& options, const char* head,
                  const std::function<void(const Config&, Weights&)>& build) {
  Config config = Config::from_folder(folder);
  Weights weights(folder, config);
  if (options.problem_type) config.problem_type = options.problem_type;
  if (options.labels) {
    if (options.labels->empty()) throw ValueError("from_folder: labels must have one or more, got none");
    if (*head != '\0' && options.labels->size() != config.id2label.size()) weights.forget(head);
    config.id2label = *options.labels;
  }
  build(config, weights);
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

}  // namespace xgrad::pretrained
