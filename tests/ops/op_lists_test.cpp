// What looks up the description of an op: the formulas of the report's page, random programs.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/graph/watch.hpp>

#include "common/draw.hpp"
#include "common/op_lists.hpp"

namespace op_lists_test {

namespace op_lists = xgrad_tests::op_lists;
using op_lists::described, op_lists::expect_all_but, op_lists::found, op_lists::linear_algebra,
    op_lists::Names;

/// Notes the ops of forward passes.
class WatchedOps : public xgrad::Watcher {
 public:
  const Names& names() const { return names_; }

 private:
  using Watcher::on_op;
  void on_op(const xgrad::OpEvent<double>& event) override {
    if (!event.in_backward) names_.insert(event.op.name);
  }

  Names names_;
};

/// The ops of the calls that random programs draw.
Names drawn() {
  constexpr std::uint64_t calls = 200;  // pow is a cube in one of eleven
  WatchedOps told;
  for (const xgrad_tests::Draw& draw : xgrad_tests::draw_table()) {
    for (std::uint64_t number = 0; number < calls; ++number) {
      xgrad_tests::Drawing drawing(1, number, {.longest = 4, .most = 64, .often = 0});
      draw.add(drawing);
    }
  }
  return told.names();
}

TEST(OpListsTest, ConstantsHaveTheNamesOfTheirOps) {
  EXPECT_GE(described().size(), 100u);
  for (const char* folder : {"graph", "ops", "autograd"})
    EXPECT_EQ(found(folder, ".hpp", R"(\ninline constexpr Op (\w+)\((?!\s*"\1"))"), Names());
}

TEST(OpListsTest, OpsHaveFormulasOrAReason) {
  const auto table = [](const std::string& text) {
    const std::size_t begin = std::min(text.find("Record<string, Formula> = {"), text.size());
    return text.substr(begin, text.find("\n};", begin) - begin);
  };
  const Names have = found("report/page/src/formulas", ".ts", R"(\n  ([a-z_0-9]+)[:,])", table);
  for (const std::string& formula : have)
    EXPECT_TRUE(described().contains(formula)) << formula << " has a formula, but is no op";
  expect_all_but(have,
                 {{"an element depends on a window",
                   {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d",
                    "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "conv1d", "conv2d", "conv_transpose1d",
                    "conv_transpose2d", "fold", "interpolate", "max_pool1d", "max_pool2d", "unfold"}},
                  {"a report shows the single ops that it is made of",
                   {"add_layer_norm", "batch_norm", "bfloat16_linear", "cdist", "gated", "group_norm", "gru",
                    "linear_cross_entropy", "lstm", "qkv_attention", "rms_norm", "rnn", "rotary",
                    "scaled_dot_product_attention", "self_attention"}},
                  {"its elements are those of x", {"alias", "on_gradient"}},
                  {"it calls a function of the program", {"checkpoint", "implicit_function"}},
                  {"its weight is no input", {"int8_after_attention", "int8_linear", "int8_self_attention"}},
                  {"an element depends on the whole matrix", linear_algebra},
                  {"no program of the library has it in a report",
                   {"binary_cross_entropy", "ctc_loss", "cumprod", "diag_embed", "diagonal", "digamma",
                    "erfc", "erfinv", "huber", "index_add", "index_put", "lgamma", "logcumsumexp",
                    "polygamma", "scatter_add", "scatter_reduce"}}},
                 "formula");
}

TEST(OpListsTest, OpsAreDrawnOrAReason) {
  expect_all_but(drawn(),
                 {{"is no function that users call by itself", {"alias", "masked_mul"}},
                  {"has no gradient", {"int8_after_attention", "int8_linear", "int8_self_attention"}},
                  {"calls a function of the program", {"checkpoint", "implicit_function", "on_gradient"}}},
                 "draw");
}

}  // namespace op_lists_test
