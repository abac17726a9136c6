#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("reductions", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"sum", {{s.flat}}, [](auto& a) { return sum(a[0]); }},
      {"sum over last axis", {{s.matrix}}, [](auto& a) { return sum(a[0], {-1}); }},
      {"sum over first axis", {{s.matrix}}, [](auto& a) { return sum(a[0], {0}); }},
      {"mean", {{s.flat}}, [](auto& a) { return mean(a[0]); }},
      {"amax over last axis", {{s.matrix}}, [](auto& a) { return amax(a[0], {-1}); }},
      {"amax over first axis", {{s.matrix}}, [](auto& a) { return amax(a[0], {0}); }},
      {"amin over last axis", {{s.matrix}}, [](auto& a) { return amin(a[0], {-1}); }},
      {"amin over first axis", {{s.matrix}}, [](auto& a) { return amin(a[0], {0}); }},
      {"logsumexp over last axis", {{s.matrix}}, [](auto& a) { return logsumexp(a[0], {-1}); }},
      {"logsumexp over first axis", {{s.matrix}}, [](auto& a) { return logsumexp(a[0], {0}); }},
      {"var", {{s.flat}}, [](auto& a) { return var(a[0]); }},
      {"var over last axis",
       {{s.matrix}},
       [](auto& a) { return var(a[0], xgrad::Dims{-1}); },
       [](auto& a) { return var(a[0], {-1}, /*unbiased=*/true); }},
      {"std over last axis",
       {{s.matrix}},
       [](auto& a) { return xgrad::std(a[0], xgrad::Dims{-1}); },
       [](auto& a) { return a[0].std({-1}, /*unbiased=*/true); }},
      {"norm", {{s.flat}}, [](auto& a) { return norm(a[0], 2); }},
      {"norm over last axis",
       {{s.matrix}},
       [](auto& a) { return norm(a[0], 2, {-1}); },
       [](auto& a) { return a[0].norm(2, {-1}); }},
      {"prod", {{s.flat, 0.9, 1.1}}, [](auto& a) { return prod(a[0]); }},
      {"prod over last axis", {{s.matrix, 0.9, 1.1}}, [](auto& a) { return prod(a[0], -1); }},
      {"prod over first axis", {{s.matrix, 0.9, 1.1}}, [](auto& a) { return prod(a[0], 0); }},
  };
});

}  // namespace
}  // namespace bench
