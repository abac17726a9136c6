#pragma once

// Calls of ops that no encoder is made of, by name, for the exports of the tests.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <xgrad/onnx/detail/operators/unary.hpp>
#include <xgrad/xgrad.hpp>

namespace xgrad_tests {

template <class T>
using ExportedFunctions =
    std::map<std::string, std::function<xgrad::Variable<T>(const xgrad::Variable<T>& x)>>;

/// Numbers in [-1, 1] that are the same in every call.
template <class T>
xgrad::Variable<T> fixed_numbers(const xgrad::Shape& shape) {
  xgrad::Array<T> numbers = xgrad::Array<T>::from_shape(shape);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers.data()[i] = static_cast<T>(static_cast<int>(i * 37 % 17) - 8) / 8;
  return xgrad::Variable<T>(numbers);
}

/// 0, 1, ..., below `count` for each row of x (batch, sequence, width).
template <class T>
xgrad::Ids counted_places(const xgrad::Variable<T>& x, std::size_t count) {
  xgrad::Ids ids = xgrad::Ids::from_shape({x.shape(0), x.shape(1), count});
  for (std::size_t i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int64_t>(i % count);
  return ids;
}

/// f of another function of x: the first of these with which it is moderate for all x in [-4, 4].
template <class T>
std::function<xgrad::Variable<T>(const xgrad::Variable<T>&)> where_defined(
    xgrad::Variable<T> (*f)(const xgrad::Variable<T>&)) {
  using V = xgrad::Variable<T>;
  const std::function<V(const V&)> inners[] = {
      [](const V& x) { return x * 3; }, [](const V& x) { return tanh(x) * T(0.9); },
      [](const V& x) { return sigmoid(x); }, [](const V& x) { return sigmoid(x) + 1; }};
  const V samples(xgrad::Array<T>(xt::linspace<T>(-4, 4, 1001)));
  for (const auto& inner : inners) {
    const xgrad::Array<T> y = f(inner(samples)).value();
    if (std::all_of(y.begin(), y.end(), [](T element) { return std::abs(element) < 50; }))
      return [f, inner](const V& x) { return f(inner(x)); };
  }
  throw xgrad::ValueError("a function is not moderate where the tests call it");
}

/// Functions of x (batch, sequence, 8): all single operators, and calls that become several or have
/// attributes.
template <class T>
ExportedFunctions<T> exported_functions() {
  using namespace xgrad;
  using V = Variable<T>;
  ExportedFunctions<T> functions = {
      {"attention",
       [](const V& x) {
         return scaled_dot_product_attention(x, x, x, matmul(x, transpose(x, 1, 2)), {.is_causal = true});
       }},
      {"celu", [](const V& x) { return celu(x, T(0.5)); }},
      {"clamp", [](const V& x) { return clamp(x, T(-0.5), T(0.75)); }},
      {"cumsum", [](const V& x) { return cumsum(x, 1); }},
      {"elu", [](const V& x) { return elu(x, T(1.25)); }},
      {"fmod", [](const V& x) { return fmod(x, fixed_numbers<T>({8}) + T(0.0625)); }},
      {"flip",
       [](const V& x) {
         return flip(x, {1, 2});
       }},
      {"gather", [](const V& x) { return gather(x, 2, counted_places(x, 3)); }},
      {"hardsigmoid", [](const V& x) { return hardsigmoid(x * 3); }},
      {"hardtanh", [](const V& x) { return hardtanh(x, T(-0.5), T(0.75)); }},
      {"index", [](const V& x) { return index(x, all, range(-1), range(1, 7, 2)); }},
      {"index_elements", [](const V& x) { return index(x, -1, range(-2), 3); }},
      {"index_whole", [](const V& x) { return index(x, range(0, 1), all, range(5)); }},
      {"layer_norm",
       [](const V& x) {
         return layer_norm(reshape(x, {static_cast<std::ptrdiff_t>(x.shape(0)), -1, 2, 4}), {2, 4}, {}, {});
       }},
      {"leaky_relu", [](const V& x) { return leaky_relu(x, T(0.25)); }},
      {"log_sigmoid", [](const V& x) { return log_sigmoid(x); }},
      {"log_softmax", [](const V& x) { return log_softmax(x, -1); }},
      {"logsumexp",
       [](const V& x) {
         return logsumexp(x * 30, {0, 2});
       }},
      {"matmul_transposed", [](const V& x) { return detail::matrix_product(x, true, x, false); }},
      {"mish", [](const V& x) { return mish(x); }},
      {"norm", [](const V& x) { return norm(x, T(2), {1}, {.keepdim = true}); }},
      {"norm_of_cubes",
       [](const V& x) {
         return norm(x, T(3), {1, 2});
       }},
      {"pad",
       [](const V& x) {
         return pad(x, {1, 2, 0, 3}, Padding::constant, T(0.5));
       }},
      {"prod", [](const V& x) { return prod(x, 2); }},
      {"qkv_attention", [](const V& x) { return qkv_attention(x, {}, {.num_heads = 2, .num_kv_heads = 1}); }},
      {"remainder", [](const V& x) { return remainder(x * 3, fixed_numbers<T>({8}) + T(0.0625)); }},
      {"repeat",
       [](const V& x) {
         return repeat(x, {2, 1, 3, 2});
       }},
      {"roll",
       [](const V& x) {
         return roll(x, {3, -11}, {2, 2});
       }},
      {"roll_of_all",
       [](const V& x) {
         return roll(reshape(narrow(narrow(x, 0, 0, 1), 1, 0, 1), {2, 4}), 3);
       }},
      {"rotary",
       [](const V& x) {
         const RotaryTables<T> tables = rotary_tables<T>({.dim = 4}, 20);
         return rotary(x, narrow(tables.cos, 0, 0, x.shape(1)), narrow(tables.sin, 0, 0, x.shape(1)));
       }},
      {"rsqrt", [](const V& x) { return rsqrt(square(x) + 1); }},
      {"scatter_add", [](const V& x) { return scatter_add(x, 2, counted_places(x, 3), narrow(x, 2, 0, 3)); }},
      {"selu", [](const V& x) { return selu(x); }},
      {"softplus", [](const V& x) { return softplus(x * 9) + softplus(x, 2); }},
      {"stack",
       [](const V& x) {
         return stack({x, x * 2}, 2);
       }},
      {"std", [](const V& x) { return xgrad::std(x, {2}); }},
      {"tril", [](const V& x) { return tril(x, -1); }},
      {"triu", [](const V& x) { return triu(x, 1); }},
      {"var",
       [](const V& x) {
         return var(x, {1, 2}, {.keepdim = true});
       }},
      {"var_of_all",
       [](const V& x) {
         return var(x, {0, 1}, {.correction = 0});
       }},
  };
  for (const onnx::detail::UnaryOperator<T>& one : onnx::detail::unary_operators<T>())
    functions[one.op->name] = where_defined<T>(one.function);
  return functions;
}

/// Of x (batch, sequence, 8), layers for images and sequences.
template <class T>
ExportedFunctions<T> exported_layers() {
  using namespace xgrad;
  using V = Variable<T>;
  const auto lines = [](const V& x) { return transpose(x, 1, 2); };  // (batch, 8, sequence)
  const auto images = [](const V& x) {
    return reshape(x,
                   {static_cast<std::ptrdiff_t>(x.shape(0)), 1, static_cast<std::ptrdiff_t>(x.shape(1)), 8});
  };
  const auto weights = [](std::size_t gates, std::size_t in) {
    const std::size_t rows = gates * 3;
    return RecurrentWeights<T>(fixed_numbers<T>({rows, in}), fixed_numbers<T>({rows, 3}),
                               fixed_numbers<T>({rows}), fixed_numbers<T>({rows}) * T(-0.5));
  };
  const RecurrentOptions both{.bidirectional = true, .batch_first = true};
  return {
      {"adaptive_avg_pool1d", [](const V& x) { return adaptive_avg_pool1d(x, 4); }},
      {"adaptive_avg_pool2d", [=](const V& x) { return adaptive_avg_pool2d(images(x), 1); }},
      {"adaptive_max_pool1d", [](const V& x) { return adaptive_max_pool1d(x, 4).values; }},
      {"adaptive_max_pool2d", [=](const V& x) { return adaptive_max_pool2d(images(x), 1).values; }},
      {"avg_pool1d", [=](const V& x) { return avg_pool1d(lines(x), 3, {.stride = Dims(2), .padding = 1}); }},
      {"avg_pool2d",
       [=](const V& x) {
         return avg_pool2d(images(x), {1, 3}, {.padding = {0, 1}, .count_include_pad = false});
       }},
      {"batch_norm",
       [=](const V& x) {
         const V variance = square(fixed_numbers<T>({8})) + 1;
         return batch_norm(lines(x), fixed_numbers<T>({8}), variance, fixed_numbers<T>({8}), variance,
                           {.training = false});
       }},
      {"conv1d",
       [=](const V& x) {
         return conv1d(lines(x), fixed_numbers<T>({6, 4, 3}), fixed_numbers<T>({6}),
                       {.stride = 2, .padding = 2, .groups = 2});
       }},
      {"conv1d_of_one",
       [=](const V& x) {
         return conv1d(select(lines(x), 0, 0), fixed_numbers<T>({2, 8, 1}));
       }},
      {"conv2d",
       [=](const V& x) {
         return conv2d(images(x), fixed_numbers<T>({3, 1, 2, 3}), {},
                       {.padding = ConvPadding::same, .dilation = {1, 2}});
       }},
      {"conv_transpose1d",
       [=](const V& x) {
         return conv_transpose1d(lines(x), fixed_numbers<T>({8, 3, 3}), fixed_numbers<T>({3}),
                                 {.stride = 2, .padding = 1, .output_padding = 1});
       }},
      {"conv_transpose2d",
       [=](const V& x) {
         return conv_transpose2d(images(x), fixed_numbers<T>({1, 2, 2, 3}));
       }},
      {"gru",
       [=](const V& x) {
         return gru(x, {}, {weights(3, 8), weights(3, 8)}, both).output;
       }},
      {"interpolate",
       [=](const V& x) {
         const auto twice = static_cast<std::ptrdiff_t>(2 * x.shape(1));
         return interpolate(lines(x), twice, {.mode = InterpolateMode::linear});
       }},
      {"interpolate_bicubic",
       [=](const V& x) {
         const auto twice = static_cast<std::ptrdiff_t>(2 * x.shape(1));
         return interpolate(images(x), {twice, 16}, {.mode = InterpolateMode::bicubic});
       }},
      {"interpolate_corners",
       [=](const V& x) {
         const auto twice = static_cast<std::ptrdiff_t>(2 * x.shape(1));
         return interpolate(images(x), {twice, 12},
                            {.mode = InterpolateMode::bilinear, .align_corners = true});
       }},
      {"interpolate_nearest", [=](const V& x) { return interpolate(x, 12); }},
      {"instance_norm", [=](const V& x) { return instance_norm(x, {}, {}, {}, {}); }},
      {"lstm",
       [=](const V& x) {
         const auto result =
             lstm(x, {}, {}, {weights(4, 8), weights(4, 8), weights(4, 6), weights(4, 6)}, both);
         return result.output * mean(result.c);
       }},
      {"lstm_state", [=](const V& x) { return lstm(x, {}, {}, {weights(4, 8)}, {.batch_first = true}).c; }},
      {"max_pool1d",
       [=](const V& x) { return max_pool1d(lines(x), 3, {.stride = Dims(2), .padding = 1}).values; }},
      {"max_pool1d_dilated",
       [](const V& x) { return max_pool1d(x, 3, {.padding = 1, .dilation = 2}).values; }},
      {"max_pool2d",
       [=](const V& x) {
         return max_pool2d(images(x), {1, 3}, {.stride = Dims{1, 2}, .padding = {0, 1}}).values;
       }},
      {"rnn",
       [=](const V& x) {
         return rnn(x, {}, {weights(1, 8)}, Nonlinearity::relu, {.batch_first = true}).output;
       }},
  };
}

}  // namespace xgrad_tests
