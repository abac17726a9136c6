// Draws random programs of the library's ops and compares what they compute in several ways, and with PyTorch
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../ops/common/draw.hpp"
#include "deviation.hpp"
#include "torch_process.hpp"

namespace {

using nlohmann::json;
using xgrad::Array, xgrad::Shape, xgrad::Variable;
using xgrad_tests::Drawing, xgrad_tests::Input, xgrad_tests::Inputs, xgrad_tests::Leaf, xgrad_tests::Name,
    xgrad_tests::Program, xgrad_tests::Step, xgrad_tests::TorchProcess, xgrad_tests::Values;

// Programs

std::string text_of(const Shape& shape) { return xgrad::to_string(shape); }

template <class Elements>
std::string text_of(const char* kind, const Elements& elements) {
  constexpr std::size_t most = 24;
  std::ostringstream text;
  text.precision(9);
  text << kind << ' ' << text_of(Shape(elements.shape().begin(), elements.shape().end()));
  for (std::size_t i = 0; i < std::min(elements.size(), most); ++i)
    text << (i == 0 ? ": " : ", ") << elements.data()[i];
  if (elements.size() > most) text << ", ...";
  return text.str();
}

std::string text_of(const Leaf& leaf) {
  if (leaf.value.ids) return text_of("ids", *leaf.value.ids);
  if (leaf.value.mask) return text_of("mask", *leaf.value.mask);
  return text_of(leaf.requires_grad ? "variable" : "constant", leaf.value.numbers.value());
}

std::string text_of(const Step& step) {
  std::string text;
  for (const Name& name : step.results) text += (text.empty() ? "" : ", ") + name;
  text += " = " + step.op + "(";
  const char* comma = "";
  for (const Name& name : step.inputs) {
    text += comma + (name.empty() ? "none" : name);
    comma = ", ";
  }
  const json attrs = as_json(step.attrs);
  for (const auto& [name, value] : attrs.items()) {
    text += comma + name + "=" + value.dump();
    comma = ", ";
  }
  return text + ")";
}

std::string text_of(const Program& program) {
  std::string text;
  for (const auto& [name, leaf] : program.leaves) text += "  " + name + " = " + text_of(leaf) + "\n";
  for (const Step& step : program.steps) text += "  " + text_of(step) + "\n";
  return text;
}

// Their derivatives

/// Arrays for all variables of a program, in the order of their names.
template <class T>
using Arrays = std::vector<Array<T>>;

template <class To, class From>
Array<To> converted(const Array<From>& x) {
  return Array<To>(xt::cast<To>(x));
}

Arrays<double> variables_of(const Program& program) {
  Arrays<double> all;
  for (const auto& [name, leaf] : program.leaves)
    if (leaf.requires_grad) all.push_back(leaf.value.numbers.value());
  return all;
}

std::vector<Name> names_of_variables(const Program& program) {
  std::vector<Name> all;
  for (const auto& [name, leaf] : program.leaves)
    if (leaf.requires_grad) all.push_back(name);
  return all;
}

/// Random directions for the variables, of lengths near 1.
Arrays<double> directions(const Arrays<double>& variables, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Arrays<double> all;
  for (const Array<double>& x : variables) all.push_back(draw(Input(x.shape(), {-1, 1, 0.2}), random));
  return all;
}

/// A program that was run.
template <class T>
struct Run {
  Values<T> values;
  Inputs<T> variables;
  Variable<T> loss;
};

/// Runs the program at these variables. With noise, each value is off by some eps of type N.
template <class T>
Run<T> run(const Program& program, const Arrays<double>& at, double noise = 0, std::uint64_t seed = 0) {
  Run<T> made;
  std::mt19937_64 random(seed);
  const auto disturb = [&](Variable<T>& x) {
    if (noise == 0 || x.size() == 0) return;
    const Array<double> factors = 1 + noise * draw(Input(x.shape(), {-1, 1}), random);
    x = x * Variable<T>(converted<T>(factors));
  };
  for (const auto& [name, leaf] : program.leaves) {
    auto& value = made.values[name];
    value = {{}, leaf.value.ids, leaf.value.mask};
    if (leaf.requires_grad) {
      made.variables.emplace_back(converted<T>(at[made.variables.size()]), true);
      value.numbers = made.variables.back();
    } else if (leaf.value.numbers.defined()) {
      value.numbers = Variable<T>(converted<T>(leaf.value.numbers.value()));
    }
    if (value.numbers.defined()) disturb(value.numbers);
  }
  for (const Step& step : program.steps) {
    xgrad_tests::run(step, made.values);
    for (const Name& name : step.results) disturb(made.values.at(name).numbers);
  }
  made.loss = made.values.at(program.loss()).numbers;
  return made;
}

/// The gradients of y, of zeros where it does not depend on a variable.
template <class T>
Inputs<T> gradients(const Variable<T>& y, const Inputs<T>& variables, bool create_graph = false) {
  Inputs<T> found(variables.size());
  if (y.requires_grad() && !variables.empty())
    found = grad(y, variables, {.create_graph = create_graph, .allow_unused = true});
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = Variable<T>(Array<T>(variables[i].shape(), T{0}));
  return found;
}

template <class T>
Arrays<T> arrays_of(const Inputs<T>& variables) {
  Arrays<T> all;
  for (const Variable<T>& x : variables) all.push_back(x.value());
  return all;
}

template <class T>
Variable<T> dot(const Inputs<T>& a, const Arrays<double>& b) {
  Variable<T> total(T{0});
  for (std::size_t i = 0; i < a.size(); ++i) total = total + sum(a[i] * Variable<T>(converted<T>(b[i])));
  return total;
}

double dot(const Arrays<double>& a, const Arrays<double>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a[i].size(); ++k) total += a[i].data()[k] * b[i].data()[k];
  return total;
}

/// The gradients of the loss, the gradients of their product with the first directions, and so on.
template <class T>
std::vector<Arrays<T>> derivatives(const Run<T>& made, const std::vector<Arrays<double>>& along) {
  std::vector<Arrays<T>> all;
  Variable<T> y = made.loss;
  for (const Arrays<double>& direction : along) {
    const Inputs<T> found = gradients(y, made.variables, true);
    all.push_back(arrays_of(found));
    if (all.size() < along.size()) y = dot(found, direction);
  }
  return all;
}

// Comparisons

template <class T>
double largest(const Arrays<T>& arrays) {
  double most = 0;
  for (const Array<T>& x : arrays)
    for (const T element : x) most = std::max(most, std::abs(double{element}));
  return most;
}

template <class T>
bool same_bits(const Array<T>& a, const Array<T>& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Nobody is told anything that matters here: that somebody watches is enough.
struct Watching : xgrad::Watcher {};

/// Threads for as long as it lives.
class Threads {
 public:
  explicit Threads(std::size_t count) { xgrad::set_num_threads(count); }
  ~Threads() { xgrad::set_num_threads(1); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

/// What is wrong with a program.
class Comparison {
 public:
  Comparison(const Program& program, std::uint64_t seed, TorchProcess* torch)
      : program_(program),
        torch_(torch),
        names_(names_of_variables(program)),
        at_(variables_of(program)),
        u_(directions(at_, seed + 1)),
        v_(directions(at_, seed + 2)),
        w_(directions(at_, seed + 3)) {
    const xgrad::NoGrad guard;
    for (const auto& [name, value] : run<double>(program, at_).values)
      is_large_ = is_large_ || (value.numbers.defined() && value.numbers.size() > 1000);
  }

  /// Each kind of disagreement is a line.
  std::vector<std::string> wrong() {
    guarded([&] {
      const std::ptrdiff_t before = live_blocks();
      compare_bits<float>();
      compare_bits<double>();
      compare_derivatives();
      if (!is_large_) compare_differences();
      compare_float();
      if (torch_ != nullptr) compare_torch();
      expected_.clear();
      if (live_blocks() != before)
        tell(std::to_string(live_blocks() - before) + " blocks of memory stay when all is gone");
    });
    return wrong_;
  }

  /// Differences that told nothing, as the function has a kink or is too steep there.
  std::size_t open() const { return open_; }

 private:
  /// Up to which order derivatives are compared.
  std::size_t order() const { return is_large_ ? 2 : 3; }

  void tell(std::string text) { wrong_.push_back(std::move(text)); }

  template <class Check>
  void guarded(const Check& check) {
    try {
      check();
    } catch (const std::exception& error) {
      tell(std::string("an exception: ") + error.what());
    }
  }

  static std::ptrdiff_t live_blocks() {
    xgrad::empty_cache();
    return xgrad::memory_stats().live_blocks;
  }

  /// All of a run in one of the ways that must not change a bit.
  template <class T>
  struct Bits {
    Values<T> values;
    Arrays<T> first, second;
  };

  template <class T>
  Bits<T> bits() const {
    const Run<T> made = run<T>(program_, at_);
    Bits<T> bits{made.values, arrays_of(gradients(made.loss, made.variables)), {}};
    const Run<T> again = run<T>(program_, at_);
    bits.second = derivatives(again, {u_, v_})[1];
    return bits;
  }

  template <class T>
  void compare_values(const std::string& way, const Values<T>& got, const Values<T>& want) {
    for (const Step& step : program_.steps) {
      for (const Name& name : step.results) {
        if (same_bits(got.at(name).numbers.value(), want.at(name).numbers.value())) continue;
        return tell(way + ": " + name + " has other bits");
      }
    }
  }

  template <class T>
  void compare_bits(const std::string& way, const Bits<T>& got, const Bits<T>& want) {
    compare_values(way, got.values, want.values);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!same_bits(got.first[i], want.first[i])) return tell(way + ": d" + names_[i] + " has other bits");
      if (!same_bits(got.second[i], want.second[i]))
        return tell(way + ": the second derivative for " + names_[i] + " has other bits");
    }
  }

  template <class T>
  void compare_bits() {
    const std::string type = std::is_same_v<T, float> ? " in float" : " in double";
    const Bits<T> plain = bits<T>();
    {
      const xgrad::NoGrad guard;
      compare_values("not recorded" + type, run<T>(program_, at_).values, plain.values);
    }
    {
      const Watching watcher;
      compare_bits("watched" + type, bits<T>(), plain);
    }
    {
      const Threads three(3);
      compare_bits("with three threads" + type, bits<T>(), plain);
    }
    compare_bits("again" + type, bits<T>(), plain);
  }

  /// How far noise of this size in all values changes the derivatives of this order.
  double spread(double noise, std::size_t order) const {
    const std::vector<Arrays<double>> along{u_, v_, w_};
    double most = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto found = derivatives(run<double>(program_, at_, noise, seed),
                                     {along.begin(), along.begin() + static_cast<std::ptrdiff_t>(order)});
      for (std::size_t i = 0; i < at_.size(); ++i)
        for (std::size_t k = 0; k < at_[i].size(); ++k)
          most = std::max(most, std::abs(found.back()[i].data()[k] - expected_[order - 1][i].data()[k]));
    }
    return most;
  }

  /// Compares derivatives of an order with the expected ones, to a part of the largest of them, and where
  /// that is not met to what the rounding of all values would do.
  template <class T>
  void compare(const std::string& what, const Arrays<T>& got, std::size_t order, double part,
               double rounding) {
    const Arrays<double>& want = expected_[order - 1];
    double allowed = part * (1 + largest(want));
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (got[i].shape() != want[i].shape())
        return tell(what + " for " + names_[i] + ": shape " + text_of(got[i].shape()));
      auto worst = xgrad_tests::worst_deviation(got[i], want[i], [&](std::size_t) { return allowed; });
      if (worst.excess <= 1) continue;
      allowed = std::max(allowed, 50 * spread(rounding, order));
      if (worst.distance <= allowed) continue;
      std::ostringstream text;
      text.precision(12);
      text << what << " for " << names_[i] << ": element " << worst.at << " of " << text_of(want[i].shape())
           << " is " << got[i].data()[worst.at] << ", not " << want[i].data()[worst.at];
      return tell(text.str());
    }
  }

  /// With and without create_graph; and second derivatives are symmetric.
  void compare_derivatives() {
    const Run<double> made = run<double>(program_, at_);
    std::vector<Arrays<double>> along{u_, v_, w_};
    along.resize(order());
    expected_ = derivatives(made, along);
    const Run<double> again = run<double>(program_, at_);
    compare("the gradient without create_graph", arrays_of(gradients(again.loss, again.variables)), 1, 1e-10,
            1e-15);
    const Arrays<double> second = derivatives(made, {v_, u_})[1];
    const double a = dot(expected_[1], v_), b = dot(second, u_);
    const double scale = 1 + largest(expected_[1]) + largest(second);
    if (!(std::abs(a - b) <= 1e-8 * scale) && !(std::abs(a - b) <= 1000 * spread(1e-15, 2)))
      tell("second derivatives are not symmetric: " + std::to_string(a) + " and " + std::to_string(b));
  }

  Arrays<double> moved(const Arrays<double>& direction, double distance, std::size_t only) const {
    Arrays<double> there = at_;
    for (std::size_t i = 0; i < there.size(); ++i)
      if (only == at_.size() || only == i) there[i] += distance * direction[i];
    return there;
  }

  /// Compares the derivative along a direction of f, a function of the variables, with differences.
  template <class F>
  void compare_difference(const std::string& what, const F& f, const Arrays<double>& direction,
                          std::size_t only, double analytic, double scale) {
    const auto difference = [&](double h) {
      const auto at = [&](double distance) { return f(moved(direction, distance, only)); };
      return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    };
    std::vector<double> found;
    for (const double h : {1e-4, 1e-5, 1e-3}) {
      found.push_back(difference(h));
      if (std::abs(found.back() - analytic) <= 1e-6 * scale) return;
    }
    // at a kink, or where higher derivatives are large, two distances differ as much as the gradient does
    if (std::abs(found[0] - found[1]) > 0.1 * std::abs(found[0] - analytic)) {
      ++open_;
      return;
    }
    std::ostringstream text;
    text.precision(12);
    text << what << ": " << analytic << ", by differences " << found[0] << " and " << found[1];
    tell(text.str());
  }

  void compare_differences() {
    const auto loss = [&](const Arrays<double>& at) {
      const xgrad::NoGrad guard;
      return run<double>(program_, at).loss.item();
    };
    const double size = std::abs(loss(at_));
    for (std::size_t i = 0; i < at_.size(); ++i) {
      const double analytic = dot({expected_[0][i]}, {u_[i]});
      compare_difference("the gradient for " + names_[i], loss, u_, i, analytic,
                         1 + size + largest<double>({expected_[0][i]}));
    }
    const auto gradient = [&](const Arrays<double>& at) {
      const Run<double> made = run<double>(program_, at);
      return dot(arrays_of(gradients(made.loss, made.variables)), u_);
    };
    compare_difference("the second derivative", gradient, v_, at_.size(), dot(expected_[1], v_),
                       1 + largest(expected_[0]) + largest(expected_[1]));
    const auto second = [&](const Arrays<double>& at) {
      return dot(derivatives(run<double>(program_, at), {u_, v_})[1], v_);
    };
    compare_difference("the third derivative", second, w_, at_.size(), dot(expected_[2], w_),
                       1 + largest(expected_[1]) + largest(expected_[2]));
  }

  void compare_float() {
    const Run<float> made = run<float>(program_, at_);
    compare("the gradient in float", arrays_of(gradients(made.loss, made.variables)), 1, 1e-4, 6e-8);
    const double want = run<double>(program_, at_).loss.item(), got = made.loss.item();
    if (!(std::abs(got - want) <= 1e-3 * (1 + std::abs(want))))
      tell("the loss in float: " + std::to_string(got) + ", not " + std::to_string(want));
  }

  static json as_json(const Array<double>& x) {
    return {{"kind", "numbers"},
            {"shape", std::vector<std::size_t>(x.shape().begin(), x.shape().end())},
            {"elements", std::vector<double>(x.begin(), x.end())}};
  }

  static json as_json(const Leaf& leaf) {
    const auto entry = [](const char* kind, const auto& x) {
      return json{{"kind", kind},
                  {"shape", std::vector<std::size_t>(x.shape().begin(), x.shape().end())},
                  {"elements", std::vector(x.begin(), x.end())}};
    };
    if (leaf.value.ids) return entry("ids", *leaf.value.ids);
    if (leaf.value.mask) return entry("mask", *leaf.value.mask);
    json numbers = as_json(leaf.value.numbers.value());
    numbers["requires_grad"] = leaf.requires_grad;
    return numbers;
  }

  static Array<double> array_of(const json& entry) {
    const auto lengths = entry.at("shape").get<std::vector<std::size_t>>();
    Array<double> x = Array<double>::from_shape(Shape(lengths.begin(), lengths.end()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const json& element = entry.at("elements").at(i);
      x.data()[i] = element.is_string() ? std::stod(element.get<std::string>()) : element.get<double>();
    }
    return x;
  }

  void compare_torch() {
    json question{{"leaves", json::object()},
                  {"steps", json::array()},
                  {"loss", program_.loss()},
                  {"directions", json::array()}};
    for (const auto& [name, leaf] : program_.leaves) question["leaves"][name] = as_json(leaf);
    for (const Step& step : program_.steps) {
      json inputs = json::array();
      for (const Name& name : step.inputs) inputs.push_back(name.empty() ? json() : json(name));
      question["steps"].push_back({{"op", step.op},
                                   {"in", inputs},
                                   {"attrs", xgrad_tests::as_json(step.attrs)},
                                   {"out", step.results}});
    }
    for (std::size_t order = 1; order <= this->order(); ++order) {
      const Arrays<double>& direction = order == 1 ? u_ : order == 2 ? v_ : w_;
      json entry = json::object();
      for (std::size_t i = 0; i < names_.size(); ++i) entry[names_[i]] = as_json(direction[i]);
      question["directions"].push_back(entry);
    }
    const json answer = torch_->answer(question);
    if (answer.contains("unknown"))
      return tell("PyTorch has no function " + answer["unknown"].get<std::string>() +
                  ": random_programs.py must compute it");
    if (answer.contains("error")) return tell("PyTorch: " + answer["error"].get<std::string>());
    const Run<double> made = run<double>(program_, at_);
    for (const Step& step : program_.steps) {
      for (const Name& name : step.results) {
        if (program_.of_any_sign.contains(name)) continue;
        const Array<double>& got = made.values.at(name).numbers.value();
        const Array<double> want = array_of(answer.at("values").at(name));
        if (got.shape() != want.shape())
          return tell(name + " has shape " + text_of(got.shape()) + ", PyTorch's " + text_of(want.shape()));
        const double allowed = 1e-8 * (1 + std::min(largest<double>({want}), 1e6));
        const auto worst = xgrad_tests::worst_deviation(got, want, [&](std::size_t) { return allowed; });
        if (worst.excess <= 1) continue;
        std::ostringstream text;
        text.precision(12);
        text << name << ": element " << worst.at << " of " << text_of(want.shape()) << " is "
             << got.data()[worst.at] << ", PyTorch's " << want.data()[worst.at];
        return tell(text.str());
      }
    }
    for (std::size_t order = 1; order <= this->order(); ++order) {
      Arrays<double> theirs;
      for (const Name& name : names_)
        theirs.push_back(array_of(answer.at("derivatives").at(order - 1).at(name)));
      compare("PyTorch's derivative " + std::to_string(order), theirs, order, 1e-8, 1e-15);
    }
  }

  const Program& program_;
  TorchProcess* torch_;
  std::vector<Name> names_;
  Arrays<double> at_, u_, v_, w_;
  bool is_large_ = false;
  std::vector<Arrays<double>> expected_;
  std::vector<std::string> wrong_;
  std::size_t open_ = 0;
};

// The campaign

Program drawn_program(std::uint64_t seed, std::uint64_t number) {
  const bool large = number % 25 == 24;
  Drawing drawing(seed, number, large ? Drawing::Sizes{300, 50000, 0.5} : Drawing::Sizes{18, 200, 0.1});
  const std::vector<xgrad_tests::Draw>& draws = xgrad_tests::draw_table();
  const std::size_t steps = 3 + drawing.below(large ? 5 : 10);
  while (drawing.size() < steps) draws[drawing.below(draws.size())].add(drawing);
  return drawing.finished();
}

/// The steps up to number `last`, and the sum of their results as a loss.
Program ended(const Program& program, std::size_t last) {
  Program shorter{program.leaves,
                  {program.steps.begin(), program.steps.begin() + static_cast<std::ptrdiff_t>(last + 1)},
                  program.of_any_sign};
  Name total;
  for (const Name& name : program.steps[last].results) {
    const std::string part = name + "_squares";
    shorter.steps.push_back({"square", {name}, {}, {part}});
    shorter.steps.push_back({"sum", {part}, {{"dim", nullptr}, {"keepdim", false}}, {name + "_sum"}});
    if (!total.empty()) shorter.steps.push_back({"add", {total, name + "_sum"}, {}, {name + "_total"}});
    total = shorter.loss();
  }
  return pruned(shorter);
}

/// The program with the results of a step as variables.
Program begun_after(const Program& program, std::size_t step) {
  Program shorter = program;
  const Run<double> made = run<double>(program, variables_of(program));
  for (const Name& name : program.steps[step].results)
    shorter.leaves[name] = {{made.values.at(name).numbers.detach()}, true};
  shorter.steps.erase(shorter.steps.begin() + static_cast<std::ptrdiff_t>(step));
  return pruned(shorter);
}

/// Whether differences of the program make sense: what it begins and ends with is finite. Within it, there
/// may be masked scores.
bool is_finite(const Program& program) {
  const xgrad::NoGrad guard;
  const Arrays<double> variables = variables_of(program);
  return std::isfinite(largest(variables)) && std::isfinite(run<double>(program, variables).loss.item());
}

/// A program that is wrong, too, with fewer steps where there is one.
template <class IsWrong>
Program shrunk(Program program, const IsWrong& is_wrong) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = 0; i < program.steps.size() && !smaller; ++i) {
      std::vector<Program> candidates{ended(program, i)};
      if (i + 1 < program.steps.size()) candidates.push_back(begun_after(program, i));
      for (const Program& candidate : candidates) {
        smaller =
            candidate.steps.size() < program.steps.size() && is_finite(candidate) && is_wrong(candidate);
        if (!smaller) continue;
        program = candidate;
        break;
      }
    }
  }
  return program;
}

struct Settings {
  std::size_t count = 200;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> only;
  bool without_torch = false;
  std::string python = "python3";
};

int campaign(const Settings& settings) {
  xgrad::set_num_threads(1);
  std::unique_ptr<TorchProcess> torch;
  if (!settings.without_torch) {
    torch = std::make_unique<TorchProcess>(settings.python, XGRAD_RANDOM_PROGRAMS_PY);
    if (!torch->available()) torch = nullptr;
    std::cout << (torch ? "compared with PyTorch " + torch->version()
                        : "not compared with PyTorch: " + settings.python + " has no torch")
              << std::endl;
  }
  const std::uint64_t first = settings.only.value_or(0), last = settings.only ? first + 1 : settings.count;
  std::size_t disagreements = 0, open = 0;
  std::map<std::string, std::size_t> calls;
  for (std::uint64_t number = first; number < last; ++number) {
    const std::string call = "./run.sh random_programs --seed " + std::to_string(settings.seed) + " --only " +
                             std::to_string(number);
    const Program program = drawn_program(settings.seed, number);
    for (const Step& step : program.steps) ++calls[step.op];
    const auto wrong = [&](const Program& one) {
      Comparison comparison(one, settings.seed, torch.get());
      std::vector<std::string> found = comparison.wrong();
      open += comparison.open();
      return found;
    };
    if (settings.only) std::cout << text_of(program);
    std::vector<std::string> found = wrong(program);
    if (!found.empty()) {
      ++disagreements;
      const Program small = shrunk(program, [&](const Program& one) { return !wrong(one).empty(); });
      std::cout << "\nprogram " << number << ", " << call << '\n';
      for (const std::string& line : found) std::cout << "  " << line << '\n';
      std::cout << "shrunk:\n" << text_of(small);
      for (const std::string& line : wrong(small)) std::cout << "  " << line << '\n';
      std::cout << std::endl;
    }
    if ((number + 1) % 500 == 0 && number + 1 < last)
      std::cout << number + 1 << " programs, " << disagreements << " disagreements" << std::endl;
  }
  std::size_t total = 0;
  for (const auto& [op, count] : calls) total += count;
  std::cout << total << " calls of " << calls.size() << " ops; " << open
            << " differences near a kink told nothing\n"
            << last - first << " programs, " << disagreements << " disagreements\n";
  return disagreements > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  apps::CommandLine app("Draws random programs and compares their values and derivatives.");
  app.add_option("--count", settings.count, "how many programs")->capture_default_str();
  app.add_option("--seed", settings.seed, "of what is drawn")->capture_default_str();
  app.add_option("--only", settings.only, "this program alone, and its text");
  app.add_flag("--without-torch", settings.without_torch, "do not compare with PyTorch");
  app.add_option("--python", settings.python, "a Python, which may have torch")->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("random_programs", [&] { return campaign(settings); });
}
