// What there is to test of comparisons.
#include <xgrad/ops/pointwise/comparisons.hpp>

#include <gtest/gtest.h>

#include <xgrad/ops/index/where.hpp>

#include "../common/pointwise.hpp"

namespace xgrad_tests::comparisons_rows {

const Rows rows([] {
  Op op = arithmetic_op(
      "comparisons", "gt", [](const auto& x) { return where(gt(x[0], x[1]), x[0], x[1]); },
      [](double a, double b) { return std::max(a, b); });
  op.passes_nan_on = false;  // a comparison with it is false
  return std::vector<Op>{op};
});

template <class T>
Variable<T> of_mask(const Mask& mask) {
  return Array<T>(xt::cast<T>(mask));
}

#define XGRAD_COMPARED(name)                                                               \
  {                                                                                        \
#name, [] < class T>(const Call <T>& c) { return of_mask<T>(name(c.x(), second(c))); } \
  }

const Conformance conformance{XGRAD_COMPARED(eq), XGRAD_COMPARED(ne), XGRAD_COMPARED(lt),
                              XGRAD_COMPARED(le), XGRAD_COMPARED(gt), XGRAD_COMPARED(ge)};

/// Of numbers that differ, and of equal ones.
Draw comparison_draw(const char* op) {
  return {op, [op](Drawing& d) {
            const auto [a, b] = broadcasting(d);
            if (d.chance(0.3)) {
              d.call(op, {a, a});
            } else if (d.is_clear_of(0, d.result("sub", {a, b}))) {
              d.call(op, {a, b});
            }
          }};
}

const Draws draws{comparison_draw("eq"), comparison_draw("ne"), comparison_draw("lt"),
                  comparison_draw("le"), comparison_draw("gt"), comparison_draw("ge")};

TEST(ComparisonsTest, AreThoseOfPyTorch) {
  const Variable<float> a(Array<float>{1, 2, 3, nan, inf, -0.0F}), b(Array<float>{2, 2, 2, nan, inf, 0});
  EXPECT_EQ(eq(a, b), mask_of({6}, {0, 1, 0, 0, 1, 1}));
  EXPECT_EQ(ne(a, b), mask_of({6}, {1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(lt(a, b), mask_of({6}, {1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(le(a, b), mask_of({6}, {1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(gt(a, b), mask_of({6}, {0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(ge(a, b), mask_of({6}, {0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(gt(a, 1.5), mask_of({6}, {0, 1, 1, 0, 1, 0}));
  EXPECT_EQ(lt(2, a), mask_of({6}, {0, 0, 1, 0, 1, 0}));
}

TEST(ComparisonsTest, Broadcast) {
  const Variable<float> a(Array<float>{{1, 1, 1}, {2, 2, 2}}), b(Array<float>{1, 2, 3});
  EXPECT_EQ(ge(a, b), mask_of({2, 3}, {1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(message_of<ShapeError>([] { eq(x(2, 3), x(2)); }),
            "eq: shapes must broadcast, got a (2, 3) and b (2)");
}

}  // namespace xgrad_tests::comparisons_rows
