// What every op must do, for each row of the table; and that no op lacks its row.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>

#include <gtest/gtest.h>

#include <xgrad/autograd/check_op.hpp>

#include "../../files.hpp"
#include "../../keep_num_threads.hpp"
#include "draw.hpp"
#include "expect_near.hpp"
#include "op.hpp"

namespace xgrad_tests::every_op_test {

std::vector<Array<double>> draw(const std::vector<Input>& inputs, std::mt19937_64& random) {
  std::vector<Array<double>> drawn;
  for (const Input& input : inputs) drawn.push_back(draw(input, random));
  return drawn;
}

template <class T>
Inputs<T> leaves(const std::vector<Array<double>>& elements) {
  Inputs<T> result;
  for (const Array<double>& one : elements) result.emplace_back(Array<T>(xt::cast<T>(one)), true);
  return result;
}

/// The seed that y's gradient starts from.
template <class T>
Variable<T> seed_like(const Variable<T>& y) {
  std::mt19937_64 random(y.size());
  return Array<T>(xt::cast<T>(draw(Input(y.shape(), {-1.5, 1.5, 0.5}), random)));
}

/// The gradients of y, of zeros for inputs that it does not depend on.
template <class T>
std::vector<Array<T>> gradients(const Variable<T>& y, const Inputs<T>& inputs) {
  std::vector<Array<T>> result;
  Inputs<T> found(inputs.size());
  if (y.requires_grad()) found = grad(y, inputs, {.seed = seed_like(y), .allow_unused = true});
  for (std::size_t i = 0; i < inputs.size(); ++i)
    result.push_back(found[i].defined() ? found[i].value() : Array<T>(inputs[i].shape(), T{0}));
  return result;
}

class OpTest : public testing::TestWithParam<std::size_t> {
 protected:
  const Op& op() const { return op_table()[GetParam()]; }

  /// Calls check(case, its inputs' elements) for each case of the row.
  template <class Check>
  void for_each_case(Check&& check) const {
    for (std::size_t i = 0; i < op().cases.size(); ++i) {
      const Case& sample = op().cases[i];
      std::string trace = "case " + std::to_string(i) + " of " + op().name + ", inputs";
      for (const Input& input : sample.inputs) trace += " " + xgrad::to_string(input.shape);
      SCOPED_TRACE(trace);
      std::mt19937_64 random(i + 1);
      check(sample, draw(sample.inputs, random));
    }
  }

  static xgrad::GradcheckOptions options(const Case& sample) {
    std::size_t count = 0;
    for (const Input& input : sample.inputs) count += xgrad::element_count(input.shape);
    return {.projections = count > 200 ? 8u : 0u, .seed = count};
  }
};

TEST_P(OpTest, ValueAgreesWithTheReference) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    const Array<double> expected = sample.reference(elements);
    expect_near(sample.in_double(leaves<double>(elements)).value(), expected, 1e-12, "double");
    expect_near(sample.in_float(leaves<float>(elements)).value(), expected, 1e-5, "float");
  });
}

TEST_P(OpTest, PassesCheckOp) {
  for_each_case([this](const Case& sample, const std::vector<Array<double>>& elements) {
    const auto report = check_op(sample.in_double, leaves<double>(elements),
                                 {.gradcheck = options(sample),
                                  .in_float = sample.in_float,
                                  .nan = op().passes_nan_on,
                                  .empty = op().takes_any_length,
                                  .wrong_shapes = op().takes_any_length});
    EXPECT_TRUE(report) << report.text();
  });
}

TEST_P(OpTest, TheSameVariableMayBeTwoInputs) {
  for_each_case([](const Case& sample, std::vector<Array<double>> elements) {
    for (std::size_t i = 1; i < elements.size(); ++i) {
      if (sample.inputs[i].shape != sample.inputs[0].shape) continue;
      elements[0] = elements[i];  // whose range may be the narrower one
      const Inputs<double> apart = leaves<double>(elements);
      Inputs<double> together = apart;
      together[i] = together[0];
      const auto expected = gradients(sample.in_double(apart), apart);
      const auto report = gradients(sample.in_double(together), {together[0]});
      expect_near(report[0], Array<double>(expected[0] + expected[i]), 1e-12, "gradient");
    }
  });
}

TEST_P(OpTest, UndefinedInputsAreRefusedOrOptional) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Inputs<float> x = leaves<float>(elements);
      x[i] = {};
      const std::string message = message_of<xgrad::GraphError>([&] { sample.in_float(x); });
      EXPECT_TRUE(message == "no exception" || message == "value: the variable is undefined (moved from?)")
          << message;
    }
  });
}

TEST_P(OpTest, BadArgumentsAreRefusedWithTheirShapes) {
  for (const ErrorCase& one : op().errors) EXPECT_EQ(one.message(), one.expected);
}

// Large arrays

/// Elements so far from each other and from whole numbers that no step of a difference passes a kink.
Array<double> on_grid(Array<double> x) {
  for (double& element : x.storage()) element = (std::floor(element * 0x1p18) + 0.5) * 0x1p-18;
  return x;
}

/// The derivative of sum(seed f(x)) along a direction, from a difference.
double slope(const Reference& f, const std::vector<Array<double>>& x,
             const std::vector<Array<double>>& direction, const Array<double>& seed) {
  constexpr double step = 1e-6;
  const auto moved = [&](double distance) {
    std::vector<Array<double>> at = x;
    for (std::size_t i = 0; i < at.size(); ++i) at[i] += distance * direction[i];
    return f(at);
  };
  const Array<double> up = moved(step), down = moved(-step);
  long double total = 0;
  for (std::size_t k = 0; k < up.size(); ++k) total += seed.data()[k] * (up.data()[k] - down.data()[k]);
  return static_cast<double>(total / (2 * step));
}

/// sum(direction gradients) and the root of the sum of its squared terms: one element that is wrong by a
/// millionth of that is noticed.
std::pair<double, double> product(const std::vector<Array<double>>& direction,
                                  const std::vector<Array<double>>& gradients) {
  long double total = 0, squares = 0;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    for (std::size_t k = 0; k < direction[i].size(); ++k) {
      const double term = direction[i].data()[k] * gradients[i].data()[k];
      total += term;
      squares += term * term;
    }
  }
  return {static_cast<double>(total), static_cast<double>(std::sqrt(squares))};
}

/// |a - b| <= tolerance times the largest of all of b: gradients of an op, some of which may be 0.
void expect_near_in_scale(const std::vector<Array<float>>& a, const std::vector<Array<double>>& b,
                          double tolerance) {
  double largest = 0;
  for (const Array<double>& one : b) {
    for (const double element : one.storage()) largest = std::max(largest, std::abs(element));
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t k = 0; k < b[i].size(); ++k) {
      ASSERT_LE(std::abs(a[i].data()[k] - b[i].data()[k]), tolerance * largest)
          << "gradient " << i << " in float, element " << k;
    }
  }
}

/// The bits of the value and the gradients are those of the first call, which it keeps.
template <class T>
void expect_bits_of_first(std::vector<Array<T>>& first, const Variable<T>& y, std::vector<Array<T>> grads) {
  grads.push_back(y.value());
  if (first.empty()) first = grads;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    SCOPED_TRACE(i + 1 == grads.size() ? "bits of the value" : "bits of gradient " + std::to_string(i));
    expect_same_bits(grads[i], first[i]);
  }
}

void check_large(const Case& sample, std::mt19937_64& random) {
  std::vector<Array<double>> elements, direction;
  for (const Array<double>& drawn : draw(sample.inputs, random)) {
    elements.push_back(on_grid(drawn));
    direction.push_back(draw(Input(drawn.shape(), {-1.5, 1.5, 0.5}), random));
  }
  const Array<double> expected = sample.reference(elements);
  const Array<double> seed = seed_like(Variable<double>(expected)).value();
  const double expected_slope = slope(sample.reference, elements, direction, seed);
  const KeepNumThreads keep;
  std::vector<Array<double>> first;
  std::vector<Array<float>> first_float;
  for (const std::size_t threads : {1, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    xgrad::set_num_threads(threads);
    const Inputs<double> x = leaves<double>(elements);
    const Variable<double> y = sample.in_double(x);
    expect_near(y.value(), expected, 1e-12, "double");
    const auto grads = gradients(y, x);
    const auto [found_slope, scale] = product(direction, grads);
    EXPECT_NEAR(found_slope, expected_slope, 1e-6 * scale + 1e-10);

    const Inputs<float> x_float = leaves<float>(elements);
    const Variable<float> y_float = sample.in_float(x_float);
    expect_near(y_float.value(), expected, 1e-5, "float");
    const auto grads_float = gradients(y_float, x_float);
    expect_near_in_scale(grads_float, grads, 5e-5);

    expect_bits_of_first(first, y, grads);
    expect_bits_of_first(first_float, y_float, grads_float);
  }
}

TEST_P(OpTest, LargeArraysAgreeWithTheReference) {
  for (std::size_t i = 0; i < op().large.size(); ++i) {
    std::string trace = "large case " + std::to_string(i) + " of " + op().name + ", inputs";
    for (const Input& input : op().large[i].inputs) trace += " " + xgrad::to_string(input.shape);
    SCOPED_TRACE(trace);
    std::mt19937_64 random(i + 1);
    check_large(op().large[i], random);
  }
}

// Far from 0

/// The value at x, the first two derivatives, and the first one of a call that is not recorded again.
template <class T>
std::vector<T> taylor(const Function<T>& f, float at) {
  const Inputs<T> x{Variable<T>(static_cast<T>(at), true)};
  const Variable<T> y = f(x);
  const Variable<T> slope = grad(y, x, {.create_graph = true})[0];
  const Variable<T> bend = slope.requires_grad() ? grad(slope, x, {.allow_unused = true})[0] : Variable<T>();
  return {y.item(), slope.item(), bend.defined() ? bend.item() : T{0}, grad(f(x), x)[0].item()};
}

bool agree(float found, double expected, double tolerance) {
  using Limits = std::numeric_limits<float>;
  if (std::isnan(expected)) return std::isnan(found);
  if (std::abs(expected) > Limits::max())
    return std::isinf(found) && std::signbit(found) == std::signbit(expected);
  if (std::abs(expected) < Limits::min()) return std::abs(found) <= Limits::min();
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

TEST_P(OpTest, FloatAgreesWithDoubleFarFromZero) {
  const char* const what[] = {"value", "derivative", "second derivative", "derivative, not recorded"};
  for (std::size_t form = 0; form < op().tails.size(); ++form) {
    for (const float size : {0.f,  1e-20f, 1e-8f, 1e-3f, 0.3f, 0.99f, 1.f,  1.5f,  3.f,     5.5f, 8.f,
                             9.5f, 13.f,   17.f,  30.f,  60.f, 80.f,  1e4f, 1e10f, 1.8e19f, 1e30f}) {
      for (const float x : {size, -size}) {
        const auto found = taylor<float>(op().tails[form].in_float, x);
        const auto expected = taylor<double>(op().tails[form].in_double, x);
        // e^x and e^(x^2) turn the rounding of their exponent into a part of the result
        const double tolerance = 2e-6 * (1 + std::min(100.0f, x * x));
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(agree(found[i], expected[i], tolerance))
              << op().name << ", form " << form << ", " << what[i] << " at " << x << ": " << found[i]
              << ", in double " << expected[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, OpTest, testing::Range(std::size_t{0}, op_table().size()), [](const auto& info) {
  std::string name = op_table()[info.param].name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Rows for all

/// The headers of ops/*/, without their ending: "norm/softmax".
std::vector<std::string> op_headers() {
  std::vector<std::string> headers;
  for (const auto& room : std::filesystem::directory_iterator(XGRAD_SOURCE_DIR "/ops")) {
    if (room.path().filename() == "detail") continue;
    for (const auto& file : std::filesystem::directory_iterator(room)) {
      if (file.path().extension() == ".hpp") headers.push_back(room.path().filename() / file.path().stem());
    }
  }
  return headers;
}

std::string stem_of(const std::string& header) { return std::filesystem::path(header).filename(); }

/// What the header declares for users.
std::string declarations(const std::string& header) {
  std::ifstream file(XGRAD_SOURCE_DIR "/ops/" + header + ".hpp");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(text.empty()) << header;
  return text.substr(0, std::min(text.find("namespace detail"), text.find("namespace ops")));
}

bool has_row(const std::string& stem, const std::string& function) {
  for (const Op& op : op_table()) {
    if (op.name == stem + "." + function || (op.name == stem && function == stem)) return true;
  }
  return false;
}

bool is_drawn(const std::string& function) {
  return std::any_of(draw_table().begin(), draw_table().end(),
                     [&](const Draw& draw) { return draw.op == function; });
}

TEST(OpTableTest, EveryHeaderHasARow) {
  const std::regex function("\n(?!struct|class|template|namespace|using|#|/)\\w[^\n]*\\(");
  EXPECT_GE(op_headers().size(), 14u);
  for (const std::string& header : op_headers()) {
    if (!std::regex_search(declarations(header), function)) continue;  // types alone
    if (header == "product/matmul_precision") continue;                // a setting
    const std::string stem = stem_of(header);
    bool found = false;
    for (const Op& op : op_table()) found = found || op.name == stem || op.name.starts_with(stem + ".");
    EXPECT_TRUE(found) << "ops/" << header << ".hpp has no row in tests/ops/" << header << ".cpp";
    EXPECT_TRUE(std::filesystem::exists(XGRAD_SOURCE_DIR "/tests/ops/" + header + ".cpp")) << header;
  }
}

TEST(OpTableTest, EveryFunctionOfAHeaderHasARowAndIsDrawn) {
  const std::regex declaration("\n(?:std::vector<)?[A-Z]\\w+<T>>? (\\w+)\\(");
  for (const std::string& header : op_headers()) {
    const std::string text = declarations(header);
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found) {
      const std::string function = (*found)[1];
      EXPECT_TRUE(has_row(stem_of(header), function))
          << "ops/" << header << ".hpp: " << function << " has no row in tests/ops/" << header << ".cpp";
      EXPECT_TRUE(is_drawn(function))
          << "ops/" << header << ".hpp: " << function << " has no draw in tests/ops/" << header << ".cpp";
    }
  }
}

TEST(OpTableTest, EveryCaseIsCheckedInBothPrecisions) {
  for (const Op& op : op_table()) {
    EXPECT_GE(op.cases.size(), 3u) << op.name;
    EXPECT_GE(op.large.size(), 1u) << op.name;
    for (const Case& sample : op.cases)
      EXPECT_TRUE(sample.in_float && sample.in_double && sample.reference) << op.name;
  }
}

}  // namespace xgrad_tests::every_op_test
