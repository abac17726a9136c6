// Reads a value whose last handle is gone: AddressSanitizer must report it, also where xgrad is compiled
// without.
#include <cstdio>

#include <xgrad/graph/variable.hpp>
#include <xgrad/ops/pointwise/arithmetic.hpp>

int main() {
  const float* elements;
  {
    const xgrad::Variable<float> y = xgrad::Variable<float>({1.0f, 2.0f}) * 2.0f;
    elements = y.value().data();
  }
  std::printf("%g\n", static_cast<double>(elements[0]));
}
