#include "layers.hpp"

#include <numeric>
#include <string>

namespace xgrad::detail {
namespace {

/// PyTorch's name of a parameter of the k-th direction of all layers.
std::string weight_name(const char* name, std::size_t k, bool bidirectional) {
  const std::size_t directions = bidirectional ? 2 : 1;
  return std::string(name) + "_l" + std::to_string(k / directions) + (k % directions == 1 ? "_reverse" : "");
}

std::vector<std::size_t> checked_lengths(const char* op, const Ids& lengths, std::size_t length,
                                         std::size_t count) {
  if (lengths.shape() != Shape{count})
    fail<ShapeError>(op, ": lengths must be ", Shape{count}, ", got ", lengths.shape());
  std::vector<std::size_t> checked;
  for (const std::int64_t one : lengths.storage()) {
    if (one < 1 || static_cast<std::uint64_t>(one) > length)
      fail<ValueError>(op, ": lengths must be in [1, ", length, "], got ", one);
    checked.push_back(static_cast<std::size_t>(one));
  }
  return checked;
}

}  // namespace

Sequences::Sequences(const char* op, const Shape& x, const RecurrentOptions& options)
    : length(0), count(1), single(x.size() == 2), batch_first(options.batch_first && !single) {
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
    fail<ValueError>(op, ": dropout_p must be in [0, 1], got ", options.dropout_p);
  if (x.size() != 2 && x.size() != 3) {
    fail<ShapeError>(op, ": x must be ", options.batch_first ? "(N, L, in)" : "(L, N, in)",
                     " or (L, in), got ", x);
  }
  length = x[batch_first ? 1 : 0];
  if (!single) count = x[batch_first ? 0 : 1];
  if (length == 0) fail<ShapeError>(op, ": x must have at least one step, got ", x);
  counts.assign(length, count);
  if (!options.lengths) return;
  const std::vector<std::size_t> lengths = checked_lengths(op, *options.lengths, length, count);
  packed = std::any_of(lengths.begin(), lengths.end(), [this](std::size_t one) { return one < length; });
  if (!packed) return;

  std::vector<std::size_t> sorted(count);
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  counts.resize(lengths[sorted[0]]);
  std::fill(counts.begin(), counts.end(), std::size_t{0});
  for (const std::size_t one : lengths)
    for (std::size_t time = 0; time < one; ++time) ++counts[time];

  order = Ids::from_shape({count});
  places = Ids::from_shape({count});
  for (std::size_t place = 0; place < count; ++place) {
    order(place) = static_cast<std::int64_t>(sorted[place]);
    places(sorted[place]) = static_cast<std::int64_t>(place);
  }
  rows = Ids::from_shape({std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})});
  std::int64_t* row = rows.data();
  for (std::size_t time = 0; time < counts.size(); ++time) {
    for (std::size_t place = 0; place < counts[time]; ++place) {
      const std::size_t sequence = sorted[place];
      *row++ = static_cast<std::int64_t>(batch_first ? sequence * length + time : time * count + sequence);
    }
  }
}

template <class T>
Variable<T> rows_of_sequences(const Sequences& sequences, const Variable<T>& x) {
  const Dims shape{sequences.length * sequences.count, x.shape().back()};
  if (sequences.packed) return index_select(reshape(x, shape), 0, sequences.rows);
  return reshape(sequences.batch_first ? transpose(x, 0, 1) : x, shape);
}

template <class T>
Variable<T> sequences_of_rows(const Sequences& sequences, const Variable<T>& rows) {
  const std::size_t length = sequences.length, count = sequences.count, width = rows.shape()[1];
  const Variable<T> all =
      sequences.packed ? index_add(Variable<T>(zeros<T>({length * count, width})), 0, sequences.rows, rows)
                       : rows;
  if (sequences.single) return all;
  if (!sequences.batch_first) return reshape(all, {length, count, width});
  if (sequences.packed) return reshape(all, {count, length, width});
  return transpose(reshape(all, {length, count, width}), 0, 1);
}

template <class T>
Variable<T> ordered_state(const char* op, const char* name, const Sequences& sequences,
                          const Variable<T>& state, std::size_t passes, std::size_t width) {
  if (!state.defined()) return state;
  const Shape wanted = sequences.single ? Shape{passes, width} : Shape{passes, sequences.count, width};
  if (state.shape() != wanted) fail<ShapeError>(op, ": ", name, " must be ", wanted, ", got ", state.shape());
  if (sequences.single) return unsqueeze(state, 1);
  return sequences.packed ? index_select(state, 1, sequences.order) : state;
}

template <class T>
Variable<T> callers_state(const Sequences& sequences, const std::vector<Variable<T>>& states) {
  const Variable<T> all = stack(states);
  if (sequences.single) return squeeze(all, 1);
  return sequences.packed ? index_select(all, 1, sequences.places) : all;
}

template <class T>
StateSizes checked_layers(const char* op, std::size_t gates, bool may_project, std::size_t in,
                          const std::vector<RecurrentWeights<T>>& weights, const RecurrentOptions& options) {
  const std::size_t directions = options.bidirectional ? 2 : 1;
  if (weights.empty() || weights.size() % directions != 0) {
    fail<ValueError>(op, ": weights must be of layers of ", directions, " directions, got ", weights.size());
  }
  const std::string sums = gates == 1 ? "H" : std::to_string(gates) + " H";
  const Shape& first = weights[0].weight_hh.shape();
  if (first.size() != 2 || first[0] % gates != 0)
    fail<ShapeError>(op, ": weight_hh_l0 must be (", sums, ", out), got ", first);
  const StateSizes sizes{first[1], first[0] / gates};
  const bool projects = weights[0].weight_hr.defined();
  if (!projects && sizes.out != sizes.cell)
    fail<ShapeError>(op, ": weight_hh_l0 must be (", sums, ", H), got ", first);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const auto check = [&](const char* name, const Variable<T>& weight, const Shape& wanted) {
      if (weight.shape() != wanted) {
        fail<ShapeError>(op, ": ", weight_name(name, k, options.bidirectional), " must be ", wanted, ", got ",
                         weight.shape());
      }
    };
    if (weights[k].weight_hr.defined() && !may_project)
      fail<ValueError>(op, ": weight_hr is of an LSTM only");
    if (weights[k].weight_hr.defined() != projects) {
      fail<ValueError>(op, ": ", weight_name("weight_hr", k, options.bidirectional), " must be ",
                       projects ? "there, as in the first layer" : "absent, as in the first layer");
    }
    const auto& [weight_ih, weight_hh, bias_ih, bias_hh, weight_hr] = weights[k];
    check("weight_hh", weight_hh, first);
    check("weight_ih", weight_ih, {first[0], k < directions ? in : directions * sizes.out});
    if (bias_ih.defined()) check("bias_ih", bias_ih, {first[0]});
    if (bias_hh.defined()) check("bias_hh", bias_hh, {first[0]});
    if (projects) check("weight_hr", weight_hr, {sizes.out, sizes.cell});
  }
  return sizes;
}

#define XGRAD_INSTANTIATE(T)                                                                         \
  template Variable<T> rows_of_sequences(const Sequences&, const Variable<T>&);                      \
  template Variable<T> sequences_of_rows(const Sequences&, const Variable<T>&);                      \
  template Variable<T> ordered_state(const char*, const char*, const Sequences&, const Variable<T>&, \
                                     std::size_t, std::size_t);                                      \
  template Variable<T> callers_state(const Sequences&, const std::vector<Variable<T>>&);             \
  template StateSizes checked_layers(const char*, std::size_t, bool, std::size_t,                    \
                                     const std::vector<RecurrentWeights<T>>&, const RecurrentOptions&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
