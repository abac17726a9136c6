#pragma once

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "../../base/detail/by_name.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Frequencies divided by factor (Chen et al. 2023, arXiv:2306.15595).
struct LinearScaling {
  double factor = 1;
};

/// theta grows with sequences longer than max_positions, n: theta (factor n / max_positions - factor +
/// 1)^(dim / (dim - 2)).
struct DynamicScaling {
  detail::ByName by_name = {};
  double factor = 1;
  std::size_t max_positions = 0;
};

/// Frequencies of wavelengths above original_max_positions / low_freq_factor are divided by factor, those
/// below original_max_positions / high_freq_factor stay, and those between are interpolated (Llama 3.1,
/// arXiv:2407.21783).
struct Llama3Scaling {
  detail::ByName by_name = {};
  double factor = 8;
  double low_freq_factor = 1, high_freq_factor = 4;
  std::size_t original_max_positions = 8192;
};

/// Frequencies that turn more than beta_fast times in original_max_positions stay, those that turn less than
/// beta_slow times are divided by factor, and those between lie on a ramp; cos and sin are multiplied by
/// attention_factor, if absent 0.1 mscale ln(factor) + 1, over the same with mscale_all_dim where both are
/// given (YaRN, Peng et al. 2023, arXiv:2309.00071).
struct YarnScaling {
  detail::ByName by_name = {};
  double factor = 1;
  std::size_t original_max_positions = 0;
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;  ///< the ends of the ramp are whole numbers
  std::optional<double> attention_factor = {};
  double mscale = 0, mscale_all_dim = 0;  ///< 0: not given
};

/// Frequencies are divided by a factor each: short_factors up to original_max_positions, long_factors in
/// longer sequences; cos and sin are multiplied by attention_factor, if absent sqrt(1 + ln(factor) /
/// ln(original_max_positions)) (Ding et al. 2024, arXiv:2402.13753).
struct LongScaling {
  detail::ByName by_name = {};
  std::vector<double> short_factors, long_factors;  ///< dim / 2 each
  double factor = 1;
  std::size_t original_max_positions = 0;
  std::optional<double> attention_factor = {};
};

/// The angles of rotary(): position times theta^(-2 i / dim) for pair i, scaled for longer sequences.
struct RotaryConfig {
  detail::ByName by_name = {};
  std::size_t dim = 0;  ///< how many elements of a head are rotated, an even number
  double theta = 10000;
  std::variant<std::monostate, LinearScaling, DynamicScaling, Llama3Scaling, YarnScaling, LongScaling>
      scaling = {};
};

/// The cosines and sines of angles, (length, dim / 2) each.
template <class T>
struct RotaryTables {
  Variable<T> cos, sin;
};

/// The tables of the positions from `first` on. Throws ValueError for a dim that is 0 or odd, a theta or a
/// factor that is not a finite number above 0, and a scaling without the sizes that it needs. Computed in T,
/// as Hugging Face's models do.
template <class T>
RotaryTables<T> rotary_tables(const RotaryConfig& config, std::size_t length, std::size_t first = 0);

}  // namespace xgrad
