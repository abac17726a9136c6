// What every op must do, for each row of the table; then what only some of them do.

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/attention_with_weights.hpp>
#include <xgrad/ops/cross_entropy.hpp>
#include <xgrad/ops/dropout.hpp>
#include <xgrad/ops/elementwise.hpp>
#include <xgrad/ops/embedding.hpp>
#include <xgrad/ops/layer_norm.hpp>
#include <xgrad/ops/masked_fill.hpp>
#include <xgrad/ops/reductions.hpp>
#include <xgrad/ops/shapes.hpp>
#include <xgrad/ops/softmax.hpp>

#include "expect_error.hpp"
#include "op_table.hpp"

namespace {

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad_tests::Case, xgrad_tests::ErrorCase, xgrad_tests::Function, xgrad_tests::Input,
    xgrad_tests::Inputs, xgrad_tests::Op;
using xgrad_tests::message_of, xgrad_tests::op_table;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Array<double> draw(const Input& input, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(input.range.low, input.range.high);
  Array<double> x = Array<double>::from_shape(input.shape);
  for (double& element : x.storage()) {
    do {
      element = static_cast<float>(uniform(random));  // the same number in float
    } while (std::abs(element) < input.range.gap);
  }
  return x;
}

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

template <class T>
const Function<T>& function_of(const Case& sample) {
  if constexpr (std::is_same_v<T, float>)
    return sample.in_float;
  else
    return sample.in_double;
}

/// |a - b| <= tolerance (1 + |b|) everywhere; nan equals nan.
template <class A, class B>
void expect_near(const Array<A>& a, const Array<B>& b, double tolerance, const char* what) {
  ASSERT_EQ(xgrad::to_string(a.shape()), xgrad::to_string(b.shape())) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a.data()[i], y = b.data()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::abs(x - y), tolerance * (1 + std::abs(y)))
        << what << ", element " << i << ": " << x << ", not " << y;
  }
}

template <class T>
void expect_same_bits(const Array<T>& a, const Array<T>& b) {
  ASSERT_EQ(xgrad::to_string(a.shape()), xgrad::to_string(b.shape()));
  EXPECT_TRUE(a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The seed that y's gradient starts from.
template <class T>
Variable<T> seed_like(const Variable<T>& y) {
  std::mt19937_64 random(y.size());
  return Array<T>(xt::cast<T>(draw(Input(y.shape(), {-1.5, 1.5, 0.5}), random)));
}

/// The gradients of y, of zeros for inputs that it does not depend on.
template <class T>
std::vector<Array<T>> gradients(const Variable<T>& y, const Inputs<T>& inputs, bool create_graph = false) {
  std::vector<Array<T>> result;
  Inputs<T> found(inputs.size());
  if (y.requires_grad())
    found = grad(y, inputs, {.seed = seed_like(y), .create_graph = create_graph, .allow_unused = true});
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

  xgrad::GradcheckOptions options(const Case& sample) const {
    std::size_t count = 0;
    for (const Input& input : sample.inputs) count += xgrad::element_count(input.shape);
    return {.projections = count > 200 ? 8u : 0u, .seed = count + GetParam()};
  }
};

TEST_P(OpTest, ValueAgreesWithTheReference) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    const Array<double> expected = sample.reference(elements);
    expect_near(sample.in_double(leaves<double>(elements)).value(), expected, 1e-12, "double");
    expect_near(sample.in_float(leaves<float>(elements)).value(), expected, 1e-5, "float");
  });
}

TEST_P(OpTest, GradientsInFloatAgreeWithThoseInDouble) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    const Inputs<float> x = leaves<float>(elements);
    const Inputs<double> exact = leaves<double>(elements);
    const auto grads = gradients(sample.in_float(x), x);
    const auto expected = gradients(sample.in_double(exact), exact);
    for (std::size_t i = 0; i < x.size(); ++i) expect_near(grads[i], expected[i], 5e-5, "gradient");
  });
}

TEST_P(OpTest, GradientsPassTheCheck) {
  for_each_case([this](const Case& sample, const std::vector<Array<double>>& elements) {
    const auto report = gradcheck(sample.in_double, leaves<double>(elements), options(sample));
    EXPECT_TRUE(report) << report.worst;
  });
}

TEST_P(OpTest, SecondGradientsPassTheCheck) {
  for_each_case([this](const Case& sample, const std::vector<Array<double>>& elements) {
    const auto report = gradgradcheck(sample.in_double, leaves<double>(elements), options(sample));
    EXPECT_TRUE(report) << report.worst;
  });
}

template <class T>
void expect_paths_agree(const Case& sample, const std::vector<Array<double>>& elements, double tolerance) {
  const Inputs<T> x = leaves<T>(elements);
  const auto plain = gradients(function_of<T>(sample)(x), x);
  const auto recorded = gradients(function_of<T>(sample)(x), x, true);
  for (std::size_t i = 0; i < x.size(); ++i) expect_near(recorded[i], plain[i], tolerance, "gradient");
}

TEST_P(OpTest, GradientIsTheSameWhenRecorded) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    expect_paths_agree<double>(sample, elements, 1e-11);
    expect_paths_agree<float>(sample, elements, 5e-5);
  });
}

TEST_P(OpTest, EachInputAloneMayRequireAGradient) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    const Inputs<double> all = leaves<double>(elements);
    const auto expected = gradients(sample.in_double(all), all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Inputs<double> alone;
      for (std::size_t k = 0; k < all.size(); ++k) alone.push_back(k == i ? all[k] : all[k].detach());
      expect_near(gradients(sample.in_double(alone), {all[i]})[0], expected[i], 1e-11, "gradient");
    }
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

TEST_P(OpTest, NothingIsRecordedUnderNoGrad) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    const Inputs<float> x = leaves<float>(elements);
    const Variable<float> recorded = sample.in_float(x);
    const xgrad::NoGrad guard;
    const Variable<float> y = sample.in_float(x);
    EXPECT_TRUE(y.is_leaf());
    expect_near(y.value(), recorded.value(), 1e-6, "value");
  });
}

TEST_P(OpTest, NothingIsRecordedWithoutInputsThatRequireGradients) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    Inputs<float> x = leaves<float>(elements);
    for (Variable<float>& input : x) input = input.detach();
    EXPECT_FALSE(sample.in_float(x).requires_grad());
  });
}

TEST_P(OpTest, InputsStayAsTheyWere) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    const Inputs<double> x = leaves<double>(elements);
    gradients(sample.in_double(x), x);
    for (std::size_t i = 0; i < x.size(); ++i) expect_same_bits(x[i].value(), elements[i]);
  });
}

TEST_P(OpTest, UndefinedInputsAreRefusedOrOptional) {
  for_each_case([](const Case& sample, const std::vector<Array<double>>& elements) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Inputs<float> x = leaves<float>(elements);
      x[i] = {};
      const std::string message = message_of<xgrad::GraphError>([&] { sample.in_float(x); });
      EXPECT_TRUE(message == "no exception" || message == "value: the variable is undefined") << message;
    }
  });
}

TEST_P(OpTest, BadArgumentsAreRefusedWithTheirShapes) {
  for (const ErrorCase& one : op().errors) EXPECT_EQ(one.message(), one.expected);
}

INSTANTIATE_TEST_SUITE_P(, OpTest, testing::Range(std::size_t{0}, op_table().size()), [](const auto& info) {
  return std::regex_replace(op_table()[info.param].name, std::regex("\\."), "_");
});

// Rows for all

std::vector<std::string> op_headers() {
  std::vector<std::string> stems;
  std::istringstream list(XGRAD_OP_HEADERS);
  for (std::string stem; std::getline(list, stem, ',');) stems.push_back(stem);
  return stems;
}

bool has_row(const std::string& header, const std::string& function) {
  for (const Op& op : op_table()) {
    if (op.name == header + "." + function || (op.name == header && function == header)) return true;
  }
  return false;
}

/// What a header of an op has before its private part.
std::string public_part(const std::string& stem) {
  std::ifstream file(XGRAD_SOURCE_DIR "/ops/" + stem + ".hpp");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(text.empty()) << stem;
  return text.substr(0, text.find("detail {"));
}

TEST(OpTableTest, EveryHeaderWithAFunctionHasARow) {
  const std::regex function("\n\S*<T>\S* \w+\(");
  EXPECT_GE(op_headers().size(), 14u);
  for (const std::string& stem : op_headers()) {
    if (!std::regex_search(public_part(stem), function)) continue;
    bool found = false;
    for (const Op& op : op_table()) found = found || op.name == stem || op.name.starts_with(stem + ".");
    EXPECT_TRUE(found) << "ops/" << stem << ".hpp has no row in tests/op_table.cpp";
  }
}

TEST(OpTableTest, EveryFunctionOfAHeaderHasARow) {
  const std::regex declaration("\n[A-Z]\\w+<T> (\\w+)\\(");
  for (const std::string& stem : op_headers()) {
    const std::string text = public_part(stem);
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found) {
      const std::string function = (*found)[1];
      EXPECT_TRUE(has_row(stem, function))
          << "ops/" << stem << ".hpp: " << function << " has no row in tests/op_table.cpp";
    }
  }
}

TEST(OpTableTest, EveryCaseIsCheckedInBothPrecisions) {
  for (const Op& op : op_table()) {
    EXPECT_GE(op.cases.size(), 3u) << op.name;
    for (const Case& sample : op.cases)
      EXPECT_TRUE(sample.in_float && sample.in_double && sample.reference) << op.name;
  }
}

// Special values

TEST(ElementwiseTest, SpecialValues) {
  const Variable<float> x(Array<float>{0, -1, inf, -inf, nan});
  EXPECT_EQ(log(x).value().data()[0], -inf);
  EXPECT_TRUE(std::isnan(log(x).value().data()[1]));
  EXPECT_EQ(exp(x).value().data()[2], inf);
  EXPECT_EQ(exp(x).value().data()[3], 0);
  EXPECT_EQ(tanh(x).value().data()[2], 1);
  EXPECT_EQ(tanh(x).value().data()[3], -1);
  EXPECT_EQ(erf(x).value().data()[2], 1);
  EXPECT_EQ(relu(x).value().data()[2], inf);
  EXPECT_EQ(relu(x).value().data()[3], 0);
  EXPECT_TRUE(std::isnan(sqrt(x).value().data()[1]));
  for (const auto& y :
       {exp(x), log(x), sqrt(x), tanh(x), erf(x), relu(x), gelu(x), gelu(x, xgrad::Gelu::tanh)})
    EXPECT_TRUE(std::isnan(y.value().data()[4])) << "nan must stay nan";
}

TEST(ElementwiseTest, ExpIsExactAtItsEnds) {
  for (const float at : {-100.f, -87.f, -1e-6f, 0.f, 1e-6f, 1.f, 88.f, 88.7f}) {
    const double expected = std::exp(static_cast<double>(at));
    EXPECT_NEAR(exp(Variable<float>(at)).item(), expected, 1e-6 * expected + 1e-44) << at;
  }
  EXPECT_EQ(exp(Variable<float>(89.f)).item(), inf);
  EXPECT_EQ(exp(Variable<float>(-104.f)).item(), 0);
}

TEST(ElementwiseTest, ANanBoundOfClampIsPyTorchs) {
  const Variable<float> x(Array<float>{1, 2, nan}, true);
  const auto expect = [&](const Variable<float>& y, const Array<float>& expected) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::isnan(y.value()(i)), std::isnan(expected(i)));
      if (!std::isnan(expected(i))) {
        EXPECT_EQ(y.value()(i), expected(i));
      }
    }
    EXPECT_EQ(xgrad::grad(sum(y), {x})[0].value(), (Array<float>{0, 0, 0}));
  };
  expect(clamp(x, 0, nan), {nan, nan, nan});
  expect(clamp(x, nan, 0), {nan, nan, nan});
  expect(clamp(x, nan), {1, 2, nan});
  expect(clamp(x, {}, nan), {1, 2, nan});
}

TEST(ElementwiseTest, ReluHasNoGradientAtZero) {
  const Variable<float> x(Array<float>{-1, 0, 2}, true);
  sum(relu(x)).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{0, 0, 1}));
}

TEST(SoftmaxTest, LargeNumbersDoNotOverflow) {
  const Variable<float> x(Array<float>{{1e30f, 1e30f}, {-1e30f, 0}, {1000, 999}});
  const Array<float> y = softmax(x).value(), logs = log_softmax(x).value();
  EXPECT_EQ(y(0, 0), 0.5f);
  EXPECT_EQ(y(1, 0), 0);
  EXPECT_NEAR(y(2, 0), 0.7310586f, 1e-6);
  EXPECT_NEAR(logs(2, 1), -1.3132617f, 1e-6);
  EXPECT_EQ(logs(1, 0), -1e30f);
}

TEST(SoftmaxTest, MaskedEntriesAreExactlyZeroAndAMaskedRowIsNan) {
  const Variable<float> x(Array<float>{{1, -inf, 2}, {-inf, -inf, -inf}});
  const Array<float> y = softmax(x).value();
  EXPECT_EQ(y(0, 1), 0);
  EXPECT_TRUE(std::isnan(y(1, 0)));
}

TEST(MaskedFillTest, NanAndItsGradientAreRemoved) {
  const Variable<float> x(Array<float>{1, nan, -1}, true);
  const Mask mask{false, true, true};
  const Variable<float> y = masked_fill(x, mask, 0);
  EXPECT_EQ(y.value(), (Array<float>{1, 0, 0}));
  y.backward(Variable<float>(Array<float>{2, nan, inf}));
  EXPECT_EQ(x.grad().value(), (Array<float>{2, 0, 0}));
}

TEST(LayerNormTest, ConstantRowsAndLargeMeansAreExact) {
  const Variable<float> flat(Array<float>{{3, 3, 3, 3}}, true);
  const Variable<float> y = layer_norm(flat, 4);
  EXPECT_EQ(y.value(), (Array<float>{{0, 0, 0, 0}}));
  y.backward(Variable<float>(Array<float>{{1, 2, 3, 4}}));
  for (const float element : flat.grad().value().storage()) EXPECT_TRUE(std::isfinite(element));

  const Array<float> shifted{{10000, 10001, 10002, 10003}}, centred{{-1.5, -0.5, 0.5, 1.5}};
  expect_near(layer_norm(Variable<float>(shifted), 4).value(),
              layer_norm(Variable<float>(centred), 4).value(), 1e-6, "layer_norm");
}

TEST(EmbeddingTest, ThePaddingRowGetsNoGradientAndRepeatedIdsAddUp) {
  const Variable<float> weight(Array<float>(Shape{4, 2}, 1.0f), true);
  const Ids ids{{1, 3, 1}, {0, 1, 3}};
  embedding(ids, weight, {.padding_idx = -1}).backward(Variable<float>(Array<float>(Shape{2, 3, 2}, 1.0f)));
  EXPECT_EQ(weight.grad().value(), (Array<float>{{1, 1}, {3, 3}, {0, 0}, {0, 0}}));
}

TEST(EmbeddingTest, ManyIdsOfTheSameRowAddUp) {
  const Variable<float> weight(Array<float>(Shape{3, 1}, 0.0f), true);
  embedding(Ids(Shape{5000}, 2), weight, {.padding_idx = 0})
      .backward(Variable<float>(Array<float>(Shape{5000, 1}, 1.0f)));
  EXPECT_EQ(reshape(weight.grad(), -1).value(), (Array<float>{0, 0, 5000}));
}

TEST(ReductionsTest, SumsOfManyFloatsAreAccurate) {
  const Array<float> tenths(Shape{1000, 1000}, 0.1f);
  EXPECT_NEAR(sum(Variable<float>(tenths)).item(), 100000.0, 0.1);
  EXPECT_NEAR(sum(Variable<float>(tenths), 0).value()(7), 100.0, 1e-3);
  EXPECT_NEAR(mean(Variable<float>(tenths), 1).value()(7), 0.1, 1e-6);
}

TEST(ReductionsTest, MeanOfNothingIsNan) {
  EXPECT_TRUE(std::isnan(mean(Variable<float>(Array<float>::from_shape({0}))).item()));
  EXPECT_EQ(sum(Variable<float>(Array<float>::from_shape({0}))).item(), 0);
}

TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  const Variable<float> logits(Array<float>{{1000, 0}, {0, 1000}}, true);
  const Variable<float> loss = cross_entropy(logits, Ids{1, 1});
  EXPECT_EQ(loss.item(), 500);
  loss.backward();
  EXPECT_EQ(logits.grad().value(), (Array<float>{{0.5, -0.5}, {0, 0}}));
}

TEST(CrossEntropyTest, TheMeanOverNoTargetIsNanAndIgnoredRowsHaveNoGradient) {
  const Variable<float> logits(Array<float>{{1, nan}, {0, 0}}, true);
  EXPECT_TRUE(std::isnan(cross_entropy(logits, Ids{-100, -100}).item()));
  const Variable<float> loss = cross_entropy(logits, Ids{-100, 0});
  EXPECT_NEAR(loss.item(), std::log(2), 1e-6);
  loss.backward();
  EXPECT_EQ(logits.grad().value(), (Array<float>{{0, 0}, {-0.5, 0.5}}));
}

TEST(AttentionTest, AQueryThatMayAttendToNothingGetsZerosAndZeroGradients) {
  const Variable<float> q(Array<float>{{1, 2}, {3, 4}}, true), k(Array<float>{{1, 0}, {0, 1}}, true),
      v(Array<float>{{5, 6}, {7, 8}}, true);
  const Mask allowed{{false, false}, {true, false}};
  for (const bool composed : {false, true}) {
    for (const Variable<float>* leaf : {&q, &k, &v}) leaf->zero_grad();
    const Variable<float> y = composed ? attention_with_weights(q, k, v, allowed).output
                                       : scaled_dot_product_attention(q, k, v, allowed);
    EXPECT_EQ(y.value(), (Array<float>{{0, 0}, {5, 6}}));
    y.backward(Variable<float>(Array<float>{{1, 1}, {1, 2}}));
    EXPECT_EQ(q.grad().value(), (Array<float>{{0, 0}, {0, 0}}));
    EXPECT_EQ(v.grad().value(), (Array<float>{{1, 2}, {0, 0}}));
  }
}

TEST(AttentionTest, NanInAMaskedKeyStaysOut) {
  const Variable<float> q(Array<float>{{1, 2}}, true), k(Array<float>{{1, 0}, {nan, nan}}, true),
      v(Array<float>{{5, 6}, {7, 8}}, true);
  const Variable<float> y = scaled_dot_product_attention(q, k, v, Mask{{true, false}});
  EXPECT_EQ(y.value(), (Array<float>{{5, 6}}));
}

TEST(AttentionTest, WeightsSumToOneAndDropoutIsAppliedToThem) {
  const Variable<float> q(Array<float>{{1, 2}, {0, 1}}), k(Array<float>{{1, 0}, {0, 1}}),
      v(Array<float>{{1, 1}, {1, 1}});
  const auto result = attention_with_weights(q, k, v);
  expect_near(sum(result.weights, -1).value(), Array<float>{1, 1}, 1e-6, "weights");
  const auto dropped = attention_with_weights(q, k, v, {}, {.dropout_p = 1});
  EXPECT_EQ(dropped.output.value(), (Array<float>{{0, 0}, {0, 0}}));
  EXPECT_EQ(
      message_of<xgrad::ValueError>([&] { scaled_dot_product_attention(q, k, v, {}, {.dropout_p = 2}); }),
      "scaled_dot_product_attention: dropout_p must be in [0, 1], got 2");
}

/// Every mask that broadcasts to scores with two batch axes, one of them perhaps of length 1.
TEST(AttentionTest, FusedAndComposedAgreeForEveryMask) {
  for (const auto& [first, second] : {std::pair<std::size_t, std::size_t>{2, 1}, {1, 2}, {2, 3}, {1, 1}}) {
    for (const std::size_t heads : {0, 1, 2}) {
      Shape scores{first, second};
      if (heads > 0) scores.push_back(heads);
      scores.push_back(3);
      scores.push_back(4);
      std::mt19937_64 random(heads);
      const std::size_t width = 2 * std::max<std::size_t>(heads, 1);
      const Variable<double> q(draw(Input{Shape{first, second, 3, width}}, random)),
          k(draw(Input{Shape{first, second, 4, width}}, random)),
          v(draw(Input{Shape{first, second, 4, width}}, random));
      for (std::size_t kept = 0; kept < std::size_t{1} << scores.size(); ++kept) {
        Shape shape = scores;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
          if ((kept >> axis & 1) == 0) shape[axis] = 1;
        }
        const Array<double> bias = draw(Input{shape}, random);
        const Mask allowed = bias > -1.0;
        for (const bool causal : {false, true}) {
          const xgrad::AttentionOptions options{.is_causal = causal, .num_heads = heads};
          for (const xgrad::AttentionMask<double>& mask :
               {xgrad::AttentionMask<double>(allowed),
                xgrad::AttentionMask<double>(Variable<double>(bias))}) {
            expect_near(scaled_dot_product_attention(q, k, v, mask, options).value(),
                        attention_with_weights(q, k, v, mask, options).output.value(), 1e-12,
                        xgrad::to_string(shape).c_str());
          }
        }
      }
    }
  }
}

/// Where the scores of a head are too many to be kept, the backward computes them again, block by block.
TEST(AttentionTest, LongSequencesAgreeWithTheComposedForm) {
  constexpr std::size_t queries = 650, keys = 811, heads = 2;
  std::mt19937_64 random(0);
  const auto leaf = [&](std::size_t rows, std::size_t width) {
    return Variable<double>(draw(Input{Shape{1, rows, width}}, random), true);
  };
  const Variable<double> q = leaf(queries, heads * 3), k = leaf(keys, heads * 3), v = leaf(keys, heads * 5);
  const Variable<double> seed(draw(Input{Shape{1, queries, heads * 5}}, random));
  const Array<double> full = draw(Input{Shape{1, 1, queries, keys}}, random);
  Mask some = full > 0.0, padding = Mask::from_shape({1, 1, 1, keys});
  std::fill_n(some.data() + 7 * keys, keys, false);  // a query that may attend to nothing
  for (std::size_t key = 0; key < keys; ++key) padding(0, 0, 0, key) = key < 600;
  for (const bool causal : {false, true}) {
    for (const xgrad::AttentionMask<double>& mask :
         {xgrad::AttentionMask<double>(), xgrad::AttentionMask<double>(some),
          xgrad::AttentionMask<double>(padding), xgrad::AttentionMask<double>(Variable<double>(full))}) {
      const xgrad::AttentionOptions options{.is_causal = causal, .num_heads = heads};
      const Variable<double> fused = scaled_dot_product_attention(q, k, v, mask, options);
      const Variable<double> composed = attention_with_weights(q, k, v, mask, options).output;
      expect_near(fused.value(), composed.value(), 1e-12, "y");
      const auto found = grad(fused, {q, k, v}, {.seed = seed});
      const auto expected = grad(composed, {q, k, v}, {.seed = seed});
      for (std::size_t i = 0; i < 3; ++i)
        expect_near(found[i].value(), expected[i].value(), 1e-11, "dq, dk or dv");
    }
  }
}

/// A query whose keys are all masked by a large number, as some do, attends to them equally.
TEST(AttentionTest, LongSequencesTakeLargeBiases) {
  constexpr std::size_t length = 736;
  std::mt19937_64 random(0);
  const auto leaf = [&] {
    return Variable<float>(Array<float>(draw(Input{Shape{length, 4}}, random)), true);
  };
  const Variable<float> q = leaf(), k = leaf(), v = leaf();
  Array<float> bias = xt::zeros<float>({length, length});
  std::fill_n(bias.data() + 5 * length, length, -1e9f);
  const auto found = grad(sum(scaled_dot_product_attention(q, k, v, Variable<float>(bias))), {q, k, v});
  const auto expected = grad(sum(attention_with_weights(q, k, v, Variable<float>(bias)).output), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i)
    expect_near(found[i].value(), expected[i].value(), 1e-4, "dq, dk or dv");
}

TEST(AttentionTest, ABiasChangedInPlaceIsNoticed) {
  const Variable<double> q(Array<double>{{1, 2}}, true), bias(Array<double>(Shape{1, 1}, 0.5));
  const Variable<double> y = scaled_dot_product_attention(q, q, q, bias);
  bias.assign(Array<double>(Shape{1, 1}, 2.0));
  EXPECT_NE(message_of<xgrad::GraphError>([&] { sum(y).backward(); }).find("was changed in place"),
            std::string::npos);
}

TEST(ReductionsTest, SumsOverAxesThatAreNotNeighboursAreAccurate) {
  const Variable<float> x(Array<float>(Shape{1000000, 3, 2}, 0.1f));
  const Variable<float> totals = sum(x, {0, 2});
  for (const float total : totals.value().storage()) EXPECT_NEAR(total, 200000.003, 0.2);
}

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

}  // namespace
