#pragma once

// What all models in LibTorch need that are measured.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <nlohmann/json.hpp>

namespace bench {

inline std::int64_t count(std::size_t size) { return static_cast<std::int64_t>(size); }

/// Reads the parameters that xgrad saved, in their order. Throws std::runtime_error if they do not fit.
inline void load(const std::vector<torch::Tensor>& parameters, const nlohmann::json& saved,
                 const std::string& path) {
  if (saved.size() != parameters.size()) {
    throw std::runtime_error("the model has " + std::to_string(parameters.size()) + " parameters, the file " +
                             std::to_string(saved.size()));
  }
  std::ifstream file(path, std::ios::binary);
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (parameters[i].sizes().vec() != saved[i].at("shape").get<std::vector<std::int64_t>>()) {
      throw std::runtime_error("the model has no parameter like " + saved[i].dump() + " there");
    }
    file.read(static_cast<char*>(parameters[i].data_ptr()),
              static_cast<std::streamsize>(parameters[i].nbytes()));
  }
  if (!file) throw std::runtime_error("cannot read '" + path + "'");
}

/// Faster than zero_grad(), which would fill zeros in.
inline void forget_gradients(std::vector<torch::Tensor>& parameters) {
  for (torch::Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

/// With the instructions that its own kernels use, such as AVX2.
inline std::string libtorch_version() {
  std::istringstream config(at::show_config());
  const std::string key = "CPU capability usage: ";
  std::string instructions = "instructions unknown";
  for (std::string line; std::getline(config, line);) {
    if (const std::size_t at = line.find(key); at != std::string::npos)
      instructions = line.substr(at + key.size());
  }
  return "LibTorch " TORCH_VERSION ", " + instructions;
}

}  // namespace bench
