// What there is to test of rnn, gru and lstm.
#include <xgrad/ops/recurrent/recurrent.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/pointwise/dropout.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::recurrent_rows {

using xgrad::Nonlinearity, xgrad::RecurrentOptions, xgrad::RecurrentWeights;

enum class Cell { rnn_tanh, rnn_relu, gru, lstm };

std::size_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

struct Sizes {
  std::size_t steps, sequences, in, hidden;
};

struct Sample {
  Sizes size;
  std::size_t layers = 1, projection = 0;
  bool bidirectional = false, biases = true, states = true, batch_first = false, single = false;
  std::vector<std::int64_t> lengths = {};
  Range of_weights = {-1, 1, 0};

  std::size_t directions() const { return bidirectional ? 2 : 1; }
  std::size_t passes() const { return layers * directions(); }
  std::size_t out() const { return projection > 0 ? projection : size.hidden; }
  std::size_t length_of(std::size_t sequence) const {
    return lengths.empty() ? size.steps : static_cast<std::size_t>(lengths[sequence]);
  }
  /// Where the element is in x, or in the output.
  Shape place(std::size_t sequence, std::size_t step, std::size_t i) const {
    if (single) return {step, i};
    return batch_first ? Shape{sequence, step, i} : Shape{step, sequence, i};
  }
  Shape shape(std::size_t width) const {
    if (single) return {size.steps, width};
    return batch_first ? Shape{size.sequences, size.steps, width} : Shape{size.steps, size.sequences, width};
  }
  Shape state(std::size_t width) const {
    return single ? Shape{passes(), width} : Shape{passes(), size.sequences, width};
  }
  RecurrentOptions options() const {
    RecurrentOptions made{.bidirectional = bidirectional, .batch_first = batch_first};
    if (lengths.empty()) return made;
    made.lengths = Ids::from_shape({lengths.size()});
    std::copy(lengths.begin(), lengths.end(), made.lengths->begin());
    return made;
  }
};

/// x, the states, and the weights of each pass.
std::vector<Input> inputs_of(Cell cell, const Sample& s) {
  std::vector<Input> inputs{s.shape(s.size.in)};
  if (s.states) inputs.push_back(s.state(s.out()));
  if (s.states && cell == Cell::lstm) inputs.push_back(s.state(s.size.hidden));
  const std::size_t sums = gates_of(cell) * s.size.hidden;
  for (std::size_t pass = 0; pass < s.passes(); ++pass) {
    const std::size_t in = pass < s.directions() ? s.size.in : s.directions() * s.out();
    inputs.push_back({{sums, in}, s.of_weights});
    inputs.push_back({{sums, s.out()}, s.of_weights});
    for (int bias = 0; s.biases && bias < 2; ++bias) inputs.push_back({{sums}, s.of_weights});
    if (s.projection > 0) inputs.push_back({{s.out(), s.size.hidden}, s.of_weights});
  }
  return inputs;
}

/// The weights of a list, from `next` on.
template <class T>
std::vector<RecurrentWeights<T>> weights_of(const Results<T>& list, std::size_t next, std::size_t passes,
                                            bool biases, bool projects) {
  std::vector<RecurrentWeights<T>> weights(passes);
  for (RecurrentWeights<T>& of_pass : weights) {
    of_pass.weight_ih = list.at(next++);
    of_pass.weight_hh = list.at(next++);
    if (biases) of_pass.bias_ih = list.at(next++);
    if (biases) of_pass.bias_hh = list.at(next++);
    if (projects) of_pass.weight_hr = list.at(next++) * 1;  // which must be there
  }
  return weights;
}

template <class T>
Results<T> results_of(Cell cell, const Variable<T>& x, const Variable<T>& h0, const Variable<T>& c0,
                      const std::vector<RecurrentWeights<T>>& weights, const RecurrentOptions& options) {
  if (cell == Cell::lstm) {
    const auto [y, h, c] = lstm(x, h0, c0, weights, options);
    return {y, h, c};
  }
  const Nonlinearity f = cell == Cell::rnn_relu ? Nonlinearity::relu : Nonlinearity::tanh;
  const auto [y, h] = cell == Cell::gru ? gru(x, h0, weights, options) : rnn(x, h0, weights, f, options);
  return {y, h};
}

template <class T>
Results<T> results_of(Cell cell, const Sample& s, const Results<T>& x) {
  std::size_t next = 1;
  const Variable<T> h0 = s.states ? x[next++] : Variable<T>();
  const Variable<T> c0 = s.states && cell == Cell::lstm ? x[next++] : Variable<T>();
  return results_of(cell, x[0], h0, c0, weights_of(x, next, s.passes(), s.biases, s.projection > 0),
                    s.options());
}

/// All results in a row.
const auto flat = []<class T>(const Results<T>& results) {
  Results<T> parts;
  for (const Variable<T>& one : results) parts.push_back(reshape(one, {-1}));
  return cat(parts);
};

using Vector = std::vector<double>;

double naive_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// bias + matrix x.
Vector naive_product(const Array<double>& matrix, const Vector& x, const Array<double>* bias) {
  Vector y(matrix.shape(0), 0);
  for (std::size_t row = 0; row < y.size(); ++row) {
    if (bias != nullptr) y[row] = (*bias)(row);
    for (std::size_t i = 0; i < x.size(); ++i) y[row] += matrix(row, i) * x[i];
  }
  return y;
}

/// h and c after a step from the products of the input and of the state.
void naive_step(Cell cell, const Vector& a, const Vector& b, const Array<double>* projection, Vector& h,
                Vector& c) {
  const std::size_t n = a.size() / gates_of(cell);
  Vector shown(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto sum = [&](std::size_t gate) { return a[gate * n + i] + b[gate * n + i]; };
    if (cell == Cell::rnn_tanh) shown[i] = std::tanh(sum(0));
    if (cell == Cell::rnn_relu) shown[i] = sum(0) > 0 ? sum(0) : 0;
    if (cell == Cell::gru) {
      const double z = naive_sigmoid(sum(1));
      shown[i] = (1 - z) * std::tanh(a[2 * n + i] + naive_sigmoid(sum(0)) * b[2 * n + i]) + z * h[i];
    }
    if (cell == Cell::lstm) {
      c[i] = naive_sigmoid(sum(1)) * c[i] + naive_sigmoid(sum(0)) * std::tanh(sum(2));
      shown[i] = naive_sigmoid(sum(3)) * std::tanh(c[i]);
    }
  }
  h = projection == nullptr ? shown : naive_product(*projection, shown, nullptr);
}

/// One sequence after the other.
Reference reference_of(Cell cell, const Sample& s) {
  return [cell, s](const std::vector<Array<double>>& x) {
    const bool has_cells = cell == Cell::lstm;
    const std::size_t first = 1 + (s.states ? 1 + std::size_t{has_cells} : 0);
    Array<double> output(s.shape(s.directions() * s.out()), 0.0);
    Array<double> last_h(Shape{s.passes(), s.size.sequences, s.out()}),
        last_c(Shape{s.passes(), s.size.sequences, s.size.hidden});
    for (std::size_t n = 0; n < s.size.sequences; ++n) {
      const std::size_t length = s.length_of(n);
      std::vector<Vector> steps(length, Vector(s.size.in));
      for (std::size_t t = 0; t < length; ++t)
        for (std::size_t i = 0; i < s.size.in; ++i) {
          const Shape place = s.place(n, t, i);
          steps[t][i] = x[0].element(place.begin(), place.end());
        }
      std::size_t next = first;
      for (std::size_t layer = 0; layer < s.layers; ++layer) {
        std::vector<Vector> outputs(length);
        for (std::size_t direction = 0; direction < s.directions(); ++direction) {
          const std::size_t pass = layer * s.directions() + direction;
          const Array<double>&weight_ih = x[next], &weight_hh = x[next + 1];
          const Array<double>*bias_ih = s.biases ? &x[next + 2] : nullptr,
                *bias_hh = s.biases ? &x[next + 3] : nullptr;
          next += s.biases ? 4 : 2;
          const Array<double>* const projection = s.projection > 0 ? &x[next++] : nullptr;
          Vector h(s.out(), 0), c(s.size.hidden, 0);
          if (s.states) {
            const auto row = (pass * s.size.sequences + n);
            std::copy_n(x[1].data() + row * s.out(), s.out(), h.begin());
            if (has_cells) std::copy_n(x[2].data() + row * s.size.hidden, s.size.hidden, c.begin());
          }
          for (std::size_t k = 0; k < length; ++k) {
            const std::size_t t = direction == 0 ? k : length - 1 - k;
            naive_step(cell, naive_product(weight_ih, steps[t], bias_ih),
                       naive_product(weight_hh, h, bias_hh), projection, h, c);
            outputs[t].insert(outputs[t].end(), h.begin(), h.end());
          }
          for (std::size_t i = 0; i < s.out(); ++i) last_h(pass, n, i) = h[i];
          for (std::size_t i = 0; i < s.size.hidden; ++i) last_c(pass, n, i) = c[i];
        }
        steps = std::move(outputs);
      }
      for (std::size_t t = 0; t < length; ++t)
        for (std::size_t i = 0; i < steps[t].size(); ++i) {
          const Shape place = s.place(n, t, i);
          output.element(place.begin(), place.end()) = steps[t][i];
        }
    }
    Vector all(output.begin(), output.end());
    all.insert(all.end(), last_h.begin(), last_h.end());
    if (has_cells) all.insert(all.end(), last_c.begin(), last_c.end());
    return Array<double>(xt::adapt(all));
  };
}

Case case_of(Cell cell, const Sample& s) {
  return make_case(
      inputs_of(cell, s), [cell, s](const auto& x) { return flat(results_of(cell, s, x)); },
      reference_of(cell, s));
}

std::vector<Case> cases_of(const std::vector<Cell>& cells) {
  const std::vector<Sample> samples = {
      {.size = {3, 2, 2, 3}},
      {.size = {1, 1, 1, 1}, .biases = false},
      {.size = {2, 3, 2, 2}, .layers = 2, .states = false},
      {.size = {3, 2, 1, 2}, .layers = 2, .bidirectional = true, .batch_first = true},
      {.size = {4, 3, 2, 2}, .bidirectional = true, .lengths = {2, 4, 1}},
      {.size = {4, 3, 2, 1},
       .layers = 2,
       .bidirectional = true,
       .biases = false,
       .batch_first = true,
       .lengths = {1, 3, 3}},
      {.size = {3, 2, 2, 2}, .states = false, .lengths = {2, 2}},
      {.size = {3, 1, 2, 2}, .bidirectional = true, .single = true},
      {.size = {3, 1, 2, 2}, .batch_first = true, .single = true, .lengths = {2}}};
  std::vector<Case> cases;
  for (const Cell cell : cells)
    for (const Sample& sample : samples) cases.push_back(case_of(cell, sample));
  return cases;
}

Op rnn_op() {
  Op op{"recurrent.rnn", cases_of({Cell::rnn_tanh, Cell::rnn_relu})};
  op.large = {case_of(Cell::rnn_tanh, {.size = {2, 520, 3, 130}, .of_weights = {-0.1, 0.1, 0}})};
  const auto refused = [](const Variable<float>& x, const Variable<float>& h0,
                          std::vector<RecurrentWeights<float>> weights,
                          const RecurrentOptions& options = {}) {
    return [=] { xgrad::rnn(x, h0, weights, Nonlinearity::tanh, options); };
  };
  const RecurrentWeights<float> weights{x(3, 2), x(3, 3), x(3), x(3)};
  const Variable<float> steps = x(4, 2, 2), none;
  op.errors = {
      error<ShapeError>("rnn: x must be (L, N, in) or (L, in), got (2)", refused(x(2), none, {weights})),
      error<ShapeError>("rnn: x must be (N, L, in) or (L, in), got (2)",
                        refused(x(2), none, {weights}, {.batch_first = true})),
      error<ShapeError>("rnn: x must have at least one step, got (0, 2, 2)",
                        refused(x(0, 2, 2), none, {weights})),
      error<ShapeError>("rnn: h0 must be (1, 2, 3), got (2, 2, 3)", refused(steps, x(2, 2, 3), {weights})),
      error<ShapeError>("rnn: h0 must be (1, 3), got (1, 1, 3)", refused(x(4, 2), x(1, 1, 3), {weights})),
      error<ValueError>("rnn: weights must be of layers of 1 directions, got 0", refused(steps, none, {})),
      error<ValueError>("rnn: weights must be of layers of 2 directions, got 1",
                        refused(steps, none, {weights}, {.bidirectional = true})),
      error<ShapeError>("rnn: weight_hh_l0 must be (H, H), got (3, 2)",
                        refused(steps, none, {{x(3, 2), x(3, 2)}})),
      error<ShapeError>("rnn: weight_hh_l0 must be (H, out), got (3)",
                        refused(steps, none, {{x(3, 2), x(3)}})),
      error<ShapeError>("rnn: weight_ih_l0 must be (3, 2), got (3, 3)",
                        refused(steps, none, {{x(3, 3), x(3, 3)}})),
      error<ShapeError>("rnn: weight_ih_l1 must be (3, 3), got (3, 2)",
                        refused(steps, none, {weights, weights})),
      error<ShapeError>("rnn: weight_hh_l0_reverse must be (3, 3), got (2, 2)",
                        refused(steps, none, {weights, {x(2, 2), x(2, 2)}}, {.bidirectional = true})),
      error<ShapeError>("rnn: bias_ih_l0 must be (3), got (2)",
                        refused(steps, none, {{x(3, 2), x(3, 3), x(2), x(3)}})),
      error<ShapeError>("rnn: bias_hh_l0 must be (3), got (1, 3)",
                        refused(steps, none, {{x(3, 2), x(3, 3), x(3), x(1, 3)}})),
      error<ValueError>("rnn: weight_hr is of an LSTM only",
                        refused(steps, none, {{x(3, 2), x(3, 3), {}, {}, x(3, 3)}})),
      error<ShapeError>("rnn: lengths must be (2), got (3)",
                        refused(steps, none, {weights}, {.lengths = ids_of({3}, {1, 2, 3})})),
      error<ValueError>("rnn: lengths must be in [1, 4], got 0",
                        refused(steps, none, {weights}, {.lengths = ids_of({2}, {4, 0})})),
      error<ValueError>("rnn: lengths must be in [1, 4], got 5",
                        refused(steps, none, {weights}, {.lengths = ids_of({2}, {5, 1})})),
      error<ValueError>("rnn: dropout_p must be in [0, 1], got 1.5",
                        refused(steps, none, {weights}, {.dropout_p = 1.5})),
      error<ValueError>("rnn: f must be one of 2 values, got number 2",
                        [=] { xgrad::rnn(steps, none, {weights}, static_cast<Nonlinearity>(2)); })};
  return op;
}

Op gru_op() {
  Op op{"recurrent.gru", cases_of({Cell::gru})};
  op.large = {case_of(Cell::gru, {.size = {2, 100, 5, 200}, .of_weights = {-0.1, 0.1, 0}})};
  op.errors = {error<ShapeError>("gru: weight_hh_l0 must be (3 H, out), got (4, 1)", [] {
    xgrad::gru(x(2, 2, 2), {}, {{x(4, 2), x(4, 1)}});
  })};
  return op;
}

Op lstm_op() {
  Op op{"recurrent.lstm", cases_of({Cell::lstm})};
  for (const Sample& sample : std::vector<Sample>{
           {.size = {2, 2, 2, 3}, .projection = 1},
           {.size = {3, 3, 1, 2}, .layers = 2, .projection = 3, .bidirectional = true, .lengths = {1, 3, 2}}})
    op.cases.push_back(case_of(Cell::lstm, sample));
  op.large = {case_of(Cell::lstm, {.size = {2, 90, 5, 130}, .of_weights = {-0.1, 0.1, 0}}),
              case_of(Cell::lstm, {.size = {2, 90, 5, 130}, .projection = 20, .of_weights = {-0.1, 0.1, 0}})};
  op.errors = {
      error<ShapeError>("lstm: c0 must be (1, 2, 1), got (1, 2, 2)",
                        [] {
                          xgrad::lstm(x(2, 2, 2), x(1, 2, 1), x(1, 2, 2), {{x(4, 2), x(4, 1)}});
                        }),
      error<ValueError>(
          "lstm: weight_hr_l1 must be there, as in the first layer",
          [] {
            xgrad::lstm(x(2, 2, 2), {}, {}, {{x(8, 2), x(8, 1), {}, {}, x(1, 2)}, {x(8, 1), x(8, 1)}});
          }),
      error<ValueError>("lstm: weight_hr_l0_reverse must be absent, as in the first layer",
                        [] {
                          xgrad::lstm(x(2, 2, 2), {}, {},
                                      {{x(4, 2), x(4, 1)}, {x(4, 2), x(4, 1), {}, {}, x(1, 1)}},
                                      {.bidirectional = true});
                        }),
      error<ShapeError>("lstm: weight_hr_l0 must be (1, 2), got (2, 1)", [] {
        xgrad::lstm(x(2, 2, 2), {}, {}, {{x(8, 2), x(8, 1), {}, {}, x(2, 1)}});
      })};
  return op;
}

const Rows rows([] { return std::vector<Op>{rnn_op(), gru_op(), lstm_op()}; });

/// x, h0, c0 of an lstm, lengths and the weights, with the sequences first.
template <class T>
Results<T> called(Cell cell, const Call<T>& c) {
  const std::size_t states = cell == Cell::lstm ? 2 : 1;
  RecurrentOptions options{.bidirectional = c.flag("bidirectional"), .batch_first = true};
  if (c.has(1 + states)) options.lengths = c.ids(1 + states);
  Results<T> weights;
  for (std::size_t i = 2 + states; i < c.size(); ++i) weights.push_back(c.x(i));
  const std::size_t passes = c.count("num_layers") * (options.bidirectional ? 2 : 1);
  return results_of(
      cell, c.x(), c.optional(1), states == 2 ? c.optional(2) : Variable<T>(),
      weights_of(weights, 0, passes, c.flag("bias"), cell == Cell::lstm && c.integer("proj_size") > 0),
      options);
}

const Conformance conformance{{"rnn",
                               [](const auto& c) {
                                 return called(
                                     c.text("nonlinearity") == "relu" ? Cell::rnn_relu : Cell::rnn_tanh, c);
                               }},
                              {"gru", [](const auto& c) { return called(Cell::gru, c); }},
                              {"lstm", [](const auto& c) { return called(Cell::lstm, c); }}};

void draw_layers(Drawing& d, const char* name, Cell cell, std::vector<Attr> attrs) {
  Sample s{.size = {1 + d.below(3), 1 + d.below(3), 1 + d.below(3), 1 + d.below(3)},
           .layers = 1 + d.below(2),
           .bidirectional = d.chance(0.4),
           .biases = d.chance(0.7),
           .batch_first = true};
  if (cell == Cell::lstm && s.size.hidden > 1 && d.chance(0.3)) s.projection = 1 + d.below(s.size.hidden - 1);
  std::vector<Name> inputs{d.numbers(s.shape(s.size.in))};
  inputs.push_back(d.chance(0.5) ? d.numbers(s.state(s.out())) : Name());
  // PyTorch takes both states or none
  if (cell == Cell::lstm)
    inputs.push_back(inputs.back().empty() ? Name() : d.numbers(s.state(s.size.hidden)));
  inputs.emplace_back();
  if (d.chance(0.5)) {
    Ids lengths = Ids::from_shape({s.size.sequences});
    for (std::int64_t& one : lengths.storage()) one = static_cast<std::int64_t>(1 + d.below(s.size.steps));
    inputs.back() = d.leaf({{{}, std::move(lengths)}});
  }
  s.states = false;
  const std::vector<Input> shapes = inputs_of(cell, s);
  for (std::size_t i = 1; i < shapes.size(); ++i)
    inputs.push_back(d.within(d.numbers(shapes[i].shape), shapes[i].range));
  for (const auto& [of, value] : {std::pair{"hidden_size", s.size.hidden}, std::pair{"num_layers", s.layers}})
    attrs.push_back({of, static_cast<std::ptrdiff_t>(value)});
  attrs.push_back({"bidirectional", s.bidirectional});
  attrs.push_back({"bias", s.biases});
  if (cell == Cell::lstm) attrs.push_back({"proj_size", static_cast<std::ptrdiff_t>(s.projection)});
  if (cell == Cell::rnn_relu) {
    // the sums before the kink are nowhere to be seen, but their results are
    const Array<double> y = d.result(name, inputs, attrs);
    if (!Drawing::is_clear_of(0, y)) return;
  }
  d.call(name, inputs, attrs, cell == Cell::lstm ? 3 : 2);
}

const Draws draws{{"rnn",
                   [](Drawing& d) {
                     draw_layers(d, "rnn", Cell::rnn_tanh, {{"nonlinearity", "tanh"}});
                   }},
                  {"gru", [](Drawing& d) { draw_layers(d, "gru", Cell::gru, {}); }},
                  {"lstm", [](Drawing& d) { draw_layers(d, "lstm", Cell::lstm, {}); }}};

/// Leaves for the inputs of a sample.
Results<double> leaves_of(Cell cell, const Sample& s) {
  std::mt19937_64 random(5);
  Results<double> leaves;
  for (const Input& input : inputs_of(cell, s)) leaves.emplace_back(draw(input, random), true);
  return leaves;
}

TEST(RecurrentTest, EachResultAloneHasGradients) {
  const Sample sample{.size = {2, 2, 2, 3}, .projection = 2, .lengths = {2, 1}};
  for (const Cell cell : {Cell::rnn_tanh, Cell::gru, Cell::lstm}) {
    Sample s = sample;
    if (cell != Cell::lstm) s.projection = 0;
    for (std::size_t result = 0; result < (cell == Cell::lstm ? 3u : 2u); ++result) {
      const auto f = [&](const Results<double>& x) { return results_of(cell, s, x)[result]; };
      const Results<double> x = leaves_of(cell, s);
      EXPECT_TRUE(gradcheck(f, x)) << result;
      EXPECT_TRUE(gradgradcheck(f, x)) << result;
    }
  }
}

TEST(RecurrentTest, AnInputThatAResultDoesNotDependOnHasNoGradient) {
  const Sample s{.size = {1, 2, 2, 3}, .projection = 2};
  const Results<double> x = leaves_of(Cell::lstm, s);
  const Variable<double> c = results_of(Cell::lstm, s, x)[2], &projection = x.back();
  const Variable<double> plain = grad(c, {projection}, {.seed = c.detach(), .retain_graph = true})[0];
  EXPECT_EQ(plain.value(), Array<double>(Shape{2, 3}, 0.0));
  const auto recorded =
      grad(c, {projection}, {.seed = c.detach(), .create_graph = true, .allow_unused = true});
  EXPECT_FALSE(recorded[0].defined());
}

TEST(RecurrentTest, WhatIsBeyondALengthIsNotRead) {
  const Sample s{.size = {3, 2, 2, 2}, .layers = 2, .bidirectional = true, .lengths = {1, 3}};
  for (const Cell cell : {Cell::rnn_tanh, Cell::rnn_relu, Cell::gru, Cell::lstm}) {
    Results<double> x = leaves_of(cell, s);
    const Results<double> expected = results_of(cell, s, x);
    Array<double> padded = x[0].value();
    for (std::size_t step = 1; step < 3; ++step)
      for (std::size_t i = 0; i < 2; ++i) padded(step, 0, i) = nan;
    x[0] = Variable<double>(padded, true);
    const Results<double> results = results_of(cell, s, x);
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].value(), expected[i].value());
    EXPECT_EQ(select(slice(results[0], 0, 1), 1, 0).value(), Array<double>(Shape{2, 4}, 0.0));
    sum(flat(results)).backward();
    EXPECT_EQ(select(slice(x[0].grad(), 0, 1), 1, 0).value(), Array<double>(Shape{2, 2}, 0.0));
    for (const Variable<double>& leaf : x) {
      const Array<double> gradient = leaf.grad().value();
      for (const double element : gradient.storage()) EXPECT_TRUE(std::isfinite(element));
    }
  }
}

TEST(RecurrentTest, GatesThatAreShutOrOpenHaveFiniteGradients) {
  const Sample s{.size = {2, 1, 1, 2}, .states = false};
  for (const Cell cell : {Cell::rnn_tanh, Cell::gru, Cell::lstm}) {
    for (const float large : {1e4f, -1e4f, std::numeric_limits<float>::max()}) {
      Results<float> x;
      for (const Input& input : inputs_of(cell, s)) x.emplace_back(Array<float>(input.shape, 1.0f), true);
      x[0] = Variable<float>(Array<float>(s.shape(1), large), true);
      const Variable<float> y = flat(results_of(cell, s, x));
      for (const float element : y.value().storage()) EXPECT_TRUE(std::isfinite(element));
      sum(y).backward();
      const Array<float> gradient = x[2].grad().value();
      for (const float element : gradient.storage()) EXPECT_TRUE(std::isfinite(element));
    }
  }
}

TEST(RecurrentTest, DropoutIsBetweenLayers) {
  const Sample s{.size = {2, 3, 2, 2}, .layers = 2, .states = false};
  const Results<double> x = leaves_of(Cell::gru, s);
  const std::vector<RecurrentWeights<double>> weights = weights_of(x, 1, 2, true, false);
  xgrad::manual_seed(3);
  const Variable<double> y = gru(x[0], {}, weights, {.dropout_p = 0.5}).output;
  xgrad::manual_seed(3);
  const Variable<double> between = xgrad::dropout(gru(x[0], {}, {weights[0]}).output, 0.5);
  EXPECT_EQ(y.value(), gru(between, {}, {weights[1]}).output.value());
}

}  // namespace xgrad_tests::recurrent_rows
