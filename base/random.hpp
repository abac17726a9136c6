#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array.hpp"
#include "detail/by_name.hpp"
#include "detail/scoped_value.hpp"
#include "dims.hpp"

namespace xgrad {

class Generator;

namespace detail {

/// The calling thread's own default generator, or null.
extern constinit thread_local Generator* used_generator;

/// std::mt19937 with the same numbers, drawn in bulk.
class Mt19937 {
 public:
  static constexpr std::size_t state_size = 624;

  void seed(std::uint32_t seed);
  void seed(std::span<const std::uint32_t> key);

  /// The next 32 bits.
  std::uint32_t operator()() {
    if (position_ == state_size) [[unlikely]]
      next_block();
    return words_[position_++];
  }

  /// The next `count` numbers.
  void draw(std::uint32_t* words, std::size_t count);

  /// The state and the position in it, in the format of libstdc++.
  std::string text() const;

  /// Parses the result of text(); empty for an invalid state.
  static std::optional<Mt19937> from_text(const std::string& text);

 private:
  void next_block();
  void make_state();

  std::array<std::uint32_t, state_size> state_, words_;  // words_ are the numbers of state_
  std::size_t position_;
  std::vector<std::uint32_t> key_;  // seed whose state is not computed yet, or empty
};

}  // namespace detail

/// A stream of random numbers, equal to PyTorch's CPU generator (mt19937). Functions that draw may be called
/// from several threads; each draws its whole array at once. The stream of a seed does not depend on
/// compiler, flags or processor, except for the last bits of normals in double, which depend on the C
/// library. https://pytorch.org/docs/stable/generated/torch.Generator.html
class Generator {
 public:
  /// Seeds with PyTorch's default seed.
  Generator() { manual_seed(67280421310721u); }
  explicit Generator(std::uint64_t seed) { manual_seed(seed); }
  explicit Generator(std::span<const std::uint32_t> key) { manual_seed(key); }
  /// Copies the state: both draw the same numbers.
  Generator(const Generator& other) : engine_(other.engine_), cached_normal_(other.cached_normal_) {}
  /// The same. Needs no memory for a state that set_state() has restored.
  Generator& operator=(const Generator& other) {
    engine_ = other.engine_;
    cached_normal_ = other.cached_normal_;
    return *this;
  }

  /// Restarts the stream from the low 32 bits of the seed.
  void manual_seed(std::uint64_t seed);

  /// Seeds with several words, all of whose bits count: init_by_array of Matsumoto and Nishimura's mt19937ar
  /// (2002), as in numpy.random.RandomState with a list. The state is computed at the first draw. Throws
  /// ValueError for an empty key.
  void manual_seed(std::span<const std::uint32_t> key);

  /// The state as text: set_state() continues from there, also in another process.
  std::string get_state() const;

  /// Restores a state. Throws ValueError, without changes, for text that is not a result of get_state().
  void set_state(const std::string& state);

  /// The next 32 or 64 bits (whose high half is drawn first).
  std::uint32_t random32() { return engine_(); }
  std::uint64_t random64();

  /// Uniform in [0, 1), with as many bits as T's significand.
  template <class T>
  T uniform();

  /// A standard normal number. Drawn in pairs (Box and Muller 1958); the second is stored for the next call.
  double normal();

  /// Draws `count` numbers as random32() does.
  void draw(std::uint32_t* words, std::size_t count) { engine_.draw(words, count); }

  std::mutex& mutex() { return mutex_; }

 private:
  detail::Mt19937 engine_;
  std::optional<double> cached_normal_;
  std::mutex mutex_;
};

/// The default generator of all functions that draw: that of the process, or of the thread's UseGenerator.
Generator& default_generator();

/// Makes a generator, which must outlive the object, the calling thread's default for the lifetime of the
/// object.
class [[nodiscard]] UseGenerator : detail::ScopedValue<Generator*> {
 public:
  [[nodiscard]] explicit UseGenerator(Generator& generator) noexcept
      : ScopedValue(detail::used_generator, &generator) {}
};

/// Seeds the default generator: starts PyTorch's stream of this seed (torch.manual_seed).
void manual_seed(std::uint64_t seed);

/// The state of the default generator, to draw the same numbers again (torch.get_rng_state).
std::string get_rng_state();
/// Restores it. Throws ValueError, without changes, for text that is not a result of get_rng_state().
void set_rng_state(const std::string& state);

/// Uniform in [low, high) (torch.Tensor.uniform_). Throws ValueError unless low <= high
/// and high - low is finite in T.
template <Real T>
Array<T> uniform(const Shape& shape, double low = 0, double high = 1,
                 Generator& generator = default_generator());

/// Normal with this mean and standard deviation (torch.Tensor.normal_). Throws ValueError for a std below 0.
template <Real T>
Array<T> normal(const Shape& shape, double mean = 0, double std = 1,
                Generator& generator = default_generator());

/// Integers in [low, high) (torch.randint). Throws ValueError unless low < high.
Ids randint(std::int64_t low, std::int64_t high, const Shape& shape,
            Generator& generator = default_generator());

/// A random order of 0 ... count - 1 (torch.randperm).
Ids randperm(std::int64_t count, Generator& generator = default_generator());

/// 1 with probability p, else 0 (torch.Tensor.bernoulli_). Throws ValueError for p outside [0, 1].
template <Real T>
Array<T> bernoulli(const Shape& shape, double p, Generator& generator = default_generator());

/// 1 with the probability of each element of p, else 0 (torch.bernoulli). Throws ValueError for one outside
/// [0, 1].
template <Real T>
Array<T> bernoulli(const Array<T>& p, Generator& generator = default_generator());

/// Exponentially distributed with this rate: the density is rate e^(-rate x) from 0
/// (torch.Tensor.exponential_). Throws ValueError unless rate > 0.
template <Real T>
Array<T> exponential(const Shape& shape, double rate = 1, Generator& generator = default_generator());

struct MultinomialOptions {
  detail::ByName by_name = {};
  bool replacement = false;  ///< an index may be drawn more than once
};

/// For each row of weights (N) or (rows, N), num_samples indices, each drawn with a probability proportional
/// to its weight: (num_samples) or (rows, num_samples). Throws ShapeError for other shapes, ValueError for
/// weights that are negative, for a row whose sum is 0 or not finite, and for more samples without
/// replacement than weights above 0. https://pytorch.org/docs/stable/generated/torch.multinomial.html
template <Real T>
Ids multinomial(const Array<T>& weights, Int num_samples, MultinomialOptions options = {},
                Generator& generator = default_generator());

namespace detail {

/// bernoulli({rows, cols}, p) as bits, least significant first: an array (rows, (cols + 7) / 8).
Array<std::uint8_t> bernoulli_bits(std::size_t rows, std::size_t cols, double p,
                                   Generator& generator = default_generator());

}  // namespace detail

}  // namespace xgrad
