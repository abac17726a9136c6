#include "op.hpp"

#include <algorithm>
#include <cmath>

namespace xgrad_tests {
namespace {

using MakeRows = std::vector<Op> (*)();

/// Of each header.
std::vector<MakeRows>& headers() {
  static std::vector<MakeRows> all;
  return all;
}

}  // namespace

Array<double> draw(const Input& input, std::mt19937_64& random) {
  const double step = (input.range.high - input.range.low) * 0x1p-64;
  Array<double> x = Array<double>::from_shape(input.shape);
  for (double& element : x.storage()) {
    do {
      element = static_cast<float>(input.range.low + step * static_cast<double>(random()));
    } while (std::abs(element) < input.range.gap);
  }
  return x;
}

Rows::Rows(MakeRows rows) { headers().push_back(rows); }

const std::vector<Op>& op_table() {
  static const std::vector<Op> table = [] {
    std::vector<Op> all;
    for (const MakeRows rows : headers()) {
      for (Op& op : rows()) all.push_back(std::move(op));
    }
    std::sort(all.begin(), all.end(), [](const Op& a, const Op& b) { return a.name < b.name; });
    return all;
  }();
  return table;
}

Variable<float> x(const Shape& shape) { return Variable<float>(Array<float>(shape, 1.0f), true); }

Mask mask_of(const Shape& shape, std::initializer_list<int> elements) {
  Mask mask = Mask::from_shape(shape);
  std::transform(elements.begin(), elements.end(), mask.data(), [](int element) { return element != 0; });
  return mask;
}

Ids ids_of(const Shape& shape, std::initializer_list<std::int64_t> elements) {
  Ids ids = Ids::from_shape(shape);
  std::copy(elements.begin(), elements.end(), ids.data());
  return ids;
}

Mask scattered_mask(const Shape& shape) {
  Mask mask = Mask::from_shape(shape);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = random() % 3 > 0;
  return mask;
}

Ids scattered_ids(const Shape& shape, std::size_t length) {
  Ids ids = Ids::from_shape(shape);
  std::mt19937 random(2);
  for (std::int64_t& id : ids.storage()) id = static_cast<std::int64_t>(random() % length);
  return ids;
}

}  // namespace xgrad_tests
