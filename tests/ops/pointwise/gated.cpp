// What there is to test of gated and glu.
#include <xgrad/ops/pointwise/gated.hpp>

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::gated_rows {

using xgrad::Gate;

struct GateForm {
  Gate gate;
  const char* name;
  double (*reference)(double, double);
  Range range;  // of the gate
};

const std::array<GateForm, 5>& forms() {
  static const std::array<GateForm, 5> all{
      {{Gate::sigmoid, "sigmoid", [](double g, double x) { return x / (1 + std::exp(-g)); }, {-8, 8, 0}},
       {Gate::relu, "relu", [](double g, double x) { return g > 0 ? g * x : 0; }, {-2, 2, 0.01}},
       {Gate::silu, "silu", [](double g, double x) { return g * x / (1 + std::exp(-g)); }, {-8, 8, 0}},
       {Gate::gelu,
        "gelu",
        [](double g, double x) { return g / 2 * std::erfc(-g / std::sqrt(2.0)) * x; },
        {-4, 4, 0}},
       {Gate::gelu_tanh,
        "gelu_tanh",
        [](double g, double x) {
          return g / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * x;
        },
        {-4, 4, 0}}}};
  return all;
}

Op gated_op() {
  Op op{"gated.gated"};
  for (const GateForm& form : forms()) {
    const auto call = [gate = form.gate](const auto& x) { return xgrad::gated(x[0], x[1], gate); };
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{5, 33}, Shape{0}})
      op.cases.push_back(make_case({{shape, form.range}, shape}, call, naive::binary(form.reference)));
    op.large.push_back(
        make_case({{long_vector, form.range}, long_vector}, call, naive::binary(form.reference)));
  }
  op.errors = {error<ShapeError>("gated: gate and x must have the same shape, got (2, 3) and (3)",
                                 [] { xgrad::gated(x(2, 3), x(3), Gate::silu); }),
               error<ValueError>("gated: f must be one of 5 values, got number 9",
                                 [] { xgrad::gated(x(2, 3), x(2, 3), static_cast<Gate>(9)); })};
  return op;
}

Op glu_op() {
  const auto halves = [](std::size_t axis) {
    return [axis](const naive::Arguments& x) {
      const Shape shape = naive::with(x[0].shape(), axis, x[0].shape()[axis] / 2);
      return naive::generated(shape, [&](Shape index) {
        const double a = naive::at(x[0], index);
        index[axis] += shape[axis];
        return a / (1 + std::exp(-naive::at(x[0], index)));
      });
    };
  };
  const auto along = [](int dim) { return [dim](const auto& x) { return xgrad::glu(x[0], dim); }; };
  Op op{"gated.glu"};
  op.cases = {make_case({{4}}, along(-1), halves(0)),    make_case({{2, 6}}, along(1), halves(1)),
              make_case({{4, 3}}, along(0), halves(0)),  make_case({{2, 4, 3}}, along(-2), halves(1)),
              make_case({{0, 2}}, along(-1), halves(1)), make_case({{5, 66}}, along(-1), halves(1))};
  op.large = {make_case({{2, 140002}}, along(-1), halves(1))};
  op.errors = {error<ShapeError>("glu: the length of x along dim must be even, got x (2, 3) and dim 1",
                                 [] { xgrad::glu(x(2, 3), 1); }),
               error<IndexError>("glu: axis 2 is out of range for x (2, 3)", [] { xgrad::glu(x(2, 3), 2); }),
               error<IndexError>("glu: axis -1 is out of range for x ()", [] { xgrad::glu(x(Shape{})); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{gated_op(), glu_op()}; });

const Conformance conformance{{"gated",
                               [](const auto& c) {
                                 const std::string name = c.text("function");
                                 for (const GateForm& form : forms())
                                   if (name == form.name) return gated(c.x(), c.x(1), form.gate);
                                 throw ValueError("gated: there is no function '" + name + "'");
                               }},
                              {"glu", [](const auto& c) { return glu(c.x(), c.dim()); }}};

void draw_gated(Drawing& d) {
  const GateForm& form = forms()[d.below(forms().size())];
  const Name gate = d.within(d.numbers(), form.range);
  if (form.gate == Gate::relu && !d.is_clear_of(0, d.value(gate))) return;
  d.call("gated", {gate, d.numbers(Shape(d.shape(gate)))}, {{"function", form.name}});
}

void draw_glu(Drawing& d) {
  const Name x = d.numbers(1);
  const std::ptrdiff_t axis = d.axis(x);
  const Shape& shape = d.shape(x);
  const auto rank = static_cast<std::ptrdiff_t>(shape.size());
  if (shape[static_cast<std::size_t>((axis + rank) % rank)] % 2 == 0) d.call("glu", {x}, {{"dim", axis}});
}

const Draws draws{{"gated", draw_gated}, {"glu", draw_glu}};

TEST(GatedTest, AClosedGateGetsNothingOfAnInfiniteGradient) {
  const Variable<float> gate(Array<float>{-1, 0}, true), x(Array<float>{2, 3}, true);
  gated(gate, x, Gate::relu).backward(Variable<float>(Array<float>{inf, nan}));
  EXPECT_EQ(gate.grad().value(), (Array<float>{0, 0}));
}

}  // namespace xgrad_tests::gated_rows
