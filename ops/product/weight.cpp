#include "weight.hpp"

#include <algorithm>
#include <cmath>

#include "../../graph/detail/leaf.hpp"
#include "../../kernels/low_precision/bfloat16.hpp"
#include "detail/reduced_rows.hpp"

namespace xgrad {
namespace {

void check_int8(const Shape& shape) {
  if (shape.size() != 2 || shape[1] > kernels::most_int8_cols)
    detail::fail<ShapeError>("Weight: int8 numbers must be (out, in) with in of at most ",
                             kernels::most_int8_cols, ", got ", shape);
}

std::shared_ptr<const detail::ReducedRows> int8_rows(std::span<const std::int8_t> integers,
                                                     std::span<const float> scales, std::size_t in) {
  return std::make_shared<const detail::ReducedRows>(kernels::Int8Matrix(integers, scales, in));
}

/// Null unless the weight is a parameter.
template <class T>
detail::LeafNode<T>* leaf_node(const Variable<T>& variable) {
  if (!variable.defined() || !detail::Access<T>::node(variable) || !variable.is_leaf()) return nullptr;
  return static_cast<detail::LeafNode<T>*>(&*detail::Access<T>::node(variable));
}

}  // namespace

const char* detail::weight_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::I8:
      return "int8";
    case DType::BF16:
      return "bfloat16";
    case DType::F64:
      return "float64";
    default:
      return "float32";
  }
}

template <class T>
Weight<T> Weight<T>::bfloat16(const Array<float>& array) {
  std::vector<std::uint16_t> bits(array.size());
  std::transform(array.data(), array.data() + array.size(), bits.begin(),
                 [](float x) { return static_cast<std::uint16_t>(kernels::rounded_bits(x) >> 16); });
  return bfloat16(std::move(bits), array.shape());
}

template <class T>
Weight<T> Weight<T>::bfloat16(std::vector<std::uint16_t> bits, const Shape& shape) {
  if (shape.size() != 2 || bits.size() != element_count(shape))
    detail::fail<ShapeError>("Weight: bfloat16 numbers must fit a shape (out, in), got ", bits.size(),
                             " and ", shape);
  return Weight(std::make_shared<const detail::ReducedRows>(std::move(bits), shape));
}

template <class T>
Weight<T> Weight<T>::int8(const Array<float>& array) requires std::same_as<T, float> {
  check_int8(array.shape());
  const std::size_t out = array.shape(0), in = array.shape(1);
  const kernels::Int8Rows rows({array.data(), out, in}, kernels::Int8Range::symmetric);
  const std::span<const float> scales(rows.scales(), out);
  const auto wrong = std::find_if(scales.begin(), scales.end(), [](float s) { return std::isnan(s); });
  if (wrong != scales.end())
    detail::fail<ValueError>("Weight: all numbers must be finite for int8, got another in row ",
                             wrong - scales.begin());
  return Weight(int8_rows(rows.values(), scales, in));
}

template <class T>
Weight<T> Weight<T>::int8(std::span<const std::int8_t> integers, std::span<const float> scales,
                          const Shape& shape) requires std::same_as<T, float> {
  check_int8(shape);
  if (scales.size() != shape[0] || integers.size() != shape[0] * shape[1])
    detail::fail<ShapeError>("Weight: integers and scales must fit the shape ", shape, ", got ",
                             integers.size(), " and ", scales.size());
  return Weight(int8_rows(integers, scales, shape[1]));
}

template <class T>
DType Weight<T>::reduced_dtype() const noexcept {
  return reduced_->dtype();
}

template <class T>
const Shape& Weight<T>::reduced_shape() const noexcept {
  return reduced_->shape();
}

template <class T>
Array<T> Weight<T>::values() const {
  if (is_trainable()) return variable_.value();
  Array<T> numbers = Array<T>::from_shape(shape());
  if (const std::vector<std::uint16_t>* const halves = reduced_->bfloat16()) {
    kernels::from_bfloat16(halves->data(), numbers.data(), halves->size());
  } else {
    const std::vector<std::int8_t> all = integers();
    const std::vector<float> factors = scales();
    const std::size_t in = numbers.shape(1);
    for (std::size_t i = 0; i < all.size(); ++i)
      numbers.data()[i] = static_cast<T>(all[i]) * static_cast<T>(factors[i / in]);
  }
  return numbers;
}

template <class T>
std::span<const std::uint16_t> Weight<T>::bits() const& {
  check_dtype(DType::BF16);
  return *reduced_->bfloat16();
}

template <class T>
std::vector<std::int8_t> Weight<T>::integers() const {
  check_dtype(DType::I8);
  return reduced_->int8()->values();
}

template <class T>
std::vector<float> Weight<T>::scales() const {
  check_dtype(DType::I8);
  return reduced_->int8()->scales();
}

template <class T>
void Weight<T>::check_dtype(DType wanted) const {
  if (dtype() != wanted)
    detail::fail<ValueError>("Weight: dtype must be ", detail::weight_dtype_name(wanted), ", got ",
                             detail::weight_dtype_name(dtype()));
}

template <class T>
std::shared_ptr<const void> detail::WeightAccess<T>::packed(const Weight<T>& weight) {
  LeafNode<T>* const leaf = leaf_node(weight.variable_);
  return leaf != nullptr ? leaf->packed.of(Access<T>::value(weight.variable_)->version) : nullptr;
}

template <class T>
void detail::WeightAccess<T>::keep_packed(const Weight<T>& weight, std::shared_ptr<const void> form) {
  LeafNode<T>* const leaf = leaf_node(weight.variable_);
  if (leaf != nullptr) leaf->packed.keep(std::move(form), Access<T>::value(weight.variable_)->version);
}

template struct detail::WeightAccess<float>;
template struct detail::WeightAccess<double>;
template class Weight<float>;
template class Weight<double>;

}  // namespace xgrad
