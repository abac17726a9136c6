// Equations of einsum; the first byte chooses the ranks of the operands, the next ones their lengths
// seeds: tests/fuzz/seeds/einsum
#include <xgrad/base/error.hpp>
#include <xgrad/ops/product/einsum.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view equation = fuzz::text_of(data, size);
  const auto take = [&]() -> std::size_t {
    if (equation.empty()) return 0;
    const auto byte = static_cast<unsigned char>(equation.front());
    equation.remove_prefix(1);
    return byte;
  };
  std::size_t ranks = take();
  std::vector<xgrad::Variable<float>> operands;
  for (; ranks > 0; ranks /= 5) {
    xgrad::Shape shape;
    for (std::size_t axis = 0; axis < ranks % 5; ++axis) shape.push_back(take() % 4);
    operands.emplace_back(xgrad::Array<float>(shape, 1.0F), true);
  }
  fuzz::accepts<xgrad::ShapeError, xgrad::ValueError>([&] { einsum(equation, operands); });
  return 0;
}
