#include "reductions.hpp"

#include <algorithm>
#include <cmath>

#include "../../graph/fused.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../index/indexing.hpp"
#include "../index/masked_fill.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/broadcast.hpp"
#include "../pointwise/elementwise.hpp"
#include "../pointwise/rounding.hpp"
#include "../shape/shapes.hpp"
#include "detail/deviations.hpp"
#include "detail/middle_axis.hpp"
#include "scans.hpp"

namespace xgrad {
namespace {

/// What a reduction over some axes leaves.
struct Reduced {
  Shape kept;             // with length 1 on the reduced axes
  Shape shape;            // of the result
  std::size_t count = 1;  // elements that went into each result
  Shape axes = {};        // that were reduced
  bool keepdim = false;

  auto attributes() const { return Attributes(axes, keepdim); }
};

Reduced reduced(const char* op, const Shape& shape, const Dims& dims, bool keepdim) {
  Shape seen(shape.size(), 0);
  for (const std::ptrdiff_t dim : dims) {
    if (shape.empty() && (dim == 0 || dim == -1)) continue;
    if (seen[detail::normalize_axis(op, dim, shape)]++ != 0) {
      detail::fail<ValueError>(op, ": dims must name an axis once, got ", to_string(dims), " for x ", shape);
    }
  }
  Reduced result;
  result.keepdim = keepdim;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    result.kept.push_back(seen[axis] != 0 ? 1 : shape[axis]);
    if (seen[axis] != 0) {
      result.count *= shape[axis];
      result.axes.push_back(axis);
    }
    if (seen[axis] == 0 || keepdim) result.shape.push_back(result.kept.back());
  }
  return result;
}

Shape all_axes(const Shape& shape) {
  Shape axes = shape;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = axis;
  return axes;
}

/// What a reduction over all axes leaves.
template <class T>
Reduced whole(const Variable<T>& x) {
  return {{}, {}, x.size(), all_axes(x.shape()), false};
}

/// The gradient of a result, or the result, with the reduced axes back as axes of length 1.
template <class T>
Variable<T> with_kept_axes(const Variable<T>& y, const Shape& kept) {
  return same_shape(y.shape(), kept) ? y : reshape(y, kept);
}

template <class T>
Variable<T> reduce(const char* op, detail::ReduceMiddle<T> kernel, const Variable<T>& x,
                   const Reduced& result) {
  Variable<T> y = detail::empty<T>(result.shape, op);
  detail::reduce_axes(kernel, x, result.kept, detail::data(y));
  return y;
}

/// The backward of a sum: dy, with the reduced axes back, along the axes of x.
template <class T>
auto spread(const Shape& kept) {
  return [kept](const Variable<T>& dy, Needs needs) -> Grads<T, 1> {
    if (grad_enabled()) return {detail::stretched(with_kept_axes(dy, kept), needs.shape(0))};
    Variable<T> dx = detail::empty<T>(needs.shape(0));
    detail::stretch_axes(detail::data(dy), kept, dx.shape(), detail::data(dx));
    return {std::move(dx)};
  };
}

template <class T>
Variable<T> sum_over(const Variable<T>& x, const Reduced& result) {
  return record<T>(ops::sum, reduce(ops::sum.name, kernels::sum_middle<T>, x, result), Inputs(x),
                   result.attributes(), Saved(), spread<T>(result.kept));
}

/// The means whose sums leave the range, anew from sums of x times a power of two.
template <class T>
void correct_overflown_means(const Variable<T>& x, const Reduced& result, Variable<T>& y) {
  T* const means = detail::data(y);
  if (result.count < 2 || std::all_of(means, means + y.size(), [](T one) { return std::isfinite(one); }))
    return;
  const int exponent = std::ilogb(static_cast<T>(result.count)) + 1;
  const Variable<T> scaled(Array<T>(x.value() * std::ldexp(T{1}, -exponent)));
  const Variable<T> sums = reduce(ops::mean.name, kernels::sum_middle<T>, scaled, result);
  const T factor = std::ldexp(T{1}, exponent) / static_cast<T>(result.count);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(means[i])) means[i] = detail::data(sums)[i] * factor;
  }
}

template <class T>
Variable<T> mean_over(const Variable<T>& x, const Reduced& result) {
  const T count = static_cast<T>(result.count);
  Variable<T> y = reduce(ops::mean.name, kernels::sum_middle<T>, x, result);
  kernels::div_scalar(count, detail::data(std::as_const(y)), detail::data(y), y.size());
  correct_overflown_means(x, result, y);
  return record<T>(ops::mean, std::move(y), Inputs(x), result.attributes(), Saved(),
                   [to_x = spread<T>(result.kept), count](const Variable<T>& dy, Needs needs) {
                     return to_x(div(dy, count), needs);
                   });
}

template <class T>
Variable<T> extreme(StaticOp<1, 2> op, detail::ReduceMiddle<T> kernel, const Variable<T>& x,
                    const Reduced& result) {
  if (result.count == 0)
    detail::fail<ValueError>(op.info().name, ": there are no elements to choose from in x ", x.shape());
  return record<T>(op, reduce(op.info().name, kernel, x, result), Inputs(x), result.attributes(),
                   Saved(x, Output()),
                   [kept = result.kept](Variable<T> dy, Needs, Variable<T> x, Variable<T> y) -> Grads<T, 1> {
                     const Variable<T> chosen = detail::equal(x, with_kept_axes(y.detach(), kept));
                     const Variable<T> share = chosen / detail::summed(chosen, kept);
                     return {detail::masked_mul(with_kept_axes(dy, kept), share)};
                   });
}

/// Over the middle axis m of x.
template <class T>
Variable<T> product_over(const Variable<T>& x, const detail::MiddleAxis& m, const Reduced& result) {
  Variable<T> y = detail::empty<T>(result.shape, "prod");
  kernels::product_middle(detail::data(x), m.outer, m.length, m.inner, detail::data(y));
  return fused<T>(
      ops::prod, std::move(y), Inputs(x), result.attributes(), Saved(),
      [m, shape = result.shape](const Variable<T>& x) {
        const Variable<T> middle = reshape(x, {m.outer, m.length, m.inner});
        return reshape(m.length == 0 ? add(sum(middle, 1), 1) : select(cumprod(middle, 1), 1, -1), shape);
      },
      [m](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
        Variable<T> dx = detail::empty<T>(x.shape());
        kernels::product_middle_grad(detail::data(dy), detail::data(x), m.outer, m.length, m.inner,
                                     detail::data(dx));
        return {std::move(dx)};
      });
}

template <class T>
Mask is_zero(const Variable<T>& x) {
  return xt::equal(x.value(), T{0});
}

/// a / b, 0 where b = 0; for gradients that are 0 there.
template <class T>
Variable<T> divided_or_zero(const Variable<T>& a, const Variable<T>& b) {
  const Mask zero = is_zero(b);
  return masked_fill(a / masked_fill(b, zero, 1), zero, 0);
}

/// The norms of x, which do not leave the range: where the squares do, those of x times a power of two.
template <class T>
Variable<T> euclidean_norms(StaticOp<1, 3> op, const Variable<T>& x, const Reduced& result) {
  if (result.count == 1) return reshape(abs(x), result.shape);  // the kernel runs along axes that are longer
  Variable<T> y = reduce(op.info().name, kernels::norm_middle<T>, x, result);
  // The squares of floats stay in the range of double, where the kernel adds them.
  if constexpr (std::is_same_v<T, double>) {
    constexpr T least = 1e-140, most = 1e150;
    T* const norms = detail::data(y);
    const auto leaves_range = [](T one) { return !(one >= least && one <= most); };
    if (result.count == 0 || std::none_of(norms, norms + y.size(), leaves_range)) return y;
    Variable<T> largest = detail::empty<T>(result.kept, op.info().name);
    const Variable<T> sizes = abs(x);
    detail::reduce_axes(kernels::max_middle<T>, sizes, result.kept, detail::data(largest));
    Array<T> factors = Array<T>::from_shape(result.kept);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const T one = detail::data(largest)[i];
      factors.data()[i] =
          one > 0 && std::isfinite(one) ? std::ldexp(T{1}, std::min(-std::ilogb(one), 1023)) : T{1};
    }
    const Variable<T> scaled(Array<T>(x.value() * factors));
    const Variable<T> scaled_norms = reduce(op.info().name, kernels::norm_middle<T>, scaled, result);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (leaves_range(norms[i])) norms[i] = detail::data(scaled_norms)[i] / factors.data()[i];
    }
  }
  return y;
}

/// a times dy / y of the same results, 0 where y = 0: a is divided first where dy / y leaves the range.
template <class T>
Variable<T> times_ratios(const Variable<T>& a, const Variable<T>& dy, const Variable<T>& y,
                         const Shape& kept) {
  const Variable<T> ratios = divided_or_zero(dy, y);
  const T *const slopes = detail::data(dy), *const sizes = detail::data(y), *const r = detail::data(ratios);
  bool in_range = true;
  for (std::size_t i = 0; i < ratios.size(); ++i)
    in_range &= std::isnormal(r[i]) || slopes[i] == 0 || sizes[i] == 0;
  if (in_range) return a * with_kept_axes(ratios, kept);
  return divided_or_zero(a, with_kept_axes(y, kept)) * with_kept_axes(dy, kept);
}

template <class T>
T variance_divisor(const Reduced& result, const VarOptions& options) {
  return std::max(T{0}, static_cast<T>(result.count) - static_cast<T>(options.correction));
}

/// True if the deviations, which are `unit` times these sizes, are somewhere less than a sixteenth of the
/// mean: its rounding then shows in them.
template <class T>
bool has_large_offset(const Variable<T>& means, const Variable<T>& sizes, T unit) {
  const T *const m = detail::data(means), *const s = detail::data(sizes);
  bool large = false;
  for (std::size_t i = 0; i < means.size(); ++i) large |= std::abs(m[i]) > 16 * unit * s[i];
  return large;
}

/// x minus its mean, where the standard deviations, or `unit` times them, are known.
template <class T>
Variable<T> deviations(const Variable<T>& x, const Dims& dims, const Variable<T>& sizes, T unit) {
  const Variable<T> means = mean(x, dims, {.keepdim = true});
  return has_large_offset(means, sizes, unit) ? detail::deviations(x, dims) : x - means;
}

/// |x|^p, 0 where x = 0.
template <class T>
Variable<T> power_or_zero(const Variable<T>& x, T p) {
  const Mask zero = is_zero(x);
  return masked_fill(pow(abs(masked_fill(x, zero, 1)), p), zero, 0);
}

/// (sum of |x|^p)^(1 / p), where the sums are of x divided by its largest element, or its smallest for p < 0.
template <class T>
Variable<T> scaled_power_norms(const Variable<T>& x, T p, const Reduced& result) {
  const Variable<T> sizes = abs(x);
  Variable<T> scale = detail::empty<T>(result.kept, ops::norm.name);
  if (result.count > 0)
    detail::reduce_axes(p > 0 ? kernels::max_middle<T> : kernels::min_middle<T>, sizes, result.kept,
                        detail::data(scale));
  for (T *s = detail::data(scale), *end = s + scale.size(); s != end; ++s) {
    if (result.count == 0 || !std::isfinite(*s) || *s == 0) *s = 1;
  }
  return pow(sum_over(pow(sizes / scale, p), result), 1 / p) * reshape(scale, result.shape);
}

/// For p that is neither 0, 1 nor infinite.
template <class T>
Variable<T> power_norm(const Variable<T>& x, T p, const Reduced& result) {
  Variable<T> y;
  {
    const NoGrad guard;
    const detail::Unwatched parts;
    y = p == 2 ? euclidean_norms(ops::norm, x, result) : scaled_power_norms(x, p, result);
  }
  return record<T>(
      ops::norm, std::move(y), Inputs(x), Attributes(p, result.axes, result.keepdim), Saved(x, Output()),
      [kept = result.kept, p](Variable<T> dy, Needs, Variable<T> x, Variable<T> y) -> Grads<T, 1> {
        if (p == 2) return {times_ratios(x, dy, y, kept)};
        const Variable<T> ratios = divided_or_zero(x, with_kept_axes(y, kept));
        return {sign(x) * power_or_zero(ratios, p - 1) * with_kept_axes(dy, kept)};
      });
}

template <class T>
Variable<T> norm_over(const Variable<T>& x, T p, const Reduced& result) {
  if (result.count == 0 && (p < 0 || std::isinf(p)))
    detail::fail<ValueError>("norm: without elements, p must be finite and at least 0, got ", p, " for x ",
                             x.shape());
  if (p == 1) return sum_over(abs(x), result);
  if (std::isinf(p)) {
    const Variable<T> sizes = abs(x);
    return p > 0 ? extreme(ops::amax, kernels::max_middle<T>, sizes, result)
                 : extreme(ops::amin, kernels::min_middle<T>, sizes, result);
  }
  if (p != 0) return power_norm(x, p, result);
  const Variable<T> others(Array<T>(xt::cast<T>(xt::not_equal(x.value(), T{0}))));
  return record<T>(
      ops::norm, reduce(ops::norm.name, kernels::sum_middle<T>, others, result), Inputs(x),
      Attributes(p, result.axes, result.keepdim), Saved(),
      [](Variable<T>, Needs needs) -> Grads<T, 1> { return {Variable<T>(Array<T>(needs.shape(0), T{0}))}; });
}

}  // namespace

template <class T>
Variable<T> sum(const Variable<T>& x) {
  return sum_over(x, whole(x));
}

template <class T>
Variable<T> sum(const Variable<T>& x, const Dims& dims, ReduceOptions options) {
  return sum_over(x, reduced("sum", x.shape(), dims, options.keepdim));
}

template <class T>
Variable<T> mean(const Variable<T>& x) {
  return mean_over(x, whole(x));
}

template <class T>
Variable<T> mean(const Variable<T>& x, const Dims& dims, ReduceOptions options) {
  return mean_over(x, reduced("mean", x.shape(), dims, options.keepdim));
}

template <class T>
Variable<T> amax(const Variable<T>& x) {
  return amax(x, all_axes(x.shape()));
}

template <class T>
Variable<T> amax(const Variable<T>& x, const Dims& dims, ReduceOptions options) {
  return extreme(ops::amax, kernels::max_middle<T>, x, reduced("amax", x.shape(), dims, options.keepdim));
}

template <class T>
Variable<T> amin(const Variable<T>& x) {
  return amin(x, all_axes(x.shape()));
}

template <class T>
Variable<T> amin(const Variable<T>& x, const Dims& dims, ReduceOptions options) {
  return extreme(ops::amin, kernels::min_middle<T>, x, reduced("amin", x.shape(), dims, options.keepdim));
}

template <class T>
Variable<T> logsumexp(const Variable<T>& x, const Dims& dims, ReduceOptions options) {
  const Reduced result = reduced("logsumexp", x.shape(), dims, options.keepdim);
  Variable<T> y, shift = detail::empty<T>(result.kept, "logsumexp"), log_sum;
  {
    const NoGrad guard;
    const detail::Unwatched parts;
    if (result.count > 0) detail::reduce_axes(kernels::max_middle<T>, x, result.kept, detail::data(shift));
    for (T *s = detail::data(shift), *end = s + shift.size(); s != end; ++s) {
      if (result.count == 0 || !std::isfinite(*s)) *s = 0;  // infinity - infinity would be nan
    }
    log_sum = log(detail::summed(exp(x - shift), result.kept));
    y = log_sum + shift;
    y = reshape(y, result.shape);
  }
  return record<T>(ops::logsumexp, std::move(y), Inputs(x), result.attributes(), Saved(x, shift, log_sum),
                   [kept = result.kept](Variable<T> dy, Needs, Variable<T> x, Variable<T> shift,
                                        Variable<T> log_sum) -> Grads<T, 1> {
                     // not e^(x - y): where |x| is large, y has lost the digits of log_sum
                     const Variable<T> shifted = x - shift;
                     if (grad_enabled()) log_sum = log(detail::summed(exp(shifted), kept));
                     return {with_kept_axes(dy, kept) * exp(shifted - log_sum)};
                   });
}

template <class T>
Variable<T> var(const Variable<T>& x, VarOptions options) {
  return var(x, all_axes(x.shape()), options);
}

template <class T>
Variable<T> var(const Variable<T>& x, const Dims& dims, VarOptions options) {
  const Reduced result = reduced(ops::var.name, x.shape(), dims, options.keepdim);
  const T divisor = variance_divisor<T>(result, options);
  const T unit = std::sqrt(divisor / static_cast<T>(result.count));
  Variable<T> y;
  {
    const NoGrad guard;
    const detail::Unwatched parts;
    const Variable<T> means = mean(x, dims, {.keepdim = true});
    y = div(sum_over(square(x - means), result), divisor);
    if (has_large_offset(means, sqrt(y), unit))
      y = div(sum_over(square(detail::deviations(x, dims)), result), divisor);
  }
  return record<T>(
      ops::var, std::move(y), Inputs(x), Attributes(result.axes, options.keepdim, options.correction),
      Saved(x, Output()),
      [kept = result.kept, dims, divisor, unit](Variable<T> dy, Needs, Variable<T> x,
                                                Variable<T> y) -> Grads<T, 1> {
        return {with_kept_axes(dy * (T{2} / divisor), kept) * deviations(x, dims, sqrt(y.detach()), unit)};
      });
}

template <class T>
Variable<T> std(const Variable<T>& x, VarOptions options) {
  return std(x, all_axes(x.shape()), options);
}

template <class T>
Variable<T> std(const Variable<T>& x, const Dims& dims, VarOptions options) {
  const Reduced result = reduced(ops::std.name, x.shape(), dims, options.keepdim);
  const T divisor = variance_divisor<T>(result, options), count = static_cast<T>(result.count);
  Variable<T> y;
  {
    const NoGrad guard;
    const detail::Unwatched parts;
    const Variable<T> means = mean(x, dims, {.keepdim = true});
    // not the root of the variance, whose range is smaller
    y = euclidean_norms(ops::std, x - means, result);
    if (has_large_offset(means, y, 1 / std::sqrt(count)))
      y = euclidean_norms(ops::std, detail::deviations(x, dims), result);
    y = div(y, std::sqrt(divisor));
  }
  return record<T>(ops::std, std::move(y), Inputs(x),
                   Attributes(result.axes, options.keepdim, options.correction), Saved(x, Output()),
                   [kept = result.kept, dims, divisor, unit = std::sqrt(divisor / count)](
                       Variable<T> dy, Needs, Variable<T> x, Variable<T> y) -> Grads<T, 1> {
                     return {times_ratios(deviations(x, dims, y, unit), div(dy, divisor), y, kept)};
                   });
}

template <class T>
Variable<T> norm(const Variable<T>& x, std::type_identity_t<T> p) {
  return norm_over(x, p, whole(x));
}

template <class T>
Variable<T> norm(const Variable<T>& x, std::type_identity_t<T> p, const Dims& dims, ReduceOptions options) {
  return norm_over(x, p, reduced("norm", x.shape(), dims, options.keepdim));
}

template <class T>
Variable<T> prod(const Variable<T>& x) {
  return product_over(x, {.length = x.size()}, whole(x));
}

template <class T>
Variable<T> prod(const Variable<T>& x, Int dim, ReduceOptions options) {
  return product_over(x, detail::middle_axis("prod", dim, x.shape()),
                      reduced("prod", x.shape(), dim, options.keepdim));
}

#define XGRAD_INSTANTIATE(T)                                                      \
  template Variable<T> sum(const Variable<T>&);                                   \
  template Variable<T> sum(const Variable<T>&, const Dims&, ReduceOptions);       \
  template Variable<T> mean(const Variable<T>&);                                  \
  template Variable<T> mean(const Variable<T>&, const Dims&, ReduceOptions);      \
  template Variable<T> amax(const Variable<T>&);                                  \
  template Variable<T> amax(const Variable<T>&, const Dims&, ReduceOptions);      \
  template Variable<T> amin(const Variable<T>&);                                  \
  template Variable<T> amin(const Variable<T>&, const Dims&, ReduceOptions);      \
  template Variable<T> logsumexp(const Variable<T>&, const Dims&, ReduceOptions); \
  template Variable<T> var(const Variable<T>&, VarOptions);                       \
  template Variable<T> var(const Variable<T>&, const Dims&, VarOptions);          \
  template Variable<T> std(const Variable<T>&, VarOptions);                       \
  template Variable<T> std(const Variable<T>&, const Dims&, VarOptions);          \
  template Variable<T> norm(const Variable<T>&, T);                               \
  template Variable<T> norm(const Variable<T>&, T, const Dims&, ReduceOptions);   \
  template Variable<T> prod(const Variable<T>&);                                  \
  template Variable<T> prod(const Variable<T>&, Int, ReduceOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
