// Kernels that no op's row reaches, on arrays that are divided among threads, against plain loops.

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/kernels/index/gather.hpp>
#include <xgrad/kernels/pointwise/binary.hpp>
#include <xgrad/kernels/pointwise/optimizer.hpp>
#include <xgrad/kernels/rows/reduce.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "keep_num_threads.hpp"

namespace large_arrays_test {

namespace kernels = xgrad::kernels;

template <class T>
class LargeArraysTest : public testing::Test {
 protected:
  /// Calls check() with one thread and with several.
  template <class Check>
  void with_threads(const Check& check) const {
    for (const std::size_t threads : {1, 3}) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      xgrad::set_num_threads(threads);
      check();
    }
  }

  std::vector<T> numbers(std::size_t count, double low = -2) {
    std::uniform_real_distribution<double> uniform(low, 2);
    std::vector<T> drawn(count);
    for (T& number : drawn) number = static_cast<T>(uniform(random_));
    return drawn;
  }

  static void expect_equal(const std::vector<T>& found, const std::vector<double>& expected,
                           const char* what) {
    const double tolerance = 16 * std::numeric_limits<T>::epsilon();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i])))
          << what << " " << i << " of " << expected.size();
    }
  }

 private:
  xgrad_tests::KeepNumThreads keep_;
  std::mt19937_64 random_{0};
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LargeArraysTest, Types, );

/// One piece, and several with a rest.
constexpr std::size_t counts[] = {0, 1, 1023, 131073, 330001};

TYPED_TEST(LargeArraysTest, SquaredNorm) {
  using T = TypeParam;
  for (const std::size_t n : {0, 1, 1024, 1025, 131073, 330001, 1100001}) {
    const std::vector<T> x = this->numbers(n);
    long double expected = 0;
    for (const T v : x) expected += static_cast<long double>(v) * v;
    this->with_threads([&] {
      EXPECT_NEAR(kernels::squared_norm(x.data(), n), static_cast<double>(expected),
                  1e-12 * static_cast<double>(expected))
          << n;
    });
  }
}

TYPED_TEST(LargeArraysTest, Dot) {
  using T = TypeParam;
  for (const std::size_t n : {0, 1, 1024, 1025, 131073, 330001, 1100001}) {
    const std::vector<T> a = this->numbers(n), b = this->numbers(n);
    long double expected = 0, sizes = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const long double product = static_cast<long double>(a[i]) * b[i];
      expected += product;
      sizes += std::abs(product);
    }
    this->with_threads([&] {
      EXPECT_NEAR(kernels::dot(a.data(), b.data(), n), static_cast<double>(expected),
                  1e-12 * static_cast<double>(sizes))
          << n;
    });
  }
}

TYPED_TEST(LargeArraysTest, AddScaled) {
  using T = TypeParam;
  for (const std::size_t n : counts) {
    const std::vector<T> x = this->numbers(n), d = this->numbers(n);
    std::vector<double> expected;
    for (std::size_t i = 0; i < n; ++i) expected.push_back(x[i] + 0.75 * d[i]);
    this->with_threads([&] {
      std::vector<T> y = x;
      kernels::add_scaled(y.data(), T(0.75), d.data(), y.data(), n);
      this->expect_equal(y, expected, "y");
    });
  }
}

TYPED_TEST(LargeArraysTest, StepsOfSgd) {
  using T = TypeParam;
  for (const kernels::SgdStep& step : {kernels::SgdStep{0.1, 0, 0, 0, false, true, false},
                                       {0.1, 0, 0, 0.01, false, false, true},
                                       {0.1, 0.9, 0, 0.01, false, true, false},
                                       {0.1, 0.9, 0.5, 0.01, false, true, false},
                                       {0.1, 0.9, 0.5, 0.01, false, false, true},
                                       {0.1, 0.9, 0, 0.01, true, true, false},
                                       {0.1, 0.9, 0, 0, true, false, false}}) {
    for (const std::size_t n : counts) {
      const std::vector<T> g = this->numbers(n), p = this->numbers(n), v = this->numbers(n);
      std::vector<double> expected, velocity;
      for (std::size_t i = 0; i < n; ++i) {
        const double gradient = (step.maximize ? -g[i] : g[i]) + step.weight_decay * p[i];
        velocity.push_back(step.first ? gradient : step.momentum * v[i] + (1 - step.dampening) * gradient);
        const double direction = step.momentum == 0 ? gradient
                                 : step.nesterov    ? gradient + step.momentum * velocity[i]
                                                    : velocity[i];
        expected.push_back(p[i] - step.lr * direction);
      }
      this->with_threads([&] {
        std::vector<T> parameters = p, own = v;
        kernels::sgd_step(step, g.data(), parameters.data(), step.momentum != 0 ? own.data() : nullptr, n);
        this->expect_equal(parameters, expected, "parameter");
        if (step.momentum != 0) this->expect_equal(own, velocity, "velocity");
      });
    }
  }
}

TYPED_TEST(LargeArraysTest, StepsOfAdam) {
  using T = TypeParam;
  using kernels::AdamUpdate;
  for (const AdamUpdate update :
       {AdamUpdate::plain, AdamUpdate::largest, AdamUpdate::with_gradient, AdamUpdate::average}) {
    const bool maximize = update == AdamUpdate::largest;
    const kernels::AdamStep step{0.9, 0.99, 0.98, 0.02, 0.3, 0.2, 0.141, 1e-3, maximize, update};
    for (const std::size_t n : counts) {
      const std::vector<T> g = this->numbers(n), p = this->numbers(n), m = this->numbers(n),
                           v = this->numbers(n, 0.1), high = this->numbers(n, 0.1);
      std::vector<double> expected, first, second, largest;
      for (std::size_t i = 0; i < n; ++i) {
        const double gradient = (maximize ? -g[i] : g[i]) + step.decay * p[i];
        first.push_back(step.beta1 * m[i] + (1 - step.beta1) * gradient);
        second.push_back(step.beta2 * v[i] + (1 - step.beta2) * gradient * gradient);
        largest.push_back(std::max<double>(high[i], second[i]));
        const double square = update == AdamUpdate::largest ? largest[i] : second[i];
        const double denominator =
            update == AdamUpdate::average ? 1 : std::sqrt(square) / step.correction + step.eps;
        const double from_gradient = update == AdamUpdate::with_gradient ? step.gradient_rate * gradient : 0;
        expected.push_back(step.shrink * p[i] - (step.rate * first[i] + from_gradient) / denominator);
      }
      this->with_threads([&] {
        std::vector<T> parameters = p, own_m = m, own_v = v, own_high = high;
        const auto part = [&](std::size_t begin, std::size_t end) -> kernels::AdamArrays<T> {
          return {step,
                  g.data() + begin,
                  parameters.data() + begin,
                  own_m.data() + begin,
                  own_v.data() + begin,
                  update == AdamUpdate::largest ? own_high.data() + begin : nullptr,
                  end - begin};
        };
        const std::size_t third = n / 3;
        kernels::adam_step<T>(std::array{part(0, third), part(third, third), part(third, n)});
        this->expect_equal(own_m, first, "m");
        this->expect_equal(own_v, second, "v");
        this->expect_equal(parameters, expected, "parameter");
        if (update == AdamUpdate::largest) this->expect_equal(own_high, largest, "largest");
      });
    }
  }
}

TYPED_TEST(LargeArraysTest, StepsOfRmspropAndAdagrad) {
  using T = TypeParam;
  const kernels::RmspropStep step{0.1, 0.9, 1e-3, 0.02, 0.8, true};
  for (const std::size_t n : counts) {
    const std::vector<T> g = this->numbers(n), p = this->numbers(n), v = this->numbers(n, 1.5),
                         velocity = this->numbers(n);
    std::vector<T> mean = this->numbers(n);
    for (T& one : mean) one /= 4;  // its square is below v
    std::vector<double> expected, centred, summed;
    for (std::size_t i = 0; i < n; ++i) {
      const double gradient = -g[i] + step.weight_decay * p[i];
      const double square = step.alpha * v[i] + (1 - step.alpha) * gradient * gradient;
      const double average = step.alpha * mean[i] + (1 - step.alpha) * gradient;
      const double change = gradient / (std::sqrt(square - average * average) + step.eps);
      centred.push_back(p[i] - step.lr * (step.momentum * velocity[i] + change));
      expected.push_back(p[i] - step.lr * gradient / (std::sqrt(square) + step.eps));
      summed.push_back(p[i] - step.lr * gradient / (std::sqrt(v[i] + gradient * gradient) + step.eps));
    }
    this->with_threads([&] {
      std::vector<T> parameters = p, own_v = v, own_mean = mean, own_velocity = velocity;
      kernels::rmsprop_step<T>(step, g.data(), parameters.data(), own_v.data(), nullptr, nullptr, n);
      this->expect_equal(parameters, expected, "parameter");
      parameters = p, own_v = v;
      kernels::rmsprop_step(step, g.data(), parameters.data(), own_v.data(), own_mean.data(),
                            own_velocity.data(), n);
      this->expect_equal(parameters, centred, "parameter, centred with momentum");
      parameters = p, own_v = v;
      kernels::adagrad_step({step.lr, step.eps, step.weight_decay, true}, g.data(), parameters.data(),
                            own_v.data(), n);
      this->expect_equal(parameters, summed, "parameter of Adagrad");
    });
  }
}

TYPED_TEST(LargeArraysTest, MovingAverages) {
  using T = TypeParam;
  for (const std::size_t n : counts) {
    const std::vector<T> average = this->numbers(n), x = this->numbers(n);
    std::vector<double> expected;
    for (std::size_t i = 0; i < n; ++i) expected.push_back(0.9 * average[i] + (1 - 0.9) * x[i]);
    this->with_threads([&] {
      std::vector<T> own = average;
      kernels::average_step(own.data(), x.data(), n, 0.9);
      this->expect_equal(own, expected, "average");
    });
  }
}

TYPED_TEST(LargeArraysTest, GradientsAddUpInPlace) {
  using T = TypeParam;
  for (const std::size_t n : counts) {
    const std::vector<T> x = this->numbers(n), y = this->numbers(n);
    std::vector<double> expected;
    for (std::size_t i = 0; i < n; ++i) expected.push_back(static_cast<double>(x[i]) + y[i]);
    this->with_threads([&] {
      std::vector<T> total = y;
      kernels::accumulate(total.data(), x.data(), n);
      this->expect_equal(total, expected, "sum");
    });
  }
}

/// Gradients that meet: at a result, at a leaf, and over calls.
TYPED_TEST(LargeArraysTest, GradientsMeet) {
  using T = TypeParam;
  using V = xgrad::Variable<T>;
  const std::vector<T> elements = this->numbers(330001);
  xgrad::Array<T> array = xgrad::Array<T>::from_shape({elements.size()});
  std::copy(elements.begin(), elements.end(), array.data());
  std::vector<double> expected;
  for (const T x : elements) expected.push_back(2 * (2 * (2 * static_cast<double>(x)) + 3 + 5));
  this->with_threads([&] {
    const V x(array, true);
    for (int call = 0; call < 2; ++call) {
      const V square = x * x;
      sum(square + square + x * 3 + x * 5).backward();
    }
    const xgrad::Array<T> found = x.grad().value();
    this->expect_equal(std::vector<T>(found.data(), found.data() + found.size()), expected, "gradient");
  });
}

/// More rows than one piece of work has.
TYPED_TEST(LargeArraysTest, GradientsOfColumns) {
  using T = TypeParam;
  using V = xgrad::Variable<T>;
  constexpr std::size_t rows = 300001;
  const std::vector<T> elements = this->numbers(2 * rows);
  xgrad::Array<T> seed = xgrad::Array<T>::from_shape({rows, 2});
  std::copy(elements.begin(), elements.end(), seed.data());
  std::vector<double> expected(4 * rows);
  for (std::size_t i = 0; i < elements.size(); ++i) expected[i / 2 * 4 + 1 + i % 2] = elements[i];
  const V x(xgrad::Array<T>(xgrad::Shape{rows, 4}, T(1)), true);
  this->with_threads([&] {
    const xgrad::Array<T> found = grad(narrow(x, 1, 1, 2), {x}, {.seed = V(seed)})[0].value();
    this->expect_equal(std::vector<T>(found.data(), found.data() + found.size()), expected, "gradient");
  });
}

TEST(NarrowIndexTest, RefusesWhatIsOutsideWhereverItIs) {
  constexpr std::size_t n = 1003;
  std::vector<std::int64_t> index(n);
  for (std::size_t i = 0; i < n; ++i) index[i] = static_cast<std::int64_t>(i % 7);
  std::vector<std::uint32_t> narrow(n);
  EXPECT_TRUE(kernels::narrow_index(index.data(), 7, narrow.data(), n));
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(narrow[i], i % 7);
  for (const std::size_t at : {std::size_t{0}, std::size_t{500}, n - 1}) {
    for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{7}, std::int64_t{1} << 32}) {
      std::vector<std::int64_t> changed = index;
      changed[at] = bad;
      EXPECT_FALSE(kernels::narrow_index(changed.data(), 7, narrow.data(), n)) << bad << " at " << at;
    }
  }
}

}  // namespace large_arrays_test
