#include "lbfgs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/pointwise/elementwise.hpp"
#include "../../kernels/pointwise/optimizer.hpp"
#include "../../kernels/rows/reduce.hpp"

namespace xgrad {
namespace {

const LBFGSOptions& checked(const LBFGSOptions& options) {
  detail::checked_rate("LBFGS", "lr", options.lr);
  detail::checked_rate("LBFGS", "tolerance_grad", options.tolerance_grad);
  detail::checked_rate("LBFGS", "tolerance_change", options.tolerance_change);
  if (options.history_size == 0) detail::fail<ValueError>("LBFGS: history_size must be at least 1, got 0");
  return options;
}

// Vectors. What is added up is added in an order that does not depend on the number of threads.

template <class T>
Array<T> vector_of(std::size_t n) {
  return Array<T>::from_shape({n});
}

template <class T>
double dot(const Array<T>& a, const Array<T>& b) {
  return kernels::dot(a.data(), b.data(), a.size());
}

/// x += alpha d
template <class T>
void add_scaled(Array<T>& x, double alpha, const Array<T>& d) {
  kernels::add_scaled(x.data(), static_cast<T>(alpha), d.data(), x.data(), x.size());
}

template <class T>
Array<T> scaled(double alpha, const Array<T>& x) {
  Array<T> y = vector_of<T>(x.size());
  kernels::scale(static_cast<T>(alpha), x.data(), y.data(), x.size());
  return y;
}

template <class T>
Array<T> sizes_of(const Array<T>& x) {
  Array<T> y = vector_of<T>(x.size());
  kernels::abs(x.data(), y.data(), x.size());
  return y;
}

template <class T>
double largest_size(const Array<T>& x) {
  T largest = 0;
  if (x.size() > 0) kernels::max_middle(sizes_of(x).data(), 1, x.size(), 1, &largest);
  return largest;
}

template <class T>
double sum_of_sizes(const Array<T>& x) {
  T total = 0;
  kernels::sum_middle(sizes_of(x).data(), 1, x.size(), 1, &total);
  return total;
}

/// A place on the line that is searched: t along the direction, and what there is.
template <class T>
struct Place {
  double t, loss;
  Array<T> gradient;
  double slope;  ///< gradient . direction
};

/// Where the cubic that has the losses and slopes of two places is smallest, within [low, high].
template <class T>
double cubic_minimum(const Place<T>& one, const Place<T>& other, double low, double high) {
  const Place<T>&a = one.t <= other.t ? one : other, &b = one.t <= other.t ? other : one;
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double d2_squared = d1 * d1 - a.slope * b.slope;
  if (d2_squared >= 0) {
    const double d2 = std::sqrt(d2_squared);
    const double position = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
    return std::clamp(position, low, high);
  }
  return (low + high) / 2;
}

/// From `start`, where t is 0, to a place where the strong Wolfe conditions hold: the loss has fallen by at
/// least c1 times what the slope promised, and the slope's size to at most c2 times what it was. First places
/// farther and farther on until two have such a place between them, then ever closer ones. evaluate(t) gives
/// the place at t; t is the first one, after which come at most so many. Constants as in PyTorch, where no
/// option changes them.
template <class T, class Evaluate>
Place<T> strong_wolfe(const Place<T>& start, double t, double direction_size, std::size_t most,
                      const Evaluate& evaluate) {
  constexpr double c1 = 1e-4, c2 = 0.9, tolerance_change = 1e-9;
  const auto too_high = [&](const Place<T>& at) { return at.loss > start.loss + c1 * at.t * start.slope; };
  const auto flat = [&](const Place<T>& at) { return std::abs(at.slope) <= -c2 * start.slope; };

  Place<T> previous = start, now = evaluate(t);
  std::size_t number = 0;
  for (; number < most; ++number) {
    if (too_high(now) || (number > 1 && now.loss >= previous.loss)) break;
    if (flat(now)) return now;
    if (now.slope >= 0) break;
    t = cubic_minimum(previous, now, now.t + 0.01 * (now.t - previous.t), now.t * 10);
    previous = std::move(now);
    now = evaluate(t);
  }
  std::array<Place<T>, 2> bracket{number == most ? start : std::move(previous), std::move(now)};
  const auto lower = [&] { return bracket[0].loss <= bracket[1].loss ? std::size_t{0} : std::size_t{1}; };
  std::size_t low = lower();

  bool insufficient = false;  // the last place was close to one of the two
  for (; number < most; ++number) {
    const auto [left, right] = std::minmax({bracket[0].t, bracket[1].t});
    if ((right - left) * direction_size < tolerance_change) break;
    t = cubic_minimum(bracket[0], bracket[1], left, right);
    const double margin = 0.1 * (right - left);
    const bool close = std::min(right - t, t - left) < margin, inside = left < t && t < right;
    if (close && (insufficient || !inside)) {
      t = std::abs(t - right) < std::abs(t - left) ? right - margin : left + margin;
      insufficient = false;
    } else {
      insufficient = close;
    }
    now = evaluate(t);
    if (too_high(now) || now.loss >= bracket[low].loss) {
      bracket[1 - low] = std::move(now);
      low = lower();
      continue;
    }
    const bool done = flat(now);
    if (!done && now.slope * (bracket[1 - low].t - bracket[low].t) >= 0)
      bracket[1 - low] = std::move(bracket[low]);
    bracket[low] = std::move(now);
    if (done) break;
  }
  return std::move(bracket[low]);
}

}  // namespace

template <class T>
LBFGS<T>::LBFGS(const std::vector<Variable<T>>& parameters, LBFGSOptions options)
    : Optimizer<T>("LBFGS"), options_(checked(options)) {
  this->add_group(parameters);
  this->check_not_empty();
  if (!options_.max_eval) options_.max_eval = options_.max_iter * 5 / 4;
  for (const Variable<T>& parameter : this->parameters()) size_ += parameter.size();
}

template <class T>
void LBFGS<T>::step() {
  detail::fail<ValueError>("LBFGS: step must be given a closure that computes the loss, got none");
}

template <class T>
T LBFGS<T>::step(const Closure& closure) {
  const Array<T> values = gathered(false);
  State before = state_;
  try {
    return search(closure);
  } catch (...) {
    place(values);
    state_ = std::move(before);
    throw;
  }
}

template <class T>
T LBFGS<T>::search(const Closure& closure) {
  const std::size_t calls_before = state_.evaluations;
  const T first = evaluate(closure).item();
  double loss = first;
  Array<T> gradient = gathered(true);
  if (largest_size(gradient) <= options_.tolerance_grad) return first;

  for (std::size_t number = 1; number <= options_.max_iter; ++number) {
    turn(gradient);
    const double previous_loss = loss, slope = dot(gradient, state_.direction);
    state_.step_size =
        state_.iterations == 1 ? std::min(1.0, 1 / sum_of_sizes(gradient)) * options_.lr : options_.lr;
    if (slope > -options_.tolerance_change) break;

    const Array<T> start = gathered(false);
    const auto move = [&](double t) {
      Array<T> values = vector_of<T>(size_);
      kernels::add_scaled(start.data(), static_cast<T>(t), state_.direction.data(), values.data(), size_);
      place(values);
    };
    const double direction_size = largest_size(state_.direction);
    if (options_.line_search_fn == LineSearch::strong_wolfe) {
      const auto evaluate_at = [&](double t) -> Place<T> {
        move(t);
        const double found = evaluate(closure).item();
        Array<T> there = gathered(true);
        const double slope_there = dot(there, state_.direction);
        return {t, found, std::move(there), slope_there};
      };
      const std::size_t calls = state_.evaluations - calls_before,
                        most = std::max(*options_.max_eval, calls) - calls;
      Place<T> found = strong_wolfe<T>({0, loss, std::move(gradient), slope}, state_.step_size,
                                       direction_size, most, evaluate_at);
      state_.step_size = found.t;
      loss = found.loss;
      gradient = std::move(found.gradient);
      move(state_.step_size);
    } else {
      move(state_.step_size);
      if (number == options_.max_iter) break;  // nobody reads what it would find
      loss = evaluate(closure).item();
      gradient = gathered(true);
    }
    if (state_.evaluations - calls_before >= *options_.max_eval ||
        largest_size(gradient) <= options_.tolerance_grad ||
        std::abs(state_.step_size) * direction_size <= options_.tolerance_change ||
        std::abs(loss - previous_loss) < options_.tolerance_change) {
      break;
    }
  }
  return first;
}

template <class T>
Variable<T> LBFGS<T>::evaluate(const Closure& closure) {
  const EnableGrad guard;
  this->zero_grad();
  Variable<T> loss = closure();
  ++state_.evaluations;
  if (!loss.defined())
    detail::fail<GraphError>("LBFGS: the closure must return the loss, got an undefined variable");
  if (loss.size() != 1)
    detail::fail<ShapeError>("LBFGS: the closure must return one number, the loss, got shape ", loss.shape());
  if (!this->has_gradients())
    detail::fail<GraphError>("LBFGS: the closure must call backward(), but no parameter has a gradient");
  return loss;
}

/// The values of all parameters, or their gradients, as one vector.
template <class T>
Array<T> LBFGS<T>::gathered(bool gradients) const {
  Array<T> all = vector_of<T>(size_);
  T* to = all.data();
  for (const Variable<T>& parameter : this->parameters()) {
    if (!gradients) {
      std::copy_n(detail::data(parameter), parameter.size(), to);
    } else if (parameter.has_grad()) {
      const Variable<T> gradient = parameter.grad();
      std::copy_n(detail::data(gradient), parameter.size(), to);
    } else {
      std::fill_n(to, parameter.size(), T{0});
    }
    to += parameter.size();
  }
  return all;
}

/// Makes these the values of the parameters.
template <class T>
void LBFGS<T>::place(const Array<T>& values) const {
  const T* from = values.data();
  for (const Variable<T>& parameter : this->parameters()) {
    std::copy_n(from, parameter.size(), detail::mutable_data(parameter));
    from += parameter.size();
  }
}

/// The direction from where the gradient is this: minus the inverse Hessian times it.
template <class T>
void LBFGS<T>::turn(const Array<T>& gradient) {
  if (state_.iterations++ == 0) {
    state_.direction = scaled(-1, gradient);
  } else {
    Array<T> y = vector_of<T>(size_), s = scaled(state_.step_size, state_.direction);
    kernels::sub(gradient.data(), state_.previous_gradient.data(), y.data(), size_);
    const double ys = dot(y, s);
    if (ys > 1e-10) {
      if (state_.history.size() == options_.history_size) state_.history.erase(state_.history.begin());
      state_.scale = ys / dot(y, y);
      state_.history.push_back(std::make_shared<Change>(Change{std::move(y), std::move(s), 1 / ys}));
    }
    std::vector<double> alpha(state_.history.size());
    state_.direction = scaled(-1, gradient);
    for (std::size_t i = state_.history.size(); i-- > 0;) {
      alpha[i] = dot(state_.history[i]->step, state_.direction) * state_.history[i]->ro;
      add_scaled(state_.direction, -alpha[i], state_.history[i]->gradient);
    }
    state_.direction = scaled(state_.scale, state_.direction);
    for (std::size_t i = 0; i < state_.history.size(); ++i) {
      const double beta = dot(state_.history[i]->gradient, state_.direction) * state_.history[i]->ro;
      add_scaled(state_.direction, alpha[i] - beta, state_.history[i]->step);
    }
  }
  T* to = state_.direction.data();
  for (const Variable<T>& parameter : this->parameters()) {  // what was frozen since has a history
    if (!parameter.requires_grad()) std::fill_n(to, parameter.size(), T{0});
    to += parameter.size();
  }
  state_.previous_gradient = gradient;
}

template <class T>
void LBFGS<T>::keep_state(StateArchive& state) {
  state.keep(options_, state_);
}

template <class T>
void LBFGS<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t) {
  bool searches = options_.line_search_fn == LineSearch::strong_wolfe;
  state.number(prefix + "lr", options_.lr);
  state.number(prefix + "max_iter", options_.max_iter);
  state.number(prefix + "max_eval", *options_.max_eval);
  state.number(prefix + "tolerance_grad", options_.tolerance_grad);
  state.number(prefix + "tolerance_change", options_.tolerance_change);
  state.number(prefix + "history_size", options_.history_size);
  state.number(prefix + "line_search_fn", searches);
  options_.line_search_fn = searches ? LineSearch::strong_wolfe : LineSearch::none;
  state.check([&] { checked(options_); });
}

/// What there is stands under the first parameter, as in PyTorch.
template <class T>
void LBFGS<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  if (parameter != 0) return;
  if (state.loading()) {
    State initial;
    initial.direction = initial.previous_gradient = vector_of<T>(size_);
    state_ = std::move(initial);
  }
  if (!state.has(name, state_.evaluations > 0)) return;
  state.number(name + ".func_evals", state_.evaluations);
  state.number(name + ".n_iter", state_.iterations);
  if (state_.iterations == 0) return;
  state.array(name + ".d", state_.direction);
  state.array(name + ".prev_flat_grad", state_.previous_gradient);
  state.number(name + ".t", state_.step_size);
  state.number(name + ".H_diag", state_.scale);
  for (std::size_t i = 0; i < options_.history_size; ++i) {
    const auto entry = [&](const char* list) { return detail::join({name, list, std::to_string(i)}); };
    std::optional<Array<T>> y;
    if (!state.loading() && i < state_.history.size()) y = state_.history[i]->gradient;
    state.array(entry(".old_dirs."), y, {size_});
    if (!y) break;
    if (state.loading()) {
      state_.history.push_back(std::make_shared<Change>(Change{std::move(*y), vector_of<T>(size_), 0}));
    }
    state.array(entry(".old_stps."), state_.history[i]->step);
    state.number(entry(".ro."), state_.history[i]->ro);
  }
}

template class LBFGS<float>;
template class LBFGS<double>;

}  // namespace xgrad
