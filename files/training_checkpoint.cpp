#include "training_checkpoint.hpp"

#include <mutex>
#include <string_view>
#include <utility>

#include "../base/error.hpp"
#include "../base/random.hpp"

namespace xgrad {
namespace {

constexpr const char* format_key = "format";
constexpr const char* format = "xgrad checkpoint 2";  // 1 had the base rates in the scheduler's state
constexpr const char* random_key = "random_state";
constexpr std::string_view config_prefix = "config.", number_prefix = "numbers.";

/// A whole training run.
class Run : public Stateful {
 public:
  Run(const TrainingParts& parts, std::size_t step) : step(step), parts_(parts) {
    for (const auto& [name, part] : parts) {
      if (name.empty() || name == "numbers" || name.find('.') != std::string::npos) {
        detail::fail<ValueError>(
            "checkpoint: a part's name must have no dot, and not be 'numbers' or empty, got '", name, "'");
      }
    }
  }

  std::size_t step;

 protected:
  void list_state(StateArchive& state) override {
    state.keep(step);
    state.number("step", step);
    for (const auto& [name, part] : parts_) part.list(state, name);
  }

 private:
  const TrainingParts& parts_;
};

TrainingState state_in(const SafetensorsFile& file) {
  TrainingState state;
  for (const TensorView& tensor : file.tensors()) {
    if (tensor.name.starts_with(number_prefix)) {
      const Array<double> number = to_array<double>(tensor);
      if (number.dimension() != 0) {
        detail::fail<ValueError>("'", tensor.name, "' must be one number, got shape ", tensor.shape);
      }
      state.numbers[tensor.name.substr(number_prefix.size())] = number();
    } else if (tensor.dtype == DType::F32) {
      state.floats[tensor.name] = to_array<float>(tensor);
    } else if (tensor.dtype == DType::F64) {
      state.doubles[tensor.name] = to_array<double>(tensor);
    } else {
      detail::fail<ValueError>("'", tensor.name, "' must be F32 or F64, got ", to_string(tensor.dtype));
    }
  }
  return state;
}

/// Throws ValueError where the run that the file is of was started with something else.
void check_config(const Metadata& metadata, const Metadata& config) {
  Metadata saved;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(config_prefix)) saved[key.substr(config_prefix.size())] = value;
  const auto text = [](const Metadata& all, const std::string& key) {
    const auto found = all.find(key);
    return found == all.end() ? std::string("nothing") : "'" + found->second + "'";
  };
  Metadata all = saved;
  all.insert(config.begin(), config.end());
  std::string wrong;
  for (const auto& [key, value] : all) {
    const std::string before = text(saved, key), now = text(config, key);
    if (before == now) continue;
    wrong += detail::join(
        {wrong.empty() ? "" : "; ", key, " must be as in the checkpoint, ", before, ", got ", now});
  }
  if (!wrong.empty()) throw ValueError(wrong);
}

std::size_t load(const std::string& path, const SafetensorsFile& file, const TrainingParts& parts,
                 const Metadata& config) {
  const auto metadata = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (!is_checkpoint(file.metadata()))
    detail::fail<FileError>(path, ": must be a checkpoint of a training run");
  if (metadata(format_key) != format)
    detail::fail<FileError>(path, ": must be of the format '", format, "', got '", metadata(format_key), "'");
  Run run(parts, 0);
  try {
    check_config(file.metadata(), config);
    const TrainingState state = state_in(file);
    file.throw_if_changed();
    Generator random;
    random.set_state(metadata(random_key));
    run.load_state_dict(state);
    Generator& generator = default_generator();  // what follows needs no memory: it cannot fail
    const std::lock_guard lock(generator.mutex());
    generator = random;
    return run.step;
  } catch (const ValueError& error) {
    throw ValueError(path + ": " + error.what());
  }
}

}  // namespace

bool is_checkpoint(const Metadata& metadata) {
  const auto found = metadata.find(format_key);
  return found != metadata.end() && found->second.starts_with("xgrad checkpoint");
}

void save_checkpoint(const TrainingParts& parts, const std::string& path, std::size_t step,
                     const Metadata& config, const Metadata& about) {
  const TrainingState state = Run(parts, step).state_dict();
  std::vector<TensorView> tensors;
  for (const auto& [name, array] : state.floats) tensors.push_back(view_of(name, array));
  for (const auto& [name, array] : state.doubles) tensors.push_back(view_of(name, array));
  for (const auto& [name, number] : state.numbers) {
    tensors.push_back({std::string(number_prefix) + name, DType::F64, Shape{},
                       std::as_bytes(std::span<const double>(&number, 1))});
  }
  Metadata metadata{{format_key, format}, {random_key, get_rng_state()}};
  for (const auto& [key, value] : config) metadata[std::string(config_prefix) + key] = value;
  metadata.insert(about.begin(), about.end());
  write_safetensors(std::move(tensors), path, metadata);
}

std::size_t load_checkpoint(const std::string& path, const TrainingParts& parts, const Metadata& config) {
  return load(path, SafetensorsFile(path), parts, config);
}

std::size_t load_checkpoint(const std::string& name, std::vector<std::byte> bytes, const TrainingParts& parts,
                            const Metadata& config) {
  return load(name, SafetensorsFile(name, std::move(bytes)), parts, config);
}

}  // namespace xgrad
