#include "einsum_equation.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "../../../base/error.hpp"

namespace xgrad::detail {
namespace {

using Labels = EinsumLabels;

constexpr std::string_view ellipsis = "...";

/// What stands between two commas: letters, with at most one "..." among them.
void check_term(std::string_view term, const std::string& equation) {
  const std::size_t dots = term.find(ellipsis);
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (dots != term.npos && i >= dots && i < dots + ellipsis.size()) continue;
    const bool letter = (term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z');
    if (!letter)
      fail<ValueError>("einsum: axes must be letters or one '...', got '", term, "' in '", equation, "'");
  }
}

/// The labels of a checked term; `rank` is that of its operand, or for the output as if it had one.
Labels labels_of(std::string_view term, std::size_t rank) {
  Labels labels;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      labels.push_back(term[i]);
      continue;
    }
    const std::size_t axes = rank - (term.size() - ellipsis.size());
    for (std::size_t k = axes; k > 0; --k) labels.push_back(-static_cast<int>(k));
    i += ellipsis.size() - 1;
  }
  return labels;
}

/// Letters that occur once, in alphabetical order, after the axes of "...".
Labels implied_output(const std::vector<Labels>& operands) {
  std::map<int, int> occurrences;
  for (const Labels& labels : operands)
    for (const int label : labels) ++occurrences[label];
  Labels output;
  for (const auto& [label, count] : occurrences)
    if (label < 0 || count == 1) output.push_back(label);
  return output;
}

}  // namespace

EinsumEquation parse_einsum(std::string_view text, std::span<const Shape> operands) {
  std::string equation;
  std::copy_if(text.begin(), text.end(), std::back_inserter(equation), [](char c) { return c != ' '; });
  const std::size_t arrow = equation.find("->");
  const std::string inputs = equation.substr(0, arrow);

  std::vector<std::string> terms(1);
  for (const char c : inputs) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != operands.size()) {
    fail<ValueError>("einsum: '", equation, "' must have as many terms as operands, got ", terms.size(),
                     " and ", operands.size());
  }

  EinsumEquation result;
  std::size_t broadcast_axes = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    check_term(terms[i], equation);
    const bool dots = terms[i].find(ellipsis) != std::string::npos;
    const std::size_t letters = terms[i].size() - (dots ? ellipsis.size() : 0);
    const std::size_t rank = operands[i].size();
    if (dots ? rank < letters : rank != letters) {
      fail<ShapeError>("einsum: operand ", i, " must have ", dots ? "at least " : "", letters, " axes for '",
                       terms[i], "', got ", operands[i]);
    }
    if (dots) broadcast_axes = std::max(broadcast_axes, rank - letters);
    result.operands.push_back(labels_of(terms[i], rank));
  }

  if (arrow == std::string::npos) {
    result.output = implied_output(result.operands);
    return result;
  }
  const std::string output = equation.substr(arrow + 2);
  check_term(output, equation);
  const bool dots = output.find(ellipsis) != std::string::npos;
  result.output = labels_of(output, output.size() - (dots ? ellipsis.size() : 0) + broadcast_axes);
  for (const int label : result.output) {
    if (std::count(result.output.begin(), result.output.end(), label) > 1)
      fail<ValueError>("einsum: an axis may occur in the output only once, got '", equation, "'");
    const auto has_label = [label](const Labels& labels) { return contains(labels, label); };
    if (std::none_of(result.operands.begin(), result.operands.end(), has_label)) {
      fail<ValueError>("einsum: every axis of the output must occur in an operand, got '", equation, "'");
    }
  }
  return result;
}

}  // namespace xgrad::detail
