// Calls that would answer something else than what they say do not compile.
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/models/attention/relative_positions.hpp>
#include <xgrad/models/distributions.hpp>
#include <xgrad/models/layers/embedding.hpp>
#include <xgrad/models/layers/layer_norm.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/models/recurrent.hpp>
#include <xgrad/models/toy_encoder.hpp>
#include <xgrad/ops.hpp>

#include "expect_error.hpp"

namespace refused_calls_test {

using xgrad::Array, xgrad::Ids, xgrad::Mask;
using xgrad_tests::message_of;
using V = xgrad::Variable<float>;
using D = xgrad::Variable<double>;

/// Whether f(arguments...) compiles.
template <class F, class... A>
concept Compiles = requires(F f, A... arguments) {
  f(arguments...);
};

template <class X>
concept Positional = requires {
  X{true};
};

template <class X>
concept ListInitialized = requires {
  X{1, 1};
};

constexpr auto topk_of = [](auto... a) -> decltype(topk(a...)) { return topk(a...); };
constexpr auto sort_of = [](auto... a) -> decltype(sort(a...)) { return sort(a...); };
constexpr auto sum_of = [](auto... a) -> decltype(sum(a...)) { return sum(a...); };
constexpr auto softmax_of = [](auto... a) -> decltype(softmax(a...)) { return softmax(a...); };
constexpr auto cholesky_of = [](auto... a) -> decltype(cholesky(a...)) { return cholesky(a...); };
constexpr auto eigh_of = [](auto... a) -> decltype(eigh(a...)) { return eigh(a...); };
constexpr auto solve_of = [](auto... a) -> decltype(solve(a...)) { return solve(a...); };
constexpr auto svd_of = [](auto... a) -> decltype(svd(a...)) { return svd(a...); };
constexpr auto dropout_of = [](auto... a) -> decltype(dropout(a...)) { return dropout(a...); };
constexpr auto narrow_of = [](auto... a) -> decltype(narrow(a...)) { return narrow(a...); };
constexpr auto gather_of = [](auto... a) -> decltype(gather(a...)) { return gather(a...); };
constexpr auto select_of = [](auto... a) -> decltype(index_select(a...)) { return index_select(a...); };
constexpr auto embedding_of = [](auto... a) -> decltype(embedding(a...)) { return embedding(a...); };
constexpr auto one_hot_of = [](auto... a) -> decltype(one_hot(a...)) { return one_hot(a...); };
constexpr auto put_of = [](auto x, auto a, auto b, auto values) -> decltype(index_put(x, {a, b}, values)) {
  return index_put(x, {a, b}, values);
};
constexpr auto bias_of = [](auto... a) -> decltype(relative_position_bias(a...)) {
  return relative_position_bias(a...);
};
constexpr auto disentangled_of = [](auto... a) -> decltype(disentangled_bias(a...)) {
  return disentangled_bias(a...);
};
constexpr auto padding_of = [](auto... a) -> decltype(padding_mask(a...)) { return padding_mask(a...); };
constexpr auto ctc_of = [](auto... a) -> decltype(ctc_loss(a...)) { return ctc_loss(a...); };
constexpr auto log_prob_of =
    [](auto value) -> decltype(std::declval<xgrad::Categorical<float>>().log_prob(value)) {
  return xgrad::Categorical<float>({}).log_prob(value);
};
constexpr auto maximum_of = [](auto... a) -> decltype(maximum(a...)) { return maximum(a...); };
constexpr auto product_of = [](auto a, auto b) -> decltype(a * b) { return a * b; };
constexpr auto nll_of = [](auto... a) -> decltype(nll_loss(a...)) { return nll_loss(a...); };

TEST(RefusedCallsTest, BoolsAndCharactersAreNoAxesAndNoOptions) {
  static_assert(Compiles<decltype(topk_of), V, int, int>);
  static_assert(Compiles<decltype(topk_of), V, std::size_t, std::int64_t>);
  static_assert(!Compiles<decltype(topk_of), V, int, bool>);
  static_assert(!Compiles<decltype(topk_of), V, int, int, bool>);
  static_assert(!Compiles<decltype(sort_of), V, bool>);
  static_assert(!Compiles<decltype(sort_of), V, int, bool>);
  static_assert(!Compiles<decltype(sum_of), V, int, bool>);
  static_assert(!Compiles<decltype(sum_of), V, bool>);
  static_assert(!Compiles<decltype(softmax_of), V, bool>);
  static_assert(!Compiles<decltype(softmax_of), V, char>);
  static_assert(!Compiles<decltype(softmax_of), V, double>);
  static_assert(!Compiles<decltype(cholesky_of), V, char>);
  static_assert(!Compiles<decltype(cholesky_of), V, bool>);
  static_assert(!Compiles<decltype(eigh_of), V, char>);
  static_assert(!Compiles<decltype(solve_of), V, V, bool>);
  static_assert(!Compiles<decltype(svd_of), V, bool>);
  static_assert(!Compiles<decltype(dropout_of), V, double, bool>);
  static_assert(Compiles<decltype(narrow_of), V, int, std::size_t, int>);
  static_assert(!Compiles<decltype(narrow_of), V, int, bool, int>);
  static_assert(!Positional<xgrad::ReduceOptions> && !Positional<xgrad::SortOptions> &&
                !Positional<xgrad::TopkOptions> && !Positional<xgrad::CholeskyOptions> &&
                !Positional<xgrad::EighOptions> && !Positional<xgrad::SolveOptions> &&
                !Positional<xgrad::SvdOptions> && !Positional<xgrad::DropoutOptions> &&
                !Positional<xgrad::KlDivOptions> && !Positional<xgrad::IndexPutOptions> &&
                !Positional<xgrad::AttentionOptions> && !Positional<xgrad::EmbeddingOptions> &&
                !Positional<xgrad::SolveTriangularOptions> && !Positional<xgrad::GemmOptions> &&
                !Positional<xgrad::CrossEntropyOptions<float>> &&
                !Positional<xgrad::BinaryCrossEntropyOptions<float>> &&
                !Positional<xgrad::NllLossOptions<float>> && !Positional<xgrad::BackwardOptions> &&
                !Positional<xgrad::GradOptions<float>> && !Positional<xgrad::MultinomialOptions>);
  static_assert(!std::constructible_from<V, bool> && !std::constructible_from<V, char>);
  static_assert(!std::constructible_from<xgrad::Index, bool>);
}

TEST(RefusedCallsTest, FloatsAreNoIds) {
  static_assert(Compiles<decltype(gather_of), V, int, Ids>);
  static_assert(Compiles<decltype(gather_of), V, int, xt::xarray<int>>);
  static_assert(!Compiles<decltype(gather_of), V, int, Array<float>>);
  static_assert(!Compiles<decltype(select_of), V, int, Array<double>>);
  static_assert(!Compiles<decltype(embedding_of), Array<float>, V>);
  static_assert(Compiles<decltype(embedding_of), Ids, V>);
  static_assert(!Compiles<decltype(one_hot_of), Array<float>>);
  static_assert(!Compiles<decltype(nll_of), V, Array<float>>);
  static_assert(!std::invocable<const xgrad::Embedding<float>&, Array<float>>);
  static_assert(std::invocable<const xgrad::Embedding<float>&, Ids>);
  static_assert(!Compiles<decltype(put_of), V, Array<float>, Array<float>, V>);
  static_assert(!Compiles<decltype(put_of), V, Ids, Array<float>, V>);
  static_assert(Compiles<decltype(put_of), V, Ids, Ids, V>);
  static_assert(Compiles<decltype(put_of), V, xt::xarray<int>, decltype(Ids() + 1), V>);
  static_assert(!Compiles<decltype(put_of), V, Mask, Mask, V>);
  static_assert(!Compiles<decltype(bias_of), V, Array<float>> && Compiles<decltype(bias_of), V, Ids>);
  static_assert(!Compiles<decltype(disentangled_of), V, V, V, V, Mask> &&
                Compiles<decltype(disentangled_of), V, V, V, V, decltype(Ids() + 1)>);
  static_assert(!Compiles<decltype(padding_of), Array<float>, int> &&
                Compiles<decltype(padding_of), Ids, int>);
  static_assert(!Compiles<decltype(ctc_of), V, Ids, Array<float>, Ids> &&
                !Compiles<decltype(ctc_of), V, Ids, Ids, Array<float>> &&
                Compiles<decltype(ctc_of), V, Ids, Ids, Ids>);
  static_assert(!Compiles<decltype(log_prob_of), Array<float>> && Compiles<decltype(log_prob_of), Ids>);
  static_assert(!std::invocable<const xgrad::EmbeddingBag<float>&, Ids, Array<float>> &&
                !std::invocable<const xgrad::EmbeddingBag<float>&, Array<float>> &&
                std::invocable<const xgrad::EmbeddingBag<float>&, Ids, Ids> &&
                std::invocable<const xgrad::EmbeddingBag<float>&, Ids, std::nullopt_t, V>);
  static_assert(!std::invocable<const xgrad::GRU<float>&, V, V, Array<float>> &&
                std::invocable<const xgrad::GRU<float>&, V, V, Ids>);
  static_assert(!std::invocable<const xgrad::RNN<float>&, V, V, Array<float>> &&
                std::invocable<const xgrad::RNN<float>&, V, V, Ids>);
  static_assert(!std::invocable<const xgrad::LSTM<float>&, V, V, V, Array<float>> &&
                std::invocable<const xgrad::LSTM<float>&, V, V, V, Ids>);
  static_assert(!std::invocable<const xgrad::ToyEncoder<float>&, Array<float>>);
  static_assert(std::invocable<const xgrad::ToyEncoder<float>&, Ids>);
}

TEST(RefusedCallsTest, ExpressionsAreIdsMasksAndBiases) {
  const Ids ids{0, 1};
  const V x(Array<float>{{1, 2}, {3, 4}});
  EXPECT_EQ(index_put(x, {ids, 1 - ids}, V({7, 8})).value(), (Array<float>{{1, 7}, {8, 4}}));
  const Array<float> bias{{0, 1}, {2, 0}};
  EXPECT_EQ(scaled_dot_product_attention(x, x, x, bias * 2.0F).value(),
            scaled_dot_product_attention(x, x, x, V(bias * 2.0F)).value());
  EXPECT_EQ(scaled_dot_product_attention(x, x, x, bias < 2.0F).value(),
            scaled_dot_product_attention(x, x, x, Mask(bias < 2.0F)).value());
  static_assert(!std::convertible_to<Ids, xgrad::AttentionMask<float>> &&
                !std::constructible_from<xgrad::AttentionMask<float>, Ids>);
}

TEST(RefusedCallsTest, FloatTargetsOfClassesAreProbabilities) {
  const V logits(Array<float>{{1, 2}, {3, 5}});
  const Array<float> probabilities{{0.25, 0.75}, {1, 0}};
  EXPECT_EQ(cross_entropy(logits, probabilities).item(), cross_entropy(logits, V(probabilities)).item());
}

TEST(RefusedCallsTest, NumbersOfAnyTypeAreOperands) {
  static_assert(Compiles<decltype(product_of), V, double> && Compiles<decltype(product_of), std::size_t, V>);
  static_assert(!Compiles<decltype(product_of), V, bool> && !Compiles<decltype(product_of), V, char>);
  static_assert(!Compiles<decltype(product_of), V, D>);
  static_assert(Compiles<decltype(maximum_of), V, int> && !Compiles<decltype(maximum_of), V, bool>);
  const V x({6, 9});
  const std::size_t n = 3;
  const double half = 0.5;
  EXPECT_EQ((x / n).value(), (Array<float>{2, 3}));
  EXPECT_EQ((n - x).value(), (Array<float>{-3, -6}));
  EXPECT_EQ((half * x + 1).value(), (Array<float>{4, 5.5}));
}

TEST(RefusedCallsTest, DoublesAreNotRoundedWithoutACast) {
  const Array<double> wide{1, 2};
  const Array<float> narrow{1, 2};
  static_assert(xgrad::detail::is_wider<float, Array<double>>);
  static_assert(!xgrad::detail::is_wider<double, Array<float>>);
  static_assert(!xgrad::detail::is_wider<float, decltype(narrow * 0.5)>);
  static_assert(xgrad::detail::is_wider<float, decltype(narrow * wide)>);
  static_assert(xgrad::detail::is_wider<float, decltype(xt::sin(wide))>);
  static_assert(!xgrad::detail::is_wider<float, decltype(xt::cast<float>(wide))>);
  EXPECT_EQ(V(xt::cast<float>(wide)).value(), narrow);
  EXPECT_EQ(V(narrow * 0.5).value(), (Array<float>{0.5, 1}));
  EXPECT_EQ(D(narrow).value(), wide);
}

TEST(RefusedCallsTest, AListHasOneAxis) {
  static_assert(!ListInitialized<V>);
  EXPECT_EQ(V({2.5f}).value(), (Array<float>{2.5}));
  EXPECT_EQ(V({5}).value(), (Array<float>{5}));
  EXPECT_EQ(V({5, 6}).value(), (Array<float>{5, 6}));
  EXPECT_EQ(V(2.5).dimension(), 0u);
}

TEST(RefusedCallsTest, AxesInBracesAreAxes) {
  const V x(Array<float>{{1, 3}, {5, 9}});
  EXPECT_EQ(var(x, {0}).value(), (Array<float>{8, 18}));
  EXPECT_EQ(xgrad::std(x, {0}).value(), (Array<float>{std::sqrt(8.0f), std::sqrt(18.0f)}));
  EXPECT_EQ(var(x, {0}, {.correction = 0}).value(), (Array<float>{4, 9}));
}

TEST(RefusedCallsTest, LargeUnsignedNumbersStayLarge) {
  const std::size_t none = 0;
  EXPECT_EQ(message_of<xgrad::IndexError>([&] {
              select(V({1, 2}), 0, none - 1);
            }),
            "select: index 9223372036854775807 is out of range for axis 0 of x (2)");
}

TEST(RefusedCallsTest, LengthsInBracesAreLengths) {
  const auto parts = split(V({1, 2, 3}), {1, 2}, 0);
  EXPECT_EQ(parts[1].value(), (Array<float>{2, 3}));
  EXPECT_EQ(split(V({1, 2}), {2}, 0).size(), 1u);
}

TEST(RefusedCallsTest, AccessorsOfTemporariesReturnByValue) {
  static_assert(std::is_same_v<decltype(std::declval<xgrad::Linear<float>>().weight()), V>);
  static_assert(std::is_same_v<decltype(std::declval<xgrad::LayerNorm<float>>().bias()), V>);
  static_assert(std::is_same_v<decltype(std::declval<xgrad::Embedding<float>>().weight()), V>);
  static_assert(std::is_same_v<decltype(std::declval<const xgrad::Linear<float>&>().weight()), const V&>);
}

TEST(RefusedCallsTest, ExpressionsAreMasks) {
  const V q(xt::ones<float>({1, 2, 4}));
  const Array<float> seen{{1, 0}, {1, 1}};
  const Mask mask = seen > 0.5f;
  EXPECT_EQ(scaled_dot_product_attention(q, q, q, seen > 0.5f).value(),
            scaled_dot_product_attention(q, q, q, mask).value());
}

}  // namespace refused_calls_test
