#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

namespace bench {

/// The sizes of the encoder that is measured and of its batch.
struct Size {
  std::size_t vocab, seq, batch, d_model, heads, d_ff, layers, classes;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Size, vocab, seq, batch, d_model, heads, d_ff, layers, classes)

}  // namespace bench
