#pragma once

// Compares changed logits with what Hugging Face's processors gave, for tests and programs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/generation/logits_processors.hpp>

#include "../temporary_folder.hpp"
#include "golden_result.hpp"
#include "json_file.hpp"

namespace xgrad_tests {

namespace processor_goldens_detail {

using nlohmann::json;

/// null is -infinity.
inline std::vector<float> logits_of(const json& row) {
  std::vector<float> logits;
  for (const json& one : row)
    logits.push_back(one.is_null() ? -std::numeric_limits<float>::infinity() : one.get<float>());
  return logits;
}

inline bool is_near(float got, float expected) {
  return got == expected || std::abs(got - expected) <= 1e-6F * std::max(1.0F, std::abs(expected));
}

/// The options are read as a generation_config.json.
inline std::string compare_processors(const json& expected) {
  const TemporaryFolder folder;
  folder.write("generation_config.json", entry(expected, "options").dump());
  const auto options = xgrad::generation::GenerationOptions::from_folder(folder.path(""));
  const auto order = entry_as<std::vector<std::string>>(expected, "order");
  if (xgrad::generation::names_of_processors(options) != order)
    return "the order must be " + json(order).dump();
  const json& rows = list_entry(expected, "logits");
  const bool is_padded = entry_as<std::string>(expected, "name").find("left padding") != std::string::npos;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto tokens = as<std::vector<std::int64_t>>(list_entry(expected, "input_ids")[row], "input_ids");
    auto prompt_length = entry_as<std::size_t>(expected, "prompt_length");
    while (is_padded && tokens.front() == 0) {
      tokens.erase(tokens.begin());
      --prompt_length;
    }
    std::vector<float> logits = logits_of(rows[row]);
    xgrad::generation::process_logits<float>(options, tokens, prompt_length, logits);
    const std::vector<float> processed = logits_of(list_entry(expected, "processed", rows.size())[row]);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!is_near(logits[i], processed.at(i)))
        return "logit " + std::to_string(i) + " of row " + std::to_string(row) + " must be " +
               std::to_string(processed[i]) + ", got " + std::to_string(logits[i]);
    }
  }
  return "";
}

}  // namespace processor_goldens_detail

/// Compares the cases of a processors.json.
inline std::vector<GoldenResult> processor_goldens(const std::string& path) {
  const nlohmann::json file = read_json(path);
  std::vector<GoldenResult> results;
  for (const nlohmann::json& expected : list_entry(file, "cases")) {
    std::string problem;
    try {
      problem = processor_goldens_detail::compare_processors(expected);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    results.push_back({entry_as<std::string>(expected, "name"), problem});
  }
  return results;
}

}  // namespace xgrad_tests
