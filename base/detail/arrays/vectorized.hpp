#pragma once

#include <type_traits>

// Kernels select their instruction set at run time: a function has a version for each processor level. With
// GCC the loader selects, before sanitizers start, so these use the plain version; with clang the first call
// does. If all files are compiled for the highest level (-march=native), there is only one version.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define XGRAD_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XGRAD_SANITIZED
#endif

#if defined(__x86_64__) && defined(__linux__) && defined(__OPTIMIZE__) && !defined(XGRAD_SANITIZED) && \
    !defined(__AVX512F__)
#define XGRAD_VERSIONS
#endif

/// Functions called by a kernel must be inlined into each of its versions.
#define XGRAD_INLINE [[gnu::always_inline]] inline

/// XGRAD_INLINE for a lambda, between its parameters and its body.
#define XGRAD_INLINE_LAMBDA __attribute__((always_inline))

/// Before a loop whose iterations are independent even if its output is one of its inputs.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // a loop that stays scalar is not an error
#define XGRAD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__OPTIMIZE__)  // otherwise GCC warns; a loop unrolled before vectorisation stays scalar
#define XGRAD_INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define XGRAD_INDEPENDENT
#endif

/// Defines the function `name`, which returns `body args`, in all versions. Clang's target_clones do not link
/// if only they call an inline function (seen with 16 and 19), so each version has a name there, and the
/// first call selects one.
#if !defined(XGRAD_VERSIONS)
#define XGRAD_FUNCTION_VERSIONS(linkage, result, name, params, args, body) \
  linkage result name params { return body args; }
#elif defined(__clang__)
#define XGRAD_FUNCTION_VERSIONS(linkage, result, name, params, args, body)            \
  static result name##_sse2 params { return body args; }                              \
  [[gnu::target("avx2")]] static result name##_avx2 params { return body args; }      \
  [[gnu::target("avx512f")]] static result name##_avx512 params { return body args; } \
  linkage result name params {                                                        \
    static const auto version = __builtin_cpu_supports("avx512f") ? name##_avx512     \
                                : __builtin_cpu_supports("avx2")  ? name##_avx2       \
                                                                  : name##_sse2;       \
    return version args;                                                              \
  }
#else
#define XGRAD_FUNCTION_VERSIONS(linkage, result, name, params, args, body)                                   \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"))) linkage result name params { \
    return body args;                                                                                        \
  }
#endif

/// Head of the definition of a function compiled in versions; its body becomes an inlined function:
///
///     XGRAD_VECTORIZED(void, twice, (const int* x, int* y, std::size_t n), (x, y, n)) {
///       for (std::size_t i = 0; i < n; ++i) y[i] = 2 * x[i];
///     }
#define XGRAD_VECTORIZED(result, name, params, args)                 \
  [[gnu::always_inline]] static inline result name##_body params;    \
  XGRAD_FUNCTION_VERSIONS(, result, name, params, args, name##_body) \
  static inline result name##_body params

/// The versions of a kernel whose body follows, for XGRAD_KERNEL and XGRAD_PARALLEL_KERNEL. The body becomes
/// an inlined template. Function versions cannot be templates, hence one plain function for float and one for
/// double; name##_versions selects one.
#define XGRAD_KERNEL_VERSIONS(result, name, params, args)                      \
  template <typename T>                                                        \
  [[gnu::always_inline]] static inline result name##_body params;              \
  namespace name##_float {                                                     \
    using T = float;                                                           \
    XGRAD_FUNCTION_VERSIONS(static, result, run, params, args, name##_body<T>) \
  }                                                                            \
  namespace name##_double {                                                    \
    using T = double;                                                          \
    XGRAD_FUNCTION_VERSIONS(static, result, run, params, args, name##_body<T>) \
  }                                                                            \
  template <typename T>                                                        \
  [[gnu::always_inline]] static inline result name##_versions params {         \
    if constexpr (std::is_same_v<T, float>) {                                  \
      return name##_float::run args;                                           \
    } else {                                                                   \
      return name##_double::run args;                                          \
    }                                                                          \
  }

/// Head of the definition of a kernel that a header declares as `template <typename T> result name params`:
///
///     XGRAD_KERNEL(void, neg, (const T* x, T* y, std::size_t n), (x, y, n)) {
///       for (std::size_t i = 0; i < n; ++i) y[i] = -x[i];
///     }
#define XGRAD_KERNEL(result, name, params, args)    \
  XGRAD_KERNEL_VERSIONS(result, name, params, args) \
  template <typename T>                             \
  result name params {                              \
    return name##_versions<T> args;                 \
  }                                                 \
  template decltype(name<float>) name<float>;       \
  template decltype(name<double>) name<double>;     \
  template <typename T>                             \
  static inline result name##_body params
