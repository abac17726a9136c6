#include "checkpoint.hpp"

#include <string_view>

#include "../graph/random.hpp"

namespace xgrad {
namespace {

constexpr const char* format_key = "format";
constexpr const char* format = "xgrad checkpoint 1";
constexpr const char* random_key = "random_state";
constexpr std::string_view config_prefix = "config.", number_prefix = "numbers.";

/// All that changes, under the names that it has in a file.
template <class T>
struct Contents {
  StateDict<T> arrays;
  Numbers numbers;
  std::string random_state;
};

/// Adds entries under a prefix.
template <class Map>
void add(Map& all, const std::string& prefix, const Map& part) {
  for (const auto& [name, value] : part) all[prefix + name] = value;
}

/// Takes out the entries under a prefix.
template <class Map>
Map take(Map& all, std::string_view prefix) {
  Map part;
  for (auto it = all.lower_bound(std::string(prefix)); it != all.end() && it->first.starts_with(prefix);) {
    part[it->first.substr(prefix.size())] = std::move(it->second);
    it = all.erase(it);
  }
  return part;
}

template <class T>
Contents<T> contents_of(const TrainingParts<T>& parts) {
  Contents<T> contents;
  add(contents.arrays, "model.", parts.model.state_dict());
  const auto add_state = [&](const std::string& prefix, const OptimizerState<T>& state) {
    add(contents.arrays, prefix, state.arrays);
    add(contents.numbers, prefix, state.numbers);
  };
  add_state("optimizer.", parts.optimizer.state_dict());
  if (parts.average != nullptr) add_state("average.", parts.average->state_dict());
  if (parts.best != nullptr) add(contents.arrays, "best.", *parts.best);
  for (const auto& [name, part] : parts.others) add(contents.numbers, name + ".", part.get().state_dict());
  contents.random_state = get_rng_state();
  return contents;
}

template <class T>
void apply(const TrainingParts<T>& parts, Contents<T> contents) {
  parts.model.load_state_dict(take(contents.arrays, "model."));
  const auto take_state = [&](std::string_view prefix) {
    return OptimizerState<T>{take(contents.arrays, prefix), take(contents.numbers, prefix)};
  };
  parts.optimizer.load_state_dict(take_state("optimizer."));
  if (parts.average != nullptr) parts.average->load_state_dict(take_state("average."));
  if (parts.best != nullptr) *parts.best = take(contents.arrays, "best.");
  for (const auto& [name, part] : parts.others)
    part.get().load_state_dict(take(contents.numbers, name + "."));
  if (!contents.arrays.empty() || !contents.numbers.empty()) {
    const std::string& name =
        contents.arrays.empty() ? contents.numbers.begin()->first : contents.arrays.begin()->first;
    detail::fail<ValueError>("'", name, "' is unexpected");
  }
  set_rng_state(contents.random_state);
}

template <class T>
Contents<T> read(const SafetensorsFile& file) {
  Contents<T> contents;
  for (const TensorView& tensor : file.tensors()) {
    if (tensor.name.starts_with(number_prefix)) {
      const Array<double> number = to_array<double>(tensor);
      if (number.dimension() != 0) {
        detail::fail<ValueError>("'", tensor.name, "' must be one number, got shape ", tensor.shape);
      }
      contents.numbers[tensor.name.substr(number_prefix.size())] = number();
    } else if (tensor.dtype != dtype_of<T>) {
      detail::fail<ValueError>("'", tensor.name, "' must be ", to_string(dtype_of<T>), ", got ",
                               to_string(tensor.dtype));
    } else {
      contents.arrays[tensor.name] = to_array<T>(tensor);
    }
  }
  const auto random = file.metadata().find(random_key);
  contents.random_state = random == file.metadata().end() ? "" : random->second;
  return contents;
}

/// Throws ValueError where the run that the file is of was started with something else.
void check_config(const Metadata& saved, const Metadata& config) {
  const auto text = [](const Metadata& all, const std::string& key) {
    const auto found = all.find(key);
    return found == all.end() ? std::string("nothing") : "'" + found->second + "'";
  };
  Metadata all = saved;
  all.insert(config.begin(), config.end());
  for (const auto& [key, value] : all) {
    const std::string before = text(saved, key), now = text(config, key);
    if (before != now)
      detail::fail<ValueError>(key, " must be as in the checkpoint, ", before, ", got ", now);
  }
}

}  // namespace

template <class T>
void save_checkpoint(const std::string& path, const TrainingParts<T>& parts, std::size_t step,
                     const Metadata& config) {
  Contents<T> contents = contents_of(parts);
  contents.numbers["step"] = static_cast<double>(step);
  std::vector<TensorView> tensors;
  for (const auto& [name, array] : contents.arrays) tensors.push_back(view_of(name, array));
  for (const auto& [name, number] : contents.numbers) {
    tensors.push_back({std::string(number_prefix) + name, DType::F64, Shape{},
                       std::as_bytes(std::span<const double>(&number, 1))});
  }
  Metadata metadata{{format_key, format}, {random_key, contents.random_state}};
  add(metadata, std::string(config_prefix), config);
  write_safetensors(std::move(tensors), path, metadata);
}

template <class T>
std::size_t load_checkpoint(const std::string& path, const TrainingParts<T>& parts, const Metadata& config) {
  const SafetensorsFile file(path);
  Metadata metadata = file.metadata();
  if (metadata[format_key] != format)
    detail::fail<FileError>(path, ": must be a checkpoint of a training run");
  const Contents<T> before = contents_of(parts);
  try {
    check_config(take(metadata, config_prefix), config);
    Contents<T> contents = read<T>(file);
    if (!contents.numbers.contains("step")) detail::fail<ValueError>("'numbers.step' is missing");
    const std::size_t done = detail::whole_number("load_checkpoint", "step", contents.numbers, 0x1p53);
    contents.numbers.erase("step");
    apply(parts, std::move(contents));
    return done;
  } catch (const ValueError& error) {
    apply(parts, before);
    throw ValueError(path + ": " + error.what());
  }
}

template void save_checkpoint(const std::string&, const TrainingParts<float>&, std::size_t, const Metadata&);
template void save_checkpoint(const std::string&, const TrainingParts<double>&, std::size_t, const Metadata&);
template std::size_t load_checkpoint(const std::string&, const TrainingParts<float>&, const Metadata&);
template std::size_t load_checkpoint(const std::string&, const TrainingParts<double>&, const Metadata&);

}  // namespace xgrad
