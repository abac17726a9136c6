#include "export.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>

#include "../base/detail/system/folder_files.hpp"
#include "../base/detail/text/json_text.hpp"
#include "../base/file.hpp"
#include "../base/folder.hpp"
#include "../base/random.hpp"
#include "../graph/grad_mode.hpp"
#include "detail/exporter.hpp"
#include "graph.hpp"

namespace xgrad::onnx {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes;

/// The names of axes, in the order in which the inputs name them, and their lengths in the three calls.
std::vector<std::pair<std::string, std::array<std::size_t, 3>>> named_lengths(
    const std::vector<Input>& inputs, const Lengths& given) {
  std::vector<std::pair<std::string, std::array<std::size_t, 3>>> all;
  const std::array<std::size_t, 3> usual[] = {{2, 5, 3}, {7, 9, 8}, {11, 13, 12}, {17, 19, 18}};
  for (const Input& input : inputs) {
    for (const auto& axis : input.axes) {
      const std::string* const name = std::get_if<std::string>(&axis);
      if (name == nullptr) continue;
      if (std::ranges::any_of(all, [&](const auto& known) { return known.first == *name; })) continue;
      if (all.size() == std::size(usual))
        fail<ValueError>("onnx::save: at most ", std::size(usual), " axes may have names, got also ", *name);
      const auto found = given.find(*name);
      const auto& lengths = found != given.end() ? found->second : usual[all.size()];
      const bool all_differ =
          lengths[0] != lengths[1] && lengths[0] != lengths[2] && lengths[1] != lengths[2];
      if (!all_differ || std::ranges::min(lengths) < 2)
        fail<ValueError>("onnx::save: the three lengths of axis ", *name, " must be above 1 and differ, got ",
                         lengths[0], ", ", lengths[1], " and ", lengths[2]);
      all.emplace_back(*name, lengths);
    }
  }
  for (const auto& [name, lengths] : given) {
    if (std::ranges::none_of(all, [&, wanted = &name](const auto& known) { return known.first == *wanted; }))
      fail<ValueError>("onnx::save: no input has an axis ", in_quotes(name));
  }
  return all;
}

/// Examples for a call; each row of integers begins with another than padding and ends with some of it, from
/// places that differ among calls and inputs: what is made of one input must not seem made of another, or a
/// constant.
template <class T>
Values<T> examples(const std::vector<Input>& inputs,
                   const std::vector<std::pair<std::string, std::array<std::size_t, 3>>>& named,
                   std::size_t call) {
  Values<T> values;
  for (std::size_t number = 0; number < inputs.size(); ++number) {
    const Input& input = inputs[number];
    Shape shape;
    for (const auto& axis : input.axes) {
      if (const std::size_t* const fixed = std::get_if<std::size_t>(&axis)) {
        shape.push_back(*fixed);
        continue;
      }
      const auto found =
          std::ranges::find(named, std::get<std::string>(axis), [](const auto& one) { return one.first; });
      shape.push_back(found->second[call]);
    }
    if (input.from == input.below) {
      values.emplace(input.name, Variable<T>(normal<T>(shape)));
      continue;
    }
    Ids ids = randint(input.from, input.below, shape);
    const std::int64_t padding = input.padding.value_or(input.from);
    const std::size_t length = shape.empty() ? 1 : shape.back();
    for (std::size_t row = 0; length > 1 && row < ids.size() / length; ++row) {
      std::int64_t* const first = ids.data() + row * length;
      if (*first == padding) *first = padding > input.from ? input.from : input.below - 1;
      for (std::size_t i = 1 + (row + call + number) % (length - 1); i < length; ++i) first[i] = padding;
    }
    values.emplace(input.name, std::move(ids));
  }
  return values;
}

template <class T>
detail::TracedCall<T> traced(const Forward<T>& forward, Values<T> given) {
  const NoGrad guard;
  xgrad::detail::Trace<T> trace(xgrad::detail::GradientOps::with);
  detail::TracedCall<T> call{std::move(given), {}, {}};
  call.results = forward(call.given);
  call.ops = trace.ops();
  return call;
}

/// Throws ValueError unless the file computes what the model does.
template <class T>
void check(const std::string& path, std::span<const std::byte> bytes, const Forward<T>& forward,
           const Values<T>& given) {
  const NoGrad guard;
  const Graph<T> graph(path, bytes);
  const Values<T> got = graph(given), expected = forward(given);
  constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;
  for (const auto& [name, value] : expected) {
    const auto& from_model = std::get<Variable<T>>(value);
    const auto& from_file = std::get<Variable<T>>(got.at(name));
    double largest = 0, worst = from_model.shape() == from_file.shape() ? 0 : INFINITY;
    for (std::size_t i = 0; worst < INFINITY && i < from_model.size(); ++i) {
      const double a = from_model.value().data()[i], b = from_file.value().data()[i];
      if (std::isfinite(a)) largest = std::max(largest, std::abs(a));
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      worst = std::isnan(a - b) ? INFINITY : std::max(worst, std::abs(a - b));
    }
    if (!(worst <= tolerance * std::max(largest, 1e-30))) {
      fail<ValueError>("onnx::save: the output ", in_quotes(name),
                       " of the file differs from the model's by ", worst, ", largest element ", largest,
                       ", for inputs that were not traced: shapes ", from_model.shape(), " and ",
                       from_file.shape());
    }
  }
}

}  // namespace

template <class T>
void save(const Module<T>& model, const std::string& path, const std::vector<Input>& inputs,
          const Forward<T>& forward, const ExportOptions& options) {
  constexpr std::int64_t first_opset = 17, last_opset = 23;
  if (options.opset < first_opset || options.opset > last_opset)
    fail<ValueError>("onnx::save: operator sets ", first_opset, " to ", last_opset, " can be written, got ",
                     options.opset);
  const auto named = named_lengths(inputs, options.lengths);
  detail::AxisLengths axes;
  for (const auto& [name, calls] : named) axes.add(name, calls[0], calls[1]);
  typename detail::Exporter<T>::InputAxes input_axes;
  for (const Input& input : inputs) {
    if (std::ranges::any_of(input_axes, [&](const auto& known) { return known.first == input.name; }))
      fail<ValueError>("onnx::save: there are two inputs ", in_quotes(input.name));
    auto& of_input = input_axes.emplace_back(input.name, std::vector<std::size_t>()).second;
    for (const auto& axis : input.axes) {
      const std::string* const name = std::get_if<std::string>(&axis);
      of_input.push_back(
          name == nullptr ? detail::Exporter<T>::no_axis
                          : static_cast<std::size_t>(
                                std::ranges::find(named, *name, [](const auto& one) { return one.first; }) -
                                named.begin()));
    }
  }
  Generator other;
  const UseGenerator use(other);
  const auto first = traced(forward, examples<T>(inputs, named, 0)),
             second = traced(forward, examples<T>(inputs, named, 1));
  detail::Exporter<T> exporter(model, options.opset, axes, input_axes, first, second);
  const detail::GraphWriter graph = exporter.write();
  std::vector<std::byte> bytes = graph.file();
  check(path, bytes, forward, examples<T>(inputs, named, 2));
  AtomicFile file(path);
  if (bytes.size() <= options.largest_file) {
    file.write(bytes);
    return file.commit();
  }
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  write_folder(folder.empty() ? "." : folder, [&](const std::string& other) {
    const std::string model = xgrad::detail::join({other, "/", name});
    AtomicFile data(model + "_data");
    xgrad::detail::write_file(model, graph.file(name + "_data", data));
    data.commit();
  });
}

template void save(const Module<float>&, const std::string&, const std::vector<Input>&, const Forward<float>&,
                   const ExportOptions&);
template void save(const Module<double>&, const std::string&, const std::vector<Input>&,
                   const Forward<double>&, const ExportOptions&);

}  // namespace xgrad::onnx
