#pragma once

// What bench_precision sends to the processes of the libraries, besides what bench_encoder does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol.hpp"

namespace bench {

/// The folder of an encoder, and texts of so many tokens each, padded to the longest.
struct Folder {
  std::string folder, library, precision;
  std::vector<std::size_t> lengths;
  std::vector<std::int64_t> ids;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Folder, folder, library, precision, lengths, ids)

/// An encoder that was started.
struct Vectors {
  std::string library;          ///< and its version
  std::vector<double> vectors;  ///< the mean of each text's hidden states
  double start;                 ///< CPU time until these were there, in ms
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Vectors, library, vectors, start)

}  // namespace bench
