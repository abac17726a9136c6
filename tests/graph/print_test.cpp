// Arrays and Variables are printed as PyTorch prints tensors.

#include <xgrad/graph/print.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>

#include "../base/xtensor_headers.hpp"
#include "data_folder.hpp"
#include "expect_error.hpp"

namespace print_test {

using nlohmann::json;
using xgrad::Array, xgrad::PrintOptions, xgrad::Shape, xgrad::Variable;

/// Sets the options for one test.
class PrintTest : public testing::Test {
 protected:
  ~PrintTest() override { xgrad::set_print_options({}); }
};

template <class T>
Array<T> array_of(const json& test) {
  const auto lengths = test.at("shape").get<std::vector<std::size_t>>();
  Array<T> array = Array<T>::from_shape(Shape(lengths.begin(), lengths.end()));
  for (std::size_t i = 0; i < array.size(); ++i) {
    const json& value = test.at("values").at(i);
    array.data()[i] = value.is_string()
                          ? static_cast<T>(std::strtod(value.get<std::string>().c_str(), nullptr))
                          : value.get<T>();
  }
  return array;
}

constexpr xgrad::Op add_op("add", {"x"}), linear_op("linear", {"x"}), matmul_op("matmul", {"x"}),
    reshape_op("reshape", {"x"}), attention_op("scaled_dot_product_attention", {"x"});
constexpr xgrad::StaticOp<1, 0> ops[] = {add_op, linear_op, matmul_op, reshape_op, attention_op};

/// A Variable that prints `graph` at its end: "", "requires_grad=True" or "grad_fn=<op>".
template <class T>
std::string printed(const json& test) {
  const std::string graph = test.at("graph").get<std::string>();
  const Array<T> array = array_of<T>(test);
  if (graph.rfind("grad_fn=<", 0) != 0) return to_string(Variable<T>(array, !graph.empty()));
  const std::string name = graph.substr(9, graph.size() - 10);
  const auto* const op =
      std::find_if(std::begin(ops), std::end(ops), [&](const auto& one) { return one.info().name == name; });
  if (op == std::end(ops)) throw std::out_of_range("no op is named " + name);
  return to_string(xgrad::record<T>(*op, Variable<T>(array), xgrad::Inputs(Variable<T>(T{1}, true)),
                                    xgrad::Saved(),
                                    [](Variable<T> dy, xgrad::Needs) -> xgrad::Grads<T, 1> { return {dy}; }));
}

PrintOptions options_of(const json& test) {
  const json& given = test.at("options");
  PrintOptions options;
  options.precision = given.value("precision", options.precision);
  options.threshold = given.value("threshold", options.threshold);
  options.edgeitems = given.value("edgeitems", options.edgeitems);
  options.linewidth = given.value("linewidth", options.linewidth);
  if (given.contains("sci_mode")) options.sci_mode = given.at("sci_mode").get<bool>();
  return options;
}

TEST_F(PrintTest, EqualsPyTorchsText) {
  const json tests = json::parse(std::ifstream(xgrad_tests::data_folder("print") + "cases.json"));
  ASSERT_GT(tests.size(), 100u);
  for (const json& test : tests) {
    xgrad::set_print_options(options_of(test));
    const std::string type = test.at("dtype").get<std::string>();
    std::string text;
    if (type == "float32") text = printed<float>(test);
    if (type == "float64") text = printed<double>(test);
    if (type == "bool") text = to_string(array_of<bool>(test));
    if (type == "int64") text = to_string(array_of<std::int64_t>(test));
    EXPECT_EQ(text, test.at("text").get<std::string>()) << test.at("name");
  }
}

TEST_F(PrintTest, GoesBeforeXtensorsOwnPrinter) {
  std::ostringstream text;
  text << Array<float>{{1, 2}} << Array<double>{0.5} << xgrad::Ids{3} << xgrad::Mask{true};
  EXPECT_EQ(text.str(), "tensor([[1., 2.]])tensor([0.5000], dtype=float64)tensor([3])tensor([True])");
}

TEST_F(PrintTest, ShowsWhatAVariableIs) {
  const Variable<float> leaf(Array<float>{-1, 2}, true);
  std::ostringstream text;
  text << leaf << relu(leaf) << leaf.detach() << Variable<float>();
  EXPECT_EQ(
      text.str(),
      "tensor([-1.,  2.], requires_grad=True)tensor([0., 2.], grad_fn=<relu>)tensor([-1.,  2.])undefined");
}

TEST_F(PrintTest, ExpressionsAreEvaluated) {
  const Array<float> x{1, 2};
  const Array<double> y{1, 2};
  std::ostringstream text;
  text << x + x << y * 0.5 << (x > 1.5F) << xgrad::Ids{1, 2} + 1;
  EXPECT_EQ(text.str(),
            "tensor([2., 4.])tensor([0.5000, 1.0000], dtype=float64)tensor([False,  True])tensor([2, 3])");
  EXPECT_EQ(to_string(xt::view(x, xt::range(1, 2))), "tensor([2.])");
}

TEST_F(PrintTest, NanHasNoSign) {
  EXPECT_EQ(to_string(Array<double>{-std::nan(""), 1}), "tensor([nan, 1.], dtype=float64)");
}

TEST_F(PrintTest, ZerosHaveNoExponent) {
  xgrad::set_print_options({.sci_mode = true});
  EXPECT_EQ(to_string(Array<float>{0, 1}), "tensor([0.0000e+00, 1.0000e+00])");
  EXPECT_EQ(to_string(Array<float>{0, std::nanf("")}), "tensor([0., nan])");  // as PyTorch's
}

TEST_F(PrintTest, NoEdgeIsNotEmpty) {
  xgrad::set_print_options({.threshold = 1, .edgeitems = 0});
  EXPECT_EQ(to_string(Array<float>{1, 2, 3}), "tensor([...])");
}

TEST_F(PrintTest, OptionsStayUntilTheNext) {
  xgrad::set_print_options({.precision = 1});
  EXPECT_EQ(to_string(Array<float>{0.25F}), "tensor([0.2])");
  EXPECT_EQ(xgrad::print_options().precision, 1);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::set_print_options({.precision = -1}); }),
            "set_print_options: precision must be in [0, 100], got -1");
  EXPECT_EQ(xgrad::print_options().precision, 1);
}

}  // namespace print_test
