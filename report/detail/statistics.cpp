#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "array_json.hpp"

namespace xgrad::detail {
namespace {

struct Sums {
  std::size_t finite = 0, nonfinite = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0, squares = 0;
};

template <class T>
Sums sums_of(const Array<T>& array) {
  Sums sums;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto x = static_cast<double>(array.data()[i]);
    if (!std::isfinite(x)) {
      ++sums.nonfinite;
      continue;
    }
    ++sums.finite;
    sums.low = std::min(sums.low, x);
    sums.high = std::max(sums.high, x);
    sums.sum += x;
    sums.squares += x * x;
  }
  return sums;
}

template <class T>
JsonTree json_of(const Sums& sums) {
  const auto count = static_cast<double>(sums.finite);
  const auto number = [](double x) { return number_json(static_cast<T>(x)); };
  JsonTree all{{"min", number(sums.low)},
               {"max", number(sums.high)},
               {"mean", number(sums.sum / count)},
               {"rms", number(std::sqrt(sums.squares / count))}};
  if (sums.nonfinite > 0) all["nonfinite"] = sums.nonfinite;
  return all;
}

}  // namespace

template <class T>
JsonTree statistics_json(const Array<T>& array) {
  return json_of<T>(sums_of(array));
}

template <class T>
JsonTree histogram_json(const Array<T>& array) {
  const Sums sums = sums_of(array);
  constexpr std::size_t bins = 32;
  std::vector<std::size_t> counts(bins);
  const double width = sums.high / bins - sums.low / bins;  // the difference itself may overflow
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto x = static_cast<double>(array.data()[i]);
    if (!std::isfinite(x)) continue;
    const double place = width > 0 ? x / width - sums.low / width : 0;
    ++counts[std::min(static_cast<std::size_t>(place), bins - 1)];
  }
  JsonTree all = json_of<T>(sums);
  all.update({{"norm", number_json(std::sqrt(sums.squares))}, {"counts", counts}});
  return all;
}

template JsonTree statistics_json(const Array<float>&);
template JsonTree statistics_json(const Array<double>&);
template JsonTree histogram_json(const Array<float>&);
template JsonTree histogram_json(const Array<double>&);

}  // namespace xgrad::detail
