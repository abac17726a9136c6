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
    const bool has_integers =
        std::any_of(child->weights.begin(), child->weights.end(),
                    [](const NamedWeight<T>& one) { return one.second.dtype() == DType::I8; });
    if (child->type == "Linear" && !has_integers) found.push_back(prefix + name);
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

/// The numbers of a model by their type, as files name them.
template <class T>
struct StoredNumbers {
  StateDict<T> floats;
  StateDict<std::uint16_t> halves;
  StateDict<std::int8_t> integers;
  StateDict<float> scales;

  StoredNumbers(const std::vector<NamedWeight<T>>& weights, const detail::NamesInFiles& files) {
    for (const auto& [name, weight] : weights) {
      if (weight.is_trainable()) {
        floats.emplace(name, weight.variable().value());
      } else if (weight.dtype() == DType::BF16) {
        halves.emplace(name, array_of(weight.bits(), weight.shape()));
      } else {
        integers.emplace(name, array_of(weight.integers(), weight.shape()));
        scales.emplace(name + "_scale", array_of(weight.scales(), {weight.shape()[0], 1}));
      }
    }
    const auto rename = [&files](auto& all) {
      all = detail::as_stored(files.stored_as, files.prefix, std::move(all));
    };
    rename(floats), rename(halves), rename(integers), rename(scales);
  }

 private:
  template <class Numbers>
  static auto array_of(const Numbers& numbers, const Shape& shape) {
    using Number = std::remove_const_t<typename Numbers::value_type>;
    Array<Number> array = Array<Number>::from_shape(shape);
    std::copy(numbers.begin(), numbers.end(), array.begin());
    return array;
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
  const StoredNumbers<T> stored(model.named_weights(), files);
  const DType dtype = options.dtype.value_or(stored.halves.empty() ? dtype_of<T> : DType::BF16);
  const std::string text =
      model.config().json(model.architecture(), dtype_name(dtype),
                          stored.integers.empty() ? "" : quantization_json(float_layers(model)));
  std::vector<TensorView> tensors;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(stored.floats.size());
  for (const auto& [name, array] : stored.floats) {
    tensors.push_back(view_of(name, array));
    if (dtype == dtype_of<T>) continue;
    bytes.push_back(as_dtype(name, array, dtype));
    tensors.back().dtype = dtype;
    tensors.back().bytes = bytes.back();
  }
  for (const auto& [name, bits] : stored.halves)
    tensors.push_back({name, DType::BF16, bits.shape(), std::as_bytes(std::span(bits.data(), bits.size()))});
  for (const auto& [name, integers] : stored.integers) tensors.push_back(view_of(name, integers));
  for (const auto& [name, scales] : stored.scales) tensors.push_back(view_of(name, scales));
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
