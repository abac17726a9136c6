#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/kernels/gemm/onednn_gemm.hpp>
#include <xgrad/kernels/low_precision/bfloat16.hpp>
#include <xgrad/xgrad.hpp>

#include "../../difference.hpp"
#include "expect_error.hpp"
#include "keep_num_threads.hpp"

namespace matmul_precision_test {

constexpr xgrad::Op broken_op("broken", {"x"});

using xgrad::Array, xgrad::MatmulPrecision, xgrad::MatmulPrecisionGuard, xgrad::Shape, xgrad::Variable;
using xgrad_tests::KeepNumThreads, xgrad_tests::largest_difference, xgrad_tests::largest_element;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// The nearest number of 8 bits.
double rounded(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

using Operand = xgrad::kernels::Matrix<const float>;
using Result = xgrad::kernels::Matrix<float>;

class MatmulPrecisionTest : public testing::Test {
 protected:
  ~MatmulPrecisionTest() override { xgrad::set_float32_matmul_precision(MatmulPrecision::highest); }
};

/// Tests of what medium changes.
class RoundedProductsTest : public MatmulPrecisionTest {
 protected:
  void SetUp() override {
    if (!xgrad::kernels::bfloat16_is_faster()) GTEST_SKIP() << "medium is no faster on this processor";
  }
};

Variable<float> leaf(const Shape& shape) { return Variable<float>(xgrad::normal<float>(shape), true); }

/// The result of f under this precision, and the gradients that a backward outside of it gives its leaves.
template <class F>
std::vector<Array<float>> result_and_gradients(MatmulPrecision precision, const F& f,
                                               std::vector<Variable<float>> leaves) {
  Variable<float> y;
  {
    const MatmulPrecisionGuard guard(precision);
    y = f(leaves);
  }
  std::vector<Array<float>> found{y.value()};
  const Variable<float> seed(Array<float>(y.shape(), 0.37F));
  for (const Variable<float>& gradient : grad(y, leaves, {.seed = seed})) found.push_back(gradient.value());
  return found;
}

/// A kernel that computes with rounded factors.
struct Way {
  std::string name;
  std::function<void(float, const Operand&, const Operand&, float, const Result&)> gemm;
};

/// Plain loops, the instructions of this processor, if it has them, and oneDNN's kernels, if they were built
/// in.
std::vector<Way> ways() {
  using namespace xgrad::kernels;
  std::vector<Way> all{{"loops", [](float alpha, const Operand& a, const Operand& b, float beta,
                                    const Result& c) { bfloat16_gemm(alpha, a, b, beta, c, false); }}};
  if (has_bfloat16_instructions()) {
    all.push_back({"instructions", [](float alpha, const Operand& a, const Operand& b, float beta,
                                      const Result& c) { bfloat16_gemm(alpha, a, b, beta, c, true); }});
  }
  if (has_onednn()) all.push_back({"oneDNN", onednn_gemm});
  return all;
}

TEST(Bfloat16Test, ProductsAreThoseOfTheRoundedNumbers) {
  std::mt19937_64 random(0);
  std::uniform_real_distribution<float> uniform(-2, 2);
  const auto draw = [&](std::size_t count) {
    std::vector<float> numbers(count);
    for (float& number : numbers) number = uniform(random);
    return numbers;
  };
  const std::size_t sizes[][3] = {{1, 1, 1},    {5, 3, 2},     {12, 32, 7},   {13, 33, 64},  {28, 31, 1},
                                  {96, 32, 16}, {97, 513, 65}, {40, 70, 257}, {40, 35, 1107}};
  for (const auto& [m, n, k] : sizes) {
    for (const Way& way : ways()) {
      for (unsigned options = 0; options < 8; ++options) {
        const bool trans_a = (options & 1) != 0, trans_b = (options & 2) != 0;
        const float alpha = (options & 4) != 0 ? 0.7F : 1, beta = (options & 4) != 0 ? 0.3F : 0;
        const std::size_t lda = (trans_a ? m : k) + 3, ldb = (trans_b ? k : n) + 2, ldc = n + 1;
        const std::vector<float> a = draw((trans_a ? k : m) * lda), b = draw((trans_b ? n : k) * ldb);
        const std::vector<float> before = beta == 0 ? std::vector<float>(m * ldc, nan) : draw(m * ldc);
        std::vector<float> c = before;
        way.gemm(alpha, {a.data(), m, k, lda, trans_a}, {b.data(), k, n, ldb, trans_b}, beta,
                 {c.data(), m, n, ldc});
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            double sum = 0, magnitude = 0;
            for (std::size_t p = 0; p < k; ++p) {
              const double product = rounded(a[trans_a ? p * lda + i : i * lda + p]) *
                                     rounded(b[trans_b ? j * ldb + p : p * ldb + j]);
              sum += product;
              magnitude += std::abs(product);
            }
            const double expected = alpha * sum + (beta == 0 ? 0 : beta * before[i * ldc + j]);
            wrong += !(std::abs(c[i * ldc + j] - expected) <= 2e-6 * (1 + magnitude));
          }
          const float gap = c[i * ldc + n];
          wrong += beta == 0 ? !std::isnan(gap) : gap != before[i * ldc + n];
        }
        EXPECT_EQ(wrong, 0U) << way.name << ": " << m << " x " << n << " x " << k << ", options " << options;
      }
    }
  }
}

TEST(Bfloat16Test, PiecesThatBeginAtBordersHaveTheBitsOfTheWhole) {
  using namespace xgrad::kernels;
  if (!has_onednn()) GTEST_SKIP() << "built without oneDNN";
  xgrad::manual_seed(0);
  constexpr std::size_t m = 3 * onednn_rows + 5, n = onednn_cols + 40, k = 1100;
  const Array<float> a = xgrad::normal<float>({m, k}), b = xgrad::normal<float>({n, k});
  Array<float> whole(Shape{m, n}), pieces(Shape{m, n});
  const Operand left(a.data(), m, k), right = Operand(b.data(), n, k).transpose();
  onednn_gemm(1, left, right, 0, {whole.data(), m, n});
  const std::size_t row_borders[] = {0, onednn_rows, 3 * onednn_rows, m}, col_borders[] = {0, onednn_cols, n};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const std::size_t top = row_borders[i], rows = row_borders[i + 1] - top;
      const std::size_t first = col_borders[j], cols = col_borders[j + 1] - first;
      onednn_gemm(1, left.some_rows(top, rows), right.some_cols(first, cols), 0,
                  Result(pieces.data(), m, n).some_rows(top, rows).some_cols(first, cols));
    }
  }
  EXPECT_EQ(pieces, whole);
}

TEST(Bfloat16Test, NumbersAreRoundedToTheNearestAndTiesToEven) {
  const float most = std::numeric_limits<float>::max();
  const std::vector<std::pair<float, float>> cases = {{1, 1},
                                                      {1 + 0x1p-8F, 1},
                                                      {1 + 0x1.8p-8F, 1 + 0x1p-7F},
                                                      {1 + 0x3p-8F, 1 + 0x1p-6F},
                                                      {-1.0F / 3, static_cast<float>(rounded(-1.0F / 3))},
                                                      {0, 0},
                                                      {most, inf},
                                                      {-inf, -inf},
                                                      {nan, nan}};
  for (const Way& way : ways()) {
    for (const auto& [x, expected] : cases) {
      const auto is_right = [wanted = expected](float y) {
        return y == wanted || (std::isnan(y) && std::isnan(wanted));
      };
      const float one = 1;
      float y = 0;
      way.gemm(1, {&x, 1, 1}, {&one, 1, 1}, 0, {&y, 1, 1});
      EXPECT_PRED1(is_right, y) << way.name << ": " << x;
      // Whole vectors of x, of both operands and on both ways in memory, times the unit matrix, or ones where
      // x times 0 is nan.
      constexpr std::size_t n = 48;
      const std::vector<float> numbers(n * n, x);
      std::vector<float> factors(n * n, std::isfinite(expected) ? 0 : 1), c(n * n);
      for (std::size_t i = 0; i < n; ++i) factors[i * n + i] = 1;
      const Operand unit(factors.data(), n, n);
      for (const bool transposed : {false, true}) {
        const Operand all(numbers.data(), n, n, n, transposed);
        for (const bool is_left : {true, false}) {
          way.gemm(1, is_left ? all : unit, is_left ? unit : all, 0, {c.data(), n, n});
          EXPECT_TRUE(std::all_of(c.begin(), c.end(), is_right)) << way.name << ": " << x << ", " << is_left;
        }
      }
    }
  }
}

TEST(Bfloat16Test, AnInfiniteRowOrColumnStaysOutOfTheOthers) {
  for (const Way& way : ways()) {
    for (const std::size_t n : {1, 3, 33, 40, 48, 64, 130}) {
      for (const bool transposed : {false, true}) {
        const std::size_t middle = n / 2;
        std::vector<float> numbers(n * n, 1), ones(n * n, 1), c(n * n);
        for (std::size_t k = 0; k < n; ++k) numbers[transposed ? k * n + middle : middle * n + k] = inf;
        const Operand infinite_row(numbers.data(), n, n, n, transposed), unit(ones.data(), n, n);
        way.gemm(1, infinite_row, unit, 0, {c.data(), n, n});
        for (std::size_t i = 0; i < n * n; ++i)
          EXPECT_TRUE(i / n == middle ? !std::isfinite(c[i]) : c[i] == static_cast<float>(n))
              << way.name << ": " << n << ", " << i;
        way.gemm(1, unit, infinite_row.transpose(), 0, {c.data(), n, n});
        for (std::size_t i = 0; i < n * n; ++i)
          EXPECT_TRUE(i % n == middle ? !std::isfinite(c[i]) : c[i] == static_cast<float>(n))
              << way.name << ": " << n << ", " << i;
      }
    }
  }
}

TEST_F(MatmulPrecisionTest, TheInnermostGuardCountsThenTheProcess) {
  EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::highest);
  xgrad::set_float32_matmul_precision("medium");
  EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::medium);
  {
    const MatmulPrecisionGuard outer(MatmulPrecision::highest);
    EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::highest);
    {
      const MatmulPrecisionGuard inner(MatmulPrecision::medium);
      EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::medium);
    }
    EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::highest);
  }
  EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::medium);
}

TEST_F(MatmulPrecisionTest, GuardsAreOfOneThread) {
  xgrad::set_float32_matmul_precision("medium");
  const MatmulPrecisionGuard guard(MatmulPrecision::highest);
  MatmulPrecision elsewhere{};
  std::thread([&] { elsewhere = xgrad::float32_matmul_precision(); }).join();
  EXPECT_EQ(elsewhere, MatmulPrecision::medium);
}

TEST_F(MatmulPrecisionTest, WhatIsThrownEndsTheGuard) {
  const Variable<float> x = leaf({2, 2});
  EXPECT_THROW(
      {
        const MatmulPrecisionGuard guard(MatmulPrecision::medium);
        matmul(x, leaf({3, 2}));
      },
      xgrad::ShapeError);
  EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::highest);
  Variable<float> y;
  {
    const MatmulPrecisionGuard guard(MatmulPrecision::medium);
    y = xgrad::record<float>(
        broken_op, Variable<float>(1), xgrad::Inputs(x), xgrad::Saved(),
        [](Variable<float>, xgrad::Needs) -> xgrad::Grads<float, 1> { throw std::runtime_error("broken"); });
  }
  EXPECT_THROW(y.backward(), std::runtime_error);
  EXPECT_EQ(xgrad::float32_matmul_precision(), MatmulPrecision::highest);
}

TEST_F(MatmulPrecisionTest, NamesAreThoseOfPyTorch) {
  for (const char* name : {"medium", "highest"}) {
    xgrad::set_float32_matmul_precision(name);
    EXPECT_EQ(to_string(xgrad::float32_matmul_precision()), name);
  }
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::set_float32_matmul_precision("high"); }),
            "set_float32_matmul_precision: expected highest or medium, got 'high'");
}

TEST_F(MatmulPrecisionTest, MediumIsHighestWhereItIsNotFaster) {
  const Variable<float> a = leaf({80, 70}), b = leaf({70, 90});
  const auto product = [](const auto& x) { return matmul(x[0], x[1]); };
  const MatmulPrecisionGuard guard(MatmulPrecision::medium);
  const bool in_use = xgrad::matmul_precision_in_use() == MatmulPrecision::medium;
  const auto exact = result_and_gradients(MatmulPrecision::highest, product, {a, b});
  const auto asked = result_and_gradients(MatmulPrecision::medium, product, {a, b});
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(exact[i] == asked[i], !in_use) << i;
}

TEST_F(RoundedProductsTest, EveryProductIsRoundedAndSoAreItsGradientsWhereverTheBackwardRuns) {
  xgrad::manual_seed(0);
  using List = std::vector<Variable<float>>;
  const std::vector<std::pair<std::string, std::pair<List, Variable<float> (*)(const List&)>>> ops = {
      {"matmul", {{leaf({3, 64, 80}), leaf({3, 80, 70})}, [](const List& x) { return matmul(x[0], x[1]); }}},
      {"linear",
       {{leaf({100, 64}), leaf({96, 64}), leaf({96})},
        [](const List& x) { return linear(x[0], x[1], x[2]); }}},
      {"einsum",
       {{leaf({90, 64}), leaf({64, 80})},
        [](const List& x) { return xgrad::einsum("ij,jk->ik", x[0], x[1]); }}},
      {"attention",
       {{leaf({2, 128, 64}), leaf({2, 128, 64}), leaf({2, 128, 64})},
        [](const List& x) { return xgrad::scaled_dot_product_attention(x[0], x[1], x[2]); }}},
      {"checkpoint", {{leaf({100, 64}), leaf({64, 96})}, [](const List& x) {
                        return xgrad::checkpoint(
                            [](const List& inputs) { return tanh(matmul(inputs[0], inputs[1]) * 0.05F); }, x);
                      }}}};
  for (const auto& [name, op] : ops) {
    const auto exact = result_and_gradients(MatmulPrecision::highest, op.second, op.first);
    const auto medium = result_and_gradients(MatmulPrecision::medium, op.second, op.first);
    const MatmulPrecisionGuard guard(MatmulPrecision::medium);
    const auto all_inside = result_and_gradients(MatmulPrecision::medium, op.second, op.first);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_EQ(medium[i], all_inside[i]) << name << " " << i;
      if (name == "linear" && i == 3) continue;  // the bias's gradient is no product
      EXPECT_NE(medium[i], exact[i]) << name << " " << i;
      EXPECT_LE(largest_difference(medium[i], exact[i]), 2e-2 * largest_element(exact[i]))
          << name << " " << i;
    }
  }
}

/// The gradient by `b` of the sum of squares of the gradient by `a` of `a b`'s sum of squares.
Array<float> gradient_of_gradient(MatmulPrecision precision, const Variable<float>& a,
                                  const Variable<float>& b) {
  Variable<float> y;
  {
    const MatmulPrecisionGuard guard(precision);
    y = sum(square(matmul(a, b)));
  }
  const Variable<float> da = grad(y, {a}, {.create_graph = true})[0];
  return grad(sum(square(da)), {b})[0].value();
}

TEST_F(RoundedProductsTest, GradientsOfGradientsAreRoundedToo) {
  xgrad::manual_seed(3);
  const Variable<float> a = leaf({64, 80}), b = leaf({80, 70});
  const Array<float> exact = gradient_of_gradient(MatmulPrecision::highest, a, b),
                     medium = gradient_of_gradient(MatmulPrecision::medium, a, b);
  EXPECT_NE(medium, exact);
  EXPECT_LE(largest_difference(medium, exact), 2e-2 * largest_element(exact));
}

TEST_F(RoundedProductsTest, GradientsOfGradientsAreRoundedInEveryThread) {
  xgrad::manual_seed(3);
  const Variable<float> a = leaf({64, 80}), b = leaf({80, 70});
  Array<float> elsewhere;
  std::thread([&] { elsewhere = gradient_of_gradient(MatmulPrecision::medium, a, b); }).join();
  EXPECT_EQ(elsewhere, gradient_of_gradient(MatmulPrecision::medium, a, b));
}

TEST_F(RoundedProductsTest, BitsDoNotDependOnTheNumberOfThreads) {
  xgrad::manual_seed(1);
  const KeepNumThreads keep;
  const std::vector<Variable<float>> products{leaf({500, 200}), leaf({200, 300})},
      wide{leaf({100, 200}), leaf({200, 700})},
      attended{leaf({4, 300, 64}), leaf({4, 300, 64}), leaf({4, 300, 64})};
  const auto product = [](const auto& x) { return matmul(x[0], x[1]); };
  const auto attention = [](const auto& x) { return xgrad::scaled_dot_product_attention(x[0], x[1], x[2]); };
  const auto all = [&](std::size_t threads) {
    xgrad::set_num_threads(threads);
    std::vector<Array<float>> found = result_and_gradients(MatmulPrecision::medium, product, products);
    for (Array<float>& one : result_and_gradients(MatmulPrecision::medium, product, wide))
      found.push_back(std::move(one));
    for (Array<float>& one : result_and_gradients(MatmulPrecision::medium, attention, attended))
      found.push_back(std::move(one));
    return found;
  };
  const std::vector<Array<float>> alone = all(1);
  for (const std::size_t threads : {2, 3, 7}) EXPECT_EQ(all(threads), alone) << threads << " threads";
}

TEST_F(RoundedProductsTest, DoublesStayAsTheyAre) {
  const Variable<double> x(xgrad::normal<double>({80, 80}));
  const Array<double> expected = matmul(x, x).value();
  const MatmulPrecisionGuard guard(MatmulPrecision::medium);
  EXPECT_EQ(matmul(x, x).value(), expected);
}

TEST_F(RoundedProductsTest, LinearAlgebraStaysAsItIs) {
  xgrad::manual_seed(2);
  using List = std::vector<Variable<float>>;
  const auto scaled = [](const Shape& shape) {
    return Variable<float>(xgrad::normal<float>(shape) * 0.1F, true);
  };
  const Variable<float> square_matrix = scaled({72, 72}), tall = scaled({256, 64}), wide = scaled({64, 128});
  Array<float> identity = xt::eye<float>(72);
  const Variable<float> one(identity);
  const std::vector<std::pair<std::string, std::pair<List, Variable<float> (*)(const List&)>>> ops = {
      {"matrix_exp", {{square_matrix}, [](const List& x) { return matrix_exp(x[0]); }}},
      {"pinv", {{square_matrix}, [](const List& x) { return pinv(x[0]); }}},
      {"inv", {{square_matrix, one}, [](const List& x) { return inv(x[0] + x[1]); }}},
      {"solve", {{square_matrix, one}, [](const List& x) { return solve(x[0] + x[1], x[0]); }}},
      {"lstsq", {{tall, scaled({256, 16})}, [](const List& x) { return lstsq(x[0], x[1]); }}},
      {"qr", {{wide}, [](const List& x) { return xgrad::qr(x[0]).R; }}},
      {"svd", {{tall}, [](const List& x) { return xgrad::svd(x[0], {.full_matrices = false}).S; }}},
      {"eigh", {{square_matrix}, [](const List& x) { return xgrad::eigh(x[0]).eigenvectors; }}}};
  for (const auto& [name, op] : ops) {
    const auto& [inputs, f] = op;
    const List wanted{inputs.front()};
    const auto all = [&wanted, &inputs = inputs, &f = f] {
      const Variable<float> y = f(inputs);
      const Variable<float> seed(Array<float>(y.shape(), 0.37F));
      return std::pair(y.value(), grad(y, wanted, {.seed = seed})[0].value());
    };
    const auto expected = all();
    const MatmulPrecisionGuard guard(MatmulPrecision::medium);
    EXPECT_EQ(all(), expected) << name;
  }
}

TEST_F(RoundedProductsTest, CholeskysGradientsStayAsTheyAreOnBothWays) {
  xgrad::manual_seed(4);
  const Array<float> x = xgrad::normal<float>({72, 72});
  const Variable<float> a(
      matmul(Variable<float>(x), mT(Variable<float>(x))).value() + 72 * xt::eye<float>(72), true);
  const auto gradient = [&](bool create_graph) {
    return grad(sum(square(cholesky(a))), {a}, {.create_graph = create_graph})[0].value();
  };
  const std::pair expected(gradient(false), gradient(true));
  const MatmulPrecisionGuard guard(MatmulPrecision::medium);
  EXPECT_EQ(std::pair(gradient(false), gradient(true)), expected);
}

}  // namespace matmul_precision_test
