#include <xgrad/ops/linalg/qr.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("qr", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"qr, Q",
       {{square(s)}},
       [](auto& a) { return qr(dominant(a[0])).Q; },
       [](auto& a) { return std::get<0>(linalg_qr(dominant(a[0]))); }},
  };
});

}  // namespace
}  // namespace bench
