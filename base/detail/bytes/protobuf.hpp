#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Protocol buffer messages, the format of ONNX and SentencePiece files, as fields by number.
// https://protobuf.dev/programming-guides/encoding/
namespace xgrad::detail {

/// Wire type of a field.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Iterates over the fields of a message without copies:
///
///   for (MessageReader in(bytes); in.next();)
///     if (in.field() == 7) read_graph(in.bytes());
///
/// Throws ValueError for an invalid message, and for a field of another wire type than requested.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> message) : message_(message) {}

  /// Moves to the next field, or returns false at the end.
  bool next();

  std::uint64_t field() const { return field_; }

  std::int64_t integer() const;
  float number() const;
  std::span<const std::byte> bytes() const;
  std::string text() const;

  /// Appends the field's value: one element, or several packed ones.
  void append_to(std::vector<std::int64_t>& integers) const;
  void append_to(std::vector<float>& numbers) const;
  void append_to(std::vector<double>& numbers) const;

 private:
  std::uint64_t varint();
  std::span<const std::byte> take(std::uint64_t size);
  void expect(Wire wire, const char* what) const;
  template <class N>
  void append_fixed(Wire wire, std::vector<N>& numbers) const;

  std::span<const std::byte> message_;
  std::size_t position_ = 0;
  std::uint64_t field_ = 0;
  Wire wire_ = Wire::varint;
  std::uint64_t integer_ = 0;
  std::span<const std::byte> bytes_;
};

/// Builds a message, field by field.
class MessageWriter {
 public:
  void integer(std::uint64_t field, std::int64_t value);
  void number(std::uint64_t field, float value);
  void text(std::uint64_t field, std::string_view value);
  void message(std::uint64_t field, const MessageWriter& value);
  /// A packed field.
  void integers(std::uint64_t field, std::span<const std::int64_t> values);
  void bytes(std::uint64_t field, std::span<const std::byte> value);
  /// Appends the fields of another message.
  void append(const MessageWriter& fields);

  std::span<const std::byte> written() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void key(std::uint64_t field, Wire wire);

  std::vector<std::byte> bytes_;
};

}  // namespace xgrad::detail
