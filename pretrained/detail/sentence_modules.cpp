#include "sentence_modules.hpp"

#include <algorithm>
#include <map>

#include "../../base/detail/system/folder_files.hpp"
#include "../../base/detail/text/json_text.hpp"
#include "../../base/error.hpp"
#include "../../base/file.hpp"
#include "../../ops/norm/layer_norm.hpp"
#include "../../ops/pointwise/elementwise.hpp"
#include "../../ops/product/linear.hpp"
#include "../../ops/reduce/reductions.hpp"
#include "config/json.hpp"
#include "config/named_function.hpp"
#include "weights/weight_files.hpp"

namespace xgrad::pretrained::detail {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes, xgrad::detail::join;

const std::map<std::string, Pooling> pooling_names{{"cls", Pooling::cls_token},
                                                   {"max", Pooling::max},
                                                   {"mean", Pooling::mean},
                                                   {"mean_sqrt_len_tokens", Pooling::mean_sqrt},
                                                   {"weightedmean", Pooling::weighted_mean},
                                                   {"lasttoken", Pooling::last_token}};

/// The flags of older files, in the order of the vectors.
constexpr std::pair<const char*, Pooling> pooling_flags[] = {
    {"pooling_mode_cls_token", Pooling::cls_token},
    {"pooling_mode_max_tokens", Pooling::max},
    {"pooling_mode_mean_tokens", Pooling::mean},
    {"pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt},
    {"pooling_mode_weightedmean_tokens", Pooling::weighted_mean},
    {"pooling_mode_lasttoken", Pooling::last_token}};

/// A tensor of a module's weights.
template <class T>
Variable<T> tensor_of(const WeightFile& file, const std::string& name, const Shape& shape) {
  const std::string& path = file.path();
  const auto& tensors = file.tensors();
  const auto found = std::ranges::find(tensors, name, &TensorView::name);
  if (found == tensors.end()) fail<FileError>(path, ": must hold the tensor ", name);
  if (!same_shape(found->shape, shape))
    fail<FileError>(path, ": ", name, " must have the shape ", shape, ", got ", found->shape);
  return Variable<T>(file.array<T>(*found), true);
}

WeightFile weights_of(const std::string& folder) {
  const std::string path = folder + "/model.safetensors", torch = folder + "/pytorch_model.bin";
  if (xgrad::detail::exists(path) || !xgrad::detail::exists(torch)) return {path, WeightFormat::safetensors};
  return {torch, WeightFormat::torch};
}

std::size_t size_in(const Json& config, const char* name) {
  constexpr std::int64_t most = 1 << 20;
  return static_cast<std::size_t>(config.at(name).integer(1, most));
}

/// The weights of a module by their names in its file.
template <class T>
std::vector<NamedParameter<T>> weights_in(const VectorModule<T>& module) {
  if (const auto* const norm = std::get_if<LayerNormModule<T>>(&module))
    return {{"norm.weight", norm->weight}, {"norm.bias", norm->bias}};
  const auto* const dense = std::get_if<DenseModule<T>>(&module);
  if (dense == nullptr) return {};
  std::vector<NamedParameter<T>> weights{{"linear.weight", dense->weight}};
  if (dense->bias.defined()) weights.emplace_back("linear.bias", dense->bias);
  return weights;
}

/// The folder of a module, inside that of the encoder.
std::string path_of(const Json& module) {
  const Json path = module.at("path");
  if (path.text().empty() || path.text().find("..") != std::string::npos || path.text().front() == '/' ||
      path.text().front() == '.')
    path.refuse("a folder inside this one");
  return path.text();
}

}  // namespace

template <class T>
Variable<T> run(const VectorModule<T>& module, const Variable<T>& x) {
  if (const auto* const dense = std::get_if<DenseModule<T>>(&module))
    return dense->function(linear(x, dense->weight, dense->bias));
  if (const auto* const norm = std::get_if<LayerNormModule<T>>(&module))
    return layer_norm(x, {x.shape(1)}, norm->weight, norm->bias);
  // As torch.nn.functional.normalize, for which a vector is never shorter than this.
  constexpr T shortest = T(1e-12);
  return x / clamp(sqrt(sum(square(x), {1}, {.keepdim = true})), shortest);
}

template <class T>
SentenceModules<T>::SentenceModules(const std::string& folder, std::size_t hidden_size) : size(hidden_size) {
  if (!xgrad::detail::exists(folder + "/modules.json")) return;
  files.emplace_back("modules.json");
  read_modules(folder, hidden_size);
}

template <class T>
void SentenceModules<T>::read_modules(const std::string& folder, std::size_t hidden_size) {
  const Json all = Json::read(folder + "/modules.json");
  const std::vector<Json> list = all.items();
  if (list.size() < 2) all.fail("must list Transformer and Pooling");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json type = list[i].at("type");
    const std::string name = type.text().substr(type.text().rfind('.') + 1);
    if (i == 0) {
      if (name != "Transformer") type.refuse("Transformer");
      if (const auto path = list[i].find("path"); path && !path->text().empty())
        path->refuse("empty, as the encoder has to be in this folder");
      continue;
    }
    if (i == 1 && name != "Pooling") type.refuse("Pooling");
    if (name == "Normalize") {
      vectors.push_back({std::to_string(i), "", NormalizeModule{}});
      continue;
    }
    const std::string path = path_of(list[i]);
    const std::string below = xgrad::detail::join({folder, "/", path});
    files.push_back(path + "/config.json");
    if (i == 1) {
      read_pooling(below + "/config.json", hidden_size);
    } else if (name == "Dense") {
      vectors.push_back({std::to_string(i), path, read_dense(below)});
    } else if (name == "LayerNorm") {
      vectors.push_back({std::to_string(i), path, read_layer_norm(below)});
    } else {
      type.refuse("Dense, LayerNorm or Normalize");
    }
  }
}

template <class T>
void SentenceModules<T>::read_pooling(const std::string& path, std::size_t hidden_size) {
  const Json config = Json::read(path);
  const auto is_flag = [](const std::string& name) {
    return std::ranges::find(pooling_flags, name, [](const auto& flag) { return std::string(flag.first); }) !=
           std::end(pooling_flags);
  };
  for (const auto& [name, value] : config.members()) {
    if (name != "pooling_mode" && name != "embedding_dimension" && name != "word_embedding_dimension" &&
        name != "include_prompt" && !is_flag(name))
      config.fail(join({"the field ", in_quotes(name),
                        " is not known, and may change the vectors; remove it "
                        "if it does not"}));
  }
  poolings.clear();
  if (const auto mode = config.find("pooling_mode")) {
    for (const Json& one : mode->is_array() ? mode->items() : std::vector<Json>{*mode}) {
      const auto found = pooling_names.find(one.text());
      if (found == pooling_names.end())
        one.refuse("cls, lasttoken, max, mean, mean_sqrt_len_tokens or weightedmean");
      poolings.push_back(found->second);
    }
    if (poolings.empty()) mode->refuse("one or more modes");
  } else {
    for (const auto& [flag, pooling] : pooling_flags) {
      const auto value = config.find(flag);
      if (value && value->boolean()) poolings.push_back(pooling);
    }
    constexpr const char* mean_flag = "pooling_mode_mean_tokens";
    if (!poolings.empty() && !config.find(mean_flag))
      notes.push_back(join({path, ": without ", mean_flag,
                            " the mean is not taken, as in sentence-transformers 6; "
                            "earlier versions took it, too"}));
    if (poolings.empty()) poolings.push_back(Pooling::mean);
  }
  for (const char* name : {"embedding_dimension", "word_embedding_dimension"}) {
    const auto given = config.find(name);
    if (given && given->integer(1, 1 << 20) != static_cast<std::int64_t>(hidden_size))
      given->refuse("the encoder's hidden_size " + std::to_string(hidden_size));
  }
  if (const auto include = config.find("include_prompt")) pools_prompt = include->boolean();
  size = poolings.size() * hidden_size;
}

template <class T>
DenseModule<T> SentenceModules<T>::read_dense(const std::string& folder) {
  const Json config = Json::read(folder + "/config.json");
  const std::size_t in = size_in(config, "in_features"), out = size_in(config, "out_features");
  if (in != size)
    config.at("in_features").refuse("the size " + std::to_string(size) + " of what comes before");
  for (const char* name : {"module_input_name", "module_output_name"}) {
    const auto given = config.find(name);
    if (given && given->text() != "sentence_embedding") given->refuse("sentence_embedding");
  }
  if (const auto residual = config.find("use_residual"); residual && residual->boolean())
    residual->refuse("false, as residual connections are not supported");
  const WeightFile file = weights_of(folder);
  DenseModule<T> dense;
  dense.weight = tensor_of<T>(file, "linear.weight", {out, in});
  const auto has_bias = config.find("bias");
  if (!has_bias || has_bias->boolean()) dense.bias = tensor_of<T>(file, "linear.bias", {out});
  const auto function = config.find("activation_function");
  dense.function = function ? function_named<T>(*function) : [](const Variable<T>& x) { return tanh(x); };
  size = out;
  return dense;
}

template <class T>
LayerNormModule<T> SentenceModules<T>::read_layer_norm(const std::string& folder) const {
  const Json config = Json::read(folder + "/config.json");
  if (size_in(config, "dimension") != size)
    config.at("dimension").refuse("the size " + std::to_string(size) + " of what comes before");
  const WeightFile file = weights_of(folder);
  return {tensor_of<T>(file, "norm.weight", {size}), tensor_of<T>(file, "norm.bias", {size})};
}

template <class T>
std::vector<NamedParameter<T>> SentenceModules<T>::parameters() const {
  std::vector<NamedParameter<T>> all;
  for (const NamedModule<T>& one : vectors) {
    for (const auto& [name, weight] : weights_in(one.module)) all.emplace_back(one.name + "." + name, weight);
  }
  return all;
}

template <class T>
void SentenceModules<T>::save(const std::string& folder, std::size_t hidden_size) const {
  for (const NamedModule<T>& one : vectors) {
    StateDict<T> state;
    for (const auto& [name, weight] : weights_in(one.module)) state.emplace(name, weight.value());
    if (state.empty()) continue;
    const std::string below = xgrad::detail::join({folder, "/", one.path});
    xgrad::detail::make_folder(below);
    save_safetensors(state, below + "/model.safetensors");
  }
  if (!files.empty()) return;
  xgrad::detail::make_folder(folder + "/1_Pooling");
  xgrad::detail::write_file(folder + "/1_Pooling/config.json",
                            "{\n  \"word_embedding_dimension\": " + std::to_string(hidden_size) +
                                ",\n  \"pooling_mode_mean_tokens\": true\n}\n");
  xgrad::detail::write_file(folder + "/modules.json", R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
]
)");
}

#define XGRAD_INSTANTIATE(T)          \
  template struct SentenceModules<T>; \
  template Variable<T> run(const VectorModule<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained::detail
