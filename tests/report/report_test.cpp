#include <xgrad/report.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/xgrad.hpp>

#include "../../report/detail/array_json.hpp"
#include "../../report/detail/page.hpp"
#include "../../report/detail/statistics.hpp"
#include "../expect_error.hpp"
#include "../failing_memory.hpp"
#include "../files.hpp"
#include "arrays.hpp"

namespace report_test {

using json = xgrad::detail::JsonTree;
using xgrad::Array, xgrad::Report, xgrad::ReportExample, xgrad::Shape, xgrad::Variable;
using xgrad::detail::array_json, xgrad::detail::base64;
using xgrad_tests::elements, xgrad_tests::message_of;

/// Whether an array in a report has the elements of one in memory, bit for bit.
template <class T>
bool same_bits(const json& array, const Array<T>& expected) {
  const std::vector<T> got = elements<T>(array);
  return array.at("shape") ==
             json(std::vector<std::size_t>(expected.shape().begin(), expected.shape().end())) &&
         got.size() == expected.size() &&
         std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)) == 0;
}

json run_of(const Report& report) {
  const json all = json::parse(report.json());
  EXPECT_EQ(all.at("format"), "xgrad-report");
  EXPECT_EQ(all.at("version"), 1);
  EXPECT_EQ(all.at("runs").size(), 1u);
  return all.at("runs").at(0);
}

TEST(ReportFormatTest, Base64IsThatOfTheStandard) {
  const auto of = [](const std::string& text) { return base64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(of("\xff\xfe\xfd"), "//79");
}

TEST(ReportFormatTest, ArraysKeepAllBits) {
  const float inf = std::numeric_limits<float>::infinity();
  const Array<float> odd{{-0.0f, inf, -inf},
                         {std::nanf("7"), std::numeric_limits<float>::denorm_min(), 0.1f}};
  EXPECT_TRUE(same_bits(array_json(odd), odd));
  EXPECT_EQ(array_json(odd).at("dtype"), "f32");
  const Array<double> fine{1.0 / 3, -5e-324};
  EXPECT_TRUE(same_bits(array_json(fine), fine));
  EXPECT_EQ(array_json(fine).at("dtype"), "f64");
  EXPECT_EQ(elements<std::int64_t>(array_json(xgrad::Ids{-1, 7})), (std::vector<std::int64_t>{-1, 7}));
  EXPECT_EQ(elements<std::uint8_t>(array_json(xgrad::Mask{true, false})), (std::vector<std::uint8_t>{1, 0}));
}

TEST(ReportFormatTest, FloatsHaveTheFewestDigitsThatTellThemApart) {
  const auto shortest = [](float x) {
    for (int digits = 6;; ++digits) {
      char text[32];
      std::snprintf(text, sizeof text, "%.*e", digits - 1, static_cast<double>(x));
      if (std::strtof(text, nullptr) == x) return std::strtod(text, nullptr);
    }
  };
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-13, 27);
  std::vector<float> numbers{0, -1, 0.1f, 999999.94f, 1e6f, 16777216, 1e-13f, 1e27f};
  for (int i = 0; i < 10000; ++i) numbers.push_back(static_cast<float>(std::pow(10, exponent(random))));
  for (const float x : numbers) EXPECT_EQ(xgrad::detail::number_json(x), json(shortest(x))) << x;
  const float least = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  for (const float x : {least, -most}) EXPECT_EQ(xgrad::detail::number_json(x).get<float>(), x);
  EXPECT_TRUE(xgrad::detail::number_json(std::nanf("")).is_null());
}

TEST(ReportFormatTest, RoundedArraysAreNear) {
  const Array<float> numbers{-1, 0.25f, 0.5f, 3};
  const json rounded = xgrad::detail::rounded_json(numbers);
  const auto codes = elements<std::uint16_t>(rounded);
  const double low = rounded.at("low"), high = rounded.at("high");
  ASSERT_EQ(codes.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(low + codes[i] * (high - low) / 65535, static_cast<double>(numbers(i)),
                4.0 / 65535 / 2 + 1e-9);
  EXPECT_EQ(codes.front(), 0);
  EXPECT_EQ(codes.back(), 65535);
  const json equal = xgrad::detail::rounded_json(Array<float>{5, 5});
  EXPECT_EQ(elements<std::uint16_t>(equal), (std::vector<std::uint16_t>{0, 0}));
  EXPECT_EQ(equal.at("low"), 5);
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              xgrad::detail::rounded_json(Array<float>{1, INFINITY});
            }),
            "rounded_json: the elements must be finite, got 1 to inf");
}

TEST(ReportFormatTest, HistogramsCountWhatIsFinite) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const json histogram = xgrad::detail::histogram_json(Array<double>{0, 1, 2, 3, 32, nan, -inf});
  EXPECT_EQ(histogram.at("nonfinite"), 2);
  EXPECT_EQ(histogram.at("min"), 0);
  EXPECT_EQ(histogram.at("max"), 32);
  EXPECT_EQ(histogram.at("mean"), 7.6);
  EXPECT_EQ(histogram.at("norm"), std::sqrt(1.0 + 4 + 9 + 1024));
  EXPECT_EQ(histogram.at("rms"), std::sqrt((1.0 + 4 + 9 + 1024) / 5));
  const std::vector<std::size_t> counts = histogram.at("counts");
  EXPECT_EQ(counts[0], 1u);
  EXPECT_EQ(counts[3], 1u);
  EXPECT_EQ(counts.back(), 1u);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), 5u);

  const double most = std::numeric_limits<double>::max();
  const std::vector<std::size_t> wide =
      xgrad::detail::histogram_json(Array<double>{-most, most}).at("counts");
  EXPECT_EQ(wide.front(), 1u);
  EXPECT_EQ(wide.back(), 1u);
  const std::vector<std::size_t> equal = xgrad::detail::histogram_json(Array<double>{5, 5, 5}).at("counts");
  EXPECT_EQ(equal.front(), 3u);
  EXPECT_TRUE(xgrad::detail::histogram_json(Array<double>{nan}).at("mean").is_null());
}

TEST(ReportFormatTest, NoTextEndsTheElementOfTheData) {
  Report report("</script><img src=x onerror=alert(1)><!-- & \u2028\u2029");
  report.note("\xff\xfe not UTF-8");
  const std::string page = xgrad::detail::page_with(report.json());
  EXPECT_EQ(page.find("<img src=x"), std::string::npos);
  EXPECT_EQ(page.find("\u2028"), std::string::npos);
  const std::size_t begin = page.find("{\"format\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string data = page.substr(begin, page.find("</script>", begin) - begin);
  for (const char c : {'<', '>', '&'}) EXPECT_EQ(data.find(c), std::string::npos) << c;
  const json run = json::parse(data).at("runs").at(0);
  EXPECT_EQ(run.at("title"), "</script><img src=x onerror=alert(1)><!-- & \u2028\u2029");
  EXPECT_EQ(run.at("notes").at(0), "\ufffd\ufffd not UTF-8");
}

/// A small encoder, and a batch of which one sequence has padding.
class ReportTest : public testing::Test {
 protected:
  ReportTest() { model_.eval(); }

  Variable<float> loss() const {
    return cross_entropy(reshape(model_.token_logits(ids_), {8, -1}), answers_);
  }

  xgrad::ToyEncoder<float> make_model() const {
    xgrad::manual_seed(1);
    return xgrad::ToyEncoder<float>(
        {.vocab_size = 9,
         .max_len = 4,
         .encoder = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2, .dropout = 0.1},
         .pad_id = 0});
  }

  const xgrad::ToyEncoder<float> model_ = make_model();
  const xgrad::Ids ids_{{1, 2, 3, 4}, {5, 6, 7, 0}}, answers_{1, 2, 3, 4, 5, 6, 7, -100};
  const ReportExample example_{"two sentences", {{"a", "b", "c", "d"}, {"e", "f", "g"}}};
};

TEST_F(ReportTest, ShowsTheAttentionOfEachLayerAndSequence) {
  Report report("test");
  report.step(3).observe(example_, model_, [&] { return loss(); });
  const json run = run_of(report);
  EXPECT_EQ(run.at("steps"), json::array({3}));
  ASSERT_EQ(run.at("attention").size(), 4u);
  const std::vector<Variable<float>> weights = model_.with_weights(ids_).weights;
  const auto gradients = [&] {
    const xgrad::EncoderResult<float> result = model_.with_weights(ids_);
    const Variable<float> composed =
        cross_entropy(reshape(model_.token_logits(result.output), {8, -1}), answers_);
    return grad(composed, result.weights);
  }();
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t layer = i / 2, row = i % 2;
    const json& one = run.at("attention").at(i);
    EXPECT_EQ(one.at("heads"), 2);
    EXPECT_EQ(one.at("row"), row);
    EXPECT_EQ(one.at("example"), row == 0 ? "two sentences, 1" : "two sentences, 2");
    EXPECT_NE(one.at("module").get<std::string>().find("layers." + std::to_string(layer)), std::string::npos);
    const auto shown = elements<float>(one.at("snapshots").at(0).at("weights"));
    const auto gradient = elements<float>(one.at("snapshots").at(0).at("gradient"));
    ASSERT_EQ(shown.size(), 32u);
    ASSERT_EQ(gradient.size(), 32u);
    for (std::size_t k = 0; k < 32; ++k) {
      EXPECT_NEAR(shown[k], weights[layer].value().data()[row * 32 + k], 1e-6f);
      EXPECT_NEAR(gradient[k], gradients[layer].value().data()[row * 32 + k], 1e-6f);
    }
  }
  EXPECT_FALSE(run.at("attention").at(0).contains("masked"));
  const json& padded = run.at("attention").at(1);
  EXPECT_EQ(padded.at("keys"), (json{"e", "f", "g", "[pad]"}));
  EXPECT_EQ(padded.at("masked").at("shape"), (json{4, 4}));
  EXPECT_EQ(elements<std::uint8_t>(padded.at("masked")),
            (std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST_F(ReportTest, TheGraphHasValuesAndGradients) {
  Report report("test");
  report.step(0).observe(example_, model_, [&] { return loss(); });
  const json run = run_of(report);
  ASSERT_EQ(run.at("graphs").size(), 1u);
  const json& graph = run.at("graphs").at(0);
  const json &values = graph.at("values"), &snapshot = graph.at("snapshots").at(0);
  EXPECT_EQ(graph.at("modules").at(""), "ToyEncoder");
  EXPECT_EQ(graph.at("formulas").at("add"), "a + b; 1; 1");
  EXPECT_FALSE(graph.at("formulas").contains("softmax"));
  EXPECT_EQ(snapshot.at("values").size(), values.size());
  EXPECT_EQ(snapshot.at("gradient").size(), values.size());
  loss().backward();
  std::map<std::string, Variable<float>> parameters;
  for (const auto& [name, parameter] : model_.named_parameters()) parameters.emplace(name, parameter);
  std::size_t found = 0;
  for (std::size_t id = 0; id < values.size(); ++id) {
    const json& value = values.at(id);
    for (const json& input : value.value("inputs", json::array()))
      EXPECT_TRUE(input.is_null() || input.get<std::size_t>() < id);
    EXPECT_EQ(snapshot.at("values").at(id).at("shape"), value.at("shape"));
    if (value.at("kind") != "parameter") continue;
    ++found;
    const Variable<float>& parameter = parameters.at(value.at("name"));
    EXPECT_TRUE(same_bits(snapshot.at("values").at(id), parameter.value()));
    const auto gradient = elements<float>(snapshot.at("gradients").at(id));
    for (std::size_t k = 0; k < gradient.size(); ++k)
      EXPECT_NEAR(gradient[k], parameter.grad().value().data()[k], 1e-6f) << value.at("name");
  }
  EXPECT_EQ(found, parameters.size());
  const auto shown_loss = elements<float>(snapshot.at("values").at(graph.at("loss").get<std::size_t>()));
  EXPECT_NEAR(shown_loss.at(0), loss().item(), 1e-6f);
  for (const json& value : values) EXPECT_NE(value.at("name"), "self_attention") << "shown as single ops";
}

TEST_F(ReportTest, BuffersAreConstantsWithTheirNames) {
  struct Centred : xgrad::Module<float> {
    Centred() : Module("Centred") {}
    const Variable<float> mean = this->buffer("mean", xgrad::zeros<float>({2})),
                          scale = this->parameter("scale", xgrad::ones<float>({2}));
  };
  const Centred model;
  model.requires_grad(false);
  const Variable<float> x(Array<float>{1, 2}, true);
  Report report("test");
  report.step(0).parameters(model).observe({"x", {}}, model,
                                           [&] { return sum((x - model.mean) * model.scale); });
  const json run = run_of(report);
  EXPECT_EQ(run.at("parameters").at(1).at("name"), "mean");
  EXPECT_EQ(run.at("parameters").at(1).at("snapshots").at(0).at("weight").at("max"), 0);
  std::map<std::string, std::string> kinds;
  for (const json& value : run.at("graphs").at(0).at("values")) {
    if (value.at("kind") != "op") kinds[value.at("name")] = value.at("kind");
  }
  EXPECT_EQ(kinds, (std::map<std::string, std::string>{
                       {"", "constant"}, {"mean", "constant"}, {"scale", "parameter"}}));
}

TEST_F(ReportTest, ChangesNothing) {
  model_.train();
  xgrad::manual_seed(5);
  const std::string random = xgrad::get_rng_state();
  const auto weights = model_.state_dict();
  Report report("test");
  report.step(0)
      .parameters(model_)
      .observe(example_, model_, [&] { return loss(); })
      .prediction("a", {{"b", 1}});
  EXPECT_EQ(xgrad::get_rng_state(), random);
  EXPECT_TRUE(model_.training());
  for (const auto& [name, parameter] : model_.named_parameters()) {
    EXPECT_FALSE(parameter.has_grad()) << name;
    EXPECT_EQ(parameter.value(), weights.at(name)) << name;
  }
}

TEST_F(ReportTest, ParametersHaveHistogramsOfGradientAndUpdate) {
  Report report("test");
  xgrad::SGD<float> optimizer(model_.parameters(), {.lr = 0.5});
  report.step(7).parameters(model_);
  loss().backward();
  optimizer.step();
  report.step(7).next_step(model_);
  report.step(8).parameters(model_);
  const json run = run_of(report);
  for (const json& one : run.at("parameters")) {
    const json &now = one.at("snapshots").at(0), &last = one.at("snapshots").at(1);
    const double gradient = now.at("gradient").at("norm"), update = now.at("update").at("norm");
    EXPECT_NEAR(update, gradient / 2, 1e-5 * gradient + 1e-7) << one.at("name");
    EXPECT_NE(now.at("weight"), last.at("weight"));
    EXPECT_FALSE(last.contains("gradient"));
  }
  EXPECT_EQ(run.at("parameters").size(), model_.named_parameters().size());
}

TEST_F(ReportTest, ParametersWithoutAGradientHaveNoUpdate) {
  Report report("test");
  report.step(0).parameters(model_);
  report.step(0).next_step(model_);
  const json run = run_of(report);
  for (const json& one : run.at("parameters"))
    EXPECT_FALSE(one.at("snapshots").at(0).contains("update")) << one.at("name");
}

TEST(ReportDescriptionTest, MemoryIsInBytes) {
  Report report("test");
  report.describe({.seed = 3});
  EXPECT_EQ(run_of(report).at("seed"), "3");
  EXPECT_GT(run_of(report).at("memory_bytes"), 4 << 20);
}

TEST_F(ReportTest, ValuesAreKeptOfTheLastStepAndOfAttention) {
  Report report("test");
  for (const std::size_t step : {0, 1, 2, 5})
    report.step(step).observe(example_, model_, [&] { return loss(); });
  const json run = run_of(report);
  ASSERT_EQ(run.at("graphs").size(), 1u);
  const json &graph = run.at("graphs").at(0), &values = graph.at("values");
  const auto taken = [](const json& list) {
    return std::count_if(list.begin(), list.end(), [](const json& one) { return !one.is_null(); });
  };
  const json& last = graph.at("snapshots").at(3);
  EXPECT_EQ(taken(last.at("values")), static_cast<std::ptrdiff_t>(values.size()));
  std::size_t layers = 0;
  for (const std::size_t notch : {0, 1, 2}) {
    const json& snapshot = graph.at("snapshots").at(notch);
    EXPECT_TRUE(snapshot.at("value").at(0).contains("rms")) << notch;
    layers = 0;
    for (const json& attention : run.at("attention")) {
      if (attention.at("row") != 0) continue;
      ++layers;
      const std::size_t weights = attention.at("value");
      const auto context = static_cast<std::size_t>(
          std::ranges::find_if(values,
                               [&](const json& value) {
                                 return value.contains("inputs") && value.at("inputs").front() == weights;
                               }) -
          values.begin());
      for (const auto& list : {"values", "gradients"}) EXPECT_FALSE(snapshot.at(list).at(weights).is_null());
      EXPECT_FALSE(
          snapshot.at("values").at(values.at(weights).at("inputs").front().get<std::size_t>()).is_null());
      EXPECT_FALSE(
          snapshot.at("values").at(values.at(context).at("inputs").at(1).get<std::size_t>()).is_null());
      EXPECT_FALSE(snapshot.at("gradients").at(context).is_null());
    }
    EXPECT_EQ(taken(snapshot.at("values")), 3 * layers);
    EXPECT_EQ(taken(snapshot.at("gradients")), 2 * layers);
  }
  EXPECT_EQ(layers, 2u);
}

TEST_F(ReportTest, RefusesALossThatItCannotSee) {
  Report report("test");
  EXPECT_EQ(message_of<xgrad::ShapeError>(
                [&] { report.step(0).observe(example_, model_, [&] { return model_.token_logits(ids_); }); }),
            "Report: the loss must be a scalar, got (2, 4, 9)");
  const Variable<float> known = loss();
  EXPECT_EQ(
      message_of<xgrad::GraphError>([&] { report.step(0).observe(example_, model_, [&] { return known; }); }),
      "Report: the loss must be computed by the recorded ops, got a variable from elsewhere");
}

TEST(RecordingTest, ShowsTensorsInTheirOrderWithGradients) {
  const Variable<double> w(Array<double>{{1, 2}, {3, 4}}, true), x(Array<double>{{5, 6}});
  const xgrad::Ids ids{7, 8};
  const Variable<double> y = matmul(x, w);
  xgrad::Recording<double> shown;
  const Variable<double> z = y * y;
  const Variable<double> loss = sum(z);
  shown.tensor("first", "ids", ids);
  shown.tensor("first", "z", z);
  shown.tensor("second", "w", w);
  Report report("notebook");
  report.step(0).recorded({"a sum", {}}, shown, loss, {{"w", w}});
  const json run = run_of(report);
  ASSERT_EQ(run.at("tensors").size(), 3u);
  const json &first = run.at("tensors").at(0), &second = run.at("tensors").at(1);
  EXPECT_EQ(first.at("section"), "first");
  EXPECT_EQ(elements<std::int64_t>(first.at("value")), (std::vector<std::int64_t>{7, 8}));
  EXPECT_FALSE(first.contains("gradient"));
  EXPECT_EQ(second.at("name"), "z");
  EXPECT_TRUE(same_bits(second.at("value"), z.value()));
  EXPECT_EQ(elements<double>(second.at("gradient")), (std::vector<double>{1, 1}));
  EXPECT_EQ(run.at("graphs").at(0).at("values").at(second.at("id").get<std::size_t>()).at("name"), "mul");
  EXPECT_FALSE(run.at("tensors").at(2).contains("id")) << "computed before the recording began";
  EXPECT_TRUE(run.at("graphs").at(0).at("snapshots").at(0).contains("values"));
  loss.backward();  // the report has left the graph as it was
  EXPECT_TRUE(w.has_grad());
}

/// The data of a report about softmax(scores) and the tokens of sequences, where weights are (2, heads, 2,
/// 2).
json run_of_scores(const Variable<float>& scores, const std::vector<std::vector<std::string>>& tokens,
                   const xgrad::Mask& hidden) {
  const xgrad::Recording<float> recording;
  const Variable<float> weights = softmax(masked_fill(scores, hidden, -INFINITY), -1);
  Report report("scores");
  report.step(0).recorded({"example", tokens}, recording, sum(square(weights)), {{"scores", scores}});
  return run_of(report);
}

TEST(RecordingTest, AttentionIsOfAsManyTokensWithAMaskOfEachHead) {
  const Array<float> numbers = xgrad::normal<float>({1, 2, 2, 2});
  const Variable<float> scores(numbers, true);
  xgrad::Mask hidden(Shape{1, 2, 2, 2}, false);
  hidden(0, 1, 0, 1) = true;
  for (const bool has_gradient : {true, false}) {
    const json run = run_of_scores(Variable<float>(numbers, has_gradient), {{"a", "b"}}, hidden);
    ASSERT_EQ(run.at("attention").size(), 1u) << has_gradient;
    const json& attention = run.at("attention").at(0);
    EXPECT_EQ(attention.at("example"), "example");
    EXPECT_EQ(attention.at("masked").at("shape"), (json{2, 2, 2}));
    EXPECT_EQ(elements<std::uint8_t>(attention.at("masked")),
              (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 1, 0, 0}));
  }
  const json run = run_of_scores(scores, {{"a", "b", "c"}}, hidden);
  EXPECT_FALSE(run.contains("attention")) << "there are more tokens than places";
  EXPECT_FALSE(run_of_scores(scores, {{"a"}, {"b"}}, hidden).contains("attention")) << "or more sequences";
  bool is_told = false;
  for (const json& value : run.at("graphs").at(0).at("values"))
    is_told = is_told || (value.at("name") == "masked_fill" && value.at("attributes").at("value") == "-inf");
  EXPECT_TRUE(is_told);
}

TEST(RecordingTest, WhatAttentionIsMadeOfIsShownAlsoIfItIsLarge) {
  const Variable<float> scores(xgrad::normal<float>({320, 320}), true);
  const xgrad::Recording<float> recording;
  Variable<float> loss = sum(square(softmax(scores, -1)));
  for (const float factor : {1.0f, 2.0f, 3.0f, 4.0f}) loss = loss + sum(square(scores * factor));
  Report report("large values");
  report.step(0).recorded({"all", {std::vector<std::string>(320, "w")}}, recording, loss,
                          {{"scores", scores}});
  const json run = run_of(report), &graph = run.at("graphs").at(0);
  ASSERT_EQ(run.at("notes").size(), 1u);
  EXPECT_EQ(run.at("notes").at(0),
            "To keep the file small, values of more than 100000 numbers are not shown.");
  for (std::size_t id = 0; id < graph.at("values").size(); ++id) {
    const std::string name = graph.at("values").at(id).at("name");
    const bool is_shown = !graph.at("snapshots").at(0).at("values").at(id).is_null();
    if (name == "softmax" || name == "scores") {
      EXPECT_TRUE(is_shown) << name;
    } else if (name == "mul") {
      EXPECT_FALSE(is_shown) << name;
    }
  }
}

TEST(RecordingTest, DetachedVariablesAreConstants) {
  const Variable<double> w(Array<double>{1, 2}, true);
  const xgrad::Recording<double> recording;
  const Variable<double> y = exp(w * 2), product = y.detach() * w;
  Report report("detached");
  report.step(0).recorded({"example", {}}, recording, sum(product), {{"w", w}, {"product", product}});
  std::vector<std::string> names;
  const json run = run_of(report);
  for (const json& value : run.at("graphs").at(0).at("values")) names.push_back(value.at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"w", "", "mul", "sum"}));
}

/// A tensor that the first loss was made of, and the second was not.
TEST(RecordingTest, AGradientStaysWhenAnotherLossHasNone) {
  const Variable<double> w(Array<double>{1, 2}, true);
  xgrad::Recording<double> shown;
  const Variable<double> one = w * 2, other = w * 3;
  shown.tensor("", "one", one);
  Report report("losses");
  report.step(0).recorded({"first", {}}, shown, sum(one), {{"w", w}});
  report.step(1).recorded({"second", {}}, shown, sum(other), {{"w", w}});
  EXPECT_EQ(elements<double>(run_of(report).at("tensors").at(0).at("gradient")), (std::vector<double>{1, 1}));
}

/// The data of a report about a model with so many attention weights that they do not fit.
template <class T>
json large_run() {
  xgrad::manual_seed(0);
  const std::size_t length = 200, layers = 8;
  const xgrad::ToyEncoder<T> model({.vocab_size = 5,
                                    .max_len = length,
                                    .encoder = {.d_model = 16, .heads = 8, .d_ff = 16, .layers = layers}});
  const xgrad::Ids ids = xgrad::randint(0, 5, {1, length});
  Report report("large");
  report.step(0).observe({"long", {std::vector<std::string>(length, "w")}}, model,
                         [&] { return sum(model.token_logits(ids)); });
  const std::string text = report.json();
  EXPECT_LE(text.size(), 8'000'000u);
  return json::parse(text).at("runs").at(0);
}

TEST(ReportSizeTest, ALargeOneIsRoundedAndSaysSo) {
  for (const json& run : {large_run<float>(), large_run<double>()}) {
    ASSERT_EQ(run.at("notes").size(), 1u);
    EXPECT_TRUE(
        run.at("notes").at(0).get<std::string>().starts_with("To keep the file small, attention weights"));
    EXPECT_EQ(run.at("attention").size(), 4u) << "every other layer";
    EXPECT_NE(run.at("attention").at(0).at("module").get<std::string>().find("layers.0"), std::string::npos);
    EXPECT_EQ(run.at("attention").at(0).at("snapshots").at(0).at("weights").at("dtype"), "u16");
  }
}

TEST(ReportSizeTest, LongCurvesAreThinnedToTheirLastPoint) {
  Report report("long");
  const std::size_t steps = 1'010'000;
  for (std::size_t step = 0; step < steps; ++step) report.point("loss", step, static_cast<double>(step));
  report.point("accuracy", 10, 0.5);
  const std::string text = report.json();
  EXPECT_LE(text.size(), 8'000'000u);
  const json run = json::parse(text).at("runs").at(0), &curve = run.at("curves").at(0);
  const auto shown = elements<std::int64_t>(curve.at("steps"));
  const auto values = elements<double>(curve.at("values"));
  ASSERT_EQ(shown.size(), values.size());
  EXPECT_GE(shown.size(), 19'000u);
  EXPECT_LE(shown.size(), 20'001u);
  EXPECT_EQ(shown.front(), 0);
  EXPECT_EQ(shown.back(), static_cast<std::int64_t>(steps - 1));
  for (std::size_t i = 0; i < shown.size(); ++i) ASSERT_EQ(values[i], static_cast<double>(shown[i]));
  EXPECT_EQ(run.at("curves").at(1).at("first"), 10);
  EXPECT_TRUE(run.at("notes").at(0).get<std::string>().starts_with("To keep the file small, curves"));
}

TEST(ReportSizeTest, WhatFitsIsWhole) {
  Report report("small");
  report.point("loss", 0, 1);
  EXPECT_TRUE(json::parse(report.json()).at("runs").at(0).at("notes").empty());
}

TEST(ReportPointTest, StepsOfACurveAscend) {
  Report report("curve");
  report.point("loss", 3, 1);
  report.point("accuracy", 3, 1);
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { report.point("loss", 3, 1); }),
            "Report: the steps of a curve must ascend, got 3 after 3 in loss");
}

/// Weights that have grown without bounds have scores beyond what masks write.
TEST_F(ReportTest, HugeScoresAreNoMask) {
  Report report("test");
  for (const std::size_t step : {0, 1}) {
    report.step(step).observe(example_, model_, [&] { return loss(); });
    for (const Variable<float>& parameter : model_.parameters()) {
      const xgrad::NoGrad guard;
      parameter.assign(Array<float>(parameter.value() * 1e6f));
    }
  }
  const json run = run_of(report);
  EXPECT_EQ(run.at("attention").size(), 4u) << "layers times sentences";
  for (const json& attention : run.at("attention")) {
    EXPECT_FALSE(attention.at("snapshots").at(0).is_null());
    EXPECT_FALSE(attention.at("snapshots").at(1).is_null());
  }
  EXPECT_FALSE(run.at("attention").at(0).contains("masked"));
}

TEST(ReportLogTest, ReadsTheMetricsOfARun) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("metrics");
  xgrad::fit(
      3, [](std::size_t i) { return xgrad::StepResult{.loss = 1 / static_cast<double>(i + 1), .lr = 0.5}; },
      {.progress = false, .metrics = path, .about = {{"--seed", "4"}}, .seed = 4});
  Report report("log");
  report.log(path);
  const json run = run_of(report);
  EXPECT_EQ(run.at("title"), "log");
  EXPECT_EQ(run.at("seed"), "4");
  EXPECT_EQ(run.at("options").at("--seed"), "4");
  ASSERT_EQ(run.at("curves").size(), 3u);
  for (const json& curve : run.at("curves")) {
    EXPECT_EQ(curve.at("first"), 0);
    EXPECT_FALSE(curve.contains("steps"));
    if (curve.at("name") == "loss") {
      EXPECT_EQ(elements<double>(curve.at("values")), (std::vector<double>{1, 0.5, 1.0 / 3}));
    }
  }
  const auto refused = [&](const std::string& text) {
    const std::string other = folder.write("other", text);
    return message_of<xgrad::FileError>([&] { Report("log").log(other); }).substr(other.size());
  };
  const std::string no_line = ":1: must be a line of a training run's metrics, got other JSON";
  EXPECT_TRUE(refused("my notes\n").starts_with(":1: must be JSON: parse error"));
  EXPECT_EQ(refused("{\"run\": 5}\n"), no_line);
  EXPECT_EQ(refused("{\"step\": -1}\n"), no_line);
  EXPECT_EQ(refused("{\"run\": {\"options\": [1]}}\n"), ":1: options must be text, got [1]");
  EXPECT_EQ(refused("{\"run\": {\"options\": {\"a\": 1}}}\n"), ":1: options must be text, got {\"a\":1}");
  EXPECT_EQ(refused("{\"run\": {\"seed\": 5}}\n"), ":1: seed must be text, got 5");
  EXPECT_EQ(refused("{\"step\": 3, \"loss\": 1}\n{\"step\": 3, \"loss\": 1}\n"),
            ":2: steps must ascend, got 3 after 3");
  EXPECT_EQ(refused("{\"run\": " + std::string(1'000'000, '[') + "\n"),
            ":1: must not be nested deeper than 64 levels");
  Report cut_off("log");
  cut_off.log(folder.write("cut", "{\"run\": {\"curves\": 5}}\n{\"step\": 3, \"lr\": 1}\n{\"step\": 4"));
  ASSERT_EQ(run_of(cut_off).at("curves").size(), 1u);
  EXPECT_EQ(run_of(cut_off).at("curves").at(0).at("name"), "learning rate");
  EXPECT_EQ(message_of<xgrad::FileError>([&] { report.log(folder.path("none")); }),
            folder.path("none") + ": cannot be read: No such file or directory");
  for (const auto& [unreadable, why] :
       {std::pair<std::string, std::string>{folder.path(""), "Is a directory"},
        {"/proc/self/mem", "Input/output error"}})
    EXPECT_EQ(message_of<xgrad::FileError>([&] { report.log(unreadable); }),
              unreadable + ": cannot be read: " + why);
}

TEST(ReportMemoryTest, IsWholeAfterAFailure) {
  const xgrad::Linear<float> model(3, 2);
  const auto histograms_of = [&](Report& report) {
    report.step(0).parameters(model);
    return run_of(report).at("parameters");
  };
  Report reference("run");
  const json expected = histograms_of(reference);
  bool failed = true;
  for (std::size_t n = 0; failed; ++n) {
    Report report("run");
    {
      const xgrad_tests::FailingMemory memory(n);
      try {
        report.step(0).parameters(model);
      } catch (const std::bad_alloc&) {
      }
      failed = memory.failed();
    }
    EXPECT_FALSE(report.json().empty()) << n;
    EXPECT_EQ(histograms_of(report), expected) << n;
  }
}

TEST(ReportLogTest, StepsThatDoNotFollowEachOtherAreListed) {
  Report report("points");
  for (const std::size_t step : {3, 4, 9}) report.point("loss", step, 0.5);
  const json curve = run_of(report).at("curves").at(0);
  EXPECT_FALSE(curve.contains("first"));
  EXPECT_EQ(elements<std::int64_t>(curve.at("steps")), (std::vector<std::int64_t>{3, 4, 9}));
}

TEST(ReportFileTest, AFileThatCannotBeWrittenStaysAsItWas) {
  const xgrad_tests::TemporaryFolder folder;
  Report report("test");
  report.point("loss", 0, 1);
  const std::string nowhere = folder.path("none/report.html");
  EXPECT_NE(message_of<xgrad::FileError>([&] { report.write(nowhere); }).find(nowhere), std::string::npos);
  const std::string page = folder.path("report.html"), data = folder.path("report.json");
  report.write(page);
  report.write(data);
  EXPECT_EQ(xgrad_tests::read_bytes(data), report.json());
  EXPECT_TRUE(xgrad_tests::read_bytes(page).starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(ComparisonTest, HasAllRunsInOnePage) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("two.json");
  xgrad::write_comparison({{"a", Report("first").json()}, {"b", Report("second").json()}}, path);
  const json all = json::parse(xgrad_tests::read_bytes(path));
  ASSERT_EQ(all.at("runs").size(), 2u);
  EXPECT_EQ(all.at("runs").at(1).at("title"), "second");
}

TEST(ComparisonTest, RefusesWhatIsNoReport) {
  const xgrad_tests::TemporaryFolder folder;
  const auto refused = [&](const std::string& text) {
    return message_of<xgrad::FileError>([&] { xgrad::write_comparison({{"x", text}}, folder.path("out")); });
  };
  EXPECT_EQ(refused("{}"), "x: must be the data of a report, with \"format\": \"xgrad-report\"");
  EXPECT_EQ(refused("[1]"), "x: must be the data of a report, with \"format\": \"xgrad-report\"");
  EXPECT_EQ(refused(R"({"format": "xgrad-report", "version": 2})"), "x: must have version 1, got 2");
  EXPECT_EQ(refused(R"({"format": "xgrad-report", "version": 1, "runs": 3})"), "x: runs must be a list");
  EXPECT_NE(refused("{").find("x: must be JSON: parse error at line 1"), std::string::npos);
  EXPECT_EQ(refused(std::string(100'000, '[')), "x: must not be nested deeper than 64 levels");
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(MostProbableTest, SortsAndKeepsTheFirst) {
  const std::vector<std::string> labels{"a", "b", "c"};
  const std::vector<float> probabilities{0.25f, 0.5f, 0.25f};
  EXPECT_EQ(xgrad::most_probable(labels, probabilities, 2),
            (std::vector<xgrad::Answer>{{"b", 0.5}, {"a", 0.25}}));
  EXPECT_EQ(xgrad::most_probable(labels, probabilities).size(), 3u);
  const std::vector<float> with_nan{std::nanf(""), 0.25f, 0.5f};
  EXPECT_EQ(xgrad::most_probable(labels, with_nan, 2), (std::vector<xgrad::Answer>{{"c", 0.5}, {"b", 0.25}}));
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { xgrad::most_probable({"a"}, probabilities); }),
            "most_probable: there must be as many probabilities as labels, got 3 and 1");
}

}  // namespace report_test
