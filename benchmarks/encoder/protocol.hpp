#pragma once

// What bench_encoder sends to the processes of the libraries, and what they answer.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// The sizes of the encoder that is measured and of its batch.
struct Size {
  std::size_t vocab, seq, batch, d_model, heads, d_ff, layers, classes;
  double dropout = 0;  ///< in training steps: of attention weights, inner activations and the residual stream
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Size, vocab, seq, batch, d_model, heads, d_ff, layers, classes, dropout)

/// xgrad's model and its batch.
struct Model {
  std::string core;       ///< that OpenBLAS chose its kernels for
  std::string precision;  ///< of matrix products, in use
  std::size_t params;
  double loss;
  std::vector<std::int64_t> ids, labels;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Model, core, precision, params, loss, ids, labels)

/// A file of xgrad's parameters, float32 one after the other.
struct Weights {
  nlohmann::json parameters;  ///< their names and shapes
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Weights, parameters)

/// The same model in another library.
struct PeerModel {
  std::string library;  ///< and its version
  double loss;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PeerModel, library, loss)

/// A file in ONNX Runtime.
struct OnnxFile {
  std::string library;         ///< and its version
  std::vector<double> output;  ///< the first one, of the inputs that it was started with
  double start;                ///< CPU time of loading it, in ms
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OnnxFile, library, output, start)

/// Times of batches of calls, in ms per call.
struct Times {
  std::vector<double> wall, cpu;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Times, wall, cpu)

}  // namespace bench
