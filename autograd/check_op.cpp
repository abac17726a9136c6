#include "check_op.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <set>

#include "../base/threads.hpp"
#include "../graph/watch.hpp"

namespace xgrad {
namespace {

template <class T>
using Function = std::function<Variable<T>(const std::vector<Variable<T>>&)>;

using Elements = std::vector<Array<double>>;

/// Why a check failed.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void failed(const Parts&... parts) {
  detail::fail<Failed>(parts...);
}

template <class T>
std::vector<Variable<T>> leaves(const Elements& elements) {
  std::vector<Variable<T>> result;
  for (const Array<double>& one : elements) result.emplace_back(Array<T>(xt::cast<T>(one)), true);
  return result;
}

/// Numbers away from 0, of either sign.
template <class T>
Array<T> random_elements(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  Array<T> x = Array<T>::from_shape(shape);
  for (T& element : x.storage()) element = static_cast<T>(uniform(random) * (random() % 2 == 0 ? 1 : -1));
  return x;
}

/// The value and the gradients, of zeros for an input that the value does not depend on.
template <class T>
struct Result {
  Array<T> value;
  std::vector<Array<T>> gradients;
};

template <class T>
Result<T> differentiated(const Variable<T>& y, const std::vector<Variable<T>>& x, std::uint64_t seed,
                         bool create_graph = false) {
  Result<T> result{y.value(), {}};
  std::vector<Variable<T>> found(x.size());
  if (y.requires_grad()) {
    found = grad(y, x,
                 {.seed = Variable<T>(random_elements<T>(y.shape(), seed)),
                  .create_graph = create_graph,
                  .allow_unused = true});
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    result.gradients.push_back(found[i].defined() ? found[i].value() : Array<T>(x[i].shape(), T{0}));
  return result;
}

template <class T>
Result<T> result_of(const Function<T>& f, const Elements& elements, std::uint64_t seed,
                    bool create_graph = false) {
  const std::vector<Variable<T>> x = leaves<T>(elements);
  return differentiated(f(x), x, seed, create_graph);
}

std::string name_of_gradient(std::size_t i) { return "gradient of input " + std::to_string(i); }

/// |a - b| <= atol (1 + |b|); nan equals nan.
template <class A, class B>
void expect_near(const std::string& what, const Array<A>& a, const Array<B>& b, double atol) {
  if (a.shape() != b.shape()) failed(what, ": shape ", a.shape(), ", not ", b.shape());
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double x = a.data()[k], y = b.data()[k];
    if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= atol * (1 + std::abs(y))) continue;
    failed(what, ", element ", k, ": ", x, ", not ", y);
  }
}

template <class A, class B>
void expect_near(const Result<A>& a, const Result<B>& b, double value_atol, double atol) {
  expect_near("value", a.value, b.value, value_atol);
  for (std::size_t i = 0; i < a.gradients.size(); ++i)
    expect_near(name_of_gradient(i), a.gradients[i], b.gradients[i], atol);
}

template <class T>
void expect_same_bits(const std::string& what, const Array<T>& a, const Array<T>& b) {
  if (a.shape() != b.shape()) failed(what, ": shape ", a.shape(), ", not ", b.shape());
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (std::memcmp(a.data() + k, b.data() + k, sizeof(T)) != 0)
      failed(what, ", element ", k, ": ", a.data()[k], ", not ", b.data()[k], ", difference ",
             a.data()[k] - b.data()[k]);
  }
}

template <class T>
void expect_same_bits(const std::string& where, const Result<T>& a, const Result<T>& b) {
  expect_same_bits(where + "value", a.value, b.value);
  for (std::size_t i = 0; i < a.gradients.size(); ++i)
    expect_same_bits(where + name_of_gradient(i), a.gradients[i], b.gradients[i]);
}

/// Sets the number of threads back at its end.
class KeepNumThreads {
 public:
  KeepNumThreads() = default;
  KeepNumThreads(const KeepNumThreads&) = delete;
  ~KeepNumThreads() { set_num_threads(before_); }

 private:
  std::size_t before_ = num_threads();
};

/// An array of another shape, with elements near those of x, so that it is in the domain of the function.
Array<double> reshaped(const Array<double>& x, const Shape& shape, std::uint64_t seed) {
  Array<double> y = Array<double>::from_shape(shape);
  if (x.size() == 0) return random_elements<double>(shape, seed);
  std::mt19937_64 random(seed);
  // not twice the same number, which may be a kink
  for (double& element : y.storage())
    element = x.data()[random() % x.size()] * (1 + 0x1p-12 * static_cast<double>(random() % 64));
  return y;
}

/// An input of another shape.
struct Misfit {
  std::size_t input;
  Shape shape;
};

std::vector<Misfit> wrong_shapes(const Elements& elements) {
  std::vector<Misfit> all;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Shape& shape = elements[i].shape();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      Shape longer = shape;
      ++longer[axis];
      all.push_back({i, longer});
    }
    Shape deeper{2};
    deeper.insert(deeper.end(), shape.begin(), shape.end());
    all.push_back({i, deeper});
  }
  return all;
}

std::vector<Misfit> broadcast_shapes(const Elements& elements) {
  std::vector<Misfit> all;
  if (elements.size() < 2) return all;  // nothing to broadcast to
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Shape& shape = elements[i].shape();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] < 2) continue;
      Shape one = shape;
      one[axis] = 1;
      all.push_back({i, one});
    }
    if (!shape.empty()) all.push_back({i, Shape(shape.begin() + 1, shape.end())});
  }
  return all;
}

class Checks {
 public:
  Checks(const CheckedFunction& f, const Elements& elements, const CheckOpOptions& options)
      : f_(f), elements_(elements), options_(options), seed_(options.gradcheck.seed + 7) {}

  CheckOpReport run() {
    const bool is_differentiable = check("first derivatives", [&] { first_derivatives(); });
    if (check("recorded gradients", [&] { recorded_gradients(); }) && is_differentiable &&
        options_.second_derivatives)
      check("second derivatives",
            [&] { expect(gradgradcheck(f_, leaves<double>(elements_), options_.gradcheck)); });
    check("single ops", [&] { single_ops(); });
    if (options_.in_float) check("float", [&] { in_float(); });
    if (check("repetition", [&] { repetition(); })) check("threads", [&] { threads(); });
    check("one input alone", [&] { one_input_alone(); });
    if (options_.unrecorded) check("unrecorded", [&] { unrecorded(); });
    check("inputs", [&] { inputs_stay(); });
    check("memory", [&] { memory(); });
    if (options_.nan) {
      check("nan", [&] {
        nan_is_passed_on<double>(f_);
        if (options_.in_float) nan_is_passed_on<float>(options_.in_float);
      });
    }
    if (options_.empty) check("empty", [&] { empty(); });
    if (options_.wrong_shapes) {
      check("wrong shapes", [&] {
        for (const Misfit& misfit : wrong_shapes(elements_)) accepted(changed(misfit));
      });
    }
    if (options_.broadcast) check("broadcast", [&] { broadcast(); });
    return std::move(report_);
  }

 private:
  template <class Check>
  bool check(const char* name, const Check& one) {
    try {
      one();
      return true;
    } catch (const Failed& why) {
      report_.failures.push_back({name, why.what()});
    } catch (const std::exception& error) {
      report_.failures.push_back({name, std::string("threw ") + error.what()});
    } catch (...) {
      report_.failures.push_back({name, "threw what is not derived from std::exception"});
    }
    return false;
  }

  static void expect(const GradcheckReport& report) {
    if (!report) failed(report.worst);
  }

  void first_derivatives() { expect(gradcheck(f_, leaves<double>(elements_), options_.gradcheck)); }

  void recorded_gradients() {
    expect_near(result_of<double>(f_, elements_, seed_, true), result_of<double>(f_, elements_, seed_),
                options_.atol, options_.atol);
    if (options_.in_float) {
      expect_near(result_of<float>(options_.in_float, elements_, seed_, true),
                  result_of<float>(options_.in_float, elements_, seed_), options_.float_atol,
                  options_.float_atol);
    }
  }

  template <class T>
  void single_ops(const Function<T>& f, double atol) {
    const Result<T> fused = result_of<T>(f, elements_, seed_);
    Watcher watcher;
    const detail::SingleOps guard;
    expect_near(fused, result_of<T>(f, elements_, seed_), atol, atol);
  }

  void single_ops() {
    single_ops<double>(f_, options_.atol);
    if (options_.in_float) single_ops<float>(options_.in_float, options_.float_atol);
  }

  void in_float() {
    Elements rounded;
    for (const Array<double>& one : elements_)
      rounded.emplace_back(xt::cast<double>(Array<float>(xt::cast<float>(one))));
    expect_near(result_of<float>(options_.in_float, rounded, seed_), result_of<double>(f_, rounded, seed_),
                options_.float_value_atol, options_.float_atol);
  }

  void repetition() {
    expect_same_bits("", result_of<double>(f_, elements_, seed_), result_of<double>(f_, elements_, seed_));
  }

  void threads() {
    const KeepNumThreads keep;
    std::vector<Elements> samples{elements_};
    if (!options_.large.empty()) {
      samples.emplace_back();
      for (const Variable<double>& one : options_.large) samples.back().push_back(one.value());
    }
    for (const Elements& sample : samples) {
      set_num_threads(1);
      const Result<double> expected = result_of<double>(f_, sample, seed_);
      for (std::size_t count = 2; count <= options_.threads; ++count) {
        set_num_threads(count);
        expect_same_bits(std::to_string(count) + " threads, ", result_of<double>(f_, sample, seed_),
                         expected);
      }
    }
  }

  void one_input_alone() {
    const Result<double> expected = result_of<double>(f_, elements_, seed_);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      std::vector<Variable<double>> x = leaves<double>(elements_);
      for (std::size_t k = 0; k < x.size(); ++k)
        if (k != i) x[k] = x[k].detach();
      expect_near(name_of_gradient(i), differentiated(f_(x), {x[i]}, seed_).gradients[0],
                  expected.gradients[i], options_.atol);
    }
  }

  template <class T>
  void unrecorded(const Function<T>& f, double atol) {
    const std::vector<Variable<T>> x = leaves<T>(elements_);
    const Array<T> expected = f(x).value();
    {
      const NoGrad guard;
      const Variable<T> y = f(x);
      if (!y.is_leaf()) failed("under NoGrad, the result has the graph of '", y.op(), "'");
      expect_near("value under NoGrad", y.value(), expected, atol);
    }
    std::vector<Variable<T>> constants;
    for (const Variable<T>& one : x) constants.push_back(one.detach());
    const Variable<T> y = f(constants);
    if (y.requires_grad()) failed("without inputs that require gradients, the result requires one");
    expect_near("value without gradients", y.value(), expected, atol);
  }

  void unrecorded() {
    unrecorded<double>(f_, options_.atol);
    if (options_.in_float) unrecorded<float>(options_.in_float, 1e-6);
  }

  void inputs_stay() {
    const std::vector<Variable<double>> x = leaves<double>(elements_);
    differentiated(f_(x), x, seed_);
    differentiated(f_(x), x, seed_, true);
    for (std::size_t i = 0; i < x.size(); ++i)
      expect_same_bits("input " + std::to_string(i), x[i].value(), elements_[i]);
  }

  /// Only the handle in `x` refers to an input after all others are gone.
  void memory() {
    const std::vector<Variable<double>> x = leaves<double>(elements_);
    static_cast<void>(f_(x));
    differentiated(f_(x), x, seed_);
    for (std::size_t i = 0; i < x.size(); ++i) {
      using Access = detail::Access<double>;
      if (!Access::node(x[i])->refs.unique())
        failed("input ", i, ": a graph refers to it after its last handle");
      if (!Access::value(x[i])->refs.unique())
        failed("input ", i, ": its array is referred to after the call");
    }
  }

  /// f's value, or nothing if it refuses its inputs.
  template <class T>
  static std::optional<Array<T>> value_of(const Function<T>& f, const Elements& elements) {
    try {
      return f(leaves<T>(elements)).value();
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  template <class T>
  void nan_is_passed_on(const Function<T>& f) {
    std::mt19937_64 random(seed_);
    Elements at = elements_;
    const std::optional<Array<T>> before = value_of<T>(f, at);
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i].size() == 0) continue;
      double& element = at[i].data()[random() % at[i].size()];
      const double original = element;
      const double other = at[i].data()[random() % at[i].size()];
      element = std::nan("");
      const std::optional<Array<T>> after = value_of<T>(f, at);
      for (const double moved : {original * 1.015625 + 0.0078125, other}) {
        element = moved;
        const std::optional<Array<T>> changed = value_of<T>(f, at);
        if (!before || !changed || !after || before->shape() != changed->shape() ||
            before->shape() != after->shape())
          continue;
        for (std::size_t k = 0; k < before->size(); ++k) {
          if (before->data()[k] == changed->data()[k] || std::isnan(after->data()[k])) continue;
          failed("input ", i, " with a nan: element ", k, " of the result is ", after->data()[k]);
        }
      }
      element = original;
    }
  }

  /// The result, or nothing if f refuses its inputs with a message.
  template <class T>
  std::optional<Result<T>> accepted(const Function<T>& f, const Elements& elements) const {
    const std::vector<Variable<T>> x = leaves<T>(elements);
    Variable<T> y;
    std::string shapes;
    for (const Variable<T>& one : x) shapes += " " + to_string(one.shape());
    try {
      y = f(x);
    } catch (const std::exception& error) {
      const std::string message = error.what();
      if (message.find(": ") == std::string::npos)
        failed("inputs", shapes, " are refused with \"", message, "\", which is not \"op: ...\"");
      return std::nullopt;
    } catch (...) {
      failed("inputs", shapes, " are refused with what is not derived from std::exception");
    }
    try {
      return differentiated(y, x, seed_);
    } catch (const std::exception& error) {
      failed("inputs", shapes, " are accepted, but not by the backward: ", error.what());
    }
  }

  std::optional<Result<double>> accepted(const Elements& elements) const {
    if (options_.in_float) accepted<float>(options_.in_float, elements);
    return accepted<double>(f_, elements);
  }

  Elements changed(const Misfit& misfit) const {
    Elements elements = elements_;
    elements[misfit.input] = reshaped(elements[misfit.input], misfit.shape, seed_);
    return elements;
  }

  void empty() {
    std::set<std::size_t> lengths;
    for (const Array<double>& one : elements_) lengths.insert(one.shape().begin(), one.shape().end());
    for (const std::size_t length : lengths) {
      Elements fewer;
      for (const Array<double>& one : elements_) {
        Shape shape = one.shape();
        std::replace(shape.begin(), shape.end(), length, std::size_t{0});
        fewer.push_back(shape == one.shape() ? one : Array<double>::from_shape(shape));
      }
      accepted(fewer);
    }
  }

  void broadcast() {
    const Shape shape = f_(leaves<double>(elements_)).shape();
    for (const Misfit& misfit : broadcast_shapes(elements_)) {
      const Elements elements = changed(misfit);
      const std::optional<Result<double>> result = accepted(elements);
      if (!result || result->value.shape() != shape) continue;
      const GradcheckReport report = gradcheck(f_, leaves<double>(elements), options_.gradcheck);
      if (!report) failed("input ", misfit.input, " of shape ", misfit.shape, ": ", report.worst);
    }
  }

  const CheckedFunction& f_;
  const Elements& elements_;
  const CheckOpOptions& options_;
  std::uint64_t seed_;
  CheckOpReport report_;
};

void require_leaves(const std::vector<Variable<double>>& inputs, const char* name) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad() || !inputs[i].is_leaf())
      detail::fail<ValueError>("check_op: ", name, " ", i, " must be a leaf that requires a gradient");
  }
}

}  // namespace

std::string CheckOpReport::text() const {
  std::string lines;
  for (const OpFailure& failure : failures) lines += failure.check + ": " + failure.details + "\n";
  return lines;
}

CheckOpReport check_op(const CheckedFunction& f, const std::vector<Variable<double>>& inputs,
                       const CheckOpOptions& options) {
  if (inputs.empty()) detail::fail<ValueError>("check_op: inputs must not be empty");
  if (options.threads == 0) detail::fail<ValueError>("check_op: threads must not be 0");
  require_leaves(inputs, "input");
  require_leaves(options.large, "large input");
  const EnableGrad guard;
  Elements elements;
  for (const Variable<double>& input : inputs) elements.push_back(input.value());
  return Checks(f, elements, options).run();
}

std::vector<Variable<double>> random_inputs(const std::vector<Shape>& shapes, std::uint64_t seed) {
  std::vector<Variable<double>> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    inputs.emplace_back(random_elements<double>(shapes[i], seed + i), true);
  return inputs;
}

}  // namespace xgrad
