#include "print.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <ostream>
#include <type_traits>
#include <vector>

#include "detail/text/number_text.hpp"
#include "error.hpp"

namespace xgrad {
namespace {

struct SharedOptions {
  std::mutex mutex;
  PrintOptions options;
};

SharedOptions& shared_options() {
  static SharedOptions shared;
  return shared;
}

std::string number(double value, detail::Notation notation, int precision) {
  return std::isnan(value) ? "nan" : detail::formatted(value, notation, precision);  // whatever nan's sign
}

/// How the elements of one array are written: all with the same digits and to the same width.
class Format {
 public:
  template <class T>
  Format(const std::vector<T>& shown, const PrintOptions& options) : precision_(options.precision) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!choose_notation(shown, options.sci_mode)) return;
      for (const T value : shown) {
        if (std::isfinite(value) && value != 0) width_ = std::max(width_, digits(value).size());
      }
    } else {
      for (const T value : shown) width_ = std::max(width_, digits(value).size());
    }
  }

  std::size_t width() const { return width_; }

  template <class T>
  std::string operator()(T value) const {
    const std::string text = digits(value);
    return std::string(width_ - std::min(width_, text.size()), ' ') + text;
  }

 private:
  /// False if no element is finite and not zero.
  template <class T>
  bool choose_notation(const std::vector<T>& shown, std::optional<bool> scientific) {
    double least = std::numeric_limits<double>::infinity(), greatest = 0;
    for (const double value : shown) {
      if (!std::isfinite(value) || value == 0) continue;
      least = std::min(least, std::abs(value));
      greatest = std::max(greatest, std::abs(value));
      whole_ = whole_ && value == std::ceil(value);
    }
    if (greatest == 0) return false;
    scientific_ = scientific.value_or(greatest / least > 1000 || greatest > 1e8 || least < 1e-4);
    return true;
  }

  std::string digits(double value) const {
    if (scientific_) return number(value, detail::Notation::scientific, precision_);
    if (!whole_) return number(value, detail::Notation::fixed, precision_);
    return number(value, detail::Notation::fixed, 0) + (std::isfinite(value) ? "." : "");
  }
  std::string digits(std::int64_t value) const { return std::to_string(value); }
  std::string digits(bool value) const { return value ? "True" : "False"; }

  int precision_;
  bool whole_ = true, scientific_ = false;
  std::size_t width_ = 1;
};

template <class T>
class Printer {
 public:
  Printer(const Array<T>& array, const PrintOptions& options)
      : array_(array),
        options_(options),
        summarized_(array.size() > options.threshold),
        format_(collect(), options) {}

  /// The brackets and what is between them; lines after the first start with `indent` spaces.
  std::string elements(std::size_t indent) const { return part(0, array_.data(), array_.size(), indent); }

 private:
  std::size_t length(std::size_t axis) const { return array_.shape()[axis]; }

  bool cut(std::size_t axis) const { return summarized_ && length(axis) > 2 * options_.edgeitems; }

  /// The indices along an axis that are shown.
  std::vector<std::size_t> indices(std::size_t axis) const {
    std::vector<std::size_t> shown;
    const std::size_t front = cut(axis) ? options_.edgeitems : length(axis);
    for (std::size_t i = 0; i < front; ++i) shown.push_back(i);
    const std::size_t back = cut(axis) ? length(axis) - options_.edgeitems : length(axis);
    for (std::size_t i = back; i < length(axis); ++i) shown.push_back(i);
    return shown;
  }

  std::vector<T> collect() const {
    std::vector<T> shown;
    collect(0, array_.data(), array_.size(), shown);
    return shown;
  }

  void collect(std::size_t axis, const T* first, std::size_t size, std::vector<T>& shown) const {
    if (axis == array_.dimension()) {
      shown.push_back(*first);
      return;
    }
    const std::size_t step = size / length(axis);
    for (const std::size_t i : indices(axis)) collect(axis + 1, first + i * step, step, shown);
  }

  std::string part(std::size_t axis, const T* first, std::size_t size, std::size_t indent) const {
    if (axis == array_.dimension()) return format_(*first);
    const std::size_t axes_left = array_.dimension() - axis, step = size / length(axis);
    const std::size_t per_line = std::max<std::size_t>(
        1, (options_.linewidth - std::min(options_.linewidth, indent)) / (format_.width() + 2));
    std::string text = "[";
    std::size_t written = 0;
    const auto append = [&](const std::string& item) {
      if (written > 0) {
        const std::size_t breaks = axes_left > 1 ? axes_left - 1 : written % per_line == 0 ? 1 : 0;
        text += "," + std::string(breaks, '\n') + std::string(breaks > 0 ? indent + 1 : 1, ' ');
      }
      text += item;
      ++written;
    };
    const std::vector<std::size_t> shown = indices(axis);
    for (std::size_t k = 0; k < shown.size(); ++k) {
      if (cut(axis) && k == options_.edgeitems) append(axes_left == 1 ? " ..." : "...");
      append(part(axis + 1, first + shown[k] * step, step, indent + 1));
    }
    if (cut(axis) && shown.empty()) append("...");
    return text + "]";
  }

  const Array<T>& array_;
  PrintOptions options_;
  bool summarized_;
  Format format_;
};

template <class T>
constexpr const char* type_name = nullptr;
template <>
constexpr const char* type_name<float> = "float32";
template <>
constexpr const char* type_name<double> = "float64";
template <>
constexpr const char* type_name<std::int64_t> = "int64";
template <>
constexpr const char* type_name<bool> = "bool";

}  // namespace

void set_print_options(const PrintOptions& options) {
  if (options.precision < 0 || options.precision > 100)
    detail::fail<ValueError>("set_print_options: precision must be in [0, 100], got ", options.precision);
  const std::lock_guard lock(shared_options().mutex);
  shared_options().options = options;
}

PrintOptions print_options() {
  const std::lock_guard lock(shared_options().mutex);
  return shared_options().options;
}

template <class T>
std::string detail::tensor_text(const Array<T>& array, const std::string& suffix) {
  static const std::string prefix = "tensor(";
  const PrintOptions options = print_options();
  std::vector<std::string> suffixes;  // one that does not fit in the line begins a new one
  std::string text = prefix;
  if (array.size() == 0) {
    text += "[]";
    if (array.dimension() != 1) suffixes.push_back("size=" + to_string(array.shape()));
    if (!std::is_same_v<T, float>) suffixes.push_back("dtype=" + std::string(type_name<T>));
  } else {
    text += Printer<T>(array, options).elements(prefix.size());
    if (std::is_same_v<T, double>) suffixes.push_back("dtype=" + std::string(type_name<T>));
  }
  if (!suffix.empty()) suffixes.push_back(suffix);

  std::size_t line = text.size() - (text.rfind('\n') + 1) + 2;  // PyTorch leaves room for ")" and one more
  for (const std::string& one : suffixes) {
    if (line + one.size() + 2 > options.linewidth) {
      text += ",\n" + std::string(prefix.size(), ' ') + one;
      line = prefix.size() + one.size();
    } else {
      text += ", " + one;
      line += one.size() + 2;
    }
  }
  return text + ")";
}

std::string to_string(const Array<float>& x) { return detail::tensor_text(x); }
std::string to_string(const Array<double>& x) { return detail::tensor_text(x); }
std::string to_string(const Ids& x) { return detail::tensor_text(x); }
std::string to_string(const Mask& x) { return detail::tensor_text(x); }

std::ostream& operator<<(std::ostream& out, const Array<float>& x) { return out << to_string(x); }
std::ostream& operator<<(std::ostream& out, const Array<double>& x) { return out << to_string(x); }
std::ostream& operator<<(std::ostream& out, const Ids& x) { return out << to_string(x); }
std::ostream& operator<<(std::ostream& out, const Mask& x) { return out << to_string(x); }

template std::string detail::tensor_text(const Array<float>&, const std::string&);
template std::string detail::tensor_text(const Array<double>&, const std::string&);

}  // namespace xgrad
