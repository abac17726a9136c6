#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array.hpp"
#include "detail/scoped_value.hpp"

namespace xgrad {

class Generator;

namespace detail {

/// The calling thread's default generator if it has one of its own.
extern constinit thread_local Generator* used_generator;

/// std::mt19937, number for number, which draws many numbers at once.
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

  /// The state and the place in it, as libstdc++ writes them.
  std::string text() const;

  /// Reads what text() wrote; nothing for a state that no engine is in.
  static std::optional<Mt19937> from_text(const std::string& text);

 private:
  void next_block();
  void make_state();

  std::array<std::uint32_t, state_size> state_, words_;  // words_ are the numbers of state_
  std::size_t position_;
  std::vector<std::uint32_t> key_;  // that the state is still to be made of, if there is one
};

}  // namespace detail

/// A stream of random numbers: PyTorch's CPU generator (mt19937), number for number. Functions that draw may
/// be called from several threads; each draws its whole array at once. What follows a seed does not depend on
/// compiler, flags or processor, but for the last bits of normals in double, which are the C library's.
/// https://pytorch.org/docs/stable/generated/torch.Generator.html
class Generator {
 public:
  /// A new generator starts from PyTorch's default seed.
  Generator() { manual_seed(67280421310721u); }
  explicit Generator(std::uint64_t seed) { manual_seed(seed); }
  explicit Generator(std::span<const std::uint32_t> key) { manual_seed(key); }
  /// One that will draw what `other` will.
  Generator(const Generator& other) : engine_(other.engine_), cached_normal_(other.cached_normal_) {}

  /// Starts the stream anew; the low 32 bits of the seed count.
  void manual_seed(std::uint64_t seed);

  /// The same from several words, all of whose bits count: init_by_array of Matsumoto and Nishimura's
  /// mt19937ar (2002), as numpy.random.RandomState does with a list. It takes time only when something is
  /// drawn. Throws ValueError for none.
  void manual_seed(std::span<const std::uint32_t> key);

  /// Where the stream is, as text: set_state() continues from there, in another process, too.
  std::string get_state() const;

  /// Throws ValueError for text that get_state() did not write, and changes nothing then.
  void set_state(const std::string& state);

  /// The next 32 or 64 bits (the first 32 of which are the high ones).
  std::uint32_t random32() { return engine_(); }
  std::uint64_t random64();

  /// Uniform in [0, 1), with as many bits as T's significand has.
  template <class T>
  T uniform();

  /// A standard normal number. They are drawn in pairs (Box and Muller 1958); the second is kept for the next
  /// call.
  double normal();

  /// The next `count` times random32().
  void draw(std::uint32_t* words, std::size_t count) { engine_.draw(words, count); }

  std::mutex& mutex() { return mutex_; }

 private:
  detail::Mt19937 engine_;
  std::optional<double> cached_normal_;
  std::mutex mutex_;
};

/// The generator that everything draws from unless it is given another: one for the whole process, but where
/// a UseGenerator lives.
Generator& default_generator();

/// While one lives, this generator, which has to live as long, is the calling thread's default one.
class [[nodiscard]] UseGenerator : detail::ScopedValue<Generator*> {
 public:
  explicit UseGenerator(Generator& generator) noexcept : ScopedValue(detail::used_generator, &generator) {}
};

/// Seeds the default generator: what follows is PyTorch's stream from this seed (torch.manual_seed).
void manual_seed(std::uint64_t seed);

/// The state of the default generator: save it, and set it to draw the same again (torch.get_rng_state).
std::string get_rng_state();
/// Throws ValueError for text that get_rng_state() did not write, and changes nothing then.
void set_rng_state(const std::string& state);

/// Uniform in [low, high) (torch.Tensor.uniform_). Throws ValueError unless low <= high
/// and high - low is finite in T.
template <class T>
Array<T> uniform(const Shape& shape, double low = 0, double high = 1,
                 Generator& generator = default_generator());

/// Normal with this mean and standard deviation (torch.Tensor.normal_). Throws ValueError for a std below 0.
template <class T>
Array<T> normal(const Shape& shape, double mean = 0, double std = 1,
                Generator& generator = default_generator());

/// Integers in [low, high) (torch.randint). Throws ValueError unless low < high.
Ids randint(std::int64_t low, std::int64_t high, const Shape& shape,
            Generator& generator = default_generator());

/// A random order of 0 ... count - 1 (torch.randperm).
Ids randperm(std::int64_t count, Generator& generator = default_generator());

/// 1 with probability p, else 0 (torch.Tensor.bernoulli_). Throws ValueError for p outside [0, 1].
template <class T>
Array<T> bernoulli(const Shape& shape, double p, Generator& generator = default_generator());

namespace detail {

/// bernoulli({rows, cols}, p) as bits, the lowest of each byte first: an array (rows, (cols + 7) / 8).
Array<std::uint8_t> bernoulli_bits(std::size_t rows, std::size_t cols, double p,
                                   Generator& generator = default_generator());

}  // namespace detail

}  // namespace xgrad
