#include "special.hpp"

#include <math.h>  // lgamma_r

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr std::size_t call_cost = 64;      // of a call of <cmath>, in additions, which wait for memory
constexpr std::size_t special_cost = 512;  // of a loop of such calls

/// y[i] = f(x[i]), one after the other.
template <typename T, typename F>
void map(const T* x, T* y, std::size_t n, std::size_t cost, const F& f) {
  parallel_pieces(n, cost, [=, &f](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

/// Not std::lgamma, which writes the sign to a global variable.
double lgamma_of(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

/// An approximation to 2 parts in a thousand (S. Winitzki 2008, "A handy approximation for the error function
/// and its inverse"), and three steps of Halley's method on erf, or on erfc where that tells more.
double erfinv_of(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude < 1)) return magnitude == 1 ? std::copysign(infinity, x) : nan;
  constexpr double a = 0.147;
  const double logarithm = std::log((1 - magnitude) * (1 + magnitude));
  const double b = 2 / (std::numbers::pi * a) + logarithm / 2;
  double y = std::sqrt(std::sqrt(b * b - logarithm / a) - b);
  for (int step = 0; step < 3; ++step) {
    const double error = magnitude < 0.5 ? std::erf(y) - magnitude : (1 - magnitude) - std::erfc(y);
    const double newton = error * std::exp(y * y) * (0.5 / std::numbers::inv_sqrtpi);
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

/// cot(pi x) for |x| <= 1/2, where that at 1/2 is 0.
double cotangent_of_half_turns(double x) {
  const double magnitude = std::fabs(x);
  const double y = magnitude > 0.25 ? std::tan(std::numbers::pi * (0.5 - magnitude))
                                    : 1 / std::tan(std::numbers::pi * magnitude);
  return std::copysign(y, x);
}

/// Derivatives of digamma, psi_n(x), by formulas of Abramowitz and Stegun, "Handbook of Mathematical
/// Functions".
class Polygamma {
 public:
  explicit Polygamma(unsigned order)
      : order_(order),
        sign_(order % 2 == 0 ? -1 : 1),
        factorial_(std::tgamma(order + 1.0)),
        cotangent_{0, 1} {
    // derivative k + 1 of cot is -(1 + c^2) P', where P(c) is derivative k and c the cotangent
    for (unsigned k = 0; k < order; ++k) {
      std::vector<double> next(cotangent_.size() + 1, 0.0);
      for (std::size_t power = 1; power < cotangent_.size(); ++power) {
        const double slope = -static_cast<double>(power) * cotangent_[power];
        next[power - 1] += slope;
        next[power + 1] += slope;
      }
      cotangent_ = std::move(next);
    }
  }

  double operator()(double x) const {
    if (x <= 0 && x == std::floor(x)) return pole(x);
    return x < 0 ? reflected(x) : of_positive(x);
  }

 private:
  /// At the integers up to 0: digamma's limit from x's side of 0, and nan where its sides differ; of the
  /// derivatives that from above.
  double pole(double x) const {
    if (order_ > 0) return sign_ * infinity;
    return x == 0 ? std::copysign(infinity, -x) : nan;
  }

  /// psi_n(x) = (-1)^n psi_n(1 - x) - pi (d / dx)^n cot(pi x) (6.4.7).
  double reflected(double x) const {
    const double cotangent = cotangent_of_half_turns(x - std::nearbyint(x));
    double derivative = 0;
    for (std::size_t power = cotangent_.size(); power-- > 0;)
      derivative = derivative * cotangent + cotangent_[power];
    return -sign_ * of_positive(1 - x) - std::pow(std::numbers::pi, order_ + 1.0) * derivative;
  }

  /// The recurrence psi_n(x) = psi_n(x + 1) - (-1)^n n! / x^(n + 1) (6.4.6) up to where the asymptotic series
  /// (6.3.18, 6.4.11) has full precision.
  double of_positive(double x) const {
    const double n = order_;
    double sum = 0;
    for (; x < 12 + 2 * n; x += 1) sum += power(x);
    // B_2 / 2, B_4 / 4!, ... and B_2k (2k + n - 1)! / (2k)! / x^(2k + n) from the term before
    constexpr double bernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                    5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
    sum += 0.5 * power(x);
    double factor = (n + 1) / 2 * power(x) / x;
    double k = 1;
    for (const double b : bernoulli) {
      sum += b * factor;
      factor *= (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2)) / (x * x);
      ++k;
    }
    return sign_ * (sum + (order_ == 0 ? -std::log(x) : factorial_ / n * std::pow(x, -n)));
  }

  /// n! / x^(n + 1).
  double power(double x) const { return order_ == 0 ? 1 / x : factorial_ * std::pow(x, -(order_ + 1.0)); }

  unsigned order_;
  double sign_, factorial_;
  std::vector<double> cotangent_;  // of powers of the cotangent, in its derivative number `order`
};

}  // namespace

#define XGRAD_CALLS(name, cost, ...)                          \
  template <typename T>                                       \
  void name(const T* x, T* y, std::size_t n) {                \
    map(x, y, n, cost, [](T x) -> T { return __VA_ARGS__; }); \
  }                                                           \
  template decltype(name<float>) name<float>;                 \
  template decltype(name<double>) name<double>;

XGRAD_CALLS(tan, call_cost, std::tan(x))
XGRAD_CALLS(asin, call_cost, std::asin(x))
XGRAD_CALLS(acos, call_cost, std::acos(x))
XGRAD_CALLS(atan, call_cost, std::atan(x))
XGRAD_CALLS(sinh, call_cost, std::sinh(x))
XGRAD_CALLS(cosh, call_cost, std::cosh(x))
XGRAD_CALLS(asinh, call_cost, std::asinh(x))
XGRAD_CALLS(acosh, call_cost, std::acosh(x))
XGRAD_CALLS(atanh, call_cost, std::atanh(x))
XGRAD_CALLS(exp2, call_cost, std::exp2(x))
XGRAD_CALLS(log2, call_cost, std::log2(x))
XGRAD_CALLS(log10, call_cost, std::log10(x))
XGRAD_CALLS(erfc, call_cost, std::erfc(x))
XGRAD_CALLS(erfinv, special_cost, static_cast<T>(erfinv_of(x)))
XGRAD_CALLS(lgamma, call_cost, static_cast<T>(lgamma_of(x)))

template <typename T>
void polygamma(const T* x, T* y, std::size_t n, unsigned order) {
  map(x, y, n, special_cost, [f = Polygamma(order)](T element) { return static_cast<T>(f(element)); });
}
template decltype(polygamma<float>) polygamma<float>;
template decltype(polygamma<double>) polygamma<double>;

}  // namespace xgrad::kernels
