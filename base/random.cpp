#include "random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <locale>
#include <numbers>
#include <numeric>
#include <random>
#include <sstream>
#include <type_traits>

#include "detail/arrays/mt19937.hpp"
#include "detail/text/number_text.hpp"
#include "detail/text/parse.hpp"
#include "error.hpp"

namespace xgrad {
namespace {

constexpr std::size_t block = 16;  // normals are made in blocks of this many

constexpr const char* no_cached_normal = "none";

/// Natural logarithm of a positive float: the Cephes polynomial, with the fused operations where PyTorch has
/// them.
float log_of(float x) {
  int exponent = 0;
  float m = std::frexp(x, &exponent);
  if (m < static_cast<float>(std::numbers::sqrt2 / 2)) {
    --exponent;
    m = (m - 1.0F) + m;
  } else {
    m = m - 1.0F;
  }
  constexpr float coefficients[] = {-1.1514610310e-1F, 1.1676998740e-1F, -1.2420140846e-1F, 1.4249322787e-1F,
                                    -1.6668057665e-1F, 2.0000714765e-1F, -2.4999993993e-1F, 3.3333331174e-1F};
  float y = 7.0376836292e-2F;
  for (const float coefficient : coefficients) y = std::fma(y, m, coefficient);
  const float z = m * m, e = static_cast<float>(exponent);
  y = y * m;
  y = std::fma(y, z, e * -2.12194440e-4F);
  y = std::fma(z, -0.5F, y);
  return std::fma(e, 0.693359375F, m + y);
}

struct SineCosine {
  float sine, cosine;
};

/// Sine and cosine of t >= 0: the Cephes polynomials on [-pi / 4, pi / 4].
SineCosine sine_cosine(float t) {
  const std::int32_t octant = (static_cast<std::int32_t>(t * 1.27323954473516F) + 1) & ~1;
  const auto y = static_cast<float>(octant);
  t = std::fma(y, -0.78515625F, t);
  t = std::fma(y, -2.4187564849853515625e-4F, t);
  t = std::fma(y, -3.77489497744594108e-8F, t);
  const float z = t * t;
  float c = std::fma(2.443315711809948e-5F, z, -1.388731625493765e-3F);
  c = std::fma(c, z, 4.166664568298827e-2F) * z;
  c = std::fma(c, z, -(z * 0.5F)) + 1.0F;
  float s = std::fma(-1.9515295891e-4F, z, 8.3321608736e-3F);
  s = std::fma(s, z, -1.6666654611e-1F) * z;
  s = std::fma(s, t, t);
  const bool swapped = (octant & 2) != 0;
  const float sine = swapped ? c : s, cosine = swapped ? s : c;
  return {(octant & 4) != 0 ? -sine : sine, ((octant - 2) & 4) == 0 ? -cosine : cosine};
}

/// Turns 16 uniforms into normals: element j and j + 8 make a pair (Box and Muller 1958).
void make_normal(float* data, float mean, float std) {
  for (std::size_t j = 0; j < block / 2; ++j) {
    const float r = std::sqrt(-2.0F * log_of(1.0F - data[j]));
    const auto [sine, cosine] = sine_cosine(static_cast<float>(2 * std::numbers::pi) * data[j + 8]);
    data[j] = std::fma(r * cosine, std, mean);
    data[j + 8] = std::fma(r * sine, std, mean);
  }
}

void make_normal(double* data, double mean, double std) {
  for (std::size_t j = 0; j < block / 2; ++j) {
    const double r = std::sqrt(-2.0 * std::log(1.0 - data[j]));
    const double theta = 2.0 * std::numbers::pi * data[j + 8];
    data[j] = std::fma(r * std::cos(theta), std, mean);
    data[j + 8] = std::fma(r * std::sin(theta), std, mean);
  }
}

}  // namespace

namespace detail {

constinit thread_local Generator* used_generator = nullptr;

static_assert(Mt19937::state_size == kernels::mt19937_size);

void Mt19937::seed(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < state_size; ++i)
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  position_ = state_size;
  key_.clear();
}

void Mt19937::seed(std::span<const std::uint32_t> key) {
  key_.assign(key.begin(), key.end());
  position_ = state_size;
}

void Mt19937::make_state() {
  const std::vector<std::uint32_t> key = std::move(key_);
  seed(19650218);
  std::size_t i = 1;
  const auto mix = [&](std::uint32_t factor) {
    if (i == state_size) {
      state_[0] = state_[state_size - 1];
      i = 1;
    }
    const std::uint32_t before = state_[i - 1];
    state_[i] ^= (before ^ (before >> 30)) * factor;
    return i++;
  };
  for (std::size_t k = 0; k < std::max(state_size, key.size()); ++k) {
    const std::size_t word = k % key.size();
    state_[mix(1664525)] += key[word] + static_cast<std::uint32_t>(word);
  }
  for (std::size_t k = 1; k < state_size; ++k) {
    const std::size_t mixed = mix(1566083941);
    state_[mixed] -= static_cast<std::uint32_t>(mixed);
  }
  state_[0] = std::uint32_t{1} << 31;
}

void Mt19937::next_block() {
  if (!key_.empty()) make_state();
  kernels::mt19937_twist(state_.data());
  kernels::mt19937_temper(state_.data(), words_.data());
  position_ = 0;
}

void Mt19937::draw(std::uint32_t* words, std::size_t count) {
  while (count > 0) {
    if (position_ == state_size) next_block();
    const std::size_t n = std::min(count, state_size - position_);
    std::copy_n(words_.data() + position_, n, words);
    position_ += n;
    words += n;
    count -= n;
  }
}

std::string Mt19937::text() const {
  if (!key_.empty()) {
    Mt19937 made = *this;
    made.make_state();
    return made.text();
  }
  std::string text;
  for (const std::uint32_t word : state_) text += std::to_string(word) + " ";
  return text + std::to_string(position_);
}

std::optional<Mt19937> Mt19937::from_text(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  Mt19937 engine;
  for (std::uint32_t& word : engine.state_) stream >> word;
  stream >> engine.position_;
  if (!stream || engine.position_ > state_size) return {};
  if (std::all_of(engine.state_.begin(), engine.state_.end(), [](auto word) { return word == 0; })) return {};
  kernels::mt19937_temper(engine.state_.data(), engine.words_.data());
  return engine;
}

}  // namespace detail

void Generator::manual_seed(std::uint64_t seed) {
  engine_.seed(static_cast<std::uint32_t>(seed));
  cached_normal_.reset();
}

void Generator::manual_seed(std::span<const std::uint32_t> key) {
  if (key.empty()) detail::fail<ValueError>("manual_seed: the key must have words, got none");
  engine_.seed(key);
  cached_normal_.reset();
}

std::string Generator::get_state() const {
  return engine_.text() + " " + (cached_normal_ ? detail::shortest_text(*cached_normal_) : no_cached_normal);
}

void Generator::set_state(const std::string& state) {
  constexpr double limit = 9;  // a normal made of 53 bits is below 8.6
  const std::size_t space = std::min(state.rfind(' '), state.size());
  const std::string cached = state.substr(std::min(space + 1, state.size()));
  Generator read;
  if (const auto engine = detail::Mt19937::from_text(state.substr(0, space))) read.engine_ = *engine;
  if (cached != no_cached_normal) read.cached_normal_ = detail::parsed<double>(cached);
  // In this order, as get_state() writes finite numbers.
  if (!(std::abs(read.cached_normal_.value_or(0)) < limit) || read.get_state() != state)
    detail::fail<ValueError>("set_state: the text is not a generator's state");
  engine_ = read.engine_;
  cached_normal_ = read.cached_normal_;
}

std::uint64_t Generator::random64() {
  const std::uint64_t high = random32();
  return high << 32 | random32();
}

template <>
float Generator::uniform() {
  return static_cast<float>(random32() & ((1U << 24) - 1)) * 0x1p-24F;
}

template <>
double Generator::uniform() {
  return static_cast<double>(random64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

double Generator::normal() {
  if (cached_normal_) {
    const double sample = *cached_normal_;
    cached_normal_.reset();
    return sample;
  }
  const double u1 = uniform<double>(), u2 = uniform<double>();
  const double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * std::numbers::pi * u1;
  cached_normal_ = r * std::sin(theta);
  return r * std::cos(theta);
}

Generator& default_generator() {
  if (detail::used_generator != nullptr) return *detail::used_generator;
  static Generator generator(std::random_device{}());
  return generator;
}

void manual_seed(std::uint64_t seed) {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  generator.manual_seed(seed);
}

std::string get_rng_state() {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_rng_state(const std::string& state) {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

template <Real T>
Array<T> uniform(const Shape& shape, double low, double high, Generator& generator) {
  detail::check_count("uniform", shape);
  const T from = static_cast<T>(low), to = static_cast<T>(high), range = to - from;
  if (!(low <= high) || !std::isfinite(range)) {
    detail::fail<ValueError>("uniform: low must not be above high, and high - low finite, got ", low, " and ",
                             high);
  }
  const std::lock_guard lock(generator.mutex());
  Array<T> x = Array<T>::from_shape(shape);
  for (T& element : x.storage()) {
    element = std::fma(generator.uniform<T>(), range, from);
    if (element >= to) element = from;  // rounded up
  }
  return x;
}

template <Real T>
Array<T> normal(const Shape& shape, double mean, double std, Generator& generator) {
  detail::check_count("normal", shape);
  if (!(std >= 0)) detail::fail<ValueError>("normal: std must be at least 0, got ", std);
  const std::lock_guard lock(generator.mutex());
  Array<T> x = Array<T>::from_shape(shape);
  T* data = x.data();
  const std::size_t n = x.size();
  if (n < block) {
    for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<T>(std::fma(generator.normal(), std, mean));
    return x;
  }
  const auto fill = [&](std::size_t first) {
    for (std::size_t i = first; i < n; ++i) data[i] = generator.uniform<T>();
  };
  fill(0);
  for (std::size_t i = 0; i + block <= n; i += block)
    make_normal(data + i, static_cast<T>(mean), static_cast<T>(std));
  if (n % block != 0) {  // the last block is drawn anew and overlaps the one before
    fill(n - block);
    make_normal(data + n - block, static_cast<T>(mean), static_cast<T>(std));
  }
  return x;
}

Ids randint(std::int64_t low, std::int64_t high, const Shape& shape, Generator& generator) {
  if (low >= high) detail::fail<ValueError>("randint: low must be below high, got ", low, " and ", high);
  detail::check_count("randint", shape);
  const std::lock_guard lock(generator.mutex());
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  Ids ids = Ids::from_shape(shape);
  for (std::int64_t& id : ids.storage()) {
    // The remainder of 32 bits would favour some numbers of a wider range by more than 6 %.
    const std::uint64_t bits = range >> 28 == 0 ? generator.random32() : generator.random64();
    id = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + bits % range);
  }
  return ids;
}

Ids randperm(std::int64_t count, Generator& generator) {
  if (count < 0) detail::fail<ValueError>("randperm: count must be at least 0, got ", count);
  const std::lock_guard lock(generator.mutex());
  const auto n = static_cast<std::size_t>(count);
  Ids order = Ids::from_shape({n});
  std::iota(order.begin(), order.end(), 0);
  if (n < std::numeric_limits<std::uint32_t>::max() / 20) {
    for (std::size_t i = 0; i + 1 < n; ++i) std::swap(order(i), order(i + generator.random32() % (n - i)));
  } else {  // 32 bits are too few
    for (std::size_t i = 0; i < n; ++i) std::swap(order(i), order(generator.random64() % (i + 1)));
  }
  return order;
}

namespace {

/// Calls take(words, bound, first, n) for pieces of [0, size), whose lengths but the last are divisible by
/// 8: bernoulli's numbers are below p where their 53 bits, as an integer, are below `bound`.
template <class Take>
void draw_bernoulli(std::size_t size, double p, Generator& generator, const Take& take) {
  const auto bound = static_cast<std::uint64_t>(std::ceil(p * 0x1p53));
  constexpr std::size_t piece = 512;
  std::uint32_t words[2 * piece];
  for (std::size_t i = 0; i < size; i += piece) {
    const std::size_t n = std::min(piece, size - i);
    generator.draw(words, 2 * n);
    take(words, bound, i, n);
  }
}

}  // namespace

template <Real T>
Array<T> bernoulli(const Shape& shape, double p, Generator& generator) {
  detail::check_count("bernoulli", shape);
  if (!(p >= 0 && p <= 1)) detail::fail<ValueError>("bernoulli: p must be in [0, 1], got ", p);
  Array<T> x = Array<T>::from_shape(shape);
  const std::lock_guard lock(generator.mutex());
  draw_bernoulli(x.size(), p, generator,
                 [&](const std::uint32_t* words, std::uint64_t bound, std::size_t first, std::size_t n) {
                   kernels::bernoulli(words, bound, x.data() + first, n);
                 });
  return x;
}

template <Real T>
Array<T> bernoulli(const Array<T>& p, Generator& generator) {
  for (const T one : p.storage())
    if (!(one >= 0 && one <= 1))
      detail::fail<ValueError>("bernoulli: every probability must be in [0, 1], got ", one);
  Array<T> x = Array<T>::from_shape(p.shape());
  const std::lock_guard lock(generator.mutex());
  std::transform(p.storage().begin(), p.storage().end(), x.data(),
                 [&](T one) { return static_cast<T>(generator.uniform<T>() < one); });
  return x;
}

namespace {

/// -ln(1 - u) / rate, in double.
double exponential_number(double rate, Generator& generator) {
  return -1 / rate * std::log1p(-generator.uniform<double>());
}

/// The indices of the largest weight / e, largest first, where the e are exponentially distributed: those
/// that would come first if each came at a random time with its weight as rate.
template <class T>
void draw_without_replacement(std::span<const T> weights, std::span<std::int64_t> drawn,
                              Generator& generator) {
  std::vector<T> scores;
  scores.reserve(weights.size());
  for (const T weight : weights) scores.push_back(weight / static_cast<T>(exponential_number(1, generator)));
  std::vector<std::int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(drawn.size()), order.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      const T first = scores[static_cast<std::size_t>(a)],
                              second = scores[static_cast<std::size_t>(b)];
                      return first > second || (first == second && a < b);
                    });
  std::copy_n(order.begin(), drawn.size(), drawn.begin());
}

/// The first index up to which the weights add up to a random share of their sum or more.
template <class T>
void draw_with_replacement(std::span<const T> weights, std::span<std::int64_t> drawn, Generator& generator) {
  std::vector<T> shares(weights.size());
  std::partial_sum(weights.begin(), weights.end(), shares.begin());
  const T total = shares.back();
  for (T& share : shares) share /= total;
  for (std::int64_t& index : drawn) {
    const double share = generator.uniform<double>();
    index = std::lower_bound(shares.begin(), shares.end(), share) - shares.begin();
  }
}

}  // namespace

template <Real T>
Array<T> exponential(const Shape& shape, double rate, Generator& generator) {
  detail::check_count("exponential", shape);
  if (!(rate > 0)) detail::fail<ValueError>("exponential: rate must be above 0, got ", rate);
  const std::lock_guard lock(generator.mutex());
  Array<T> x = Array<T>::from_shape(shape);
  for (T& element : x.storage()) element = static_cast<T>(exponential_number(rate, generator));
  return x;
}

namespace {

template <class T>
void check_weights(std::span<const T> weights, std::size_t row, std::size_t samples, bool replacement) {
  std::size_t positive = 0;
  T sum = 0;
  for (const T weight : weights) {
    if (!(weight >= 0)) detail::fail<ValueError>("multinomial: weights must be at least 0, got ", weight);
    positive += weight > 0;
    sum += weight;
  }
  if (positive == 0 || !std::isfinite(sum)) {
    detail::fail<ValueError>(
        "multinomial: the weights of a row must add up to more than 0 and be finite, got ", sum, " in row ",
        row);
  }
  if (!replacement && positive < samples) {
    detail::fail<ValueError>("multinomial: num_samples without replacement must be at most ", positive,
                             ", the number of weights above 0 in row ", row, ", got ", samples);
  }
}

}  // namespace

template <Real T>
Ids multinomial(const Array<T>& weights, Int num_samples, MultinomialOptions options, Generator& generator) {
  Shape shape = weights.shape();
  if (shape.size() != 1 && shape.size() != 2)
    detail::fail<ShapeError>("multinomial: weights must be (N) or (rows, N), got ", shape);
  if (num_samples < 1)
    detail::fail<ValueError>("multinomial: num_samples must be at least 1, got ", num_samples);
  const std::size_t rows = row_count(shape), n = shape.back(),
                    samples = static_cast<std::size_t>(num_samples);
  const auto row_of = [&](std::size_t row) { return std::span<const T>(weights.data() + row * n, n); };
  for (std::size_t row = 0; row < rows; ++row) check_weights(row_of(row), row, samples, options.replacement);
  shape.back() = samples;
  detail::check_count("multinomial", shape);
  Ids drawn = Ids::from_shape(shape);
  const std::lock_guard lock(generator.mutex());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<std::int64_t> to(drawn.data() + row * samples, samples);
    if (options.replacement && samples > 1) {
      draw_with_replacement(row_of(row), to, generator);
    } else {
      draw_without_replacement(row_of(row), to, generator);
    }
  }
  return drawn;
}

Array<std::uint8_t> detail::bernoulli_bits(std::size_t rows, std::size_t cols, double p,
                                           Generator& generator) {
  detail::check_count("bernoulli", {rows, cols});
  auto bits = Array<std::uint8_t>::from_shape({rows, kernels::bytes_of_bits(cols)});
  const std::lock_guard lock(generator.mutex());
  std::uint8_t* row = bits.data();
  for (std::size_t r = 0; r < rows; ++r, row += kernels::bytes_of_bits(cols)) {
    draw_bernoulli(cols, p, generator,
                   [&](const std::uint32_t* words, std::uint64_t bound, std::size_t first, std::size_t n) {
                     kernels::bernoulli_bits(words, bound, row + first / 8, n);
                   });
  }
  return bits;
}

template Array<float> uniform(const Shape&, double, double, Generator&);
template Array<double> uniform(const Shape&, double, double, Generator&);
template Array<float> normal(const Shape&, double, double, Generator&);
template Array<double> normal(const Shape&, double, double, Generator&);
template Array<float> bernoulli(const Shape&, double, Generator&);
template Array<double> bernoulli(const Shape&, double, Generator&);
template Array<float> bernoulli(const Array<float>&, Generator&);
template Array<double> bernoulli(const Array<double>&, Generator&);
template Array<float> exponential(const Shape&, double, Generator&);
template Array<double> exponential(const Shape&, double, Generator&);
template Ids multinomial(const Array<float>&, Int, MultinomialOptions, Generator&);
template Ids multinomial(const Array<double>&, Int, MultinomialOptions, Generator&);

}  // namespace xgrad
