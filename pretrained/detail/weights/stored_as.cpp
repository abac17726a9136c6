#include "stored_as.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace xgrad::pretrained::detail {
namespace {

/// The name with `from` at its beginning replaced by `to`; nothing if it does not begin so.
std::optional<std::string> respelled(std::string_view name, std::string_view from, std::string_view to) {
  const std::size_t star = from.find('*');
  if (!name.starts_with(from.substr(0, star))) return std::nullopt;
  std::string start(to);
  std::size_t end = std::min(star, from.size());
  if (star != from.npos) {
    const std::size_t begin = end;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const std::string_view behind = from.substr(star + 1);
    if (!name.substr(end).starts_with(behind)) return std::nullopt;
    start.replace(start.find('*'), 1, name.substr(begin, end - begin));
    end += behind.size();
  }
  if (!name.substr(end).starts_with('.')) return std::nullopt;
  return start + std::string(name.substr(end));
}

/// The arrays, one after another along axis 0.
template <class T>
Array<T> joined(const std::vector<Array<T>>& arrays) {
  Shape shape = arrays.front().shape();
  shape[0] = 0;
  for (const Array<T>& array : arrays) shape[0] += array.shape(0);
  Array<T> whole = Array<T>::from_shape(shape);
  T* to = whole.data();
  for (const Array<T>& array : arrays) to = std::copy(array.data(), array.data() + array.size(), to);
  return whole;
}

/// In blocks whose rows and columns stay in the cache.
template <class T>
Array<T> transposed_matrix(const Array<T>& x) {
  constexpr std::size_t block = 32;
  const std::size_t rows = x.shape(0), columns = x.shape(1);
  Array<T> y = Array<T>::from_shape({columns, rows});
  for (std::size_t first_row = 0; first_row < rows; first_row += block) {
    for (std::size_t first = 0; first < columns; first += block) {
      for (std::size_t i = first_row; i < std::min(first_row + block, rows); ++i) {
        for (std::size_t j = first; j < std::min(first + block, columns); ++j)
          y.data()[j * rows + i] = x.data()[i * columns + j];
      }
    }
  }
  return y;
}

}  // namespace

std::size_t StoredAs::parts() const {
  return static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), nullptr) -
                                  parameters.begin());
}

std::string modern_name(std::string name, const NamesInFiles& names) {
  for (const char* const prefix : {names.prefix, names.old_prefix}) {
    if (prefix == nullptr || !name.starts_with(prefix)) continue;
    name.erase(0, std::strlen(prefix));
    break;
  }
  if (name.ends_with("position_ids")) return "";  // a buffer of older files
  for (const char* const buffer : names.buffers)
    if (name.ends_with(buffer)) return "";
  const auto replace_end = [&](std::string_view from, std::string_view to) {
    if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
  };
  replace_end("LayerNorm.gamma", "LayerNorm.weight");
  replace_end("LayerNorm.beta", "LayerNorm.bias");
  replace_end("predictions.decoder.bias", "predictions.bias");
  replace_end("lm_head.decoder.bias", "lm_head.bias");
  return name;
}

std::vector<StoredPart> parts_of(std::span<const StoredAs> all, const std::string& tensor) {
  for (const StoredAs& one : all) {
    std::vector<StoredPart> found;
    for (std::size_t part = 0; part < one.parts(); ++part) {
      if (auto name = respelled(tensor, one.tensor, one.parameters[part]))
        found.push_back({std::move(*name), part, one.parts(), one.transposed, one.in_pairs});
    }
    if (!found.empty()) return found;
  }
  return {{tensor, 0, 1}};
}

template <class T>
StateDict<T> as_stored(std::span<const StoredAs> all, std::string_view prefix, StateDict<T> parameters) {
  StateDict<T> stored;
  for (const StoredAs& one : all) {
    for (auto next = parameters.begin(); next != parameters.end();) {
      const std::string_view full = next->first;
      const std::string before(full.starts_with(prefix) ? prefix : "");
      const auto tensor = respelled(full.substr(before.size()), one.parameters[0], one.tensor);
      if (!tensor) {
        ++next;
        continue;
      }
      std::vector<Array<T>> parts{std::move(next->second)};
      for (std::size_t part = 1; part < one.parts(); ++part) {
        const std::string name = before + *respelled(*tensor, one.tensor, one.parameters[part]);
        parts.push_back(std::move(parameters.at(name)));
        parameters.erase(name);
      }
      next = parameters.erase(next);
      Array<T> whole = parts.size() == 1 ? std::move(parts.front()) : joined(parts);
      const bool turns = one.transposed && whole.dimension() == 2;
      stored[before + *tensor] = turns ? transposed_matrix(whole) : std::move(whole);
    }
  }
  stored.merge(parameters);
  return stored;
}

template StateDict<std::int8_t> as_stored(std::span<const StoredAs>, std::string_view,
                                          StateDict<std::int8_t>);
template StateDict<std::uint16_t> as_stored(std::span<const StoredAs>, std::string_view,
                                            StateDict<std::uint16_t>);
template StateDict<float> as_stored(std::span<const StoredAs>, std::string_view, StateDict<float>);
template StateDict<double> as_stored(std::span<const StoredAs>, std::string_view, StateDict<double>);

}  // namespace xgrad::pretrained::detail
