#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include <xgrad/models/module.hpp>

#include "protocol.hpp"

namespace bench {

/// Writes the parameters one after the other, and returns their names and shapes.
inline Weights save(const xgrad::Module<float>& model, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  nlohmann::json parameters = nlohmann::json::array();
  for (const auto& [name, parameter] : model.named_parameters()) {
    const xgrad::Array<float>& value = parameter.value();
    file.write(reinterpret_cast<const char*>(value.data()),
               static_cast<std::streamsize>(value.size() * sizeof(float)));
    parameters.push_back({{"name", name}, {"shape", parameter.shape()}});
  }
  file.close();
  if (!file) throw std::runtime_error("cannot write '" + path + "'");
  return {parameters};
}

}  // namespace bench
