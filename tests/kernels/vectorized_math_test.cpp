// The kernels that compute exp, expm1, log, log1p, tanh, erf, sqrt, sin and cos in vector registers, against
// <cmath> in a wider type.

#include <xgrad/kernels/pointwise/elementwise.hpp>
#include <xgrad/kernels/pointwise/vectorized_math.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vectorized_math_test {

namespace kernels = xgrad::kernels;

template <typename T>
using Bits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
template <typename T>
using Limits = std::numeric_limits<T>;

template <typename T>
using Kernel = void (*)(const T* x, T* y, std::size_t n);
template <class T>
using GradKernel = void (*)(const T* dy, const T* saved, T* dx, std::size_t n);
template <typename T>
using Truth = Wide<T> (*)(Wide<T>);

/// std::bit_cast, which libc++ 13 lacks.
template <typename To, typename From>
To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

template <typename T>
Bits<T> bits_of(T x) {
  return bit_cast<Bits<T>>(x);
}

/// |got - truth| in units in the last place of truth; infinite for a wrong sign and where only one is nan.
template <typename T>
Wide<T> units_in_last_place(T got, Wide<T> truth) {
  if (std::isnan(truth) && std::isnan(got)) return 0;
  if (std::isnan(truth) || std::isnan(got) || std::signbit(truth) != std::signbit(got)) {
    return Limits<Wide<T>>::infinity();
  }
  const Wide<T> beyond = std::ldexp(Wide<T>(1), Limits<T>::max_exponent);  // infinity counts as max + 1 unit
  const Wide<T> y = std::min<Wide<T>>(std::fabs(truth), beyond);
  const Wide<T> largest = std::min<Wide<T>>(y, Limits<T>::max());
  const int exponent = std::ilogb(std::max<Wide<T>>(largest, Limits<T>::min()));
  const Wide<T> unit = std::ldexp(Wide<T>(1), exponent - (Limits<T>::digits - 1));
  return std::fabs(std::min<Wide<T>>(std::fabs(got), beyond) - y) / unit;
}

/// The largest error of a kernel over all that it was measured at.
template <typename T>
class Measurement {
 public:
  Measurement(Kernel<T> kernel, Truth<T> truth) : kernel_(kernel), truth_(truth) {}

  void at(const std::vector<T>& x) {
    y_.resize(x.size());
    kernel_(x.data(), y_.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Wide<T> units = units_in_last_place(y_[i], truth_(x[i]));
      if (units <= units_) continue;
      units_ = units;
      x_ = x[i];
    }
  }

  void expect_at_most(int units) const {
    EXPECT_LE(units_, Wide<T>(units)) << std::hexfloat << "at x = " << x_ << ", float size " << sizeof(T);
    testing::Test::RecordProperty(sizeof(T) == 4 ? "float_ulp" : "double_ulp", std::to_string(units_));
  }

 private:
  Kernel<T> kernel_;
  Truth<T> truth_;
  std::vector<T> y_;
  Wide<T> units_ = 0;
  T x_ = 0;
};

/// Where a formula of one of the functions takes over from another, overflows, underflows or becomes
/// constant.
template <typename T>
std::vector<T> switches() {
  std::vector<T> places = {T(0.34657359027997265),  // ln 2 / 2, where exp and its 2^n switch
                           T(0.5),
                           T(0.625),  // tanh
                           T(0.70710678118654752),
                           T(0.78539816339744831),  // sin and cos
                           T(0.927734375),          // erf
                           T(1),
                           T(1.0397207708399179),
                           T(1.4142135623730951),
                           T(2),
                           Limits<T>::min(),
                           Limits<T>::epsilon(),
                           Limits<T>::max() / 2};
  const auto ends = std::is_same_v<T, float>
                        ? std::vector<double>{3.832506, 4,          9.010913,   87.336544, 88.722839,
                                              89,       103.278929, 103.972077, 105,       6144}
                        : std::vector<double>{5.9215871957945083,
                                              6,
                                              19.061547465398498,
                                              708.39641853226408,
                                              709.78271289338397,
                                              710,
                                              744.4400719213812,
                                              745.13321910194122,
                                              746,
                                              196608};
  places.insert(places.end(), ends.begin(), ends.end());
  return places;
}

/// Up to `reach` numbers on both sides of every switch, and both ends of the range, in both signs.
template <typename T>
std::vector<T> neighbours_of_switches(Bits<T> reach) {
  std::vector<T> x;
  const auto add = [&x](Bits<T> bits) {
    x.push_back(bit_cast<T>(bits));
    x.push_back(-x.back());
  };
  for (const T place : switches<T>()) {
    for (Bits<T> bits = bits_of(place) - reach; bits <= bits_of(place) + reach; ++bits) add(bits);
  }
  const Bits<T> infinity = bits_of(Limits<T>::infinity());
  for (Bits<T> i = 0; i <= reach; ++i) {
    add(i);
    add(infinity - i);
  }
  add(bits_of(Limits<T>::quiet_NaN()));
  return x;
}

void expect_at_most_two_units(Kernel<float> kernel, Truth<float> truth) {
  constexpr std::uint64_t stride = 127, end = std::uint64_t(1) << 32;  // odd: all low bits come up
  Measurement<float> measurement(kernel, truth);
  measurement.at(neighbours_of_switches<float>(4096));
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < end;) {
    x.clear();
    for (; x.size() < 32768 && bits < end; bits += stride) {
      x.push_back(bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    measurement.at(x);
  }
  measurement.expect_at_most(2);
}

void expect_at_most_two_units(Kernel<double> kernel, Truth<double> truth) {
  Measurement<double> measurement(kernel, truth);
  measurement.at(neighbours_of_switches<double>(1024));
  std::mt19937_64 random(1);
  std::vector<double> x;
  for (int i = 0; i < 400'000; ++i) x.push_back(bit_cast<double>(random()));
  std::uniform_real_distribution<double> moderate(-8, 8), large(-750, 750), nearby(1 - 0x1p-6, 1 + 0x1p-6);
  for (int i = 0; i < 200'000; ++i) x.push_back(moderate(random));
  for (int i = 0; i < 100'000; ++i) x.push_back(large(random));
  for (const double place : switches<double>()) {
    for (int i = 0; i < 5000; ++i) {
      x.push_back(place * nearby(random));
      x.push_back(-x.back());
    }
  }
  measurement.at(x);
  measurement.expect_at_most(2);
}

TEST(VectorizedMathTest, ExpIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::exp<float>, std::exp);
  expect_at_most_two_units(kernels::exp<double>, std::exp);
}

TEST(VectorizedMathTest, LogIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::log<float>, std::log);
  expect_at_most_two_units(kernels::log<double>, std::log);
}

TEST(VectorizedMathTest, TanhIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::tanh<float>, std::tanh);
  expect_at_most_two_units(kernels::tanh<double>, std::tanh);
}

TEST(VectorizedMathTest, ErfIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::erf<float>, std::erf);
  expect_at_most_two_units(kernels::erf<double>, std::erf);
}

TEST(VectorizedMathTest, Expm1IsWithinTwoUlp) {
  expect_at_most_two_units(kernels::expm1<float>, std::expm1);
  expect_at_most_two_units(kernels::expm1<double>, std::expm1);
}

TEST(VectorizedMathTest, Log1pIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::log1p<float>, std::log1p);
  expect_at_most_two_units(kernels::log1p<double>, std::log1p);
}

TEST(VectorizedMathTest, SinIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::sin<float>, std::sin);
  expect_at_most_two_units(kernels::sin<double>, std::sin);
}

TEST(VectorizedMathTest, CosIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::cos<float>, std::cos);
  expect_at_most_two_units(kernels::cos<double>, std::cos);
}

/// The numbers around the multiples of pi / 2, as far as the vector code goes: what is left of them has lost
/// most of its digits.
template <typename T>
void expect_at_most_two_units_near_zeros(Kernel<T> kernel, Truth<T> truth) {
  const int last = std::is_same_v<T, float> ? 3912 : 125164;
  std::vector<T> x;
  for (int m = 1; m <= last; ++m) {
    const Bits<T> place = bits_of(static_cast<T>(m * 1.57079632679489661923132169163975L));
    for (Bits<T> bits = place - 8; bits <= place + 8; ++bits) x.push_back(bit_cast<T>(bits));
  }
  Measurement<T> measurement(kernel, truth);
  measurement.at(x);
  measurement.expect_at_most(2);
}

TEST(VectorizedMathTest, SinAndCosAreWithinTwoUlpNearTheirZeros) {
  expect_at_most_two_units_near_zeros<float>(kernels::sin<float>, std::sin);
  expect_at_most_two_units_near_zeros<float>(kernels::cos<float>, std::cos);
  expect_at_most_two_units_near_zeros<double>(kernels::sin<double>, std::sin);
  expect_at_most_two_units_near_zeros<double>(kernels::cos<double>, std::cos);
}

TEST(VectorizedMathTest, SqrtIsWithinTwoUlp) {
  expect_at_most_two_units(kernels::sqrt<float>, std::sqrt);
  expect_at_most_two_units(kernels::sqrt<double>, std::sqrt);
}

template <typename T>
class VectorizedMathValuesTest : public testing::Test {
 protected:
  static constexpr T infinity = Limits<T>::infinity(), nan = Limits<T>::quiet_NaN(), max = Limits<T>::max();
  static constexpr T denormal = Limits<T>::denorm_min();
  static constexpr bool single = std::is_same_v<T, float>;

  /// The same bits, but any nan for nan.
  static void expect(Kernel<T> kernel, const std::vector<std::pair<T, T>>& values) {
    for (const auto& [x, truth] : values) {
      T y = 0;
      kernel(&x, &y, 1);
      if (std::isnan(truth)) {
        EXPECT_TRUE(std::isnan(y)) << "at " << x << ": " << y;
      } else {
        EXPECT_EQ(bits_of(y), bits_of(truth)) << "at " << x << ": " << y << " for " << truth;
      }
    }
  }
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(VectorizedMathValuesTest, Types);

TYPED_TEST(VectorizedMathValuesTest, ExpOverflowsToInfinityAndUnderflowsGraduallyToZero) {
  using T = TypeParam;
  const T overflow = T(this->single ? 88.72284 : 709.782712893385);
  const T smallest = T(this->single ? -103.97 : -745.13), underflow = T(this->single ? -103.98 : -745.14);
  this->expect(kernels::exp<T>, {{0, 1},
                                 {-T(0), 1},
                                 {this->denormal, 1},
                                 {-this->denormal, 1},
                                 {overflow, this->infinity},
                                 {this->max, this->infinity},
                                 {this->infinity, this->infinity},
                                 {smallest, this->denormal},
                                 {underflow, 0},
                                 {-this->max, 0},
                                 {-this->infinity, 0},
                                 {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, LogHasAPoleAtZeroAndIsNanBelow) {
  using T = TypeParam;
  this->expect(kernels::log<T>, {{1, 0},
                                 {0, -this->infinity},
                                 {-T(0), -this->infinity},
                                 {-this->denormal, this->nan},
                                 {-1, this->nan},
                                 {-this->infinity, this->nan},
                                 {this->infinity, this->infinity},
                                 {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, TanhKeepsSignedZeroAndDenormalsAndEndsAtOne) {
  using T = TypeParam;
  this->expect(kernels::tanh<T>, {{0, 0},
                                  {-T(0), -T(0)},
                                  {this->denormal, this->denormal},
                                  {-this->denormal, -this->denormal},
                                  {20, 1},
                                  {-20, -1},
                                  {this->max, 1},
                                  {this->infinity, 1},
                                  {-this->infinity, -1},
                                  {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, ErfKeepsSignedZeroAndDenormalsAndEndsAtOne) {
  using T = TypeParam;
  this->expect(kernels::erf<T>, {{0, 0},
                                 {-T(0), -T(0)},
                                 {this->denormal, this->denormal},
                                 {-this->denormal, -this->denormal},
                                 {6, 1},
                                 {-6, -1},
                                 {this->max, 1},
                                 {this->infinity, 1},
                                 {-this->infinity, -1},
                                 {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, Expm1AndLog1pKeepSignedZeroAndDenormals) {
  using T = TypeParam;
  this->expect(kernels::expm1<T>, {{0, 0},
                                   {-T(0), -T(0)},
                                   {this->denormal, this->denormal},
                                   {-this->denormal, -this->denormal},
                                   {this->max, this->infinity},
                                   {this->infinity, this->infinity},
                                   {-this->max, -1},
                                   {-this->infinity, -1},
                                   {this->nan, this->nan}});
  this->expect(kernels::log1p<T>, {{0, 0},
                                   {-T(0), -T(0)},
                                   {this->denormal, this->denormal},
                                   {-this->denormal, -this->denormal},
                                   {-1, -this->infinity},
                                   {-2, this->nan},
                                   {this->infinity, this->infinity},
                                   {-this->infinity, this->nan},
                                   {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, SinKeepsSignedZeroAndDenormalsAndCosBeginsAtOne) {
  using T = TypeParam;
  this->expect(kernels::sin<T>, {{0, 0},
                                 {-T(0), -T(0)},
                                 {this->denormal, this->denormal},
                                 {-this->denormal, -this->denormal},
                                 {this->infinity, this->nan},
                                 {-this->infinity, this->nan},
                                 {this->nan, this->nan}});
  this->expect(kernels::cos<T>, {{0, 1},
                                 {-T(0), 1},
                                 {this->denormal, 1},
                                 {-this->denormal, 1},
                                 {this->infinity, this->nan},
                                 {-this->infinity, this->nan},
                                 {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, SinAndCosMayReplaceTheirArguments) {
  using T = TypeParam;
  std::vector<T> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(i) * T(i % 300 == 0 ? 1e8 : 0.37);
  for (const Kernel<T> kernel : {kernels::sin<T>, kernels::cos<T>}) {
    std::vector<T> apart(x.size()), inside = x;
    kernel(x.data(), apart.data(), x.size());
    kernel(inside.data(), inside.data(), x.size());
    EXPECT_EQ(inside, apart);
  }
}

TYPED_TEST(VectorizedMathValuesTest, SqrtKeepsSignedZeroAndIsNanBelow) {
  using T = TypeParam;
  this->expect(kernels::sqrt<T>, {{0, 0},
                                  {-T(0), -T(0)},
                                  {4, 2},
                                  {-this->denormal, this->nan},
                                  {-this->infinity, this->nan},
                                  {this->infinity, this->infinity},
                                  {this->nan, this->nan}});
}

TYPED_TEST(VectorizedMathValuesTest, ResultsDoNotDependOnThePositionInTheArray) {
  using T = TypeParam;
  constexpr std::size_t length = 67;  // four vectors of the widest registers in float, and a tail of 3
  const Kernel<T> all[] = {kernels::exp<T>,   kernels::expm1<T>,     kernels::log<T>,
                           kernels::log1p<T>, kernels::tanh<T>,      kernels::erf<T>,
                           kernels::sqrt<T>,  kernels::sin<T>,       kernels::cos<T>,
                           kernels::gelu<T>,  kernels::silu<T>,      kernels::sigmoid<T>,
                           kernels::rsqrt<T>, kernels::gelu_tanh<T>, kernels::log_sigmoid<T>};
  const GradKernel<T> grads[] = {
      kernels::gelu_grad<T>,        kernels::gelu_tanh_grad<T>, kernels::silu_grad<T>,
      kernels::tanh_grad<T>,        kernels::sigmoid_grad<T>,   kernels::erf_grad<T>,
      kernels::log_sigmoid_grad<T>, kernels::rsqrt_grad<T>,     kernels::sqrt_grad<T>,
      kernels::sin_grad<T>,         kernels::cos_grad<T>};
  std::mt19937_64 random(1);
  std::normal_distribution<T> normal(0, 3);
  for (int sample = 0; sample < 1000; ++sample) {
    const std::vector<T> x(length, normal(random)), dy(length, normal(random));
    const auto expect_equal = [&](const auto& kernel) {
      T alone = 0;
      kernel(&alone, 1);
      std::vector<T> y(length);
      kernel(y.data(), length);
      const bool same =
          std::all_of(y.begin(), y.end(), [alone](T other) { return bits_of(other) == bits_of(alone); });
      EXPECT_TRUE(same || std::isnan(alone)) << "at " << x[0] << " " << dy[0];
    };
    for (const Kernel<T> kernel : all) expect_equal([&](T* y, std::size_t n) { kernel(x.data(), y, n); });
    for (const GradKernel<T> kernel : grads)
      expect_equal([&](T* dx, std::size_t n) { kernel(dy.data(), x.data(), dx, n); });
    ASSERT_FALSE(this->HasFailure());
  }
}

TEST(VectorizedMathTest, CoarseGeluIsWithinItsErrorEverywhere) {
  constexpr float inf = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  const auto gelu = [](float x) {
    xgrad::kernels::vectorized::coarse_gelu(x);
    return x;
  };
  double largest = 0;
  for (int i = -1 << 20; i <= 1 << 20; ++i) {  // from -16 to 16
    const double x = i * 0x1p-16;
    largest = std::max(
        largest, std::abs(double{gelu(static_cast<float>(x))} - x * std::erfc(-x * std::sqrt(0.5)) / 2));
  }
  EXPECT_LE(largest, 3e-5);
  EXPECT_GE(largest, 1e-5);  // what it is for: fewer operations than an exact one needs
  EXPECT_EQ(gelu(0), 0);
  EXPECT_EQ(gelu(most), most);
  EXPECT_NEAR(gelu(-most), 0, 3e-5);
  EXPECT_EQ(gelu(inf), inf);
  EXPECT_TRUE(std::isnan(gelu(std::nanf(""))));
}

}  // namespace vectorized_math_test
