// What there is to test of dropout.
#include <xgrad/ops/pointwise/dropout.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::dropout_rows {

Op dropout_op() {
  Op op{"dropout"};
  const auto drop = [](const auto& x) {
    xgrad::manual_seed(3);
    return xgrad::dropout(x[0], 0.25);
  };
  const Reference reference = [](const std::vector<Array<double>>& x) {
    xgrad::manual_seed(3);
    Array<double> y = xgrad::bernoulli<double>(x[0].shape(), 0.75);
    for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] *= x[0].data()[i] / 0.75;
    return y;
  };
  op.cases = make_cases({{{5, 17}}, {{}}, {{0}}}, drop, reference);
  op.large = make_cases({{plane}}, drop, reference);
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::dropout(x[0], 0.5, {.training = false}); },
      naive::map([](double x) { return x; })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::dropout(x[0], 0); },
      naive::map([](double x) { return x; })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::dropout(x[0], 1); },
      naive::map([](double) { return 0.0; })));
  op.errors = {error<ValueError>("dropout: p must be in [0, 1], got 1.5", [] { xgrad::dropout(x(2), 1.5); }),
               error<ValueError>("dropout: p must be in [0, 1], got -0.1",
                                 [] { xgrad::dropout(x(2), -0.1, {.training = false}); }),
               error<ValueError>("dropout: p must be in [0, 1], got nan", [] { xgrad::dropout(x(2), NAN); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{dropout_op()}; });

const Conformance conformance{{"dropout", [](const auto& c) {
                                 return dropout(c.x(), c.number("p"), {.training = c.flag("training")});
                               }}};

void draw_dropout(Drawing& d) {
  const bool training = d.chance(0.7);
  d.call("dropout", {d.numbers()},
         {{"p", training ? d.one_of({0.0, 0.0, 1.0}) : 0.5}, {"training", training}});
}

const Draws draws{{"dropout", draw_dropout}};

TEST(DropoutTest, KeepsTheMeanAndScalesWhatIsKept) {
  const Variable<float> x(Array<float>(Shape{100, 100}, 1.0f));
  const Array<float> y = dropout(x, 0.2).value();
  std::size_t kept = 0;
  for (const float element : y.storage()) {
    EXPECT_TRUE(element == 0 || element == 1.25f);
    kept += element != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 8000, 200);
}

}  // namespace xgrad_tests::dropout_rows
