// What looks up the description of an op: the formulas of the report's page, random programs.

#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/graph/watch.hpp>

#include "common/draw.hpp"
#include "common/op_lists.hpp"
#include "files.hpp"

namespace op_lists_test {

namespace op_lists = xgrad_tests::op_lists;
using op_lists::described, op_lists::expect_all_but, op_lists::found, op_lists::Names;

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
  for (const char* folder : {"graph", "ops", "autograd"}) {
    for (const std::string& constant : found(folder, ".hpp", R"r(\ninline constexpr Op (\w+\(\s*"\w+)")r")) {
      const std::string name = constant.substr(0, constant.find('('));
      EXPECT_EQ(constant.substr(constant.find('"') + 1), name);
    }
  }
}

TEST(OpListsTest, FormulasAreOfOps) {
  const auto table = [](const std::string& text) {
    const std::size_t begin = std::min(text.find("Record<string, Formula> = {"), text.size());
    return text.substr(begin, text.find("\n};", begin) - begin);
  };
  Names formulas = found("report/page/src/formulas", ".ts", R"(\n  ([a-z_0-9]+)[:,])", table);
  for (const char* of_a_table : {"reshape", "matmul", "sum", "softmax"})
    EXPECT_TRUE(formulas.contains(of_a_table)) << of_a_table << " has no formula";
  std::istringstream lines(xgrad_tests::read_bytes(XGRAD_SOURCE_DIR "/report/formulas.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::string op = line.substr(0, line.find(':'));
    EXPECT_TRUE(formulas.insert(op).second) << op << " has two formulas";
  }
  EXPECT_TRUE(formulas.contains("abs")) << "report/formulas.txt has no abs";
  for (const std::string& op : formulas)
    EXPECT_TRUE(described().contains(op)) << op << " has a formula, but is no op";
}

TEST(OpListsTest, OpsAreDrawnOrAReason) {
  expect_all_but(drawn(),
                 {{"is no function that users call by itself", {"alias", "masked_mul"}},
                  {"has no gradient", {"int8_after_attention", "int8_linear", "int8_self_attention"}},
                  {"calls a function of the program", {"checkpoint", "implicit_function", "on_gradient"}}},
                 "draw");
}

}  // namespace op_lists_test
