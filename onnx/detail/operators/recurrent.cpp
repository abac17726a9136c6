// Recurrent layers, whose gates have another order than xgrad's.

#include <algorithm>
#include <numeric>
#include <optional>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/index/where.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/product/linear.hpp"
#include "../../../ops/recurrent/recurrent.hpp"
#include "../../../ops/shape/rearrange.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../arrays.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes;

/// What the recurrent operators share: the attributes, and the order of gates.
struct RecurrentLayer {
  enum class Direction { forward, reverse, bidirectional };

  Direction direction = Direction::forward;
  bool batch_first = false;
  std::size_t gates = 1;
  std::int64_t hidden_size = 0;    // 0: that of R
  std::vector<std::size_t> order;  // gate i of xgrad is gate order[i] of the file
  std::vector<std::string> functions;

  RecurrentLayer(const NodeDescription& node, std::vector<std::size_t> gate_order,
                 const std::vector<std::string>& default_functions)
      : gates(gate_order.size()), order(std::move(gate_order)) {
    NodeAttributes& attributes = node.attributes;
    hidden_size = attributes.integer("hidden_size", 0);
    const std::string text = attributes.text("direction", "forward");
    if (text != "forward" && text != "reverse" && text != "bidirectional")
      fail<ValueError>("direction must be forward, reverse or bidirectional, got ", in_quotes(text));
    direction = text == "forward"   ? Direction::forward
                : text == "reverse" ? Direction::reverse
                                    : Direction::bidirectional;
    batch_first = attributes.integer("layout", 0) != 0;
    if (attributes.has("clip")) fail<ValueError>("clip is not supported");
    functions = attributes.texts("activations").value_or(std::vector<std::string>());
    if (functions.empty()) functions = repeated(default_functions);
  }

  std::size_t directions() const { return direction == Direction::bidirectional ? 2 : 1; }

  /// Throws unless the functions are these in each direction.
  void expect_functions(const std::vector<std::string>& expected) const {
    if (functions != repeated(expected)) {
      std::string text;
      for (const std::string& name : functions) text += (text.empty() ? "" : ", ") + in_quotes(name);
      fail<ValueError>("activations ", text, " are not supported");
    }
  }

  std::vector<std::string> repeated(const std::vector<std::string>& list) const {
    std::vector<std::string> all = list;
    if (directions() == 2) all.insert(all.end(), list.begin(), list.end());
    return all;
  }
};

/// The inputs X, W, R, B, sequence_lens and initial states of a call, in xgrad's form.
template <class T>
struct RecurrentCall {
  const RecurrentLayer& layer;
  Variable<T> x;
  std::vector<RecurrentWeights<T>> weights;
  RecurrentOptions options;
  std::size_t length, batch, hidden;
  std::optional<Mask> has_steps;  // of each sequence, if one has none: its output and its states are 0

  RecurrentCall(const RecurrentLayer& of, const Arguments<T>& given) : layer(of), x(given.floats(0)) {
    const Variable<T>&w = given.floats(1), &r = given.floats(2);
    const std::size_t directions = layer.directions(), rows = w.dimension() == 3 ? w.shape(1) : 0;
    hidden = rows / layer.gates;
    if (x.dimension() != 3 || hidden == 0 ||
        w.shape() != Shape{directions, layer.gates * hidden, x.shape(2)} ||
        r.shape() != Shape{directions, layer.gates * hidden, hidden})
      fail<ShapeError>("W must be (", directions, ", ", layer.gates, " hidden, input) and R (", directions,
                       ", ", layer.gates, " hidden, hidden), got X ", x.shape(), ", W ", w.shape(), " and R ",
                       r.shape());
    if (layer.hidden_size != 0 && !std::cmp_equal(layer.hidden_size, hidden))
      fail<ShapeError>("hidden_size must be that of R, ", hidden, ", got ", layer.hidden_size);
    if (layer.batch_first) x = transpose(x, 0, 1);
    length = x.shape(0);
    batch = x.shape(1);
    given.check_result({length, batch, directions, hidden});
    const Variable<T> b = given.floats_or_none(3);
    if (b.defined() && b.shape() != Shape{directions, 2 * rows})
      fail<ShapeError>("B must be (", directions, ", ", 2 * rows, "), got ", b.shape());
    const auto gates_of = [&](const Variable<T>& part) {
      std::vector<Variable<T>> in_order;
      for (const std::size_t gate : layer.order) in_order.push_back(narrow(part, 0, gate * hidden, hidden));
      return in_order.size() == 1 ? in_order[0] : cat(in_order, 0);
    };
    for (std::size_t d = 0; d < directions; ++d) {
      const Variable<T> biases = b.defined() ? select(b, 0, d) : b;
      weights.emplace_back(gates_of(select(w, 0, d)), gates_of(select(r, 0, d)),
                           b.defined() ? gates_of(narrow(biases, 0, 0, rows)) : b,
                           b.defined() ? gates_of(narrow(biases, 0, rows, rows)) : b);
    }
    if (given.has(4)) {
      const Ids& lengths = given.integers(4);
      if (lengths.shape() != Shape{batch})
        fail<ShapeError>("sequence_lens must be (", batch, "), got ", lengths.shape());
      for (const std::int64_t one : lengths)
        if (one < 0 || std::cmp_greater(one, length))
          fail<ValueError>("sequence_lens must be from 0 to ", length, ", got ", one);
      options.lengths = mapped<std::int64_t>(lengths, [](std::int64_t one) { return one == 0 ? 1 : one; });
      if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) {
        has_steps = mapped<bool>(lengths, [](std::int64_t one) { return one != 0; });
        x = without_empty(x, {1, batch, 1});
      }
    }
    options.bidirectional = directions == 2;
    if (layer.direction == RecurrentLayer::Direction::reverse) x = reversed(x);
  }

  /// A state (directions, batch, hidden), or undefined.
  Variable<T> state(const Arguments<T>& given, std::size_t input) const {
    const Variable<T> h = given.floats_or_none(input);
    return h.defined() && layer.batch_first ? transpose(h, 0, 1) : h;
  }

  /// The steps (length, batch, width) of each sequence from its last to its first.
  Variable<T> reversed(const Variable<T>& steps) const {
    if (!options.lengths) return flip(steps, 0);
    Ids places = Ids::from_shape(steps.shape());
    const std::size_t width = steps.shape(2);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto t = static_cast<std::int64_t>(i / width / batch);
      const std::int64_t last = options.lengths->data()[i / width % batch] - 1;
      places.data()[i] = t <= last ? last - t : t;
    }
    return gather(steps, 0, places);
  }

  /// Y (length, directions, batch, hidden) of what xgrad's layer returns.
  Variable<T> output(Variable<T> y) const {
    if (layer.direction == RecurrentLayer::Direction::reverse) y = reversed(y);
    y = without_empty(reshape(y, {length, batch, layer.directions(), hidden}), {1, batch, 1, 1});
    return layer.batch_first ? permute(y, {1, 0, 2, 3}) : permute(y, {0, 2, 1, 3});
  }

  Variable<T> state_output(const Variable<T>& states) const {
    const Variable<T> h = without_empty(states, {1, batch, 1});
    return layer.batch_first ? transpose(h, 0, 1) : h;
  }

 private:
  /// y with 0 for sequences without steps, whose axis in y `shape` has.
  Variable<T> without_empty(const Variable<T>& y, const Shape& shape) const {
    if (!has_steps) return y;
    Mask mask = *has_steps;
    mask.reshape(shape);
    return where(mask, y, Variable<T>(T{0}));
  }
};

template <class T>
Operator<T> lstm_operator(const NodeDescription& node) {
  const RecurrentLayer layer(node, {0, 2, 3, 1}, {"Sigmoid", "Tanh", "Tanh"});
  layer.expect_functions({"Sigmoid", "Tanh", "Tanh"});
  if (node.attributes.integer("input_forget", 0) != 0) fail<ValueError>("input_forget is not supported");
  if (node.takes(7)) fail<ValueError>("peepholes are not supported (P)");
  return [layer](const Arguments<T>& given) -> Results<T> {
    const RecurrentCall<T> call(layer, given);
    const LSTMResult<T> result =
        lstm(call.x, call.state(given, 5), call.state(given, 6), call.weights, call.options);
    return {call.output(result.output), call.state_output(result.h), call.state_output(result.c)};
  };
}

template <class T>
Operator<T> rnn_operator(const NodeDescription& node) {
  const RecurrentLayer layer(node, {0}, {"Tanh"});
  const bool is_relu = layer.functions[0] == "Relu";
  layer.expect_functions({is_relu ? "Relu" : "Tanh"});
  return [layer,
          f = is_relu ? Nonlinearity::relu : Nonlinearity::tanh](const Arguments<T>& given) -> Results<T> {
    const RecurrentCall<T> call(layer, given);
    const RecurrentResult<T> result = rnn(call.x, call.state(given, 5), call.weights, f, call.options);
    return {call.output(result.output), call.state_output(result.h)};
  };
}

/// A direction of a GRU whose reset gate multiplies the state before its product with the weight, which
/// PyTorch's does not. x (length, batch, input) and h (batch, hidden) give all states (length, batch,
/// hidden).
template <class T>
Variable<T> reset_first_gru(const Variable<T>& x, Variable<T> h, const RecurrentWeights<T>& w,
                            const std::optional<Ids>& lengths) {
  const std::size_t hidden = h.shape(1), batch = h.shape(0);
  const auto part = [&](const Variable<T>& all, int axis, std::size_t gate, std::size_t count) {
    return all.defined() ? narrow(all, axis, gate * hidden, count * hidden) : all;
  };
  std::vector<Variable<T>> states;
  for (std::size_t t = 0; t < x.shape(0); ++t) {
    const Variable<T> a = linear(select(x, 0, t), w.weight_ih, w.bias_ih);
    const Variable<T> gates =
        sigmoid(part(a, 1, 0, 2) + linear(h, part(w.weight_hh, 0, 0, 2), part(w.bias_hh, 0, 0, 2)));
    const Variable<T> r = part(gates, 1, 0, 1), z = part(gates, 1, 1, 1);
    const Variable<T> n =
        tanh(part(a, 1, 2, 1) + linear(r * h, part(w.weight_hh, 0, 2, 1), part(w.bias_hh, 0, 2, 1)));
    const Variable<T> next = n + z * (h - n);
    if (lengths) {
      Mask goes_on = Mask::from_shape({batch, 1});
      for (std::size_t i = 0; i < batch; ++i) goes_on.data()[i] = std::cmp_less(t, lengths->data()[i]);
      h = where(goes_on, next, h);
      states.push_back(where(goes_on, next, Variable<T>(T{0})));
    } else {
      h = next;
      states.push_back(next);
    }
  }
  states.push_back(h);
  return stack(states, 0);
}

template <class T>
Operator<T> gru_operator(const NodeDescription& node) {
  const RecurrentLayer layer(node, {1, 0, 2}, {"Sigmoid", "Tanh"});
  layer.expect_functions({"Sigmoid", "Tanh"});
  const bool resets_last = node.attributes.integer("linear_before_reset", 0) != 0;
  return [layer, resets_last](const Arguments<T>& given) -> Results<T> {
    const RecurrentCall<T> call(layer, given);
    Variable<T> h = call.state(given, 5);
    if (resets_last) {
      const RecurrentResult<T> result = gru(call.x, h, call.weights, call.options);
      return {call.output(result.output), call.state_output(result.h)};
    }
    if (!h.defined()) h = Variable<T>(Array<T>(Shape{layer.directions(), call.batch, call.hidden}, T{0}));
    const Shape states{layer.directions(), call.batch, call.hidden};
    if (h.shape() != states) fail<ShapeError>("initial_h must be ", states, ", got ", h.shape());
    std::vector<Variable<T>> outputs, last;
    for (std::size_t d = 0; d < layer.directions(); ++d) {
      const Variable<T> all = reset_first_gru(d == 0 ? call.x : call.reversed(call.x), select(h, 0, d),
                                              call.weights[d], call.options.lengths);
      const Variable<T> steps = narrow(all, 0, 0, call.length);
      outputs.push_back(d == 0 ? steps : call.reversed(steps));
      last.push_back(select(all, 0, call.length));
    }
    return {call.output(cat(outputs, 2)), call.state_output(stack(last, 0))};
  };
}

}  // namespace

template <class T>
void add_recurrent_operators(OperatorTable<T>& table) {
  table["LSTM"] = lstm_operator<T>;
  table["GRU"] = gru_operator<T>;
  table["RNN"] = rnn_operator<T>;
}

template void add_recurrent_operators(OperatorTable<float>&);
template void add_recurrent_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
