// Prints reports of drawn calls of all ops, a line of JSON each, for the tests of a report's formulas
#include <iostream>
#include <optional>

#include <xgrad/report.hpp>

#include "../../apps/common/program.hpp"
#include "../ops/common/draw.hpp"

namespace {

using xgrad_tests::Drawing, xgrad_tests::Leaf, xgrad_tests::Step, xgrad_tests::Value, xgrad_tests::Values;

/// Of the program, op by op, or of none if nothing was drawn that suits the op.
void print_report(const xgrad_tests::Draw& draw, std::uint64_t number) {
  Drawing drawing(1, number, {.longest = 4, .most = 24, .often = 0});
  draw.add(drawing);
  if (drawing.size() == 0) return;
  const xgrad_tests::Program program = drawing.finished();
  Values<double> values;
  for (const auto& [name, leaf] : program.leaves) {
    Value<double>& value = values[name] = leaf.value;
    if (leaf.requires_grad) value.numbers = xgrad::Variable<double>(value.numbers.value(), true);
  }
  std::optional<xgrad::detail::SingleOps> single;  // as in training runs, but not in other programs
  if (number % 2 == 0) single.emplace();
  const xgrad::Recording<double> recording;
  for (const Step& step : program.steps) xgrad_tests::run(step, values);
  xgrad::Report report(draw.op);
  report.step(0).recorded({draw.op, {}}, recording, values.at(program.loss()).numbers);
  std::cout << report.json() << '\n';
}

}  // namespace

int main() {
  constexpr std::uint64_t repetitions = 12;  // so that each choice of attributes is drawn
  return apps::run_program("op_reports", [] {
    for (const xgrad_tests::Draw& draw : xgrad_tests::draw_table())
      for (std::uint64_t number = 0; number < repetitions; ++number) print_report(draw, number);
    apps::flush_output();
    return 0;
  });
}
