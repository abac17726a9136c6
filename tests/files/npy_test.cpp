// npy and npz: reading, refusing, writing. data/npy/ holds files that NumPy wrote.

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/files/npy.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "npy.hpp"
#include "program.hpp"

namespace npy_test {

using xgrad::Array, xgrad::StateDict, xgrad::FileError, xgrad::Ids, xgrad::Mask, xgrad::NpyFile,
    xgrad::NpyWriter, xgrad::NpzFile, xgrad::ValueError;
using xgrad_tests::expect_same_bits, xgrad_tests::message_of, xgrad_tests::read_bytes,
    xgrad_tests::TemporaryFolder;

const std::string folder = XGRAD_TEST_DATA_DIR "/npy/";
const Array<float> counting{{0, 1, 2}, {3, 4, 5}};

/// An npy file of version 1.0 with this dict as its header.
std::string file_of(const std::string& dict, std::size_t data_size = 0) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(dict.size()) + '\0' + dict +
         std::string(data_size, '\1');
}

TEST(Npy, FilesOfNumpyAreRead) {
  expect_same_bits(xgrad::load_npy<float>(folder + "big_endian.npy"), counting);
  expect_same_bits(xgrad::load_npy<double>(folder + "big_endian.npy"), Array<double>(counting));
  expect_same_bits(xgrad::load_npy<double>(folder + "big_endian_columns.npy"), Array<double>(counting));
  expect_same_bits(xgrad::load_npy<float>(folder + "version_2.npy"), counting);
  expect_same_bits(xgrad::load_npy<float>(folder + "version_3.npy"), counting);
  expect_same_bits(xgrad::load_npy<float>(folder + "half.npy"),
                   Array<float>{1.5f, -0.0f, 0x1p-24f, INFINITY});
  expect_same_bits(xgrad::load_npy<std::int64_t>(folder + "int8.npy"), Ids{{-128, 127}});
  expect_same_bits(xgrad::load_npy<bool>(folder + "mask.npy"), Mask{true, false, true});
  EXPECT_EQ(message_of<FileError>([] { xgrad::load_npy<float>(folder + "int8.npy"); }),
            folder + R"(int8.npy: dtype must be F64, F32, F16, BF16 or F8, got I8)");
}

TEST(Npy, ColumnsOfThreeAxesAreReordered) {
  const TemporaryFolder temporary;
  std::string file = file_of("{'shape': (2, 3, 2), \"fortran_order\": True, 'descr': '|u1'}");
  for (int i = 0; i < 12; ++i) file += static_cast<char>(i);
  const Ids expected{{{0, 6}, {2, 8}, {4, 10}}, {{1, 7}, {3, 9}, {5, 11}}};
  expect_same_bits(xgrad::load_npy<std::int64_t>(temporary.write("columns.npy", file)), expected);
}

template <class T>
void expect_round_trip(const Array<T>& array) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("a.npy");
  xgrad::save_npy(array, path);
  expect_same_bits(xgrad::load_npy<T>(path), array);
  expect_same_bits(xgrad_tests::read_npy<T>(path), array);  // an independent reader
}

TEST(Npy, WhatIsSavedIsLoadedBitForBit) {
  expect_round_trip(Array<float>{{-0.0f, std::nanf("42"), INFINITY, 0x1p-149f}});
  expect_round_trip(Array<double>{-0.0, std::nan("42"), -INFINITY});
  expect_round_trip(Array<double>(2.5));
  expect_round_trip(Array<float>::from_shape({2, 0, 3}));
  expect_round_trip(Ids{{-1, 9007199254740993}});
  expect_round_trip(Mask(xt::ones<bool>({2, 1})));
}

TEST(Npy, FilesAreThoseOfNumpy) {
  const TemporaryFolder temporary;
  const std::string contents = XGRAD_TEST_DATA_DIR "/badfiles/contents/";
  for (const char* name :
       {"empty_and_scalar.0", "empty_and_scalar.1", "float32_two.1", "empty_and_scalar.2"}) {
    const std::string original = contents + name + ".npy", copy = temporary.path("copy.npy");
    xgrad::save_npy(xgrad::load_npy<float>(original), copy);
    EXPECT_EQ(read_bytes(copy), read_bytes(original)) << name;
  }
  xgrad::save_npy(xgrad::load_npy<bool>(folder + "mask.npy"), temporary.path("mask.npy"));
  EXPECT_EQ(read_bytes(temporary.path("mask.npy")), read_bytes(folder + "mask.npy"));
}

struct BadFile {
  const char* dict;
  const char* message;  // what follows the path
};

const BadFile bad_files[] = {
    {"", R"(the header must have "{" next, got "")"},
    {"{}", "the header must have descr, fortran_order and shape"},
    {"{'descr': '<f4', 'shape': (2,)}", "the header must have descr, fortran_order and shape"},
    {"{'descr': '<f4', 'descr': '<f4'}",
     R"(the header must have descr, fortran_order and shape once each, got "descr")"},
    {"{'color': 1}", R"(the header must have descr, fortran_order and shape once each, got "color")"},
    {"{'descr': '<f4' 'shape': ()}", R"(the header must have a comma after the value of "descr")"},
    {"{'descr': [('a', '<f4')]}", "descr must be one type for all elements, got a structure"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': ()}",
     R"(descr must be bool, an integer or a float of 2, 4 or 8 bytes, got "<c8")"},
    {"{'descr': '', 'fortran_order': False, 'shape': ()}",
     R"(descr must be bool, an integer or a float of 2, 4 or 8 bytes, got "")"},
    {"{'descr': '<f4", R"(the header must have a string next, got "'<f4")"},
    {"{'fortran_order': 0}", R"(fortran_order must be True or False, got "0}")"},
    {"{'shape': [2]}", R"(shape must be a tuple, got "[2]}")"},
    {"{'shape': (2)}", R"(shape must be a tuple, got ")}" after its length 2)"},
    {"{'shape': (2 3)}", R"(shape must be a tuple, got "3)}" after its length 2)"},
    {"{'shape': (-2, -2)}", R"(shape must hold integers from 0 to 2^64 - 1, got "-2, -2)}")"},
    {"{'shape': (18446744073709551616,)}", "shape must hold integers from 0 to 2^64 - 1, got"},
    {"{'shape': (2,", "shape must hold integers from 0 to 2^64 - 1, got"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
     "the data must be the too many bytes of shape (4294967296, 4294967296) of F32, got 8"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4294967296, 4294967296)}",
     "the data must be the too many bytes of shape (0, 4294967296, 4294967296) of F32, got 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
     "the data must be the 4 bytes of shape (1) of F32, got 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "the header must end after '}'"},
};

TEST(Npy, BadHeadersAreRefused) {
  const TemporaryFolder temporary;
  for (const BadFile& bad : bad_files) {
    const std::string path = temporary.write("bad.npy", file_of(bad.dict, 8));
    const std::string message = message_of<FileError>([&] { NpyFile file(path); });
    EXPECT_TRUE(message.starts_with(path + ": " + bad.message)) << bad.dict << '\n' << message;
  }
  const std::string path = temporary.write("version.npy", "\x93NUMPY\4" + std::string(100, '\0'));
  EXPECT_EQ(message_of<FileError>([&] { NpyFile file(path); }),
            path + ": the format's version must be 1.0, 2.0 or 3.0");
}

TEST(Npy, EveryPartOfAFileIsRefused) {
  const TemporaryFolder temporary;
  for (const char* name : {"big_endian_columns.npy", "version_3.npy"}) {
    const std::string whole = read_bytes(folder + name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string path = temporary.write("part.npy", whole.substr(0, size));
      EXPECT_TRUE(message_of<FileError>([&] { NpyFile file(path); }).starts_with(path)) << name << size;
    }
  }
}

/// An npy file of version 2.0 or 3.0, whose header's length has 4 bytes, filled up with blanks.
std::string file_of_long_header(char version, std::size_t header_size, const std::string& data) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.append(header_size - header.size() - 1, ' ');
  header += '\n';
  std::string file = "\x93NUMPY" + std::string{version, '\0'};
  for (int shift = 0; shift < 32; shift += 8) file += static_cast<char>(header_size >> shift & 255);
  return file + header + data;
}

TEST(Npy, LongHeadersAreRead) {
  const TemporaryFolder temporary;
  const Array<float> numbers{1.5f, -2};
  const std::string data(reinterpret_cast<const char*>(numbers.data()), 8);
  for (const char version : {'\2', '\3'}) {
    for (const std::size_t size : {0xffffUL, 0x10000UL, 0x12345UL, 0x1000000UL, 0x1020304UL}) {
      const std::string path = temporary.write("long.npy", file_of_long_header(version, size, data));
      expect_same_bits(xgrad::load_npy<float>(path), numbers);
    }
  }
  const std::string cut = file_of_long_header('\2', 0x20000, data).substr(0, 0x10000);
  const std::string path = temporary.write("cut.npy", cut);
  EXPECT_EQ(message_of<FileError>([&] { NpyFile file(path); }),
            path + ": the header's length must fit into the file of 65536 bytes, got 131072");
  const std::string shorter = file_of_long_header('\2', 0x20000, "");
  const std::string one_less = temporary.write("one_less.npy", shorter.substr(0, shorter.size() - 1));
  EXPECT_EQ(message_of<FileError>([&] { NpyFile file(one_less); }),
            one_less + ": the header's length must fit into the file of 131083 bytes, got 131072");
}

TEST(Npy, AShapeThatFitsIntoNoHeaderIsRefused) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("axes.npy");
  // 53 characters and 3 for each axis, filled up so that with the 10 bytes before them they are a multiple
  // of 64.
  const auto of_rank = [](std::size_t rank) { return Array<float>(xgrad::Shape(rank, 1), 2.5f); };
  constexpr std::size_t most = (65526 - 1 - 53) / 3;
  xgrad::save_npy(of_rank(most), path);
  expect_same_bits(xgrad::load_npy<float>(path), of_rank(most));
  EXPECT_EQ(read_bytes(path).size(), 10 + 65526u + 4);
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::save_npy(of_rank(most + 1), path); }),
            "save_npy: the header must have at most 65535 bytes, got 65590");
  expect_same_bits(xgrad::load_npy<float>(path), of_rank(most));
}

/// The number's bytes, the first one last if big_endian.
template <class Stored>
std::string bytes_of(std::initializer_list<Stored> numbers, bool big_endian) {
  std::string bytes;
  for (const Stored number : numbers) {
    std::string part(reinterpret_cast<const char*>(&number), sizeof number);
    if (big_endian) std::ranges::reverse(part);
    bytes += part;
  }
  return bytes;
}

template <class Stored>
void expect_integers(const std::string& name) {
  const TemporaryFolder temporary;
  using Limits = std::numeric_limits<Stored>;
  for (const char order : {'<', '>', '|', '='}) {
    const std::string path = temporary.write(
        "integers.npy",
        file_of("{'descr': '" + (order + name) + "', 'fortran_order': False, 'shape': (3,), }") +
            bytes_of<Stored>({Limits::min(), Limits::max(), Stored{5}}, order == '>'));
    expect_same_bits(xgrad::load_npy<std::int64_t>(path), Ids{static_cast<std::int64_t>(Limits::min()),
                                                              static_cast<std::int64_t>(Limits::max()), 5});
  }
}

TEST(Npy, IntegersOfEveryWidthAreRead) {
  expect_integers<std::int8_t>("i1");
  expect_integers<std::int16_t>("i2");
  expect_integers<std::int32_t>("i4");
  expect_integers<std::int64_t>("i8");
  expect_integers<std::uint8_t>("u1");
  expect_integers<std::uint16_t>("u2");
  expect_integers<std::uint32_t>("u4");
  const TemporaryFolder temporary;
  const auto path = [&](std::uint64_t number) {
    return temporary.write("u8.npy", file_of("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }") +
                                         bytes_of({number}, false));
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_same_bits(xgrad::load_npy<std::int64_t>(path(most)), Ids{most});
  const std::string above = path(std::uint64_t{1} << 63);
  EXPECT_EQ(message_of<FileError>([&] { xgrad::load_npy<std::int64_t>(above); }),
            above + ": integers of U64 must be below 2^63");
}

TEST(Npy, LengthsOfPython2AreRead) {
  const TemporaryFolder temporary;
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }";
  expect_same_bits(xgrad::load_npy<std::int64_t>(temporary.write("long.npy", file_of(header, 6))),
                   Ids{{1, 1, 1}, {1, 1, 1}});
}

TEST(Npy, FloatsOfEitherByteOrderAreRead) {
  const TemporaryFolder temporary;
  for (const bool big_endian : {false, true}) {
    const std::string order = big_endian ? ">" : "<";
    const auto path = [&](const std::string& type, const std::string& data) {
      return temporary.write(
          "floats.npy",
          file_of("{'descr': '" + order + type + "', 'fortran_order': False, 'shape': (2,), }") + data);
    };
    const std::uint16_t half = 0x3e00, other_half = 0xc000;
    expect_same_bits(xgrad::load_npy<float>(path("f2", bytes_of({half, other_half}, big_endian))),
                     Array<float>{1.5f, -2});
    expect_same_bits(xgrad::load_npy<double>(path("f8", bytes_of({1.0 / 3, -2.0}, big_endian))),
                     Array<double>{1.0 / 3, -2});
    expect_same_bits(xgrad::load_npy<bool>(path("b1", std::string("\0\2", 2))), Mask{false, true});
  }
}

template <class T>
void expect_rows(const Array<T>& first, const Array<T>& second, const Array<T>& all) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("rows.npy");
  NpyWriter<T> file(path, xgrad::Shape(all.shape().begin() + 1, all.shape().end()));
  file.append(first);
  EXPECT_EQ(file.rows(), first.shape(0));
  file.append(second);
  EXPECT_EQ(temporary.file_count(), 1u);
  EXPECT_FALSE(std::filesystem::exists(path)) << "before it is complete";
  file.commit();
  expect_same_bits(xgrad::load_npy<T>(path), all);
  expect_same_bits(xgrad_tests::read_npy<T>(path), all);
  EXPECT_EQ((read_bytes(path).size() - all.size() * sizeof(T)) % 64, 0u);
}

TEST(NpyWriterTest, RowsAreAppended) {
  expect_rows<float>({{0, 1, 2}}, {{3, 4, 5}}, counting);
  expect_rows<double>(xt::zeros<double>({0, 2, 2}), {{{1, 2}, {3, 4}}}, {{{1, 2}, {3, 4}}});
  expect_rows<std::int64_t>({1, 2}, {3}, {1, 2, 3});
  expect_rows<bool>({true}, {false, true}, {true, false, true});
}

TEST(NpyWriterTest, TheHeaderHasRoomForAnyNumberOfRows) {
  for (std::size_t axes = 0; axes < 24; ++axes) {
    const TemporaryFolder temporary;
    const std::string path = temporary.path("rows.npy");
    NpyWriter<float> file(path, xgrad::Shape(axes, 1));
    xgrad::Shape shape(axes + 1, 1);
    shape[0] = 1234;
    Array<float> rows(shape);
    for (std::size_t i = 0; i < rows.size(); ++i) rows.data()[i] = static_cast<float>(i);
    file.append(rows);
    file.commit();
    expect_same_bits(xgrad::load_npy<float>(path), rows);
  }
}

TEST(NpyWriterTest, NoRowsAreAFileOfNone) {
  const TemporaryFolder temporary;
  NpyWriter<float> file(temporary.path("none.npy"), {3, 2});
  file.commit();
  EXPECT_EQ(xgrad::to_string(xgrad::load_npy<float>(temporary.path("none.npy")).shape()), "(0, 3, 2)");
}

TEST(NpyWriterTest, RowsOfAnotherShapeAreRefusedAndTheOthersRemain) {
  const TemporaryFolder temporary;
  NpyWriter<float> file(temporary.path("rows.npy"), {3});
  file.append(counting);
  for (const Array<float>& other : {Array<float>{{1, 2}}, Array<float>{1, 2, 3}, Array<float>(1.0f)}) {
    EXPECT_EQ(
        message_of<xgrad::ShapeError>([&] { file.append(other); }),
        "NpyWriter: rows must have the shape (3) behind axis 0, got " + xgrad::to_string(other.shape()));
  }
  file.commit_as(temporary.path("part.npy"));
  expect_same_bits(xgrad::load_npy<float>(temporary.path("part.npy")), counting);
  EXPECT_EQ(temporary.file_count(), 1u);
}

TEST(NpyWriterTest, WithoutCommitNothingIsLeft) {
  const TemporaryFolder temporary;
  {
    NpyWriter<float> file(temporary.write("rows.npy", "old"), {3});
    file.append(counting);
  }
  EXPECT_EQ(read_bytes(temporary.path("rows.npy")), "old");
  EXPECT_EQ(temporary.file_count(), 1u);
}

TEST(Npz, FilesOfNumpyAreRead) {
  const StateDict<float> stored = xgrad::load_npz<float>(folder + "stored.npz");
  ASSERT_EQ(stored.size(), 2u);
  expect_same_bits(stored.at("layer.weight"), counting);
  expect_same_bits(stored.at("größe"), Array<float>(2.5f));
  const StateDict<double> deflated = xgrad::load_npz<double>(folder + "deflated.npz");
  ASSERT_EQ(deflated.size(), 2u);
  expect_same_bits(deflated.at("a"), Array<double>(counting));
  expect_same_bits(deflated.at("zeros"), Array<double>(xt::zeros<double>({50000})));
}

TEST(Npz, WhatIsSavedIsLoadedBitForBitAndTheSameEveryTime) {
  const TemporaryFolder temporary;
  const StateDict<double> arrays{{"layer.weight", {{-0.0, std::nan("42")}, {INFINITY, 1.0 / 3}}},
                                 {"größe", Array<double>(2.5)},
                                 {"", Array<double>::from_shape({0, 3})}};
  xgrad::save_npz(arrays, temporary.path("a.npz"));
  xgrad::save_npz(arrays, temporary.path("b.npz"));
  EXPECT_EQ(read_bytes(temporary.path("a.npz")), read_bytes(temporary.path("b.npz")));
  const StateDict<double> loaded = xgrad::load_npz<double>(temporary.path("a.npz"));
  ASSERT_EQ(loaded.size(), arrays.size());
  for (const auto& [name, array] : arrays) expect_same_bits(loaded.at(name), array);

  xgrad::save_npz<bool>({{"mask", {true, false}}}, temporary.path("mask.npz"));
  expect_same_bits(xgrad::load_npz<bool>(temporary.path("mask.npz")).at("mask"), Mask{true, false});
  EXPECT_EQ(
      message_of<FileError>([&] { xgrad::load_npz<float>(temporary.path("mask.npz")); }),
      temporary.path("mask.npz") + R"(: tensor "mask": dtype must be F64, F32, F16, BF16 or F8, got BOOL)");
}

TEST(Npz, WhatCannotBeSavedIsRefused) {
  const TemporaryFolder temporary;
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::save_npz<float>({}, temporary.path("a.npz")); }),
            "save_npz: must be given at least one array, got none");
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::save_npz<float>({{std::string("a\0b", 3), counting}}, temporary.path("a.npz"));
            }),
            R"(save_npz: a name must have no zero byte, got "a\u0000b")");
  EXPECT_EQ(temporary.file_count(), 0u);
}

/// The file with `from` replaced everywhere by `to`, which must be as long.
std::string changed(std::string file, const std::string& from, const std::string& to) {
  std::size_t changes = 0;
  for (std::size_t at = 0; (at = file.find(from, at)) != std::string::npos; ++changes)
    file.replace(at, from.size(), to);
  EXPECT_GT(changes, 0u);
  return file;
}

TEST(Npz, BrokenArchivesAreRefused) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("bad.npz");
  const auto refusal = [&](const std::string& file) {
    temporary.write("bad.npz", file);
    const std::string message = message_of<FileError>([&] { NpzFile opened(path); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(std::min(message.size(), path.size() + 2));
  };
  xgrad::save_npz<float>({{"a", counting}, {"b", counting}}, temporary.path("good.npz"));
  const std::string good = read_bytes(temporary.path("good.npz"));

  EXPECT_EQ(refusal(changed(good, "b.npy", "a.npy")), "must be a whole zip archive: File already exists");
  EXPECT_EQ(refusal(changed(good, "b.npy", "b.txt")), R"(entry "b.txt": must be an npy file)");
  EXPECT_EQ(refusal(changed(good, "NUMPY", "NUMPX")),
            R"(entry "a.npy": must be a whole zip archive: CRC error)");
  EXPECT_EQ(refusal(""), R"(must be a whole zip archive: it must begin with "PK")");
  for (std::size_t size = 1; size < good.size(); ++size) refusal(good.substr(0, size));
}

/// An entry of a zip archive, as the archive says it is.
struct ZipEntry {
  std::string name, packed;
  std::uint32_t packed_size, size;
  std::uint16_t method = 8;  ///< 0: stored, 8: deflated
  std::uint32_t checksum = 0;
  std::optional<std::size_t> inside = {};  ///< its place in the file, if it lies inside an entry before
};

std::string little(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? number >> (8 * i) & 0xFF : 0);
  return text;
}

/// What the two headers of an entry share.
std::string fields_of(const ZipEntry& entry) {
  return little(20, 2) + little(0, 2) + little(entry.method, 2) + little(0x210000, 4) +
         little(entry.checksum, 4) + little(entry.packed_size, 4) + little(entry.size, 4) +
         little(entry.name.size(), 2) + little(0, 2);
}

/// An entry as it lies in an archive.
std::string in_archive(const ZipEntry& entry) {
  return "PK\3\4" + fields_of(entry) + entry.name + entry.packed;
}

/// An archive of these entries (PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16).
std::string zip_of(const std::vector<ZipEntry>& entries) {
  std::string file, directory;
  for (const ZipEntry& entry : entries) {
    directory += "PK\1\2" + little(20, 2) + fields_of(entry) + little(0, 10) +
                 little(entry.inside.value_or(file.size()), 4) + entry.name;
    if (!entry.inside) file += in_archive(entry);
  }
  const std::string end = "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
                          little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
  return file + directory + end;
}

std::uint32_t checksum_of(const std::string& content) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
}

/// The entry of an npy file, not deflated.
ZipEntry stored(const std::string& name, const std::string& content) {
  const auto size = static_cast<std::uint32_t>(content.size());
  return {name, content, size, size, 0, checksum_of(content)};
}

/// The entry of an npy file, deflated as small as zlib can.
ZipEntry deflated(const std::string& name, const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return {name,
          packed,
          static_cast<std::uint32_t>(packed.size()),
          static_cast<std::uint32_t>(content.size()),
          8,
          checksum_of(content)};
}

std::string bytes_file(const std::string& bytes) {
  return file_of("{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(bytes.size()) +
                 ",), }") +
         bytes;
}

std::string zeros_file(std::size_t count) { return bytes_file(std::string(count, '\0')); }

TEST(Npz, ArraysOfNoNumbersDoNotHideTheOthers) {
  const TemporaryFolder temporary;
  const auto other = [](const std::string& descr) {
    return file_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': (), }", 3);
  };
  // As scipy.sparse.save_npz writes them
  const std::string path = temporary.write(
      "sparse.npz",
      zip_of({stored("format.npy", other("'|S3'")), stored("data.npy", bytes_file("\1\2")),
              stored("object.npy", other("'|O'")), stored("both.npy", other("[('a', '<f4')]"))}));
  const NpzFile file(path);
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.tensors()[0].name, "data");
  EXPECT_EQ(xgrad::to_array<std::int64_t>(file.tensors()[0]), (Ids{1, 2}));
  ASSERT_EQ(file.others().size(), 3u);
  EXPECT_EQ(file.others()[0].name, "format");
  const std::string reason =
      path +
      ": entry \"format.npy\": descr must be bool, an integer or a float of 2, 4 or 8 bytes, got \"|S3\"";
  EXPECT_EQ(file.others()[0].reason, reason);
  EXPECT_EQ(file.others()[1].name, "object");
  EXPECT_EQ(file.others()[2].name, "both");
  EXPECT_EQ(message_of<FileError>([&] { xgrad::load_npz<std::int64_t>(path); }), reason);
  const std::string shown = xgrad_tests::output_of("inspect " + path);
  EXPECT_NE(shown.find("\n1 tensor, 2 elements, 2 bytes\nnot shown, \"format\": " + reason + "\n"),
            std::string::npos)
      << shown;

  const std::string broken =
      temporary.write("broken.npz", zip_of({stored("a.npy", file_of("{'descr': 1}"))}));
  EXPECT_EQ(message_of<FileError>([&] { NpzFile opened(broken); }),
            broken + ": entry \"a.npy\": the header must have a string next, got \"1}\"");
}

TEST(Npz, WhatIsPackedAsWellAsDeflateCanIsRead) {
  const TemporaryFolder temporary;
  const ZipEntry entry = deflated("zeros.npy", zeros_file(20'000'000));
  EXPECT_GT(entry.size / entry.packed_size, 1020u);
  const std::string path = temporary.write("zeros.npz", zip_of({entry}));
  EXPECT_EQ(xgrad::load_npz<std::int64_t>(path).at("zeros").size(), 20'000'000u);
}

TEST(Npz, WhatClaimsMoreThanItHoldsIsRefused) {
  const TemporaryFolder temporary;
  const auto refusal = [&](const std::vector<ZipEntry>& entries) {
    const std::string path = temporary.write("bomb.npz", zip_of(entries));
    const std::string text = message_of<FileError>([&] { NpzFile file(path); });
    return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
  };
  const ZipEntry right = deflated("a.npy", zeros_file(1000));
  EXPECT_EQ(refusal({right}), "no exception");
  const auto packed = std::to_string(right.packed_size);
  const auto claim = [&](std::uint32_t size) {
    ZipEntry wrong = right;
    wrong.size = size;
    return refusal({wrong});
  };
  // A byte of deflate's makes 1032 at most.
  const std::uint32_t most = 1032 * right.packed_size;
  EXPECT_EQ(claim(most + 1032),
            R"(entry "a.npy": must be unpacked from the archive's bytes, got a size of )" +
                std::to_string(most + 1032) + " packed into " + packed);
  EXPECT_EQ(claim(0xfffffff0), R"(entry "a.npy": must be unpacked from the archive's bytes, got a size of )"
                               "4294967280 packed into " +
                                   packed);
  for (const std::uint32_t size : {most, right.size - 1, right.size + 1})
    EXPECT_TRUE(claim(size).starts_with(R"(entry "a.npy": must be a whole zip archive: )")) << claim(size);

  ZipEntry method = right;
  method.method = 12;
  EXPECT_EQ(refusal({method}), R"(entry "a.npy": must be stored or deflated, got compression method 12)");
  ZipEntry checksum = right;
  checksum.checksum ^= 1;
  EXPECT_EQ(refusal({checksum}), R"(entry "a.npy": must be a whole zip archive: CRC error)");
}

TEST(Npz, EntriesThatLieInEachOtherAreRefused) {
  const TemporaryFolder temporary;
  ZipEntry inner = stored("b.npy", zeros_file(1000));
  const std::string content = bytes_file(in_archive(inner));
  const ZipEntry outer = stored("a.npy", content);
  inner.inside = in_archive(outer).size() - in_archive(inner).size();
  const std::string path = temporary.write("nested.npz", zip_of({outer, inner}));
  const auto size = std::to_string(inner.size);
  EXPECT_EQ(message_of<FileError>([&] { NpzFile file(path); }),
            path + R"(: entry "b.npy": must be unpacked from the archive's bytes, got a size of )" + size +
                " packed into " + size);
}

TEST(Npz, AChangedByteIsRefusedOrAnotherArchive) {
  const TemporaryFolder temporary;
  const std::string whole = read_bytes(folder + "deflated.npz");
  std::size_t refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int bits : {1, 0x80, 0xff}) {
      std::string file = whole;
      file[i] = static_cast<char>(file[i] ^ bits);
      const std::string path = temporary.write("changed.npz", file);
      try {
        const NpzFile opened(path);
        EXPECT_EQ(opened.tensors().size(), 2u);
      } catch (const FileError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, whole.size());
}

TEST(Npz, IsInspected) {
  EXPECT_EQ(xgrad_tests::output_of("inspect " + folder + "stored.npz"),
            "name          dtype  shape   min  max  nan\n"
            "layer.weight  F32    (2, 3)    0    5    0\n"
            "größe         F64    ()      2.5  2.5    0\n"
            "2 tensors, 7 elements, 32 bytes\n");
}

}  // namespace npy_test
