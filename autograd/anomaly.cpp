#include "anomaly.hpp"

#include <cmath>
#include <optional>

#include "../graph/variable.hpp"
#include "../ops/linalg/eigh.hpp"
#include "../ops/linalg/qr.hpp"
#include "../ops/linalg/svd.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "../ops/pointwise/trigonometry.hpp"

namespace xgrad {
namespace {

using detail::fail, detail::join, detail::text;

/// The index of the first nan.
template <class T>
std::optional<Shape> first_nan(const Array<T>& x) {
  std::size_t at = 0;
  while (at < x.size() && !std::isnan(x.data()[at])) ++at;
  if (at == x.size()) return std::nullopt;
  Shape index(x.dimension(), 0);
  for (std::size_t axis = x.dimension(); axis-- > 0; at /= x.shape()[axis])
    index[axis] = at % x.shape()[axis];
  return index;
}

/// What an error says of an op whose derivative is not finite everywhere.
std::string where_not_finite(const OpInfo& op) {
  struct Place {
    const OpInfo& op;
    const char* where;
  };
  static const Place places[] = {{ops::eigh, "through eigenvectors of equal eigenvalues"},
                                 {ops::svd, "through vectors of equal singular values, or of 0"},
                                 {ops::qr, "where columns depend on each other"},
                                 {ops::sqrt, "at 0"},
                                 {ops::rsqrt, "at 0"},
                                 {ops::asin, "at -1 and 1"},
                                 {ops::acos, "at -1 and 1"}};
  for (const Place& place : places) {
    if (place.op == op) return join({"; the derivative of '", op.name, "' is not finite ", place.where});
  }
  return {};
}

}  // namespace

/// Blames the op whose result, or whose gradients, hold a nan, not the ops that compute the gradients.
template <class T>
void DetectAnomaly::check(const OpEvent<T>& event) {
  if (event.in_backward) return;
  const std::optional<Shape> at = first_nan(event.result.value());
  if (!at) return;
  std::string before;
  for (std::size_t i = 0; i < event.inputs.size(); ++i) {
    const Variable<T>& input = *event.inputs[i];
    const std::optional<Shape> there = input.defined() ? first_nan(input.value()) : std::nullopt;
    if (!there) continue;
    before += join({before.empty() ? "; so was input " : ", input ", text(i), " ", text(input.shape()),
                    " at ", text(*there)});
  }
  fail<AnomalyError>("detect_anomaly: the result ", event.result.shape(), " of '", event.op.name,
                     "' is nan at ", *at, before.empty() ? ", and no input is" : before.c_str());
}

template <class T>
void DetectAnomaly::check(const BackwardEvent<T>& event) {
  for (std::size_t i = 0; i < event.gradients.size(); ++i) {
    const Variable<T>& gradient = event.gradients[i];
    const std::optional<Shape> at = gradient.defined() ? first_nan(gradient.value()) : std::nullopt;
    if (!at) continue;
    fail<AnomalyError>("detect_anomaly: the gradient ", gradient.shape(), " that '", event.op.name,
                       "' passes back to input ", i, " is nan at ", *at, where_not_finite(event.op));
  }
}

void DetectAnomaly::on_op(const OpEvent<float>& event) { check(event); }
void DetectAnomaly::on_op(const OpEvent<double>& event) { check(event); }
void DetectAnomaly::on_backward_end(const BackwardEvent<float>& event) { check(event); }
void DetectAnomaly::on_backward_end(const BackwardEvent<double>& event) { check(event); }

}  // namespace xgrad
