#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>

#include "../../../base/detail/system/folder_files.hpp"
#include "../../../base/detail/system/folder_names.hpp"
#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/folder.hpp"
#include "../../../files/safetensors.hpp"
#include "../config/quantization.hpp"
#include "../family.hpp"
#include "halves.hpp"

namespace xgrad::pretrained {
namespace {

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "float32";
    case DType::F64:
      return "float64";
    case DType::BF16:
      return "bfloat16";
    case DType::F16:
      return "float16";
    default:
      xgrad::detail::fail<ValueError>("save_folder: dtype must be F32, F64, BF16 or F16, got ",
                                      to_string(dtype));
  }
}

/// The bytes of an array as numbers of another type.
template <class To, class T, class Round>
std::vector<std::byte> rounded(const Array<T>& array, const Round& round) {
  std::vector<std::byte> bytes(array.size() * sizeof(To));
  for (std::size_t i = 0; i < array.size(); ++i) {
    const To number = round(array.data()[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &number, sizeof(To));
  }
  return bytes;
}

template <class T>
std::vector<std::byte> as_dtype(const std::string& name, const Array<T>& array, DType dtype) {
  const auto checked = [&](T x) {
    const auto number = static_cast<float>(x);
    const bool fits = dtype == DType::F16 ? detail::fits_half(number) : std::isfinite(number);
    if (!fits)
      xgrad::detail::fail<ValueError>("save_folder: ", xgrad::detail::in_quotes(name), " has ", x,
                                      ", which is too large for ", to_string(dtype));
    return number;
  };
  switch (dtype) {
    case DType::BF16:
      return rounded<std::uint16_t>(array, [&](T x) { return detail::bfloat16_of(checked(x)); });
    case DType::F16:
      return rounded<std::uint16_t>(array, [&](T x) { return detail::half_of(checked(x)); });
    case DType::F32:
      return rounded<float>(array, checked);
    default:
      return rounded<double>(array, [](T x) { return static_cast<double>(x); });
  }
}

/// The linear layers of float weights, by their names.
template <class T>
void add_float_layers(const xgrad::detail::ModuleState<T>& state, const std::string& prefix,
                      std::vector<std::string>& found) {
  for (const auto& [name, child] : state.children) {
    if (child->type == "Linear" && child->int8_weights.empty()) found.push_back(prefix + name);
    add_float_layers(*child, prefix + name + ".", found);
  }
}

/// The layers of a model that are float in files, also those that only Hugging Face's class has: a pooler,
/// and the decoder of tied weights.
template <class T>
std::vector<std::string> float_layers(const Model<T>& model) {
  const detail::FamilyInfo& family = detail::info_of(model.config().model_type);
  std::vector<std::string> layers;
  add_float_layers(model.state(), "", layers);
  if (family.pooler != nullptr) {
    layers.emplace_back(family.pooler);
    layers.push_back(std::string(family.files.prefix) + family.pooler);
  }
  if (family.decoder != nullptr) {
    const std::string decoder = family.decoder;
    layers.push_back(decoder.substr(0, decoder.rfind('.')));
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

/// The numbers of matrices of bfloat16, as files name them.
template <class T>
StateDict<std::uint16_t> stored_halves(const Model<T>& model, const detail::NamesInFiles& files) {
  StateDict<std::uint16_t> all;
  for (const auto& [name, weight] : model.named_bfloat16_weights()) {
    Array<std::uint16_t> bits = Array<std::uint16_t>::from_shape(weight.shape());
    std::copy(weight.bits().begin(), weight.bits().end(), bits.begin());
    all.emplace(name, std::move(bits));
  }
  return detail::as_stored(files.stored_as, files.prefix, std::move(all));
}

/// The integers and scales of a model, as files name them.
struct StoredIntegers {
  StateDict<std::int8_t> values;
  StateDict<float> scales;

  StoredIntegers(const std::vector<NamedInt8Weight>& weights, const detail::NamesInFiles& files) {
    StateDict<std::int8_t> all_values;
    StateDict<float> all_scales;
    for (const auto& [name, weight] : weights) {
      const Shape shape = weight.shape();
      Array<std::int8_t> integers = Array<std::int8_t>::from_shape(shape);
      const std::vector<std::int8_t> read = weight.values();
      std::copy(read.begin(), read.end(), integers.begin());
      Array<float> column = Array<float>::from_shape({shape[0], 1});
      const std::vector<float> factors = weight.scales();
      std::copy(factors.begin(), factors.end(), column.begin());
      all_values.emplace(name, std::move(integers));
      all_scales.emplace(name + "_scale", std::move(column));
    }
    values = detail::as_stored(files.stored_as, files.prefix, std::move(all_values));
    scales = detail::as_stored(files.stored_as, files.prefix, std::move(all_scales));
  }
};

/// Files that the saved one does not replace: other weights, which transformers or this library reads, and
/// adapters, which transformers adds.
std::vector<std::string> other_weights(const std::string& folder) {
  std::vector<std::string> names{"model.safetensors.index.json", "pytorch_model.bin",
                                 "pytorch_model.bin.index.json", "adapter_config.json",
                                 "adapter_model.safetensors",    "adapter_model.bin"};
  complete_folder(folder);
  std::error_code error;
  for (const std::string& name : xgrad::detail::names_in(folder, error)) {
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
void save_folder(const Model<T>& model, const std::string& folder, SaveOptions options) {
  check_save(folder);
  detail::save_with_modules(model, folder, options);
}

template <class T>
void detail::save_with_modules(const Model<T>& model, const std::string& folder, SaveOptions options) {
  const NamesInFiles& files = info_of(model.config().model_type).files;
  const StateDict<std::uint16_t> halves = stored_halves(model, files);
  const StoredIntegers integers(model.named_int8_weights(), files);
  const DType dtype = options.dtype.value_or(halves.empty() ? dtype_of<T> : DType::BF16);
  const std::string text =
      model.config().json(model.architecture(), dtype_name(dtype),
                          integers.values.empty() ? "" : quantization_json(float_layers(model)));
  StateDict<T> parameters;
  for (const auto& [name, parameter] : model.named_parameters()) parameters.emplace(name, parameter.value());
  const StateDict<T> state = as_stored(files.stored_as, files.prefix, std::move(parameters));
  std::vector<TensorView> tensors;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(state.size());
  for (const auto& [name, array] : state) {
    tensors.push_back(view_of(name, array));
    if (dtype == dtype_of<T>) continue;
    bytes.push_back(as_dtype(name, array, dtype));
    tensors.back().dtype = dtype;
    tensors.back().bytes = bytes.back();
  }
  for (const auto& [name, bits] : halves)
    tensors.push_back({name, DType::BF16, bits.shape(), std::as_bytes(std::span(bits.data(), bits.size()))});
  for (const auto& [name, values] : integers.values) tensors.push_back(view_of(name, values));
  for (const auto& [name, scales] : integers.scales) tensors.push_back(view_of(name, scales));
  write_folder(folder, [&](const std::string& other) {
    xgrad::detail::write_file(other + "/config.json", text);
    write_safetensors(std::move(tensors), other + "/model.safetensors", {{"format", "pt"}});
  });
}

void detail::refuse_other_weights(const std::string& folder) {
  xgrad::detail::refuse_leftovers(folder, other_weights(folder));
}

template void save_folder(const Model<float>&, const std::string&, SaveOptions);
template void save_folder(const Model<double>&, const std::string&, SaveOptions);
template void detail::save_with_modules(const Model<float>&, const std::string&, SaveOptions);
template void detail::save_with_modules(const Model<double>&, const std::string&, SaveOptions);

}  // namespace xgrad::pretrained
