#include "key_value_cache.hpp"

#include <algorithm>
#include <utility>

#include "../../base/error.hpp"
#include "../../graph/grad_mode.hpp"

namespace xgrad {
namespace {

constexpr std::size_t growth = 256;  // tokens

void check_rows(const char* what, const Shape& rows, const Shape& before) {
  const bool fits = rows.size() == 3 && rows[0] == 1 && (before.empty() || before[2] == rows[2]);
  if (!fits)
    detail::fail<ShapeError>("KeyValueCache: ", what, " must be (1, n, ",
                             before.empty() ? std::string("size") : std::to_string(before[2]), "), got ",
                             rows);
}

/// `capacity` rows, of which the first `count` are those of x from `first` on; x may be undefined.
template <class T>
Variable<T> moved(const Variable<T>& x, std::size_t first, std::size_t count, std::size_t capacity,
                  std::size_t size) {
  Variable<T> y = detail::empty<T>(Shape{1, capacity, size}, "KeyValueCache");
  if (count > 0) std::copy_n(detail::data(x) + first * size, count * size, detail::data(y));
  return y;
}

}  // namespace

template <class T>
KeyValueCache<T>::KeyValueCache(const std::vector<std::optional<std::size_t>>& windows) {
  for (const std::optional<std::size_t>& window : windows) {
    if (window == 0U) throw ValueError("KeyValueCache: a window must be at least 1, got 0");
    layers_.emplace_back().window = window;
  }
}

template <class T>
KeyValueCache<T>::KeyValueCache(const KeyValueCache& other) : layers_(other.layers_), tokens_(other.tokens_) {
  for (Layer& layer : layers_) {
    if (!layer.keys.defined()) continue;
    layer.keys = Variable<T>(Array<T>(layer.keys.value()));
    layer.values = Variable<T>(Array<T>(layer.values.value()));
  }
}

template <class T>
std::size_t KeyValueCache<T>::length() const {
  return layers_.empty() ? 0 : layers_.front().forgotten + layers_.front().rows;
}

template <class T>
void KeyValueCache<T>::undo(std::size_t length) noexcept {
  for (Layer& layer : layers_) layer.rows = length - layer.forgotten;
  if (tokens_.size() > length) tokens_.resize(length);
}

template <class T>
void KeyValueCache<T>::append(Layer& layer, const Variable<T>& k, const Variable<T>& v) {
  check_rows("k", k.shape(), layer.keys.defined() ? layer.keys.shape() : Shape{});
  check_rows("v", v.shape(), layer.values.defined() ? layer.values.shape() : Shape{});
  const std::size_t count = k.shape(1), k_size = k.shape(2), v_size = v.shape(2);
  if (v.shape(1) != count)
    detail::fail<ShapeError>("KeyValueCache: k and v must have as many rows, got ", k.shape(), " and ",
                             v.shape());
  const std::size_t capacity = layer.keys.defined() ? layer.keys.shape(1) : 0;
  if (layer.rows + count > capacity) {
    const std::size_t seen = layer.window ? std::min(layer.rows, *layer.window - 1) : layer.rows;
    const std::size_t first = layer.rows - seen;
    // doubling, what is released on the way is no more than what is held
    const std::size_t more = std::max(count, first > 0 ? 0 : layer.rows);
    const std::size_t needed = (seen + more + growth - 1) / growth * growth;
    Variable<T> keys = moved(layer.keys, first, seen, needed, k_size);
    layer.values = moved(layer.values, first, seen, needed, v_size);  // the last call that may throw
    layer.keys = std::move(keys);
    layer.forgotten += first;
    layer.rows = seen;
  }
  std::copy_n(detail::data(k), k.size(), detail::data(layer.keys) + layer.rows * k_size);
  std::copy_n(detail::data(v), v.size(), detail::data(layer.values) + layer.rows * v_size);
}

template <class T>
Variable<T> KeyValueCache<T>::attend(std::size_t number, const Variable<T>& q, const Variable<T>& k,
                                     const Variable<T>& v, AttentionOptions options) {
  if (grad_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad()))
    throw GraphError("KeyValueCache: attend keeps no gradients: call it under NoGrad");
  Layer& layer = layers_.at(number);
  append(layer, k, v);
  options.is_causal = true;
  options.first_query = layer.rows;
  options.num_keys = layer.rows + k.shape(1);
  if (layer.window) options.window_left = *layer.window - 1;
  Variable<T> y = scaled_dot_product_attention(q, layer.keys, layer.values, {}, options);
  layer.rows += k.shape(1);  // when nothing can throw any more
  return y;
}

template class KeyValueCache<float>;
template class KeyValueCache<double>;

}  // namespace xgrad
