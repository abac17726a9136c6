#pragma once

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

#include <xgrad/base/error.hpp>

namespace xgrad_tests {

/// NumPy's name of an element type.
template <class T>
inline constexpr const char* npy_type = nullptr;
template <>
inline constexpr const char* npy_type<float> = "<f4";
template <>
inline constexpr const char* npy_type<double> = "<f8";
template <>
inline constexpr const char* npy_type<std::int64_t> = "<i8";
template <>
inline constexpr const char* npy_type<bool> = "|b1";

namespace npy_detail {

inline xgrad::Shape parse_shape(const std::string& header) {
  const std::size_t open = header.find("'shape': (");
  if (open == std::string::npos) throw std::runtime_error("no shape");
  const std::string text = header.substr(open + 9, header.find(')', open) - open - 8);
  std::istringstream lengths(text.substr(1, text.size() - 2));
  xgrad::Shape shape;
  for (std::string length; std::getline(lengths >> std::ws, length, ',');) {
    std::size_t number = 0;
    const char* const end = length.data() + length.size();
    const auto [stop, error] = std::from_chars(length.data(), end, number);
    if (error != std::errc() || stop != end) throw std::runtime_error("the shape is not one: " + text);
    shape.push_back(number);
  }
  return shape;
}

template <class T>
xgrad::Array<T> parse(const std::string& bytes) {
  if (bytes.size() < 10 || bytes.compare(0, 8, "\x93NUMPY\x01\x00", 8) != 0) {
    throw std::runtime_error("not an npy file of version 1.0");
  }
  const std::size_t header_size =
      static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  const std::string header = bytes.substr(10, header_size);
  if (header.find("'descr': '" + std::string(npy_type<T>) + "'") == std::string::npos) {
    throw std::runtime_error("the elements are not " + std::string(npy_type<T>));
  }
  if (header.find("'fortran_order': False") == std::string::npos) throw std::runtime_error("not in C order");
  const xgrad::Shape shape = parse_shape(header);
  xgrad::detail::check_count("read_npy", shape);
  if (bytes.size() != 10 + header_size + xgrad::element_count(shape) * sizeof(T))
    throw std::runtime_error("not of the right length");
  if constexpr (std::is_same_v<T, bool>) {
    if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(10 + header_size), bytes.end(),
                    [](char byte) { return byte != 0 && byte != 1; }))
      throw std::runtime_error("a bool is neither 0 nor 1");
  }
  xgrad::Array<T> array = xgrad::Array<T>::from_shape(shape);
  if (array.size() > 0) std::memcpy(array.data(), bytes.data() + 10 + header_size, array.size() * sizeof(T));
  return array;
}

}  // namespace npy_detail

/// NumPy's name of the type of the elements in an npy file.
inline std::string npy_type_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string header(128, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const std::size_t start = header.find("'descr': '");
  if (start == std::string::npos) throw std::runtime_error(path + ": not an npy file");
  return header.substr(start + 10, 3);
}

/// The array in an npy file, which must have just this type, on a little-endian machine.
template <class T>
xgrad::Array<T> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  try {
    return npy_detail::parse<T>(bytes);
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace xgrad_tests
