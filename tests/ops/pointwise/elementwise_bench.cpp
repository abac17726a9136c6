#include <xgrad/ops/pointwise/elementwise.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("elementwise", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"exp", {{s.flat}}, [](auto& a) { return exp(a[0]); }},
      {"log", {positive(s.flat)}, [](auto& a) { return log(a[0]); }},
      {"sqrt", {positive(s.flat)}, [](auto& a) { return sqrt(a[0]); }},
      {"rsqrt", {positive(s.flat)}, [](auto& a) { return rsqrt(a[0]); }},
      {"reciprocal", {positive(s.flat)}, [](auto& a) { return reciprocal(a[0]); }},
      {"square", {{s.flat}}, [](auto& a) { return square(a[0]); }},
      {"abs", {{s.flat}}, [](auto& a) { return abs(a[0]); }},
      {"tanh", {{s.flat}}, [](auto& a) { return tanh(a[0]); }},
      {"sigmoid", {{s.flat}}, [](auto& a) { return sigmoid(a[0]); }},
      {"erf", {{s.flat}}, [](auto& a) { return erf(a[0]); }},
      {"relu", {{s.flat}}, [](auto& a) { return relu(a[0]); }},
      {"silu", {{s.flat}}, [](auto& a) { return silu(a[0]); }},
      {"softplus", {{s.flat}}, [](auto& a) { return softplus(a[0]); }},
      {"leaky_relu", {{s.flat}}, [](auto& a) { return leaky_relu(a[0], 0.1); }},
      {"elu", {{s.flat}}, [](auto& a) { return elu(a[0]); }},
      {"log_sigmoid", {{s.flat}}, [](auto& a) { return log_sigmoid(a[0]); }},
      {"clamp", {{s.flat}}, [](auto& a) { return clamp(a[0], -1.0f, 1.0f); }},
      {"gelu none", {{s.flat}}, [](auto& a) { return gelu(a[0]); }},
      {"gelu tanh",
       {{s.flat}},
       [](auto& a) { return gelu(a[0], xgrad::Gelu::tanh); },
       [](auto& a) { return gelu(a[0], "tanh"); }},
  };
});

}  // namespace
}  // namespace bench
