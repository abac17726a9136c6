#include "draw.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace xgrad_tests {
namespace {

std::vector<Draw>& draws() {
  static std::vector<Draw> known;
  return known;
}

bool is_within(const Array<double>& x, Range range) {
  return std::all_of(x.storage().begin(), x.storage().end(), [&](double element) {
    return range.low <= element && element <= range.high && std::abs(element) >= range.gap;
  });
}

/// Finite, and of a size whose functions are so, too.
bool is_usable(const Array<double>& x) { return x.dimension() <= 5 && is_within(x, {-30, 30}); }

template <class T>
Results<T> results_of(const Step& step, const Values<T>& values) {
  const Adapter* const adapter = find_adapter(step.op);
  if (adapter == nullptr) throw std::logic_error("no Conformance has the function " + step.op);
  std::vector<Value<T>> inputs;
  for (const Name& name : step.inputs) inputs.push_back(name.empty() ? Value<T>() : values.at(name));
  const nlohmann::json attrs = as_json(step.attrs);
  return (*adapter)(Call<T>(std::move(inputs), attrs));
}

}  // namespace

nlohmann::json as_json(const std::vector<Attr>& attrs) {
  nlohmann::json object = nlohmann::json::object();
  for (const Attr& attr : attrs)
    std::visit([&](const auto& value) { object[attr.name] = value; }, attr.value);
  return object;
}

Program pruned(const Program& program) {
  Program kept{{}, {}, program.of_any_sign};
  std::set<Name> needed{program.loss()};
  for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step) {
    if (std::none_of(step->results.begin(), step->results.end(),
                     [&](const Name& name) { return needed.contains(name); }))
      continue;
    needed.insert(step->inputs.begin(), step->inputs.end());
    kept.steps.insert(kept.steps.begin(), *step);
  }
  for (const auto& [name, leaf] : program.leaves)
    if (needed.contains(name)) kept.leaves[name] = leaf;
  return kept;
}

template <class T>
void run(const Step& step, Values<T>& values) {
  Results<T> results = results_of(step, values);
  for (std::size_t i = 0; i < step.results.size(); ++i) values[step.results[i]] = {std::move(results.at(i))};
}

template void run<float>(const Step&, Values<float>&);
template void run<double>(const Step&, Values<double>&);

Drawing::Drawing(std::uint64_t seed, std::uint64_t number, Sizes sizes) : sizes_(sizes) {
  std::seed_seq both{seed >> 32, seed & 0xffffffff, number >> 32, number & 0xffffffff};
  random_.seed(both);
}

std::size_t Drawing::below(std::size_t n) {
  return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
}

bool Drawing::chance(double probability) { return uniform(0, 1) < probability; }

double Drawing::uniform(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random_);
}

std::size_t Drawing::length() {
  if (chance(0.02)) return 0;
  if (chance(0.2)) return 1;
  return 2 + below(chance(sizes_.often) ? sizes_.longest - 1 : 4);
}

Shape Drawing::shape(std::size_t least_rank, std::size_t most_rank) {
  std::size_t rank = one_of<std::size_t>({0, 1, 1, 2, 2, 2, 2, 3, 3, 4});
  rank = std::clamp(rank, least_rank, most_rank);
  Shape shape(rank);
  do {
    for (std::size_t& length : shape) length = this->length();
  } while (xgrad::element_count(shape) > sizes_.most);
  return shape;
}

Shape Drawing::narrowed(const Shape& shape) {
  Shape narrow(shape.begin() + static_cast<std::ptrdiff_t>(chance(0.3) ? below(shape.size() + 1) : 0),
               shape.end());
  for (std::size_t& length : narrow)
    if (chance(0.2)) length = 1;
  return narrow;
}

std::ptrdiff_t Drawing::axis(const Name& x) {
  const std::size_t axes = std::max<std::size_t>(rank(x), 1);
  const auto axis = static_cast<std::ptrdiff_t>(below(axes));
  return chance(0.5) ? axis : axis - static_cast<std::ptrdiff_t>(axes);
}

Attr::Value Drawing::axes(const Name& x) {
  const std::size_t rank = this->rank(x);
  if (rank == 0 || chance(0.15)) return nullptr;
  if (chance(0.4)) return axis(x);
  std::vector<std::ptrdiff_t> some = order(rank);
  some.resize(1 + below(rank));
  for (std::ptrdiff_t& axis : some)
    if (chance(0.5)) axis -= static_cast<std::ptrdiff_t>(rank);
  return some;
}

std::vector<std::ptrdiff_t> Drawing::order(std::size_t n) {
  std::vector<std::ptrdiff_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random_);
  return all;
}

Array<double> Drawing::elements(const Shape& shape, Range range) {
  return draw(Input(shape, range), random_);
}

Name Drawing::leaf(Leaf leaf) {
  const Name name = "x" + std::to_string(program_.leaves.size());
  values_[name] = leaf.value;
  program_.leaves[name] = std::move(leaf);
  return name;
}

template <class Fits>
Name Drawing::existing(const Fits& fits) {
  for (const std::vector<Name>* names : {&unused_, &usable_}) {
    std::vector<Name> fitting;
    std::copy_if(names->begin(), names->end(), std::back_inserter(fitting), fits);
    if (!fitting.empty() && chance(names == &unused_ ? 0.6 : 0.9)) return fitting[below(fitting.size())];
  }
  return "";
}

Name Drawing::numbers(std::size_t least_rank) {
  const Name there = existing([&](const Name& name) { return rank(name) >= least_rank; });
  return there.empty() ? numbers(shape(least_rank)) : there;
}

Drawing::Cut Drawing::cut() {
  const Name x = numbers(1);
  const std::ptrdiff_t dim = axis(x);
  return {x, dim, value(x).shape(static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape(x)) : dim))};
}

Name Drawing::numbers(const Shape& shape) {
  const Name there = existing([&](const Name& name) { return this->shape(name) == shape; });
  if (!there.empty()) return there;
  const bool requires_grad = chance(0.9);
  const Name name = leaf({{Variable<double>(elements(shape, {}))}, requires_grad});
  usable_.push_back(name);
  return name;
}

Name Drawing::within(const Name& x, Range range) {
  if (is_within(value(x), range)) return x;
  const double low = range.low < 0 && range.gap > 0 ? range.gap : std::max(range.low, range.gap);
  const Name part = drawn(*this, "mul", {drawn(*this, "sigmoid", {x})}, {{"other", range.high - low}});
  return drawn(*this, "add", {part}, {{"other", low}});
}

Name Drawing::constant(const Shape& shape, Range range) {
  return leaf({{Variable<double>(elements(shape, range))}});
}

Name Drawing::ids(const Shape& shape, std::size_t end) {
  Ids ids = Ids::from_shape(shape);
  for (std::int64_t& id : ids.storage()) id = static_cast<std::int64_t>(below(end));
  return leaf({{{}, std::move(ids)}});
}

Name Drawing::mask(const Shape& shape) {
  const double share = one_of({0.0, 0.3, 0.7, 0.7, 1.0});
  Mask mask = Mask::from_shape(shape);
  for (bool& element : mask.storage()) element = chance(share);
  return leaf({{{}, {}, std::move(mask)}});
}

const Array<double>& Drawing::value(const Name& x) const { return values_.at(x).numbers.value(); }

bool Drawing::is_clear_of(double place, const Array<double>& x) {
  const double there = 1e-12, near = x.size() > 1000 ? 1e-5 : 1e-2;
  return std::all_of(x.storage().begin(), x.storage().end(), [&](double element) {
    const double distance = std::abs(element - place);
    return distance <= there || distance >= near;
  });
}

std::vector<Name> Drawing::call(const std::string& op, const std::vector<Name>& inputs,
                                const std::vector<Attr>& attrs, std::size_t results) {
  Step step{op, inputs, attrs, {}};
  for (std::size_t i = 0; i < results; ++i) step.results.push_back("y" + std::to_string(results_++));
  program_.steps.push_back(step);
  run(step, values_);
  std::erase_if(unused_, [&](const Name& name) {
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  });
  for (const Name& name : step.results) {
    if (!is_usable(value(name))) continue;
    usable_.push_back(name);
    unused_.push_back(name);
  }
  return step.results;
}

Array<double> Drawing::result(const std::string& op, const std::vector<Name>& inputs,
                              const std::vector<Attr>& attrs) const {
  return results_of<double>({op, inputs, attrs, {}}, values_).front().value();
}

void Drawing::hide(const Name& x) {
  std::erase(usable_, x);
  std::erase(unused_, x);
}

void Drawing::hide_of_any_sign(const Name& x) {
  hide(x);
  program_.of_any_sign.insert(x);
}

Program Drawing::finished() {
  if (unused_.empty()) unused_.push_back(numbers());
  Name total;
  for (const Name& name : std::vector<Name>(unused_)) {
    const Name weighted = drawn(*this, "mul", {name, constant(shape(name), {-1.5, 1.5, 0.5})});
    const Name part = drawn(*this, "sum", {weighted}, {{"dim", nullptr}, {"keepdim", false}});
    total = total.empty() ? part : drawn(*this, "add", {total, part});
  }
  return pruned(program_);
}

Draws::Draws(std::initializer_list<Draw> list) { draws().insert(draws().end(), list.begin(), list.end()); }

const std::vector<Draw>& draw_table() {
  static const std::vector<Draw> table = [] {
    std::vector<Draw> all = draws();
    std::sort(all.begin(), all.end(), [](const Draw& a, const Draw& b) { return a.op < b.op; });
    return all;
  }();
  return table;
}

std::pair<Name, Name> broadcasting(Drawing& d) {
  const Name a = d.numbers(), b = d.numbers(d.narrowed(d.shape(a)));
  return d.chance(0.5) ? std::pair(a, b) : std::pair(b, a);
}

}  // namespace xgrad_tests
