#include "weights.hpp"

#include <algorithm>
#include <cstdint>

#include "../../base/detail/json_text.hpp"
#include "../../base/error.hpp"
#include "../../base/random.hpp"
#include "family.hpp"
#include "likely_family.hpp"

namespace xgrad::pretrained::detail {
namespace {

using xgrad::detail::fail;

/// A name as it is, or in quotes if it is not a plain one.
std::string shown(const std::string& name) {
  const bool plain =
      name.size() < 200 && std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127; });
  return plain ? name : xgrad::detail::in_quotes(name);
}

/// The first names.
std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + shown(names[i]);
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

constexpr std::size_t most_integers = std::size_t{1} << 16;  // in a row of an Int8Weight

/// LoRA's matrices, or a weight to which they are added.
bool is_of_adapter(const std::string& name) {
  return name.find(".parametrizations.") != name.npos || name.find(".lora_") != name.npos;
}

}  // namespace

std::string prefix_of(Family family) { return info_of(family).prefix; }

Weights::Weights(const std::string& folder, const Config& config, std::optional<Precision> precision)
    : config_(config), precision_(precision), folder_(folder) {
  open_weight_files(folder, files_);
  for (const WeightFile& file : files_) add(file);
}

void Weights::add(const WeightFile& file) {
  const FamilyInfo& family = info_of(config_.model_type);
  for (const TensorView& tensor : file.tensors()) {
    if (is_of_adapter(tensor.name))
      fail<FileError>(file.path(), ": tensor ", xgrad::detail::in_quotes(tensor.name),
                      " belongs to an adapter (LoRA), which is not supported; merge it into the weights");
    if (config_.int8_weights && tensor.name.ends_with("_zero_point"))
      fail<FileError>(file.path(), ": tensor ", xgrad::detail::in_quotes(tensor.name),
                      " must not be there, as config.json says that integers are symmetric");
    const std::string name = modern_name(tensor.name, family);
    if (name.empty()) continue;
    for (const auto& [parameter, part, parts] : parts_of(family.stored_as, name))
      enter(parameter, {&tensor, &file, part, parts});
  }
}

void Weights::enter(const std::string& name, const Entry& entry) {
  const auto [known, is_new] = entries_.try_emplace(name, entry);
  // A bias that two layers share may be there twice.
  if (is_new || entry.tensor->name.ends_with("decoder.bias")) return;
  if (known->second.tensor->name.ends_with("decoder.bias")) {
    known->second = entry;
  } else {
    fail<FileError>(entry.file->path(), ": tensor ", xgrad::detail::in_quotes(entry.tensor->name),
                    " is the same parameter as ", xgrad::detail::in_quotes(known->second.tensor->name));
  }
}

bool Weights::offers(const std::string& name) const { return folder_.empty() || entries_.contains(name); }

TensorView Weights::taken(Entry& entry, const Shape& shape) {
  const TensorView& tensor = *entry.tensor;
  Shape whole = shape;
  whole[0] *= entry.parts;
  if (!same_shape(tensor.shape, whole))
    fail<FileError>(entry.file->path(), ": tensor ", xgrad::detail::in_quotes(tensor.name),
                    ": shape must be ", whole, " as config.json says, got ", tensor.shape);
  entry.taken = true;
  const std::size_t size = tensor.bytes.size() / entry.parts;
  return {tensor.name, tensor.dtype, shape, tensor.bytes.subspan(entry.part * size, size)};
}

std::vector<float> Weights::take_scales(const std::string& name, const Entry& weight, const Shape& shape) {
  const auto found = entries_.find(name + "_scale");
  if (found == entries_.end())
    fail<FileError>(weight.file->path(), ": tensor ",
                    xgrad::detail::in_quotes(weight.tensor->name + "_scale"), " is missing, as ",
                    xgrad::detail::in_quotes(weight.tensor->name), " is of integers");
  Entry& entry = found->second;
  const Array<float> scales = entry.file->array<float>(taken(entry, {shape[0], 1}));
  if (std::any_of(scales.begin(), scales.end(), [](float scale) { return scale < 0; }))
    fail<FileError>(entry.file->path(), ": tensor ", xgrad::detail::in_quotes(entry.tensor->name),
                    " must hold numbers from 0 on");
  return {scales.begin(), scales.end()};
}

std::optional<Int8Weight> Weights::take_integers(const std::string& parameter, const Shape& shape,
                                                 Part part) {
  const std::string name = modern_name(parameter, info_of(config_.model_type));
  const auto found = entries_.find(name);
  if (found == entries_.end() || part != Part::encoder || shape[1] > most_integers) return std::nullopt;
  Entry& entry = found->second;
  const bool has_integers = config_.int8_weights && entry.tensor->dtype == DType::I8;
  if (precision_ ? *precision_ != Precision::int8 : !has_integers) return std::nullopt;
  if (has_integers) {
    const TensorView tensor = taken(entry, shape);
    const auto* const values = reinterpret_cast<const std::int8_t*>(tensor.bytes.data());
    const std::vector<float> scales = take_scales(name, entry, shape);
    const Int8Weight weight({values, tensor.bytes.size()}, scales, shape);
    entry.file->release(tensor);
    return weight;
  }
  return Int8Weight(take<float>(parameter, shape, Start::normal, part));
}

template <class T>
Array<T> Weights::take(const std::string& name, const Shape& shape, Start start, Part part) {
  const std::string modern = modern_name(name, info_of(config_.model_type));
  const auto found = entries_.find(modern);
  if (found != entries_.end()) {
    Entry& entry = found->second;
    const bool has_scales = entries_.contains(modern + "_scale");
    if (has_scales && entry.tensor->dtype != DType::I8)
      fail<FileError>(entry.file->path(), ": tensor ", xgrad::detail::in_quotes(entry.tensor->name),
                      ": dtype must be I8, as there are scales, got ", to_string(entry.tensor->dtype));
    const TensorView tensor = taken(entry, shape);
    if (!config_.int8_weights || tensor.dtype != DType::I8 || shape.size() != 2)
      return entry.file->array<T>(tensor);
    const std::vector<float> scales = take_scales(modern, entry, shape);
    const auto* const integers = reinterpret_cast<const std::int8_t*>(tensor.bytes.data());
    Array<T> values = Array<T>::from_shape(shape);
    for (std::size_t i = 0; i < values.size(); ++i)
      values.data()[i] = static_cast<T>(integers[i]) * static_cast<T>(scales[i / shape[1]]);
    return values;
  }
  if (!folder_.empty()) {
    if (part == Part::encoder) {
      std::vector<std::string> tensors;
      for (const WeightFile& file : files_) {
        for (const TensorView& tensor : file.tensors()) tensors.push_back(tensor.name);
      }
      fail<FileError>(folder_, ": the parameter ", xgrad::detail::in_quotes(name), " is missing",
                      told_by_names(tensors, info_of(config_.model_type)));
    }
    constexpr std::size_t most = std::size_t{1} << 28;
    if (element_count(shape) > most)
      fail<FileError>(folder_, ": the parameter ", xgrad::detail::in_quotes(name),
                      " is missing, and too large to initialise: ", shape);
    fresh_.push_back(name);
  }
  switch (start) {
    case Start::zeros:
      return xt::zeros<T>(shape);
    case Start::ones:
      return xt::ones<T>(shape);
    case Start::normal:
      break;
  }
  return xgrad::normal<T>(shape, 0, config_.initializer_range);
}

void Weights::forget(const std::string& prefix) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

void Weights::refuse_missing(const std::string& architecture) const {
  if (fresh_.empty()) return;
  fail<FileError>(folder_, ": must hold ", architecture, ", got ",
                  config_.architecture.empty() ? "a model" : config_.architecture, " without ",
                  listed_names(fresh_), "; train the head first, or choose a folder that has it");
}

std::vector<std::string> Weights::notes() const {
  std::vector<std::string> notes;
  const auto note = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty()) notes.push_back(folder_ + ": " + listed_names(names) + what);
  };
  note(fresh_, " get initial values, as the folder does not have them; train them before use");
  std::vector<std::string> left;
  for (const auto& [name, entry] : entries_) {
    if (!entry.taken) left.push_back(name);
  }
  note(left, " are not used");
  return notes;
}

template Array<float> Weights::take(const std::string&, const Shape&, Start, Part);
template Array<double> Weights::take(const std::string&, const Shape&, Start, Part);

}  // namespace xgrad::pretrained::detail
