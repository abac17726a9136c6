#include "saved_model.hpp"

#include <algorithm>
#include <cstdint>

#include <xgrad/base/detail/text/parse.hpp>
#include <xgrad/files/training_checkpoint.hpp>

namespace apps {

xgrad::Metadata sizes_of(const xgrad::EncoderConfig& encoder) {
  return {{"d_model", std::to_string(encoder.d_model)},
          {"heads", std::to_string(encoder.heads)},
          {"d_ff", std::to_string(encoder.d_ff)},
          {"layers", std::to_string(encoder.layers)}};
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

SavedModel::SavedModel(const std::string& path) : path_(path), file_(path) {}

SavedModel::SavedModel(const std::string& path, const std::string& task) : SavedModel(path) {
  if (text("task") != task) fail("task", "'" + task + "'");
}

std::string SavedModel::task_of(const std::string& path) { return SavedModel(path).text("task"); }

const std::string& SavedModel::text(const std::string& key) const {
  const auto found = file_.metadata().find(key);
  if (found == file_.metadata().end()) fail(key, "there");
  return found->second;
}

std::size_t SavedModel::number(const std::string& key, std::size_t limit) const {
  const auto value = xgrad::detail::parsed<std::size_t>(text(key));
  if (!value || *value > limit) fail(key, "a number of at most " + std::to_string(limit));
  return *value;
}

std::vector<std::string> SavedModel::lines(const std::string& key) const {
  const std::string& all = text(key);
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    result.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

xgrad::EncoderConfig SavedModel::encoder() const {
  const xgrad::EncoderConfig config{.d_model = number("d_model", 4096),
                                    .heads = number("heads", 4096),
                                    .d_ff = number("d_ff", 4096),
                                    .layers = number("layers", 64)};
  const std::uint64_t held = weight_count();
  const std::uint64_t of_layer = std::uint64_t{config.d_model} * (4 * config.d_model + 2 * config.d_ff);
  if (std::max<std::size_t>(config.layers, 1) * of_layer > held)
    throw xgrad::FileError(path_ + ": a layer of the metadata's \"d_model\" and \"d_ff\" has at least " +
                           std::to_string(of_layer) + " weights, and there are " +
                           std::to_string(config.layers) + " of them, got a file with " +
                           std::to_string(held) + " weights");
  return config;
}

void SavedModel::check_weights(std::uint64_t count, const std::string& what) const {
  if (count > weight_count())
    throw xgrad::FileError(path_ + ": " + what + " have at least " + std::to_string(count) +
                           " weights, got a file with " + std::to_string(weight_count()));
}

xgrad::StateDict<float> SavedModel::weights() const {
  constexpr std::string_view prefix = "model.";  // the others of a checkpoint are the optimizer's
  const bool of_run = xgrad::is_checkpoint(file_.metadata());
  xgrad::StateDict<float> state;
  for (const xgrad::TensorView& tensor : file_.tensors()) {
    if (!of_run) {
      state[tensor.name] = xgrad::to_array<float>(tensor);
    } else if (tensor.name.starts_with(prefix)) {
      state[tensor.name.substr(prefix.size())] = xgrad::to_array<float>(tensor);
    }
  }
  file_.throw_if_changed();
  return state;
}

std::uint64_t SavedModel::weight_count() const {
  std::uint64_t held = 0;
  for (const xgrad::TensorView& tensor : file_.tensors()) held += xgrad::element_count(tensor.shape);
  return held;
}

void SavedModel::fail(const std::string& key, const std::string& what) const {
  throw xgrad::FileError(path_ + ": the metadata \"" + key + "\" must be " + what);
}

}  // namespace apps
