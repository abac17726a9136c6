#include "weights.hpp"

#include <algorithm>
#include <cstdint>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../../../base/random.hpp"
#include "../family.hpp"
#include "../likely_family.hpp"

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

constexpr std::size_t most_integers = std::size_t{1} << 16;  // in a row of a Weight

/// Puts the rows of each head, of which 2 i and 2 i + 1 are a pair, in the order of transformers: first of
/// all pairs the first.
template <class E>
void in_halves(const Shape& shape, std::size_t head_size, E* rows) {
  const std::size_t width = element_count(shape) / shape[0], half = head_size / 2;
  std::vector<E> head(head_size * width);
  for (std::size_t first = 0; first < shape[0]; first += head_size, rows += head.size()) {
    std::copy_n(rows, head.size(), head.data());
    for (std::size_t i = 0; i < half; ++i) {
      std::copy_n(head.data() + 2 * i * width, width, rows + i * width);
      std::copy_n(head.data() + (2 * i + 1) * width, width, rows + (half + i) * width);
    }
  }
}

/// LoRA's matrices, or a weight to which they are added.
bool is_of_adapter(const std::string& name) {
  return name.find(".parametrizations.") != name.npos || name.find(".lora_") != name.npos;
}

}  // namespace

ModelInFiles in_files(const Config& config, std::optional<DType> dtype, bool is_gguf) {
  if (dtype && !config.is_causal) throw ValueError("from_folder: dtype is for decoders alone");
  if (dtype && *dtype != DType::BF16)
    fail<ValueError>("from_folder: dtype must be BF16 or absent, got ", to_string(*dtype));
  const FamilyInfo& family = info_of(config.model_type);
  ModelInFiles model{.names = family.files,
                     .initializer_range = config.initializer_range,
                     .quantized = config.quantized,
                     .dtype = dtype,
                     .paired_head = is_gguf && family.gguf_has_pairs ? config.head_size() : 0,
                     .architecture = config.architecture};
  if (is_gguf) model.names.stored_as = family.gguf_names;
  if (!config.is_causal)
    model.told = [&family](const std::vector<std::string>& tensors) {
      return told_by_names(tensors, family);
    };
  return model;
}

Weights::Weights(const std::string& folder, ModelInFiles model, std::optional<Precision> precision)
    : model_(std::move(model)), precision_(precision), folder_(folder) {
  open_weight_files(folder, files_);
  for (const WeightFile& file : files_) add(file);
}

void Weights::add(const WeightFile& file) {
  for (const TensorView& tensor : file.tensors()) {
    if (is_of_adapter(tensor.name))
      fail<FileError>(file.path(), ": tensor ", xgrad::detail::in_quotes(tensor.name),
                      " belongs to an adapter (LoRA), which is not supported; merge it into the weights");
    if (model_.quantized && tensor.name.ends_with("_zero_point"))
      fail<FileError>(file.path(), ": tensor ", xgrad::detail::in_quotes(tensor.name),
                      " must not be there, as config.json says that integers are symmetric");
    const std::string name = modern_name(tensor.name, model_.names);
    if (name.empty()) continue;
    for (const auto& [parameter, part, parts, transposed, in_pairs] : parts_of(model_.names.stored_as, name))
      enter(parameter, {&tensor, &file, part, parts, transposed, in_pairs});
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
  if (!same_shape(tensor.shape, whole)) refuse_shape(entry, whole);
  entry.taken = true;
  const std::size_t size = tensor.bytes.size() / entry.parts;
  return {tensor.name, tensor.dtype, shape, tensor.bytes.subspan(entry.part * size, size)};
}

template <class Read>
auto Weights::taken_columns(Entry& entry, const Shape& shape, const Read& read) {
  const Shape whole{shape[1], shape[0] * entry.parts};
  if (!same_shape(entry.tensor->shape, whole)) refuse_shape(entry, whole);
  entry.taken = true;
  return read(*entry.tensor, entry.part * shape[0], shape[0]);
}

void Weights::refuse_shape(const Entry& entry, const Shape& expected) const {
  fail<FileError>(entry.file->path(), ": tensor ", xgrad::detail::in_quotes(entry.tensor->name),
                  ": shape must be ", expected, " as config.json says, got ", entry.tensor->shape);
}

bool Weights::differ(const std::string& a, const std::string& b) const {
  const auto first = entries_.find(modern_name(a, model_.names)),
             second = entries_.find(modern_name(b, model_.names));
  if (first == entries_.end() || second == entries_.end()) return false;
  const TensorView &x = *first->second.tensor, &y = *second->second.tensor;
  return x.dtype != y.dtype || !same_shape(x.shape, y.shape) || !std::ranges::equal(x.bytes, y.bytes);
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

bool Weights::gives_integers(const std::string& name, const Shape& shape, Part part) const {
  const auto found = entries_.find(modern_name(name, model_.names));
  if (found == entries_.end() || part != Part::encoder || shape[1] > most_integers) return false;
  return precision_ ? *precision_ == Precision::int8 : has_integers(found->second);
}

Weight<float> Weights::take_integers(const std::string& parameter, const Shape& shape, Part part) {
  const std::string name = modern_name(parameter, model_.names);
  Entry& entry = entries_.at(name);
  if (!has_integers(entry)) return Weight<float>::int8(take<float>(parameter, shape, Start::normal, part));
  const TensorView tensor = taken(entry, shape);
  const auto* const values = reinterpret_cast<const std::int8_t*>(tensor.bytes.data());
  const std::vector<float> scales = take_scales(name, entry, shape);
  const auto weight = Weight<float>::int8({values, tensor.bytes.size()}, scales, shape);
  entry.file->release(tensor);
  return weight;
}

template <class T>
Weight<T> Weights::take_weight(const std::string& name, const Shape& shape, Part part) {
  if constexpr (std::is_same_v<T, float>) {
    if (gives_integers(name, shape, part)) return take_integers(name, shape, part);
  }
  return take_rows<T>(name, shape, part);
}

template <class T>
Weight<T> Weights::take_rows(const std::string& name, const Shape& shape, Part part) {
  const auto found = entries_.find(modern_name(name, model_.names));
  if (!model_.dtype || found == entries_.end())
    return Variable<T>(take<T>(name, shape, Start::normal, part), true);
  Entry& entry = found->second;
  if (!entry.transposed) {
    std::vector<std::uint16_t> bits = entry.file->bits(taken(entry, shape));
    if (is_paired(entry)) in_halves(shape, model_.paired_head, bits.data());
    return Weight<T>::bfloat16(std::move(bits), shape);
  }
  const auto columns = [&](const TensorView& tensor, std::size_t first, std::size_t count) {
    return entry.file->columns_as_bits(tensor, first, count);
  };
  return Weight<T>::bfloat16(taken_columns(entry, shape, columns), shape);
}

template <class T>
Array<T> Weights::take(const std::string& name, const Shape& shape, Start start, Part part) {
  const std::string modern = modern_name(name, model_.names);
  const auto found = entries_.find(modern);
  if (found != entries_.end()) {
    Entry& entry = found->second;
    const bool has_scales = entries_.contains(modern + "_scale");
    if (has_scales && entry.tensor->dtype != DType::I8)
      fail<FileError>(entry.file->path(), ": tensor ", xgrad::detail::in_quotes(entry.tensor->name),
                      ": dtype must be I8, as there are scales, got ", to_string(entry.tensor->dtype));
    if (entry.transposed && shape.size() == 2)
      return taken_columns(entry, shape, [&](const TensorView& tensor, std::size_t first, std::size_t count) {
        return entry.file->columns<T>(tensor, first, count);
      });
    const TensorView tensor = taken(entry, shape);
    if (!has_integers(entry) || shape.size() != 2) {
      Array<T> array = entry.file->array<T>(tensor);
      if (is_paired(entry)) in_halves(shape, model_.paired_head, array.data());
      return array;
    }
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
                      model_.told ? model_.told(tensors) : "");
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
  return xgrad::normal<T>(shape, 0, model_.initializer_range);
}

void Weights::forget(const std::string& prefix) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

void Weights::refuse_missing(const std::string& architecture) const {
  if (fresh_.empty()) return;
  fail<FileError>(folder_, ": must hold ", architecture, ", got ",
                  model_.architecture.empty() ? "a model" : model_.architecture, " without ",
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

#define XGRAD_INSTANTIATE(T)                                                      \
  template Array<T> Weights::take(const std::string&, const Shape&, Start, Part); \
  template Weight<T> Weights::take_rows(const std::string&, const Shape&, Part);  \
  template Weight<T> Weights::take_weight(const std::string&, const Shape&, Part);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained::detail
