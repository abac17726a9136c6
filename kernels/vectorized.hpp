#pragma once

#include <type_traits>

#include "capture.hpp"

// Kernels choose their instruction set at run time: the compiler makes one version of a function for each
// processor level, and the loader picks. Sanitizers start after the loader, so they get the plain version,
// and where all files are compiled for the highest level (-march=native), there is nothing to choose.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define XGRAD_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XGRAD_SANITIZED
#endif

#if !defined(__x86_64__) || !defined(__linux__) || !defined(__OPTIMIZE__) || defined(XGRAD_SANITIZED) || \
    defined(__AVX512F__)
#define XGRAD_VECTORIZED
#elif defined(__clang__)  // clang 14 takes the names of levels, and then tests for the wrong processors
#define XGRAD_VECTORIZED __attribute__((target_clones("default", "avx2", "avx512f")))
#define XGRAD_VERSIONS
#else
#define XGRAD_VECTORIZED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define XGRAD_VERSIONS
#endif

/// What a kernel calls has to be inlined into each of its versions.
#define XGRAD_INLINE [[gnu::always_inline]] inline

/// The same for a lambda, between its parameters and its body.
#define XGRAD_INLINE_LAMBDA __attribute__((always_inline))

/// Before a loop whose iterations are independent even when its output is one of its inputs.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // a loop that stays scalar is no error
#define XGRAD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define XGRAD_INDEPENDENT _Pragma("GCC ivdep")
#else
#define XGRAD_INDEPENDENT
#endif

/// The versions of a kernel whose body follows, for XGRAD_KERNEL and XGRAD_PARALLEL_KERNEL. The body becomes
/// an inlined template. Function versions cannot be templates, hence one plain function for float and one for
/// double, between which name##_versions chooses.
#define XGRAD_KERNEL_VERSIONS(result, name, params, args)                     \
  template <typename T>                                                       \
  [[gnu::always_inline]] static inline result name##_body params;             \
  namespace name##_float {                                                    \
    using T = float;                                                          \
    XGRAD_VECTORIZED static result run params { return name##_body<T> args; } \
  }                                                                           \
  namespace name##_double {                                                   \
    using T = double;                                                         \
    XGRAD_VECTORIZED static result run params { return name##_body<T> args; } \
  }                                                                           \
  template <typename T>                                                       \
  [[gnu::always_inline]] static inline result name##_versions params {        \
    if constexpr (std::is_same_v<T, float>) {                                 \
      return name##_float::run args;                                          \
    } else {                                                                  \
      return name##_double::run args;                                         \
    }                                                                         \
  }

/// Head of the definition of a kernel which a header declares as `template <typename T> result name params`:
///
///     XGRAD_KERNEL(void, neg, (const T* x, T* y, std::size_t n), (x, y, n)) {
///       for (std::size_t i = 0; i < n; ++i) y[i] = -x[i];
///     }
#define XGRAD_KERNEL(result, name, params, args)    \
  XGRAD_KERNEL_VERSIONS(result, name, params, args) \
  template <typename T>                             \
  result name params {                              \
    if constexpr (std::is_void_v<result>) {         \
      XGRAD_CAPTURED(#name, args, name<T> args);    \
    }                                               \
    return name##_versions<T> args;                 \
  }                                                 \
  template decltype(name<float>) name<float>;       \
  template decltype(name<double>) name<double>;     \
  template <typename T>                             \
  static inline result name##_body params
