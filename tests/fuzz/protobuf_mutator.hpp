#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzz {

/// A message of protocol buffers as a tree: bytes that are a message in turn are read as one.
struct Message {
  struct Field {
    std::uint64_t key = 0;
    std::string bytes;  // as stored; without the length for those that have one
    std::optional<Message> message = {};
    bool has_length() const { return key % 8 == 2; }
  };
  std::vector<Field> fields;

  static std::optional<Message> parsed(std::string_view text, int depth = 0) {
    Message message;
    for (std::size_t at = 0; at < text.size();) {
      Field field;
      if (!read_varint(text, at, field.key) || field.key < 8) return std::nullopt;
      const std::size_t begin = at;
      std::uint64_t size = field.key % 8 == 1 ? 8 : 4;
      if (field.key % 8 == 0) {
        std::uint64_t value = 0;
        if (!read_varint(text, at, value)) return std::nullopt;
        field.bytes = text.substr(begin, at - begin);
      } else if (field.key % 8 == 3 || field.key % 8 == 4 || field.key % 8 > 5 ||
                 (field.has_length() && !read_varint(text, at, size)) || size > text.size() - at) {
        return std::nullopt;
      } else {
        field.bytes = text.substr(at, size);
        at += size;
        if (field.has_length() && size > 1 && depth < 8) field.message = parsed(field.bytes, depth + 1);
      }
      message.fields.push_back(std::move(field));
    }
    return message;
  }

  std::string text() const {
    std::string all;
    for (const Field& field : fields) {
      write_varint(all, field.key);
      const std::string bytes = field.message ? field.message->text() : field.bytes;
      if (field.has_length()) write_varint(all, bytes.size());
      all += bytes;
    }
    return all;
  }

  /// Changes, copies, moves or drops a field, here or further down.
  void mutate(std::minstd_rand& random) {
    if (fields.empty()) return;
    const std::size_t place = random() % fields.size();
    Field& field = fields[place];
    if (field.message && !field.message->fields.empty() && random() % 8 != 0)
      return field.message->mutate(random);
    switch (random() % 8) {
      case 0:
        fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(place));
        return;
      case 1:
        fields.push_back(Field(field));
        return;
      case 2:
        std::swap(field, fields[random() % fields.size()]);
        return;
      case 3:  // a value of another field: two nodes get one operator, a tensor another's dims
        field.bytes = fields[random() % fields.size()].bytes;
        field.message.reset();
        return;
      case 4:
        field.key = field.key % 8 + 8 * (1 + random() % 24);
        return;
      default:
        const std::size_t size = field.bytes.size();
        field.bytes.resize(size + 16);
        field.bytes.resize(
            LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(field.bytes.data()), size, size + 16));
        field.message.reset();
    }
  }

 private:
  static bool read_varint(std::string_view text, std::size_t& at, std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < text.size(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(text[at++]);
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  static void write_varint(std::string& text, std::uint64_t value) {
    for (; value > 127; value >>= 7) text += static_cast<char>(value | 128);
    text += static_cast<char>(value);
  }
};

/// Changes a message so that all lengths stay right, three times in four; else any bytes of it. `valid` takes
/// the place of what is no message.
inline std::size_t mutate_message(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                                  const std::string& valid) {
  std::minstd_rand random(seed);
  std::optional<Message> message = Message::parsed(text_of(data, size));
  if (!message || message->fields.empty()) message = Message::parsed(valid);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  for (std::size_t count = 1 + random() % 3; count > 0; --count) message->mutate(random);
  const std::string text = message->text();
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

}  // namespace fuzz
