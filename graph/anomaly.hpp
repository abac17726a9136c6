#pragma once

#include <span>

#include "error.hpp"
#include "scoped_flag.hpp"

namespace xgrad {

template <class T>
class Variable;

/// A nan that DetectAnomaly found.
struct AnomalyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

extern constinit thread_local bool detecting_anomaly;

/// Throws AnomalyError if y, the result of `op` on these inputs, holds a nan; the text says which inputs
/// already did.
template <class T>
[[gnu::cold, gnu::noinline]] void check_result(const char* op, const Variable<T>& y,
                                               std::span<const Variable<T>* const> inputs);

/// Throws AnomalyError if this gradient, which the backward of `op` returned for an input, holds a nan.
template <class T>
[[gnu::cold, gnu::noinline]] void check_gradient(const char* op, std::size_t input,
                                                 const Variable<T>& gradient);

}  // namespace detail

/// While one lives, the first op on this thread whose result holds a nan, and the first whose backward
/// returns one, throws an AnomalyError that names it: "detect_anomaly: the result (3) of 'log' is nan at (1),
/// and no input is". Each result is read once more, so training is slower.
/// https://pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly
class [[nodiscard]] DetectAnomaly : detail::ScopedFlag {
 public:
  DetectAnomaly() noexcept : ScopedFlag(detail::detecting_anomaly, true) {}
};

}  // namespace xgrad
