#pragma once

// What bench_layers sends to the processes of the libraries, besides what bench_encoder does.

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// A model that is measured.
struct TrainedModel {
  std::string library;  ///< and its version, or the processor that xgrad's OpenBLAS chose its kernels for
  std::size_t params;
  std::vector<double> losses;  ///< of the first two steps
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainedModel, library, params, losses)

}  // namespace bench
