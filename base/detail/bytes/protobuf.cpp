#include "protobuf.hpp"

#include <bit>
#include <cstring>

#include "../../error.hpp"

namespace xgrad::detail {

static_assert(std::endian::native == std::endian::little, "fixed fields are read as they lie in memory");

bool MessageReader::next() {
  if (position_ == message_.size()) return false;
  const std::uint64_t key = varint();
  field_ = key >> 3;
  const std::uint64_t wire = key & 7;
  if (field_ == 0 || (wire > 2 && wire != 5))
    fail<ValueError>("byte ", position_, " of a message: no field has wire type ", wire, " and number ",
                     field_);
  wire_ = static_cast<Wire>(wire);
  switch (wire_) {
    case Wire::varint:
      integer_ = varint();
      break;
    case Wire::fixed64:
      bytes_ = take(8);
      break;
    case Wire::bytes:
      bytes_ = take(varint());
      break;
    case Wire::fixed32:
      bytes_ = take(4);
      break;
  }
  return true;
}

std::int64_t MessageReader::integer() const {
  expect(Wire::varint, "an integer");
  return static_cast<std::int64_t>(integer_);
}

float MessageReader::number() const {
  expect(Wire::fixed32, "a float");
  float value;
  std::memcpy(&value, bytes_.data(), sizeof value);
  return value;
}

std::span<const std::byte> MessageReader::bytes() const {
  expect(Wire::bytes, "bytes");
  return bytes_;
}

std::string MessageReader::text() const {
  const std::span<const std::byte> characters = bytes();
  return {reinterpret_cast<const char*>(characters.data()), characters.size()};
}

void MessageReader::append_to(std::vector<std::int64_t>& integers) const {
  if (wire_ == Wire::varint) return integers.push_back(integer());
  MessageReader packed(bytes());
  while (packed.position_ < packed.message_.size())
    integers.push_back(static_cast<std::int64_t>(packed.varint()));
}

void MessageReader::append_to(std::vector<float>& numbers) const { append_fixed(Wire::fixed32, numbers); }
void MessageReader::append_to(std::vector<double>& numbers) const { append_fixed(Wire::fixed64, numbers); }

template <class N>
void MessageReader::append_fixed(Wire wire, std::vector<N>& numbers) const {
  const std::span<const std::byte> packed = wire_ == wire ? bytes_ : bytes();
  if (packed.size() % sizeof(N) != 0)
    fail<ValueError>("field ", field_, " holds ", packed.size(), " bytes, not a multiple of ", sizeof(N));
  const std::size_t before = numbers.size();
  numbers.resize(before + packed.size() / sizeof(N));
  if (!packed.empty()) std::memcpy(numbers.data() + before, packed.data(), packed.size());
}

std::uint64_t MessageReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (position_ == message_.size()) fail<ValueError>("a message ends within a number");
    const auto byte = std::to_integer<std::uint64_t>(message_[position_++]);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail<ValueError>("byte ", position_, " of a message: a number of more than 64 bits");
}

std::span<const std::byte> MessageReader::take(std::uint64_t size) {
  const std::size_t left = message_.size() - position_;
  if (size > left) fail<ValueError>("field ", field_, " must hold ", size, " bytes, got ", left);
  position_ += static_cast<std::size_t>(size);
  return message_.subspan(position_ - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
}

void MessageReader::expect(Wire wire, const char* what) const {
  if (wire_ != wire)
    fail<ValueError>("field ", field_, " must hold ", what, ", got wire type ", static_cast<int>(wire_));
}

void MessageWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>((value & 0x7f) | 0x80));
  bytes_.push_back(static_cast<std::byte>(value));
}

void MessageWriter::key(std::uint64_t field, Wire wire) {
  varint(field << 3 | static_cast<std::uint64_t>(wire));
}

void MessageWriter::integer(std::uint64_t field, std::int64_t value) {
  key(field, Wire::varint);
  varint(static_cast<std::uint64_t>(value));
}

void MessageWriter::number(std::uint64_t field, float value) {
  key(field, Wire::fixed32);
  const auto stored = std::as_bytes(std::span(&value, 1));
  bytes_.insert(bytes_.end(), stored.begin(), stored.end());
}

void MessageWriter::bytes(std::uint64_t field, std::span<const std::byte> value) {
  key(field, Wire::bytes);
  varint(value.size());
  bytes_.insert(bytes_.end(), value.begin(), value.end());
}

void MessageWriter::text(std::uint64_t field, std::string_view value) {
  bytes(field, std::as_bytes(std::span<const char>(value.data(), value.size())));
}

void MessageWriter::message(std::uint64_t field, const MessageWriter& value) { bytes(field, value.bytes_); }

void MessageWriter::append(const MessageWriter& fields) {
  bytes_.insert(bytes_.end(), fields.bytes_.begin(), fields.bytes_.end());
}

void MessageWriter::integers(std::uint64_t field, std::span<const std::int64_t> values) {
  MessageWriter packed;
  for (const std::int64_t value : values) packed.varint(static_cast<std::uint64_t>(value));
  message(field, packed);
}

}  // namespace xgrad::detail
