// What there is to test of matmul, bmm and gemm.
#include <xgrad/ops/product/matmul.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::matmul_rows {

Op matmul_op() {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3}, {3, 4}},
                                                       {{3, 3}, {3, 3}},
                                                       {{3}, {3}},
                                                       {{2, 3}, {3}},
                                                       {{3}, {3, 4}},
                                                       {{5, 2, 3}, {3, 4}},
                                                       {{5, 2, 3}, {5, 3, 4}},
                                                       {{5, 1, 2, 3}, {4, 3, 2}},
                                                       {{3}, {5, 3, 4}},
                                                       {{5, 2, 3}, {3}},
                                                       {{2, 2, 3}, {1, 3, 2}},
                                                       {{1, 1}, {1, 1}},
                                                       {{1, 17}, {17, 1}},
                                                       {{2, 0}, {0, 3}},
                                                       {{0, 3}, {3, 2}},
                                                       {{0}, {0}},
                                                       {{0, 2, 3}, {0, 3, 2}},
                                                       {{17, 19}, {19, 23}},
                                                       {{2, 17, 9}, {2, 9, 17}},
                                                       {{2, 17, 9}, {9, 17}}};
  std::vector<std::vector<Input>> lists;
  for (const auto& [a, b] : shapes) lists.push_back({a, b});
  return {"matmul",
          make_cases(
              lists, [](const auto& x) { return xgrad::matmul(x[0], x[1]); }, naive::matmul()),
          {error<ShapeError>("matmul: inner axes must agree, got a (2, 3) and b (4, 5)",
                             [] { xgrad::matmul(x(2, 3), x(4, 5)); }),
           error<ShapeError>("matmul: inner axes must agree, got a (3) and b (2)",
                             [] { xgrad::matmul(x(3), x(2)); }),
           error<ShapeError>("matmul: both operands need at least one axis, got a () and b (2, 3)",
                             [] { xgrad::matmul(x(), x(2, 3)); }),
           error<ShapeError>("matmul: the batch axes must broadcast, got a (2, 4, 5) and b (3, 5, 6)",
                             [] { xgrad::matmul(x(2, 4, 5), x(3, 5, 6)); })},
          make_cases(
              {{{45, 30, 33}, {45, 33, 31}}, {{5, 1, 30, 33}, {9, 33, 31}}, {{3001, 7}, {7, 43}}},
              [](const auto& x) { return xgrad::matmul(x[0], x[1]); }, naive::matmul())};
}

Op bmm_op() {
  Op op{"matmul.bmm",
        make_cases(
            {{{2, 3, 4}, {2, 4, 5}}, {{1, 1, 17}, {1, 17, 1}}, {{0, 2, 3}, {0, 3, 2}}},
            [](const auto& x) { return xgrad::bmm(x[0], x[1]); }, naive::matmul()),
        {},
        make_cases(
            {{{45, 30, 33}, {45, 33, 31}}}, [](const auto& x) { return xgrad::bmm(x[0], x[1]); },
            naive::matmul())};
  op.errors = {
      error<ShapeError>("bmm: operands must be (B, n, k) and (B, k, m), got a (2, 3) and b (2, 3, 4)",
                        [] { xgrad::bmm(x(2, 3), x(2, 3, 4)); }),
      error<ShapeError>("bmm: operands must be (B, n, k) and (B, k, m), got a (1, 2, 3) and b (2, 3, 4)",
                        [] { xgrad::bmm(x(1, 2, 3), x(2, 3, 4)); })};
  return op;
}

Op gemm_op() {
  const auto reference = [](bool trans_a, bool trans_b, double alpha, double beta) {
    return [=](const std::vector<Array<double>>& x) {
      const auto turned = [](const Array<double>& a, bool turn) {
        return turn ? naive::permute({1, 0})({a}) : a;
      };
      Array<double> y = naive::matmul()({turned(x[0], trans_a), turned(x[1], trans_b)});
      y = y * alpha;
      return x.size() < 3
                 ? y
                 : naive::binary([](double a, double b) { return a + b; })({y, Array<double>(x[2] * beta)});
    };
  };
  Op op{"matmul.gemm"};
  op.cases = {make_case(
                  {{2, 3}, {3, 4}}, [](const auto& x) { return xgrad::gemm(x[0], x[1]); },
                  reference(false, false, 1, 1)),
              make_case(
                  {{3, 2}, {4, 3}, {4}},
                  [](const auto& x) {
                    return xgrad::gemm(x[0], x[1], x[2],
                                       {.alpha = 0.5, .beta = 2, .trans_a = true, .trans_b = true});
                  },
                  reference(true, true, 0.5, 2)),
              make_case(
                  {{2, 3}, {4, 3}, {2, 1}},
                  [](const auto& x) { return xgrad::gemm(x[0], x[1], x[2], {.trans_b = true}); },
                  reference(false, true, 1, 1))};
  op.cases.push_back(make_case(
      {{3, 2}, {3, 4}},
      [](const auto& x) { return xgrad::gemm(x[0], x[1], {}, {.alpha = 0.5, .beta = 2, .trans_a = true}); },
      reference(true, false, 0.5, 1)));
  op.cases.push_back(make_case(
      {{2, 3}, {3, 4}, {2, 4}}, [](const auto& x) { return xgrad::gemm(x[0], x[1], x[2], {.beta = 2}); },
      reference(false, false, 1, 2)));
  op.cases.push_back(make_case(
      {{2, 3}, {3, 4}, {}}, [](const auto& x) { return xgrad::gemm(x[0], x[1], x[2], {.alpha = 0.5}); },
      reference(false, false, 0.5, 1)));
  op.large = {make_case(
      {{33, 201}, {205, 33}, {201, 205}},
      [](const auto& x) {
        return xgrad::gemm(x[0], x[1], x[2], {.alpha = 0.5, .beta = 2, .trans_a = true, .trans_b = true});
      },
      reference(true, true, 0.5, 2))};
  op.errors = {error<ShapeError>("gemm: operands must be matrices, got a (2) and b (2, 3)",
                                 [] { xgrad::gemm(x(2), x(2, 3)); }),
               error<ShapeError>("gemm: c must broadcast to the product (2, 4), got (5)",
                                 [] { xgrad::gemm(x(2, 3), x(3, 4), x(5)); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{matmul_op(), bmm_op(), gemm_op()}; });

const Conformance conformance{{"matmul", [](const auto& c) { return matmul(c.x(), c.x(1)); }},
                              {"bmm", [](const auto& c) { return bmm(c.x(), c.x(1)); }},
                              {"gemm", [](const auto& c) {
                                 return gemm(c.x(), c.x(1), c.optional(2),
                                             {.alpha = c.number("alpha"),
                                              .beta = c.number("beta"),
                                              .trans_a = c.integer("transA") != 0,
                                              .trans_b = c.integer("transB") != 0});
                               }}};

void draw_matmul(Drawing& d) {
  const Name a = d.numbers(1);
  const Shape& left = d.shape(a);
  Shape right{left.back()};
  if (d.chance(0.85)) {
    right = d.narrowed(Shape(left.begin(), left.end() - (left.size() > 1 ? 2 : 1)));
    right.push_back(left.back());
    right.push_back(d.length());
  }
  d.call("matmul", {a, d.numbers(right)});
}

void draw_bmm(Drawing& d) {
  const Name a = d.numbers(d.shape(3, 3));
  d.call("bmm", {a, d.numbers(Shape{d.shape(a)[0], d.shape(a)[2], d.length()})});
}

void draw_gemm(Drawing& d) {
  const bool trans_a = d.chance(0.5), trans_b = d.chance(0.5);
  const Name a = d.numbers(d.shape(2, 2));
  const std::size_t n = d.shape(a)[trans_a ? 1 : 0], k = d.shape(a)[trans_a ? 0 : 1], m = d.length();
  const Name b = d.numbers(trans_b ? Shape{m, k} : Shape{k, m});
  const Name c = d.chance(0.6) ? d.numbers(d.narrowed({n, m})) : Name();
  d.call("gemm", {a, b, c},
         {{"alpha", d.one_of({1.0, 0.5})},
          {"beta", d.one_of({1.0, -2.0})},
          {"transA", std::ptrdiff_t{trans_a}},
          {"transB", std::ptrdiff_t{trans_b}}});
}

const Draws draws{{"matmul", draw_matmul}, {"bmm", draw_bmm}, {"gemm", draw_gemm}};

}  // namespace xgrad_tests::matmul_rows
