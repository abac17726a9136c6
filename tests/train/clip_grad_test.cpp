#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include <xgrad/train/clip_grad.hpp>

#include "expect_error.hpp"
#include "optim_cases.hpp"

namespace clip_grad_test {

using nlohmann::json;
using xgrad::Array, xgrad::Variable;
using xgrad_tests::array_of, xgrad_tests::expect_near, xgrad_tests::message_of, xgrad_tests::number_of;

/// Parameters with these gradients.
template <class T>
std::vector<Variable<T>> with_gradients(const json& gradients) {
  std::vector<Variable<T>> parameters;
  for (const json& gradient : gradients) {
    parameters.emplace_back(Array<T>({gradient.size()}, T{0}), true);
    parameters.back().backward(Variable<T>(array_of<T>(gradient, parameters.back().shape())));
  }
  return parameters;
}

template <class T>
void run_cases(double tolerance) {
  for (const json& test : xgrad_tests::optim_cases().at("clips")) {
    SCOPED_TRACE(test.dump());
    std::vector<Variable<T>> parameters = with_gradients<T>(test.at("gradients"));
    parameters.emplace_back(T{1}, true);  // has no gradient
    const double limit = number_of(test.at("limit"));
    if (test.at("call") == "clip_grad_norm") {
      const double norm = clip_grad_norm(parameters, limit);
      expect_near(Array<double>{norm}, json::array({test.at("norm")}), tolerance, "norm");
    } else {
      clip_grad_value(parameters, limit);
    }
    for (std::size_t i = 0; i + 1 < parameters.size(); ++i) {
      expect_near(parameters[i].grad().value(), test.at("clipped")[i], tolerance,
                  "gradient " + std::to_string(i));
    }
    EXPECT_FALSE(parameters.back().has_grad());
  }
}

TEST(ClipGradTest, DoesAsPyTorchDoes) {
  run_cases<double>(1e-15);
  run_cases<float>(1e-7);
}

TEST(ClipGradTest, OfNoGradientsIsZero) {
  EXPECT_EQ(xgrad::clip_grad_norm<float>({Variable<float>(1.0F, true)}, 1), 0);
}

TEST(ClipGradTest, RefusesANormThatIsNotFinite) {
  for (const char* bad : {"nan", "inf"}) {
    const std::vector<Variable<double>> parameters = with_gradients<double>({{3, 1}, {bad, 2}});
    EXPECT_EQ(message_of<std::runtime_error>(
                  [&] { clip_grad_norm(parameters, 1.0, {.error_if_nonfinite = true}); }),
              std::string("clip_grad_norm: the norm of the gradients must be finite, got ") + bad);
    EXPECT_EQ(parameters[0].grad().value(), (Array<double>{3, 1}));
  }
  const std::vector<Variable<double>> parameters = with_gradients<double>({{3, 4}});
  EXPECT_DOUBLE_EQ(clip_grad_norm(parameters, 10.0, {.error_if_nonfinite = true}), 5);
}

TEST(ClipGradTest, RefusesBadLimits) {
  const std::vector<Variable<double>> parameters = with_gradients<double>({{3, 4}});
  EXPECT_EQ(message_of([&] { clip_grad_norm(parameters, -1.0); }),
            "clip_grad_norm: max_norm must be at least 0, got -1");
  EXPECT_EQ(message_of([&] { clip_grad_norm(parameters, std::nan("")); }),
            "clip_grad_norm: max_norm must be at least 0, got nan");
  EXPECT_EQ(message_of([&] { clip_grad_value(parameters, std::nan("")); }),
            "clip_grad_value: clip_value must be at least 0, got nan");
}

TEST(ClipGradTest, TheNormOfDoublesDoesNotLeaveTheRangeWithTheirSquares) {
  for (const double size : {1e200, 1e-200}) {
    const std::vector<Variable<double>> parameters = with_gradients<double>({{3 * size, 0}, {4 * size}});
    EXPECT_NEAR(clip_grad_norm(parameters, 1.0) / size, 5, 1e-12) << size;
    const double clipped = size > 1 ? 0.8 : 4 * size;  // those of the second are below the limit
    EXPECT_NEAR(parameters[1].grad().value()(0) / clipped, 1, 1e-12) << size;
  }
}

}  // namespace clip_grad_test
