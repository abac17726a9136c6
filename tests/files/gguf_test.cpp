// GGUF files: metadata, tensors, blocks, and what is refused.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/files/gguf.hpp>
#include <xgrad/files/safetensors.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"
#include "files.hpp"
#include "gguf_writer.hpp"
#include "program.hpp"
#include "programs/gguf_goldens.hpp"

namespace gguf_test {

namespace gguf = xgrad_tests::gguf;
using xgrad::Array, xgrad::DType, xgrad::FileError, xgrad::GgufFile, xgrad::GgufType, xgrad::GgufValue,
    xgrad::TensorView, xgrad::ValueError;
using xgrad_tests::expect_same_bits, xgrad_tests::message_of, xgrad_tests::read_bytes,
    xgrad_tests::TemporaryFolder;

constexpr std::uint32_t u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8,
                        array = 9, u64 = 10, i64 = 11, f64 = 12;
constexpr std::uint32_t F32 = 0, F16 = 1, Q8_0 = 8, I8 = 24, IQ1_S = 19;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}

// ---- files that gguf's Python package wrote, and what it gave for them ----

void expect_goldens(const std::string& kind, std::size_t least) {
  const auto results = xgrad_tests::gguf_goldens(xgrad_tests::data_folder(kind));
  EXPECT_GE(results.size(), least);
  for (const auto& [name, problem] : results) EXPECT_EQ(problem, "") << name;
}

TEST(Gguf, FilesAreReadOrRefusedAsTheirCasesSay) { expect_goldens("gguf", 65); }

TEST(Gguf, BlocksOfAllTypesBecomeTheSameFloatsBitForBit) { expect_goldens("blocks", 20); }

TEST(Gguf, EveryPartOfAFileIsRefused) {
  const TemporaryFolder temporary;
  for (const char* name : {"good", "all_types"}) {
    const std::string whole = read_bytes(xgrad_tests::data_folder("gguf") + "broken/" + name + ".gguf");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string path = temporary.write(name + std::to_string(size), whole.substr(0, size));
      EXPECT_TRUE(message_of<FileError>([&] { GgufFile file(path); }).starts_with(path + ": "))
          << name << size;
    }
  }
}

// ---- metadata ----

TEST(Gguf, ValuesOfAllTypesAreRead) {
  const TemporaryFolder temporary;
  const double third = 1.0 / 3;
  const std::string path = temporary.write(
      "values.gguf",
      gguf::file({gguf::key("u8", u8, "\xff"),
                  gguf::key("i8", i8, "\xff"),
                  gguf::key("u16", u16, gguf::number(std::uint16_t{65535})),
                  gguf::key("i16", i16, gguf::number(std::int16_t{-2})),
                  gguf::key("u32", u32, gguf::number(std::uint32_t{4294967295u})),
                  gguf::key("i32", i32, gguf::number(std::int32_t{-3})),
                  gguf::key("u64", u64, gguf::number(std::uint64_t{1} << 63)),
                  gguf::key("i64", i64, gguf::number(std::int64_t{-4})),
                  gguf::key("f32", f32, gguf::number(static_cast<float>(third))),
                  gguf::key("f64", f64, gguf::number(third)),
                  gguf::key("true", boolean, "\1"),
                  gguf::key("false", boolean, std::string(1, '\0')),
                  gguf::key("text", string, gguf::text("a\xff\n")),
                  gguf::array("texts", string, 3, gguf::text("a") + gguf::text("") + gguf::text("bc")),
                  gguf::array("i16s", i16, 2, gguf::number(std::int16_t{-1}) + gguf::number(std::int16_t{7})),
                  gguf::array("f32s", f32, 2, gguf::number(0.5F) + gguf::number(-1.0F)),
                  gguf::array("flags", boolean, 3, std::string("\1\0\1", 3)),
                  gguf::array("none", u64, 0, ""),
                  gguf::array("u64s", u64, 1, gguf::number(std::uint64_t{1} << 63)),
                  gguf::array("long", u8, 9, "\1\2\3\4\5\6\7\x8\x9")},
                 {}));
  const GgufFile file(path);
  ASSERT_EQ(file.metadata().size(), 20u);
  EXPECT_EQ(file.metadata()[0].first, "u8");
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                         high = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(file.at("u8").integer(low, high), 255);
  EXPECT_EQ(file.at("i8").integer(low, high), -1);
  EXPECT_EQ(file.at("u16").integer(low, high), 65535);
  EXPECT_EQ(file.at("i16").integer(low, high), -2);
  EXPECT_EQ(file.at("u32").integer(0, 4294967295), 4294967295);
  EXPECT_EQ(file.at("i32").integer(-3, -3), -3);
  EXPECT_EQ(file.at("i64").integer(low, high), -4);
  EXPECT_EQ(file.at("u64").number(), 0x1p63);
  EXPECT_EQ(file.at("f32").number(), static_cast<float>(third));
  EXPECT_EQ(file.at("f64").number(), third);
  EXPECT_TRUE(file.at("true").flag());
  EXPECT_FALSE(file.at("false").flag());
  EXPECT_EQ(file.at("text").text(), "a\xff\n");
  EXPECT_EQ(file.at("texts").texts(), (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_EQ(file.at("i16s").integers(), (std::vector<std::int64_t>{-1, 7}));
  EXPECT_EQ(file.at("i16s").numbers(), (std::vector<double>{-1, 7}));
  EXPECT_EQ(file.at("f32s").numbers(), (std::vector<double>{0.5, -1}));
  EXPECT_EQ(file.at("flags").flags(), (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(file.at("none").integers().empty());
  EXPECT_EQ(file.at("texts").size(), 3u);
  EXPECT_TRUE(file.at("texts").is_array());
  EXPECT_EQ(file.at("texts").type(), GgufType::STRING);
  EXPECT_FALSE(file.at("u8").is_array());
  EXPECT_EQ(file.find("u9"), nullptr);

  const auto message = [&](const auto& call) { return message_of<FileError>(call); };
  EXPECT_EQ(message([&] { file.at("u9"); }), path + R"(: the key "u9" is missing)");
  const auto refused = [&](const std::string& key, const std::string& what) {
    return path + ": key \"" + key + "\" must be " + what;
  };
  EXPECT_EQ(message([&] { file.at("u64").integer(0, high); }),
            refused("u64", "a whole number from 0 to 9223372036854775807, got UINT64 9223372036854775808"));
  EXPECT_EQ(message([&] { file.at("u8").integer(0, 254); }),
            refused("u8", "a whole number from 0 to 254, got UINT8 255"));
  EXPECT_EQ(message([&] { file.at("i8").integer(0, 9); }),
            refused("i8", "a whole number from 0 to 9, got INT8 -1"));
  EXPECT_EQ(message([&] { file.at("f32").integer(0, 9); }),
            refused("f32", "a whole number from 0 to 9, got FLOAT32 0.333333"));
  EXPECT_EQ(message([&] { file.at("i16s").integer(0, 9); }),
            refused("i16s", "a whole number from 0 to 9, got ARRAY of 2 INT16: -1, 7"));
  EXPECT_EQ(message([&] { file.at("true").number(); }), refused("true", "a number, got BOOL true"));
  EXPECT_EQ(message([&] { file.at("f32s").number(); }),
            refused("f32s", "a number, got ARRAY of 2 FLOAT32: 0.5, -1"));
  EXPECT_EQ(message([&] { file.at("u8").flag(); }), refused("u8", "a BOOL, got UINT8 255"));
  EXPECT_EQ(message([&] { file.at("flags").flag(); }),
            refused("flags", "a BOOL, got ARRAY of 3 BOOL: true, false, true"));
  EXPECT_EQ(message([&] { file.at("false").text(); }), refused("false", "a STRING, got BOOL false"));
  EXPECT_EQ(message([&] { file.at("texts").text(); }),
            refused("texts", R"(a STRING, got ARRAY of 3 STRING: "a", "", "bc")"));
  EXPECT_EQ(message([&] { file.at("text").texts(); }),
            refused("text", "an ARRAY of STRING, got STRING \"a\uFFFD\\n\""));
  EXPECT_EQ(message([&] { file.at("flags").texts(); }),
            refused("flags", "an ARRAY of STRING, got ARRAY of 3 BOOL: true, false, true"));
  EXPECT_EQ(message([&] { file.at("f32s").integers(); }),
            refused("f32s", "an ARRAY of integers below 2^63, got ARRAY of 2 FLOAT32: 0.5, -1"));
  EXPECT_EQ(message([&] { file.at("u64s").integers(); }),
            refused("u64s", "an ARRAY of integers below 2^63, got ARRAY of 1 UINT64: 9223372036854775808"));
  EXPECT_EQ(file.at("long").description(), "ARRAY of 9 UINT8: 1, 2, 3, 4, 5, 6, 7, 8, ...");
  EXPECT_EQ(message([&] { file.at("u8").integers(); }),
            refused("u8", "an ARRAY of integers below 2^63, got UINT8 255"));
  EXPECT_EQ(message([&] { file.at("texts").numbers(); }),
            refused("texts", R"(an ARRAY of numbers, got ARRAY of 3 STRING: "a", "", "bc")"));
  EXPECT_EQ(message([&] { file.at("f64").numbers(); }),
            refused("f64", "an ARRAY of numbers, got FLOAT64 0.333333"));
  EXPECT_EQ(message([&] { file.at("none").flags(); }),
            refused("none", "an ARRAY of BOOL, got ARRAY of 0 UINT64"));
  EXPECT_EQ(message([&] { file.at("true").flags(); }), refused("true", "an ARRAY of BOOL, got BOOL true"));
}

// ---- tensors ----

TEST(Gguf, TensorsHaveTheShapesOfPyTorch) {
  const TemporaryFolder temporary;
  std::string data = gguf::number(1.0F) + gguf::number(2.0F) + gguf::number(3.0F) + gguf::number(4.0F) +
                     gguf::number(5.0F) + gguf::number(6.0F);
  data.resize(64);
  data += std::string("\x01\x02\xff", 3);
  const std::string path = temporary.write(
      "tensors.gguf", gguf::file({},
                                 {gguf::tensor("late", {3}, I8, 64), gguf::tensor("w", {3, 2}, F32, 0),
                                  gguf::tensor("scalar", {}, F32, 32), gguf::tensor("empty", {0, 2}, F32, 0)},
                                 data, 2));
  const GgufFile file(path);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "late");
  EXPECT_EQ(xgrad::to_array<std::int64_t>(file.tensors()[0]), (xgrad::Ids{1, 2, -1}));
  expect_same_bits(xgrad::to_array<float>(file.tensors()[1]), Array<float>{{1, 2, 3}, {4, 5, 6}});
  expect_same_bits(xgrad::to_array<double>(file.tensors()[1]), Array<double>{{1, 2, 3}, {4, 5, 6}});
  expect_same_bits(xgrad::to_array<float>(file.tensors()[2]), Array<float>(0.0F));
  EXPECT_EQ(xgrad::to_string(xgrad::to_array<float>(file.tensors()[3]).shape()), "(2, 0)");
  file.release(file.tensors()[1]);
  expect_same_bits(xgrad::to_array<float>(file.tensors()[1]), Array<float>{{1, 2, 3}, {4, 5, 6}});

  const std::string good = xgrad_tests::data_folder("gguf") + "broken/good.gguf";
  const GgufFile good_file(good);
  const auto state = xgrad::load_gguf<float>(good);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(xgrad::to_string(state.at("b").shape()), "(2, 32)");
  expect_same_bits(state.at("b"), xgrad::to_array<float>(good_file.tensors()[1]));
  EXPECT_EQ(message_of<FileError>([&] { xgrad::load_gguf<float>(path); }),
            path + R"(: tensor "late": dtype must be F64, F32, F16, BF16 or F8, got I8)");
}

TEST(Gguf, TypesThatAreNotReadAreListed) {
  const TemporaryFolder temporary;
  const std::string path = temporary.write(
      "iq.gguf", gguf::file({}, {gguf::tensor("w", {256, 2}, IQ1_S, 0)}, std::string(100, '\1')));
  const GgufFile file(path);
  EXPECT_EQ(file.tensors()[0].dtype, DType::IQ1_S);
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::to_array<float>(file.tensors()[0]); }),
            R"(tensor "w": dtype must be F64, F32, F16, BF16 or F8, or one of Q4_0 to MXFP4, got IQ1_S)");
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::to_bfloat16(file.tensors()[0]); }),
            R"(tensor "w": dtype must be F64, F32, F16, BF16 or F8, or one of Q4_0 to MXFP4, got IQ1_S)");
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::write_safetensors(file.tensors(), temporary.path("a")); }),
            R"(write_safetensors: tensor "w": dtype must be one of the format's, got IQ1_S)");
  const std::string header = R"({"w":{"dtype":"Q8_0","shape":[32],"data_offsets":[0,34]}})";
  const std::string other = temporary.write("q.safetensors", gguf::text(header) + std::string(34, '\0'));
  EXPECT_EQ(message_of<FileError>([&] { xgrad::SafetensorsFile{other}; }),
            other + R"(: tensor "w": dtype must be one of the format's, got "Q8_0")");
}

TEST(Gguf, BlocksHaveNoAlignmentAndRowsHoldWholeBlocks) {
  std::string block = std::string(1, '\7') + gguf::number(std::uint16_t{0x3800});  // 0.5
  for (int i = 0; i < 32; ++i) block += static_cast<char>(i - 16);
  const auto bytes = std::as_bytes(std::span(block)).subspan(1);
  const Array<float> floats = xgrad::to_array<float>({"q", DType::Q8_0, {1, 32}, bytes});
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(floats(0, i), 0.5F * (static_cast<float>(i) - 16));
  EXPECT_EQ(xgrad::byte_count(DType::Q8_0, {3, 64}), 3u * 2 * 34);
  EXPECT_EQ(xgrad::byte_count(DType::Q8_0, {64, 3}), std::nullopt);
  EXPECT_EQ(xgrad::byte_count(DType::Q8_0, {}), std::nullopt);
  EXPECT_EQ(xgrad::byte_count(DType::Q8_0, {32, 0}), 0u);
  EXPECT_EQ(xgrad::byte_count(DType::Q6_K, {256}), 210u);
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_array<float>({"q", DType::Q8_0, {4, 8}, bytes});
            }),
            R"(tensor "q": shape (4, 8) of Q8_0 must fit its bytes, got 34)");
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_bfloat16({"q", DType::Q8_0, {4, 8}, bytes});
            }),
            R"(tensor "q": shape (4, 8) of Q8_0 must fit its bytes, got 34)");
}

TEST(Gguf, FloatsAreRoundedToTheNearestBfloat16) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> floats{1.0F,          0x1.01p0F,       0x1.03p0F,  -0x1.0100000002p0F,
                                  0x1.010002p0F, 0x1.fffffep127F, -0x1p-149F, 0x1.7p-133F,
                                  infinity,      -0.0F,           nan};
  const auto halves = xgrad::to_bfloat16({"f", DType::F32, {floats.size()}, bytes_of(floats)});
  const std::vector<std::uint16_t> expected{0x3f80, 0x3f80, 0x3f82, 0xbf80, 0x3f81, 0x7f80,
                                            0x8000, 0x0001, 0x7f80, 0x8000, 0x7fc0};
  EXPECT_EQ(std::vector<std::uint16_t>(halves.begin(), halves.end()), expected);
  const std::vector<std::uint16_t> stored{0x7f81, 0x0001};  // a signalling nan stays one
  const auto copied = xgrad::to_bfloat16({"b", DType::BF16, {2}, bytes_of(stored)});
  EXPECT_EQ(std::vector<std::uint16_t>(copied.begin(), copied.end()), stored);
  EXPECT_EQ(xgrad::to_bfloat16({"e", DType::F32, {0, 3}, {}}).size(), 0u);
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_bfloat16({"i", DType::I8, {0}, {}});
            }),
            R"(tensor "i": dtype must be F64, F32, F16, BF16 or F8, got I8)");

  std::vector<double> many((1 << 16) + 3);  // more than a piece
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i % 127);
  const auto all = xgrad::to_bfloat16({"d", DType::F64, {many.size()}, bytes_of(many)});
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(xgrad::bfloat16_to_float(all(i)), many[i]) << i;
}

// ---- what is refused ----

struct BadGguf {
  std::string bytes;
  std::string message;  // what follows the path
};

std::string with_counts(std::uint64_t tensors, std::uint64_t keys) {
  return "GGUF" + gguf::number(std::uint32_t{3}) + gguf::number(tensors) + gguf::number(keys) +
         std::string(76, '\1');
}

TEST(Gguf, BadFilesAreRefusedByName) {
  const std::string data(64, '\0');
  const auto with_tensors = [&](const std::vector<std::string>& tensors) {
    return gguf::file({}, tensors, data);
  };
  const auto with_key = [](const std::string& key) { return gguf::file({key}, {}); };
  const std::string alignment = "general.alignment";
  const std::vector<BadGguf> bad{
      {"", R"(must begin with "GGUF", got "")"},
      {"PK\3\4" + data, R"(must begin with "GGUF", got "PK\u0003\u0004")"},
      {"GGUF", "the version must fit into the file, which ends 0 bytes behind, got 4 bytes"},
      {gguf::file({}, {}, "", 1), "the version must be 2 or 3, got 1"},
      {gguf::file({}, {}, "", 0), "the version must be 2 or 3, got 0"},
      {gguf::file({}, {}, "", 0x03000000),
       "the version must be 2 or 3, in little-endian order, got 50331648"},
      {"GGUF" + gguf::number(std::uint32_t{3}) + "1234",
       "the header must fit into the file, which ends 4 bytes behind, got 8 bytes"},
      {with_counts(5, 0), "the number of tensors must fit into the file of 100 bytes, got 5"},
      {with_counts(0, 8), "the number of keys must fit into the file of 100 bytes, got 8"},
      {with_counts(4, 0),
       "tensor 1 of 4: the name must fit into the file, which ends 68 bytes behind, got 72340172838076673 "
       "bytes"},
      {with_key(gguf::key("", u8, "\1")), "key 1 of 1: the name must have from 1 to 65535 bytes, got 0"},
      {with_key(gguf::key(std::string(65536, 'a'), u8, "\1")),
       "key 1 of 1: the name must have from 1 to 65535 bytes, got 65536"},
      {with_key(gguf::key("\xff", u8, "\1")), "key 1 of 1: the name must be UTF-8, got \"\uFFFD\""},
      {gguf::file({gguf::key("a", u8, "\1"), gguf::key("a", u8, "\1")}, {}),
       R"(key 2 of 2: the name "a" must be unique, got it twice)"},
      {with_key(gguf::key("a", 13, "\1")), R"(key "a": the type must be from 0 to 12, got 13)"},
      {with_key(gguf::array("a", 14, 1, "\1")),
       R"(key "a": the type of the elements must be from 0 to 12, got 14)"},
      {with_key(gguf::array("a", array, 1, "\1")),
       R"(key "a": the elements must be no arrays, which are not read)"},
      {with_key(gguf::array("a", u64, std::uint64_t{1} << 62, "")),
       R"(key "a": the value must fit into the file, which ends 15 bytes behind, got 4611686018427387904 items)"},
      {with_key(gguf::array("a", string, std::uint64_t{1} << 61, "")),
       R"(key "a": the value must fit into the file, which ends 7 bytes behind, got 8 bytes)"},
      {with_key(gguf::key("a", boolean, "\2")), R"(key "a": a BOOL must be 0 or 1, got 2)"},
      {with_key(gguf::array("a", boolean, 2, "\1\3")), R"(key "a": a BOOL must be 0 or 1, got 3)"},
      {with_key(gguf::key("general.architecture", u8, "\1")),
       R"(key "general.architecture" must be a STRING, got UINT8 1)"},
      {with_key(gguf::array("general.architecture", string, 1, gguf::text("a"))),
       R"(key "general.architecture" must be a STRING, got ARRAY of 1 STRING: "a")"},
      {with_key(gguf::key(alignment, u8, "\1")), R"(key "general.alignment" must be a UINT32, got UINT8 1)"},
      {with_key(gguf::array(alignment, u32, 1, gguf::number(std::uint32_t{32}))),
       R"(key "general.alignment" must be a UINT32, got ARRAY of 1 UINT32: 32)"},
      {with_key(gguf::key(alignment, u32, gguf::number(std::uint32_t{48}))),
       R"(key "general.alignment" must be a power of 2, got UINT32 48)"},
      {with_key(gguf::key(alignment, u32, gguf::number(std::uint32_t{0}))),
       R"(key "general.alignment" must be a power of 2, got UINT32 0)"},
      {with_tensors({gguf::tensor("w", {1, 1, 1, 1, 1}, F32, 0)}),
       R"(tensor "w": the number of axes must be at most 4, got 5)"},
      {with_tensors({gguf::tensor("w", {-1}, F32, 0)}),
       R"(tensor "w": lengths of axes must be at least 0, got -1)"},
      {with_tensors({gguf::tensor("w", {1}, 4, 0)}),
       R"(tensor "w": the type must be one of the format's, got 4)"},
      {with_tensors({gguf::tensor("w", {1}, F32, 0), gguf::tensor("w", {1}, F32, 32)}),
       R"(tensor 2 of 2: the name "w" must be unique, got it twice)"},
      {with_tensors({gguf::tensor("w", {1}, F32, 4)}),
       R"(tensor "w": the offset must be a multiple of 32, got 4)"},
      {with_tensors({gguf::tensor("w", {33}, Q8_0, 0)}),
       R"(tensor "w": shape (33) of Q8_0 must have rows of whole blocks and take less than 2^57 bytes)"},
      {with_tensors({gguf::tensor("w", {std::int64_t{1} << 60, 16}, F32, 0)}),
       R"(tensor "w": shape (16, 1152921504606846976) of F32 must have rows of whole blocks and take less than 2^57 bytes)"},
      {with_tensors({gguf::tensor("w", {17}, F32, 0)}),
       R"(tensor "w": the 68 bytes of shape (17) of F32 from 0 on must stay in the data, got 64 bytes of it)"},
      {with_tensors({gguf::tensor("w", {9}, F32, 32)}),
       R"(tensor "w": the 36 bytes of shape (9) of F32 from 32 on must stay in the data, got 64 bytes of it)"},
      {with_tensors({gguf::tensor("w", {1}, F32, 96)}),
       R"(tensor "w": the 4 bytes of shape (1) of F32 from 96 on must stay in the data, got 64 bytes of it)"},
      {with_tensors({gguf::tensor("v", {1}, F16, 32), gguf::tensor("w", {9}, F32, 0)}),
       R"(tensor "v": the offset 32 must be behind tensor "w", which ends at 36)"},
  };
  const TemporaryFolder temporary;
  for (const BadGguf& one : bad) {
    const std::string path = temporary.write("bad.gguf", one.bytes);
    EXPECT_EQ(message_of<FileError>([&] { GgufFile file(path); }), path + ": " + one.message);
  }
}

TEST(Gguf, MoreEntriesThanAnyModelHasAreRefused) {
  const TemporaryFolder temporary;
  const std::uint64_t many = (1 << 16) + 1;
  std::string bytes =
      "GGUF" + gguf::number(std::uint32_t{3}) + gguf::number(std::uint64_t{0}) + gguf::number(many);
  bytes.resize(14 * many);
  EXPECT_EQ(message_of<FileError>([&] { GgufFile file(temporary.write("many.gguf", bytes)); }),
            temporary.path("many.gguf") + ": the number of keys must be at most 65536, got 65537");
}

// ---- inspect ----

TEST(Inspect, ListsTensorsAndMetadataOfGgufFiles) {
  const TemporaryFolder temporary;
  std::string data = gguf::number(std::uint16_t{0x3c00});
  for (int i = 0; i < 32; ++i) data += static_cast<char>(i - 16);
  data.resize(64);
  data += gguf::number(-0.5F) + gguf::number(std::nanf(""));
  data.resize(96);
  data += std::string(50, '\1');
  std::string ids;
  for (std::int32_t i = 0; i < 10; ++i) ids += gguf::number(i);
  const std::string path = temporary.write(
      "small.gguf",
      gguf::file({gguf::key("general.architecture", string, gguf::text("llama")),
                  gguf::key("llama.rope\n", f32, gguf::number(10000.0F)), gguf::array("ids", i32, 10, ids),
                  gguf::array("tokens", string, 2, gguf::text("<s>") + gguf::text("\n")),
                  gguf::key("template", string, gguf::text(std::string(300, 'a')))},
                 {gguf::tensor("blk.0", {32}, Q8_0, 0), gguf::tensor("norm", {2}, F32, 64),
                  gguf::tensor("other", {256, 1}, IQ1_S, 96)},
                 data));
  EXPECT_EQ(xgrad_tests::output_of("inspect " + path),
            "name   dtype  shape      min   max  nan\n"
            "blk.0  Q8_0   (32)       -16    15    0\n"
            "norm   F32    (2)       -0.5  -0.5    1\n"
            "other  IQ1_S  (1, 256)     -     -    -\n"
            "3 tensors, 290 elements, 92 bytes\n"
            "metadata \"general.architecture\": STRING \"llama\"\n"
            "metadata \"llama.rope\\n\": FLOAT32 10000\n"
            "metadata \"ids\": ARRAY of 10 INT32: 0, 1, 2, 3, 4, 5, 6, 7, ...\n"
            "metadata \"tokens\": ARRAY of 2 STRING: \"<s>\", \"\\n\"\n"
            "metadata \"template\": STRING \"" +
                std::string(200, 'a') + "...\"\n");

  std::string blocks;
  constexpr std::size_t count = 2049;  // the last one is not in the first piece that is read
  for (std::size_t i = 1; i <= count; ++i)
    blocks += gguf::number(i < count ? std::uint16_t{0} : std::uint16_t{0x3c00}) + std::string(32, '\5');
  EXPECT_EQ(
      xgrad_tests::output_of(
          "inspect " +
          temporary.write("large.gguf", gguf::file({}, {gguf::tensor("w", {32, count}, Q8_0, 0)}, blocks))),
      "name  dtype  shape       min  max  nan\n"
      "w     Q8_0   (2049, 32)    0    5    0\n"
      "1 tensor, 65568 elements, 69666 bytes\n");
  const std::string broken = temporary.write("broken.gguf", "GGUF");
  const auto program = xgrad_tests::run_program("inspect " + broken + " 2>&1");
  EXPECT_EQ(program.exit_code, 1);
  EXPECT_EQ(program.output, "inspect: " + message_of<FileError>([&] { GgufFile file(broken); }) + "\n");
}

}  // namespace gguf_test
