#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzz {

/// A field of a message of protocol buffers; bytes that are a message in turn are read as one.
struct Field {
  std::uint64_t key = 0;
  std::string bytes = {};           // as stored; without the length for those that have one
  std::vector<Field> message = {};  // instead of bytes, unless empty

  bool has_length() const { return key % 8 == 2; }
};

inline bool read_varint(std::string_view text, std::size_t& at, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < text.size(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(text[at++]);
    value |= std::uint64_t{byte & 127U} << shift;
    if (byte < 128) return true;
  }
  return false;
}

inline void write_varint(std::string& text, std::uint64_t value) {
  for (; value > 127; value >>= 7) text += static_cast<char>(value | 128);
  text += static_cast<char>(value);
}

/// The fields of a message, or none if it is no message.
inline std::vector<Field> fields_of(std::string_view text, int depth = 0) {
  std::vector<Field> fields;
  for (std::size_t at = 0; at < text.size();) {
    Field field;
    if (!read_varint(text, at, field.key) || field.key < 8) return {};
    const std::uint64_t wire = field.key % 8;
    const std::size_t begin = at;
    std::uint64_t size = wire == 1 ? 8 : 4;
    if (wire == 0) {
      std::uint64_t value = 0;
      if (!read_varint(text, at, value)) return {};
      field.bytes = text.substr(begin, at - begin);
    } else {
      const bool is_known = wire == 1 || wire == 2 || wire == 5;
      if (!is_known || (wire == 2 && !read_varint(text, at, size)) || size > text.size() - at) return {};
      field.bytes = text.substr(at, size);
      at += size;
      if (wire == 2 && size > 1 && depth < 8) field.message = fields_of(field.bytes, depth + 1);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

inline std::string text_of(const std::vector<Field>& fields) {
  std::string all;
  for (const Field& field : fields) {
    write_varint(all, field.key);
    const std::string bytes = field.message.empty() ? field.bytes : text_of(field.message);
    if (field.has_length()) write_varint(all, bytes.size());
    all += bytes;
  }
  return all;
}

/// Changes, copies, moves or drops a field, here or further down.
inline void mutate(std::vector<Field>& fields, std::minstd_rand& random) {
  if (fields.empty()) return;
  const std::size_t place = random() % fields.size();
  Field& field = fields[place];
  if (!field.message.empty() && random() % 8 != 0) return mutate(field.message, random);
  const std::size_t size = field.bytes.size();
  switch (random() % 8) {
    case 0:
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(place));
      break;
    case 1:
      fields.push_back(Field(field));
      break;
    case 2:
      std::swap(field, fields[random() % fields.size()]);
      break;
    case 3:  // a value of another field: two nodes get one operator, a tensor another's shape
      field.bytes = std::string(fields[random() % fields.size()].bytes);
      field.message.clear();
      break;
    case 4:
      field.key = field.key % 8 + 8 * (1 + random() % 24);
      break;
    default:
      field.bytes.resize(size + 16);
      field.bytes.resize(
          LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(field.bytes.data()), size, size + 16));
      field.message.clear();
  }
}

/// Changes a message so that all lengths stay right, three times in four; else any bytes of it. `valid` takes
/// the place of what is no message.
inline std::size_t mutate_message(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                                  const std::string& valid) {
  std::minstd_rand random(seed);
  std::vector<Field> fields = fields_of(text_of(data, size));
  if (fields.empty()) fields = fields_of(valid);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  for (std::size_t count = 1 + random() % 3; count > 0; --count) mutate(fields, random);
  const std::string text = text_of(fields);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

}  // namespace fuzz
