#include "stored_as.hpp"

#include <algorithm>
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
    if (end == begin || !name.substr(end).starts_with(behind)) return std::nullopt;
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
  shape[0] *= arrays.size();
  Array<T> whole = Array<T>::from_shape(shape);
  T* to = whole.data();
  for (const Array<T>& array : arrays) to = std::copy(array.data(), array.data() + array.size(), to);
  return whole;
}

}  // namespace

std::size_t StoredAs::parts() const {
  return static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), nullptr) -
                                  parameters.begin());
}

std::vector<StoredPart> parts_of(std::span<const StoredAs> all, const std::string& tensor) {
  for (const StoredAs& one : all) {
    std::vector<StoredPart> found;
    for (std::size_t part = 0; part < one.parts(); ++part) {
      if (auto name = respelled(tensor, one.tensor, one.parameters[part]))
        found.push_back({std::move(*name), part, one.parts()});
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
      stored[before + *tensor] = parts.size() == 1 ? std::move(parts.front()) : joined(parts);
    }
  }
  stored.merge(parameters);
  return stored;
}

template StateDict<std::int8_t> as_stored(std::span<const StoredAs>, std::string_view,
                                          StateDict<std::int8_t>);
template StateDict<float> as_stored(std::span<const StoredAs>, std::string_view, StateDict<float>);
template StateDict<double> as_stored(std::span<const StoredAs>, std::string_view, StateDict<double>);

}  // namespace xgrad::pretrained::detail
