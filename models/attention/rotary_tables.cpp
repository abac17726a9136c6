#include "rotary_tables.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "../../base/error.hpp"

namespace xgrad {
namespace {

using detail::fail;

/// What the tables are made from: a frequency for each pair, and a factor of cos and sin.
template <class T>
struct Frequencies {
  std::vector<T> of_pairs;
  double attention_factor = 1;
};

/// theta^(2 i / dim) for each pair.
template <class T>
std::vector<T> wavelengths(double theta, std::size_t dim) {
  std::vector<T> all(dim / 2);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = std::pow(static_cast<T>(theta), static_cast<T>(2 * i) / static_cast<T>(dim));
  return all;
}

template <class T>
Frequencies<T> unscaled(double theta, std::size_t dim) {
  Frequencies<T> found{wavelengths<T>(theta, dim)};
  for (T& one : found.of_pairs) one = 1 / one;
  return found;
}

void check_positions(const char* scaling, std::size_t positions) {
  if (positions == 0)
    fail<ValueError>("rotary_tables: ", scaling, " needs the positions of its training, got 0");
}

void check_positive(const char* name, double value) {
  if (!(value > 0 && std::isfinite(value)))
    fail<ValueError>("rotary_tables: ", name, " must be a finite number above 0, got ", value);
}

template <class T>
Frequencies<T> frequencies(const RotaryConfig& config, std::monostate, std::size_t) {
  return unscaled<T>(config.theta, config.dim);
}

template <class T>
Frequencies<T> frequencies(const RotaryConfig& config, const LinearScaling& scaling, std::size_t) {
  check_positive("the factor of LinearScaling", scaling.factor);
  Frequencies<T> found = unscaled<T>(config.theta, config.dim);
  for (T& one : found.of_pairs) one /= static_cast<T>(scaling.factor);
  return found;
}

template <class T>
Frequencies<T> frequencies(const RotaryConfig& config, const DynamicScaling& scaling, std::size_t length) {
  check_positions("DynamicScaling", scaling.max_positions);
  check_positive("the factor of DynamicScaling", scaling.factor);
  if (config.dim == 2) fail<ValueError>("rotary_tables: DynamicScaling needs a dim above 2, got 2");
  const auto dim = static_cast<double>(config.dim), most = static_cast<double>(scaling.max_positions);
  const double times =
      scaling.factor * std::max(static_cast<double>(length), most) / most - (scaling.factor - 1);
  return unscaled<T>(config.theta * std::pow(times, dim / (dim - 2)), config.dim);
}

template <class T>
Frequencies<T> frequencies(const RotaryConfig& config, const Llama3Scaling& scaling, std::size_t) {
  check_positions("Llama3Scaling", scaling.original_max_positions);
  check_positive("the factor of Llama3Scaling", scaling.factor);
  check_positive("the low_freq_factor of Llama3Scaling", scaling.low_freq_factor);
  check_positive("the high_freq_factor of Llama3Scaling", scaling.high_freq_factor);
  Frequencies<T> found = unscaled<T>(config.theta, config.dim);
  const auto positions = static_cast<double>(scaling.original_max_positions);
  const auto factor = static_cast<T>(scaling.factor);
  for (T& one : found.of_pairs) {
    const T wavelength = static_cast<T>(2 * std::numbers::pi) / one;
    if (wavelength > static_cast<T>(positions / scaling.low_freq_factor)) {
      one /= factor;
    } else if (!(wavelength < static_cast<T>(positions / scaling.high_freq_factor))) {
      const T share = (static_cast<T>(positions) / wavelength - static_cast<T>(scaling.low_freq_factor)) /
                      static_cast<T>(scaling.high_freq_factor - scaling.low_freq_factor);
      one = (1 - share) * one / factor + share * one;
    }
  }
  return found;
}

/// 0.1 mscale ln(scale) + 1.
double yarn_mscale(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

template <class T>
Frequencies<T> frequencies(const RotaryConfig& config, const YarnScaling& scaling, std::size_t) {
  check_positions("YarnScaling", scaling.original_max_positions);
  check_positive("the factor of YarnScaling", scaling.factor);
  check_positive("the beta_fast of YarnScaling", scaling.beta_fast);
  check_positive("the beta_slow of YarnScaling", scaling.beta_slow);
  Frequencies<T> found{wavelengths<T>(config.theta, config.dim)};
  const auto dim = static_cast<double>(config.dim);
  const auto dim_of_turns = [&](double turns) {
    return dim *
           std::log(static_cast<double>(scaling.original_max_positions) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(config.theta));
  };
  double low = dim_of_turns(scaling.beta_fast), high = dim_of_turns(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < found.of_pairs.size(); ++i) {
    const T wavelength = found.of_pairs[i];
    const T ramp = (static_cast<T>(i) - static_cast<T>(low)) / static_cast<T>(high - low);
    const T kept = 1 - std::clamp<T>(ramp, 0, 1);
    found.of_pairs[i] =
        1 / (static_cast<T>(scaling.factor) * wavelength) * (1 - kept) + 1 / wavelength * kept;
  }
  const bool both = scaling.mscale != 0 && scaling.mscale_all_dim != 0;
  const double usual =
      both ? yarn_mscale(scaling.factor, scaling.mscale) / yarn_mscale(scaling.factor, scaling.mscale_all_dim)
           : yarn_mscale(scaling.factor, 1);
  found.attention_factor = scaling.attention_factor.value_or(usual);
  return found;
}

template <class T>
Frequencies<T> frequencies(const RotaryConfig& config, const LongScaling& scaling, std::size_t length) {
  check_positions("LongScaling", scaling.original_max_positions);
  for (const std::vector<double>* const factors : {&scaling.short_factors, &scaling.long_factors}) {
    if (factors->size() != config.dim / 2)
      fail<ValueError>("rotary_tables: LongScaling needs dim / 2 = ", config.dim / 2, " factors, got ",
                       factors->size());
    for (const double factor : *factors) check_positive("a factor of LongScaling", factor);
  }
  const std::vector<double>& factors =
      length > scaling.original_max_positions ? scaling.long_factors : scaling.short_factors;
  Frequencies<T> found{wavelengths<T>(config.theta, config.dim)};
  for (std::size_t i = 0; i < factors.size(); ++i)
    found.of_pairs[i] = 1 / (static_cast<T>(factors[i]) * found.of_pairs[i]);
  const double usual = scaling.factor <= 1
                           ? 1.0
                           : std::sqrt(1 + std::log(scaling.factor) /
                                               std::log(static_cast<double>(scaling.original_max_positions)));
  found.attention_factor = scaling.attention_factor.value_or(usual);
  return found;
}

}  // namespace

template <class T>
RotaryTables<T> rotary_tables(const RotaryConfig& config, std::size_t length, std::size_t first) {
  if (config.dim == 0 || config.dim % 2 != 0)
    fail<ValueError>("rotary_tables: dim must be an even number above 0, got ", config.dim);
  check_positive("theta", config.theta);
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  if (length > most - first)
    fail<ValueError>("rotary_tables: first + length must be at most ", most, ", got ", first, " and ",
                     length);
  detail::check_count("rotary_tables", Shape{std::max<std::size_t>(length, 1), config.dim / 2});
  const Frequencies<T> found = std::visit(
      [&](const auto& scaling) { return frequencies<T>(config, scaling, first + length); }, config.scaling);
  check_positive("attention_factor", found.attention_factor);
  const std::size_t pairs = found.of_pairs.size();
  const auto factor = static_cast<T>(found.attention_factor);
  Array<T> cos = Array<T>::from_shape({length, pairs}), sin = Array<T>::from_shape({length, pairs});
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const T angle = found.of_pairs[i % pairs] * static_cast<T>(first + i / pairs);
    cos.data()[i] = std::cos(angle) * factor;
    sin.data()[i] = std::sin(angle) * factor;
  }
  return {Variable<T>(std::move(cos)), Variable<T>(std::move(sin))};
}

template RotaryTables<float> rotary_tables(const RotaryConfig&, std::size_t, std::size_t);
template RotaryTables<double> rotary_tables(const RotaryConfig&, std::size_t, std::size_t);

}  // namespace xgrad
