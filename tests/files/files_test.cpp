// safetensors: reading, refusing, writing. npy_test.cpp does the same for npy and npz.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/files/npy.hpp>
#include <xgrad/files/safetensors.hpp>
#include <xgrad/models/transformer/encoder.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "npy.hpp"
#include "program.hpp"

namespace files_test {

using nlohmann::json;
using xgrad::Array, xgrad::DType, xgrad::FileError, xgrad::Metadata, xgrad::SafetensorsFile, xgrad::StateDict,
    xgrad::TensorView, xgrad::ValueError;
using xgrad_tests::expect_same_bits, xgrad_tests::message_of, xgrad_tests::read_bytes,
    xgrad_tests::TemporaryFolder;

const std::string folder = XGRAD_TEST_DATA_DIR "/badfiles/";

std::string bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

template <class T>
void expect_same_state(const StateDict<T>& got, const StateDict<T>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, array] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    expect_same_bits(got.at(name), array);
  }
}

/// A safetensors file with this header.
std::string file_of(const std::string& header, std::size_t data_size = 0) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_size, '\1');
}

void open(const std::string& path) {
  if (path.ends_with(".npy")) {
    xgrad::NpyFile file(path);
  } else {
    SafetensorsFile file(path);
  }
}

// ---- the files of badfiles/, whose README.md says what index.json holds ----

class IndexedFile : public testing::TestWithParam<json> {};

std::vector<json> indexed_files() {
  return json::parse(std::ifstream(folder + "index.json")).get<std::vector<json>>();
}

TEST_P(IndexedFile, IsReadExactlyOrRefusedInOneLine) {
  const std::string path = folder + GetParam().at("file").get<std::string>();
  const auto start = std::chrono::steady_clock::now();
  if (GetParam().at("expected") == "error") {
    const std::string message = message_of<FileError>([&] { open(path); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;

    const auto program = xgrad_tests::run_program("inspect '" + path + "' 2>&1");
    EXPECT_EQ(program.exit_code, 1);
    EXPECT_EQ(program.output, "inspect: " + message + "\n");
  } else if (GetParam().at("format") == "npy") {
    const json tensor = GetParam().at("tensors").at("");
    const std::string contents = folder + tensor.at("file").get<std::string>();
    if (tensor.at("dtype") == "float32") {
      expect_same_bits(xgrad::load_npy<float>(path), xgrad_tests::read_npy<float>(contents));
    } else {
      expect_same_bits(xgrad::load_npy<double>(path), xgrad_tests::read_npy<double>(contents));
    }
  } else {
    const SafetensorsFile file(path);
    const json& tensors = GetParam().at("tensors");
    EXPECT_EQ(file.tensors().size(), tensors.size());
    for (const TensorView& tensor : file.tensors()) {
      const json& expected = tensors.at(tensor.name);
      const std::string contents = folder + expected.at("file").get<std::string>();
      EXPECT_EQ(to_string(tensor.dtype), expected.at("dtype").get<std::string>());
      if (tensor.dtype == DType::F64) {
        expect_same_bits(xgrad::to_array<double>(tensor), xgrad_tests::read_npy<double>(contents));
      } else {
        expect_same_bits(xgrad::to_array<float>(tensor), xgrad_tests::read_npy<float>(contents));
      }
    }
    const json& metadata = GetParam().at("metadata");
    EXPECT_EQ(file.metadata(), metadata.is_null() ? Metadata() : metadata.get<Metadata>());
    EXPECT_EQ(xgrad_tests::run_program("inspect '" + path + "'").exit_code, 0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

INSTANTIATE_TEST_SUITE_P(Files, IndexedFile, testing::ValuesIn(indexed_files()), [](const auto& info) {
  std::string name = info.param.at("file").template get<std::string>();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Safetensors, EveryPartOfAFileIsRefused) {
  const TemporaryFolder temporary;
  for (const char* name : {"float32_two", "empty_and_scalar", "metadata", "nan_and_inf"}) {
    const std::string whole = read_bytes(folder + "valid/" + name + ".safetensors");
    ASSERT_FALSE(whole.empty());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string path = temporary.write("part.safetensors", whole.substr(0, size));
      EXPECT_TRUE(message_of<FileError>([&] { SafetensorsFile file(path); }).starts_with(path))
          << name << size;
    }
  }
}

TEST(Safetensors, AChangedByteOfTheHeaderIsRefusedOrAnotherHeader) {
  const TemporaryFolder temporary;
  const std::string whole = read_bytes(folder + "valid/metadata.safetensors");
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 168; ++i) {
    for (const char byte : {'\0', '\xff', '"', '{', '}', '9', ' ', static_cast<char>(whole[i] ^ 1)}) {
      std::string changed = whole;
      changed[i] = byte;
      const std::string path = temporary.write("changed.safetensors", changed);
      try {
        const SafetensorsFile file(path);
        ASSERT_EQ(file.tensors().size(), 1u);
        EXPECT_EQ(file.tensors()[0].bytes.size(), 16u);
      } catch (const FileError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500u);
}

// ---- headers ----

struct BadHeader {
  const char* header;
  std::size_t data_size;
  const char* message;  // what follows the path
};

const BadHeader bad_headers[] = {
    {"", 0, "the header must begin with '{'"},
    {" {}", 0, "the header must begin with '{'"},
    {"\xEF\xBB\xBF{}", 0, "the header must begin with '{'"},
    {"[]", 0, "the header must begin with '{'"},
    {"{", 0, "the header must be JSON, got a parse error"},
    {"{} {}", 0, "the header must be JSON, got a parse error"},
    {"{}", 1, "the data must end with the last tensor, got 1 bytes after it"},
    {R"({"w":1})", 0, R"(tensor "w": must be an object, got 1)"},
    {R"({"w":[]})", 0, R"(tensor "w": must be an object, got an array)"},
    {R"({"w":{}})", 0, R"(tensor "w": dtype is missing)"},
    {R"({"w":{"dtype":"U8"}})", 0, R"(tensor "w": shape is missing)"},
    {R"({"w":{"dtype":"U8","shape":[1]}})", 1, R"(tensor "w": data_offsets is missing)"},
    {R"({"w":{"dtype":8}})", 0, R"(tensor "w": dtype must be a string, got 8)"},
    {R"({"w":{"dtype":["U8"]}})", 0, R"(tensor "w": dtype must be a string, got an array)"},
    {R"({"w":{"dtype":"f32"}})", 0, R"(tensor "w": dtype must be one of the format's, got "f32")"},
    {R"({"w":{"shape":3}})", 0, R"(tensor "w": shape must be an array, got 3)"},
    {R"({"w":{"shape":"3"}})", 0, R"(tensor "w": shape must be an array, got a string)"},
    {R"({"w":{"shape":null}})", 0, R"(tensor "w": shape must be an array, got null)"},
    {R"({"w":{"shape":{}}})", 0, R"(tensor "w": shape must be an array, got an object)"},
    {R"({"w":{"shape":[1.0]}})", 0, R"(tensor "w": shape must hold integers from 0 to 2^64 - 1, got 1.0)"},
    {R"({"w":{"shape":[true]}})", 0, R"(tensor "w": shape must hold integers from 0 to 2^64 - 1, got true)"},
    {R"({"w":{"shape":[[1]]}})", 0,
     R"(tensor "w": shape must hold integers from 0 to 2^64 - 1, got an array)"},
    {R"({"w":{"shape":[-0]}})", 0, R"(tensor "w": shape must hold integers from 0 to 2^64 - 1, got 0)"},
    {R"({"w":{"shape":[18446744073709551616]}})", 0,
     R"(tensor "w": shape must hold integers from 0 to 2^64 - 1, got 18446744073709551616)"},
    {R"({"w":{"shape":[1e999]}})", 0, "the header must be JSON, got a number overflow"},
    {R"({"w":{"data_offsets":[0]}})", 0, R"(tensor "w": data_offsets must hold 2 integers, got 1)"},
    {R"({"w":{"data_offsets":[0,0,0]}})", 0, R"(tensor "w": data_offsets must hold 2 integers, got 3)"},
    {R"({"w":{"scale":1}})", 0, R"(tensor "w": must have only dtype, shape and data_offsets, got "scale")"},
    {R"({"w":{"dtype":"U8","dtype":"U8"}})", 0, R"(tensor "w": dtype must be unique, got it twice)"},
    {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{}})", 1,
     R"(the name "w" must be unique, got it twice)"},
    {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0077":{}})", 1,
     R"(the name "w" must be unique, got it twice)"},
    {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1,
     R"(tensor "w": data_offsets [1, 0] must not decrease)"},
    {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", 1,
     R"(tensor "w": data_offsets [0, 1] must hold the 2 bytes of shape (2) of U8, got 1)"},
    {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2,
     R"(tensor "w": data_offsets [1, 2] must leave no hole, got one from 0)"},
    {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"v":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
     3,
     R"(tensor "v": data_offsets [1, 3] must not overlap those of another tensor, got one that ends at 2)"},
    {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
     2,
     R"(tensor "w": data_offsets [1, 1] must not overlap those of another tensor, got one that ends at 2)"},
    {R"({"w":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}})", 1,
     R"(tensor "w": data_offsets [0, 18446744073709551615] must stay in the data, got 1 bytes of it)"},
    {R"({"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
     R"(tensor "w": shape (4611686018427387904) of F32 must take a whole number of bytes, below 2^57)"},
    {R"({"w":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0,
     R"(tensor "w": shape (0, 4294967296, 4294967296) of F32 must take a whole number of bytes, below 2^57)"},
    {R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1,
     R"(tensor "w": shape (3) of F4 must take a whole number of bytes, below 2^57)"},
    {R"({"__metadata__":[]})", 0, "__metadata__ must be an object, got an array"},
    {R"({"w":null})", 0, R"(tensor "w": must be an object, got null)"},
    {R"({"__metadata__":{"a":1}})", 0, R"(__metadata__: "a" must be a string, got 1)"},
    {R"({"__metadata__":{"a":{}}})", 0, R"(__metadata__: "a" must be a string, got an object)"},
    {R"({"__metadata__":{"a":"","a":""}})", 0, R"(__metadata__: the key "a" must be unique, got it twice)"},
    {R"({"__metadata__":{},"__metadata__":{}})", 0,
     R"(the name "__metadata__" must be unique, got it twice)"},
    {R"({"a\nb":0})", 0, R"(tensor "a\nb": must be an object, got 0)"},
    {R"({"w":{"dtype":"I8","shape":[5],"data_offsets":[0,5]}})", 4,
     R"(tensor "w": data_offsets [0, 5] must stay in the data, got 4 bytes of it)"},
    {R"({"w":{"dtype":"I8","shape":[3],"data_offsets":[0,4]}})", 4,
     R"(tensor "w": data_offsets [0, 4] must hold the 3 bytes of shape (3) of I8, got 4)"},
    {"{\"\\ud800\":{}}", 0, "the header must be JSON, got a parse error"},
    {"{\"\xc0\x80\":{}}", 0, "the header must be JSON, got a parse error"},
};

TEST(Safetensors, NoMetadataMayBeWrittenAsNull) {
  const TemporaryFolder temporary;
  const std::string header = R"({"__metadata__":null,"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const SafetensorsFile file(temporary.write("null.safetensors", file_of(header, 1)));
  EXPECT_EQ(file.metadata(), Metadata());
  EXPECT_EQ(file.tensors().size(), 1u);
}

TEST(Safetensors, FilesOfPyTorchAreNamed) {
  const std::string data = XGRAD_TEST_DATA_DIR "/torch/";
  EXPECT_EQ(
      message_of<FileError>([&] { xgrad::load_safetensors<float>(data + "zip.bin"); }),
      data +
          "zip.bin: must be a safetensors file, got a zip archive, as torch.save writes; load_torch reads "
          "these");
  EXPECT_EQ(
      message_of<FileError>([&] { xgrad::load_safetensors<float>(data + "legacy.bin"); }),
      data +
          "legacy.bin: must be a safetensors file, got a pickle, as torch.save writes; load_torch reads "
          "these");
}

/// The memory of files that this process has mapped, in bytes.
std::size_t mapped_memory() {
  std::ifstream status("/proc/self/status");
  std::size_t all = 0;
  for (std::string name; status >> name;) {
    std::size_t size = 0;
    if ((name == "RssFile:" || name == "RssShmem:") && status >> size) all += 1024 * size;
  }
  return all;
}

TEST(Safetensors, ReleasedTensorsTakeNoMemoryAndCanBeReadAgain) {
  const TemporaryFolder temporary;
  constexpr std::size_t size = std::size_t{1} << 22, bytes = 4 * size;
  const std::string path = temporary.path("large.safetensors");
  const Array<float> large = xt::ones<float>({size}), small{1, 2};
  xgrad::save_safetensors<float>({{"a", small}, {"b", large}, {"c", small}}, path);
  const SafetensorsFile file(path);
  const std::size_t before = mapped_memory();
  for (int i = 0; i < 2; ++i) {
    expect_same_bits(xgrad::to_array<float>(file.tensors()[1]), large);
    EXPECT_GT(mapped_memory(), before + bytes / 2);
    file.release(file.tensors()[1]);
    EXPECT_LT(mapped_memory(), before + bytes / 4);
  }
  constexpr std::size_t some = std::size_t{1} << 13;  // half of what Linux maps at once
  for (std::size_t begin = 0; begin < size; begin += some) {
    const TensorView piece = xgrad::elements_of(file.tensors()[1], begin, some);
    EXPECT_EQ(xgrad::to_array<float>(piece)(some - 1), 1);
    file.release(piece);
  }
  EXPECT_LT(mapped_memory(), before + bytes / 4) << "released in pieces";
  file.release({"elsewhere", DType::F32, {2}, std::as_bytes(std::span(small.data(), 2))});
  EXPECT_EQ(small(1), 2);
  expect_same_bits(xgrad::to_array<float>(file.tensors()[0]), small);
  expect_same_bits(xgrad::to_array<float>(file.tensors()[2]), small);
}

TEST(Safetensors, BadHeadersAreRefused) {
  const TemporaryFolder temporary;
  for (const BadHeader& bad : bad_headers) {
    const std::string path = temporary.write("bad.safetensors", file_of(bad.header, bad.data_size));
    const std::string message = message_of<FileError>([&] { SafetensorsFile file(path); });
    EXPECT_TRUE(message.starts_with(path + ": " + bad.message)) << bad.header << '\n' << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Safetensors, FilesWithoutAWholeLengthAreRefused) {
  const TemporaryFolder temporary;
  for (const std::size_t size : {0, 1, 7}) {
    const std::string path = temporary.write("short.safetensors", std::string(size, '\1'));
    EXPECT_EQ(message_of<FileError>([&] { SafetensorsFile file(path); }),
              path + ": must begin with 8 bytes for the header's length, got " + std::to_string(size) +
                  " bytes in all");
  }
}

TEST(Safetensors, HeadersThatDoNotFitAreRefused) {
  const TemporaryFolder temporary;
  for (const char length : {3, 10, 11}) {
    std::string bytes = file_of("{}");
    bytes[0] = length;
    const std::string path = temporary.write("short.safetensors", bytes);
    EXPECT_EQ(
        message_of<FileError>([&] { SafetensorsFile file(path); }),
        path + ": the header's length must fit into the file of 10 bytes, got " + std::to_string(length));
  }
}

TEST(Safetensors, LongPartsOfBadHeadersAreCutAndNestingIsRefused) {
  const TemporaryFolder temporary;
  const std::string million(1000000, '1');
  for (const std::string& header :
       {"{\"" + million + "\":0}", R"({"w":{"shape":[)" + million + "]}}",
        R"({"w":{"shape":[)" + million + "e9]}}", R"({"w":{"dtype":")" + million + "\"}}",
        R"({"w":)" + std::string(1000000, '['), "{\"" + million}) {
    const std::string path = temporary.write("long.safetensors", file_of(header));
    const std::string message = message_of<FileError>([&] { SafetensorsFile file(path); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message.substr(0, 1000);
    EXPECT_LT(message.size(), path.size() + 500) << message.substr(0, 1000);
  }
}

TEST(Safetensors, ZeroBytesAndLongHeadersAreRefused) {
  const TemporaryFolder temporary;
  const std::string zero = temporary.write("zero.safetensors", file_of(std::string("{}\0", 3)));
  EXPECT_EQ(message_of<FileError>([&] { SafetensorsFile file(zero); }),
            zero + ": the header must be JSON, got a zero byte");
  const std::string path = temporary.path("long.safetensors");
  for (const std::uint64_t length : {std::uint64_t{100000001}, ~std::uint64_t{0}}) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8);
    EXPECT_EQ(message_of<FileError>([&] { SafetensorsFile file(path); }),
              path + ": the header's length must be at most 100000000, got " + std::to_string(length));
  }
}

TEST(Safetensors, WhatTheFormatAllowsIsRead) {
  const TemporaryFolder temporary;
  const std::string unsorted =
      R"({"b":{"shape":[3],"data_offsets":[1,4],"dtype":"I8"},"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},)"
      R"("":{"dtype":"F64","shape":[0],"data_offsets":[1,1]},"__metadata__":{}} )";
  const SafetensorsFile file(temporary.write("unsorted.safetensors", file_of(unsorted, 4)));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].dtype, DType::F4);
  EXPECT_EQ(file.tensors()[1].name, "");
  EXPECT_EQ(file.tensors()[2].name, "b");
  EXPECT_EQ(bytes_of(file.tensors()[2]), "\1\1\1");
  const SafetensorsFile empty(temporary.write("empty.safetensors", file_of("{}")));
  EXPECT_TRUE(empty.tensors().empty());
}

TEST(Safetensors, WhatIsNoReadableFileIsRefused) {
  const TemporaryFolder temporary;
  const std::string missing = temporary.path("missing"), pipe = temporary.path("pipe");
  EXPECT_EQ(message_of<FileError>([&] { SafetensorsFile file(missing); }),
            missing + ": cannot be read: No such file or directory");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, temporary.path("."), std::string("/dev/zero")})
    EXPECT_EQ(message_of<FileError>([&] { SafetensorsFile file(path); }), path + ": must be a regular file");
  const std::string pointer = temporary.write(
      "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n");
  EXPECT_EQ(message_of<FileError>([&] { SafetensorsFile file(pointer); }),
            pointer + ": is a pointer of Git LFS, not the file; run git lfs pull in its folder");
}

// ---- types ----

/// The value of a float of few bits by its definition (IEEE 754, 3.4).
double small_float(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double fraction = std::ldexp(bits & ((1u << fraction_bits) - 1), -fraction_bits);
  const double magnitude = exponent == 2 * bias + 1
                               ? (fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan(""))
                               : std::ldexp((exponent > 0) + fraction, std::max(exponent, 1) - bias);
  return bits >> (exponent_bits + fraction_bits) ? -magnitude : magnitude;
}

TEST(FileTypes, AllHalvesAndBfloat16sAreExact) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (const auto& [got, expected] :
         {std::pair{xgrad::half_to_float(static_cast<std::uint16_t>(bits)), small_float(bits, 5, 10)},
          std::pair{xgrad::bfloat16_to_float(static_cast<std::uint16_t>(bits)), small_float(bits, 8, 7)}}) {
      ASSERT_EQ(std::isnan(got), std::isnan(expected)) << bits;
      ASSERT_EQ(std::signbit(got), bits >= 0x8000) << bits;
      if (!std::isnan(expected)) {
        ASSERT_EQ(static_cast<double>(got), expected) << bits;
      }
    }
  }
  EXPECT_EQ(std::bit_cast<std::uint32_t>(xgrad::half_to_float(0x7d55)), 0x7faaa000u);  // a nan's payload
}

TEST(FileTypes, FloatsOfAllWidthsBecomeFloatAndDouble) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("mixed.safetensors");
  const std::uint16_t halves[] = {0x3e00, 0xc000}, brains[] = {0x3fc0, 0xc000};
  const Array<float> single{1.5f, -2.0f};
  const Array<double> wide{1.5, -2.0};
  xgrad::write_safetensors({{"half", DType::F16, {2}, std::as_bytes(std::span(halves))},
                            {"brain", DType::BF16, {2}, std::as_bytes(std::span(brains))},
                            view_of("single", single),
                            view_of("wide", wide)},
                           path);
  for (const char* name : {"half", "brain", "single", "wide"}) {
    expect_same_bits(xgrad::load_safetensors<float>(path).at(name), single);
    expect_same_bits(xgrad::load_safetensors<double>(path).at(name), wide);
  }
  const Array<double> third{1.0 / 3};
  xgrad::save_safetensors<double>({{"w", third}}, path);
  EXPECT_EQ(xgrad::load_safetensors<float>(path).at("w")(0), static_cast<float>(1.0 / 3));
}

TEST(FileTypes, FloatsOfEightBitsHavePyTorchsValues) {
  const std::string data = XGRAD_TEST_DATA_DIR "/torch/";
  const SafetensorsFile eight(data + "expected.safetensors"), wide(data + "float8.safetensors");
  ASSERT_EQ(wide.tensors().size(), 4u);
  for (const TensorView& tensor : wide.tensors()) {
    const auto& all = eight.tensors();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const TensorView& other) { return other.name == tensor.name; });
    ASSERT_NE(found, all.end()) << tensor.name;
    const Array<float> got = xgrad::to_array<float>(*found), expected = xgrad::to_array<float>(tensor);
    for (std::size_t bits = 0; bits < 256; ++bits) {
      EXPECT_EQ(std::isnan(got(bits)), std::isnan(expected(bits))) << tensor.name << bits;
      if (std::isnan(expected(bits))) continue;
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got(bits)), std::bit_cast<std::uint32_t>(expected(bits)))
          << tensor.name << bits;
    }
  }
  EXPECT_EQ(xgrad::float8_to_float(DType::F8_E8M0, 0), 0x1p-127F);
  EXPECT_EQ(xgrad::float8_to_float(DType::F8_E8M0, 254), 0x1p127F);
  EXPECT_TRUE(std::isnan(xgrad::float8_to_float(DType::F8_E8M0, 255)));
}

TEST(FileTypes, IntegersBecomeInt64AndOthersAreRefusedByName) {
  const std::int8_t small[] = {-128, 127};
  const std::int16_t i16[] = {-32768, 32767};
  const std::int32_t i32[] = {-2147483647 - 1, 2147483647};
  const std::int64_t i64[] = {std::numeric_limits<std::int64_t>::min(), 5};
  const std::uint8_t u8[] = {200, 255};
  const std::uint16_t u16[] = {40000, 65535};
  const std::uint32_t large[] = {0, 4294967295u};
  const auto expect = [](DType dtype, const auto& stored) {
    EXPECT_EQ(xgrad::to_array<std::int64_t>({"i", dtype, {2}, std::as_bytes(std::span(stored))}),
              (xgrad::Ids{static_cast<std::int64_t>(stored[0]), static_cast<std::int64_t>(stored[1])}))
        << to_string(dtype);
  };
  expect(DType::I8, small);
  expect(DType::I16, i16);
  expect(DType::I32, i32);
  expect(DType::I64, i64);
  expect(DType::U8, u8);
  expect(DType::U16, u16);
  expect(DType::U32, large);
  EXPECT_EQ(xgrad::to_array<bool>({"b", DType::BOOL, {2}, std::as_bytes(std::span(small))}),
            (xgrad::Mask{true, true}));
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_array<std::int64_t>({"u", DType::U64, {1}, std::as_bytes(std::span(large))});
            }),
            R"(tensor "u": integers of U64 must be below 2^63)");
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_array<std::int64_t>({"h", DType::F16, {1}, std::as_bytes(std::span(u16).first(1))});
            }),
            R"(tensor "h": dtype must be an integer, got F16)");
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_array<bool>({"b", DType::U8, {2}, std::as_bytes(std::span(small))});
            }),
            R"(tensor "b": dtype must be BOOL, got U8)");
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::to_array<float>({"f", DType::F32, {3}, std::as_bytes(std::span(large))});
            }),
            R"(tensor "f": shape (3) of F32 must fit its bytes, got 8)");

  const TemporaryFolder temporary;
  const std::string path = temporary.path("ids.safetensors");
  const xgrad::Ids ids{1, 2};
  xgrad::write_safetensors({view_of("ids", ids)}, path);
  EXPECT_EQ(message_of<FileError>([&] { xgrad::load_safetensors<float>(path); }),
            path + R"(: tensor "ids": dtype must be F64, F32, F16, BF16 or F8, got I64)");
}

// ---- writing ----

template <class T>
StateDict<T> unusual_state() {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const T infinity = std::numeric_limits<T>::infinity();
  const T payload =
      std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(infinity) | 0x2a));  // a signalling nan
  return {{"layers.0.weight", {{T(1) / 3, -T(0)}, {std::numeric_limits<T>::denorm_min(), payload}}},
          {"größe \"中\"\n\x01😀", {infinity, -infinity, std::numeric_limits<T>::quiet_NaN()}},
          {"scalar", Array<T>(T(-1.5))},
          {"", {T(7)}},
          {"empty", Array<T>::from_shape({2, 0, 3})}};
}

TEST(Safetensors, WhatIsSavedIsLoadedBitForBit) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("state.safetensors");
  const Metadata metadata{{"format", "pt"}, {"quotes \"\\\n", "{\"a\": [1, 2]}"}, {"", "é中😀"}};
  xgrad::save_safetensors(unusual_state<float>(), path, metadata);
  expect_same_state(xgrad::load_safetensors<float>(path), unusual_state<float>());
  EXPECT_EQ(SafetensorsFile(path).metadata(), metadata);
  xgrad::save_safetensors(unusual_state<double>(), path);
  expect_same_state(xgrad::load_safetensors<double>(path), unusual_state<double>());
  EXPECT_EQ(SafetensorsFile(path).metadata(), Metadata());
  xgrad::save_safetensors<float>({}, path);
  EXPECT_TRUE(xgrad::load_safetensors<float>(path).empty());
}

TEST(Safetensors, FilesAreThoseOfTheFormatsOwnWriter) {
  const TemporaryFolder temporary;
  for (const char* name : {"float32_two", "empty_and_scalar", "nan_and_inf"}) {
    const std::string original = folder + "valid/" + name + ".safetensors", copy = temporary.path(name);
    const SafetensorsFile file(original);
    xgrad::write_safetensors({file.tensors().rbegin(), file.tensors().rend()}, copy);
    EXPECT_EQ(read_bytes(copy), read_bytes(original)) << name;
  }
}

TEST(Safetensors, AModelsStateGoesThroughAFile) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("model.safetensors");
  const xgrad::TransformerEncoder<float> saved({.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2});
  const xgrad::TransformerEncoder<float> loaded({.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2});
  xgrad::save_safetensors(saved.state_dict(), path);
  loaded.load_state_dict(xgrad::load_safetensors<float>(path));
  expect_same_state(loaded.state_dict(), saved.state_dict());
  EXPECT_TRUE(xgrad::load_safetensors<float>(path).contains("layers.1.self_attn.W_Q.weight"));
}

TEST(Safetensors, PiecesMakeTheFileOfTheWhole) {
  const TemporaryFolder temporary;
  const std::string whole = temporary.path("whole"), pieces = temporary.path("pieces");
  const Array<float> one{1, 2, 3}, two{{4, 5}, {6, 7}};
  const std::vector<TensorView> tensors{view_of("one", one), view_of("two", two)};
  xgrad::write_safetensors(tensors, whole, {{"made by", "a test"}});
  xgrad::SafetensorsWriter file({{"one", DType::F32, {3}, {}}, {"two", DType::F32, {2, 2}, {}}}, pieces,
                                {{"made by", "a test"}});
  for (const TensorView& tensor : tensors) {
    EXPECT_EQ(message_of<ValueError>([&] { file.commit(); }),
              "SafetensorsWriter: all bytes of the tensors must be written, " +
                  std::to_string(tensor.name == "one" ? 28 : 16) + " are missing");
    for (std::size_t i = 0; i < tensor.bytes.size(); i += 2) file.write(tensor.bytes.subspan(i, 2));
  }
  EXPECT_EQ(message_of<ValueError>([&] { file.write(tensors[0].bytes); }),
            "SafetensorsWriter: the tensors must have room for 12 bytes, got 0");
  file.commit();
  EXPECT_TRUE(read_bytes(pieces) == read_bytes(whole));
  EXPECT_EQ(
      message_of<ValueError>([&] {
        xgrad::SafetensorsWriter({{"half", DType::F4, {3}, {}}}, temporary.path("half"));
      }),
      "write_safetensors: tensor \"half\": shape (3) of F4 must take a whole number of bytes, below 2^57");
  EXPECT_EQ(temporary.file_count(), 2u);
}

TEST(Safetensors, TensorsThatCannotBeWrittenAreRefusedAndNothingIsWritten) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("bad.safetensors");
  const Array<float> one{1.0f};
  const TensorView view = view_of("w", one);
  const auto refusal = [&](std::vector<TensorView> tensors, const Metadata& metadata = {}) {
    return message_of<ValueError>([&] { xgrad::write_safetensors(std::move(tensors), path, metadata); });
  };
  EXPECT_EQ(refusal({view, view}), R"(write_safetensors: the name "w" must be unique, got it twice)");
  EXPECT_EQ(refusal({view_of("__metadata__", one)}),
            R"(write_safetensors: the name "__metadata__" must not be a tensor's)");
  EXPECT_EQ(refusal({view_of("\xff", one)}),
            "write_safetensors: the name of a tensor must be UTF-8, got \"\xEF\xBF\xBD\"");
  EXPECT_EQ(refusal({view}, {{"a", "\xff"}}),
            "write_safetensors: the metadata must be UTF-8, got \"\xEF\xBF\xBD\"");
  EXPECT_EQ(refusal({{"w", DType::F64, {1}, view.bytes}}),
            R"(write_safetensors: tensor "w": shape (1) of F64 must fit its bytes, got 4)");
  EXPECT_EQ(refusal({view}, {{"a", std::string(100000000, ' ')}}).substr(0, 76),
            "write_safetensors: the header must have at most 100000000 bytes, got 1000000");
  EXPECT_EQ(temporary.file_count(), 0u);
}

// ---- files that are not lost ----

/// No file may grow beyond so many bytes, as on a disk that is nearly full.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;
  ~SizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(AtomicFile, AFailedWriteLeavesTheOldFileAndNothingBesideIt) {
  const TemporaryFolder temporary;
  const StateDict<float> large{{"w", xt::zeros<float>({1000})}};
  for (const char* name : {"a.safetensors", "a.npy", "a.npz"}) {
    const std::string path = temporary.write(name, "old");
    std::string message;
    {
      const SizeLimit limit(2000);
      message = message_of<FileError>([&] {
        if (path.ends_with(".npy")) {
          xgrad::save_npy(large.at("w"), path);
        } else if (path.ends_with(".npz")) {
          xgrad::save_npz(large, path);
        } else {
          xgrad::save_safetensors(large, path);
        }
      });
    }
    EXPECT_EQ(message, path + ": cannot be written: File too large");
    EXPECT_EQ(read_bytes(path), "old");
    std::filesystem::remove(path);
    EXPECT_EQ(temporary.file_count(), 0u);
  }
}

TEST(AtomicFile, NothingIsThereBeforeCommit) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("new");
  {
    xgrad::AtomicFile file(path);
    file.write(std::as_bytes(std::span("half")));
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(temporary.file_count(), 1u);
  }
  EXPECT_EQ(temporary.file_count(), 0u);
  xgrad::AtomicFile first(path), second(path);
  first.write(std::as_bytes(std::span("1", 1)));
  second.write(std::as_bytes(std::span("2", 1)));
  second.commit();
  EXPECT_EQ(read_bytes(path), "2");
  first.commit();
  EXPECT_EQ(read_bytes(path), "1");
  EXPECT_EQ(temporary.file_count(), 1u);
}

/// A child process that has an AtomicFile open until end().
class Saver {
 public:
  explicit Saver(const std::string& path) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      xgrad::AtomicFile file(path);
      file.write(std::as_bytes(std::span("half")));
      if (::write(ready[1], "!", 1) == 1) ::pause();
      ::_exit(1);
    }
    ::close(ready[1]);
    char byte;
    if (::read(ready[0], &byte, 1) != 1) throw std::runtime_error("the child process has failed");
    ::close(ready[0]);
  }
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  ~Saver() { kill(); }

  void kill() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    process_ = 0;
  }

 private:
  pid_t process_;
};

TEST(FileLock, IsHeldByOneAtATime) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("run.safetensors");
  const auto lock = [](const std::string& name) {
    return message_of<FileError>([&] { xgrad::FileLock{name}; });
  };
  {
    const xgrad::FileLock held(path), other(temporary.path("other"));
    EXPECT_EQ(lock(path), path + ": another run writes it");
    const std::string link = temporary.path("link");
    xgrad::save_safetensors<float>({}, path);
    std::filesystem::create_symlink(path, link);
    EXPECT_EQ(lock(link), link + ": another run writes it");
    std::filesystem::remove(link);
  }
  EXPECT_EQ(lock(path), "no exception");
  EXPECT_EQ(temporary.file_count(), 1u) << "the locks are gone, the file stays";
  const std::string nowhere = temporary.path("none/run");
  EXPECT_EQ(lock(nowhere), nowhere + ": cannot be locked: No such file or directory");
}

TEST(FileLock, LeavesAFileOfThatNameAlone) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("run"), other = temporary.write(".run.lock", "mine");
  EXPECT_EQ(message_of<FileError>([&] { xgrad::FileLock{path}; }),
            path + ": cannot be locked: " + other + " is not a lock");
  EXPECT_EQ(read_bytes(other), "mine");
}

TEST(FileLock, EndsWithItsProcess) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("run.safetensors");
  const pid_t child = ::fork();
  if (child == 0) {
    const xgrad::FileLock held(path);
    ::_exit(0);  // without destructors
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(temporary.file_count(), 1u);
  EXPECT_EQ(message_of<FileError>([&] { xgrad::FileLock{path}; }), "no exception");
  EXPECT_EQ(temporary.file_count(), 0u);
}

TEST(AtomicFile, WhatAKilledProcessLeftIsRemovedByTheNextSave) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("a");
  Saver living(path), dead(path);
  dead.kill();
  EXPECT_EQ(temporary.file_count(), 2u);
  // Not files of AtomicFile, though nearly named so.
  const std::vector<std::string> others{".xgrad-settings",    ".xgrad-1-2",         ".xgrad-0123abcd-1-2.txt",
                                        ".xgrad-0123abcd--2", ".xgrad-0123abcd-1-", ".xgrad-0123abcdx1-2"};
  const auto days_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
  for (const std::string& name : others)
    std::filesystem::last_write_time(temporary.write(name, "mine"), days_ago);
  // Of another machine that may still be writing it, and of one that has not for days.
  temporary.write(".xgrad-0123abcd-1-2", "recent");
  const std::string old = temporary.write(".xgrad-0123abcd-1-3", "old");
  std::filesystem::last_write_time(old, days_ago);
  xgrad::save_safetensors<float>({}, path);

  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(temporary.path(".xgrad-0123abcd-1-2")));
  for (const std::string& name : others) EXPECT_EQ(read_bytes(temporary.path(name)), "mine") << name;
  EXPECT_EQ(temporary.file_count(), others.size() + 3) << "and the new file, and that of the living process";
}

TEST(AtomicFile, LinksAndPermissionsStay) {
  const TemporaryFolder temporary;
  const std::string path = temporary.write("real", "old"), link = temporary.path("link");
  std::filesystem::create_symlink("real", link);
  std::filesystem::permissions(path,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  xgrad::save_safetensors<float>({}, link);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_bytes(path), file_of("{}      "));
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST(AtomicFile, WhatIsReadOnlyIsNotReplaced) {
  const TemporaryFolder temporary;
  const std::string path = temporary.write("file", "old");
  std::filesystem::permissions(temporary.path(""), std::filesystem::perms::all);
  std::filesystem::permissions(path,
                               std::filesystem::perms::owner_read | std::filesystem::perms::others_read);
  const pid_t child = ::fork();
  if (child == 0) {  // without root's rights, and from inside, as folders above may be closed to others
    std::filesystem::current_path(temporary.path(""));
    const bool is_user = ::geteuid() != 0 || ::setuid(65534) == 0;
    const std::string refusal = message_of<FileError>([] { xgrad::save_safetensors<float>({}, "file"); });
    ::_exit(is_user && refusal == "file: cannot be written: Permission denied" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(path), "old");
}

TEST(AtomicFile, WhatIsNoFileIsNeverReplaced) {
  const TemporaryFolder temporary;
  const auto message = [](const std::string& path) {
    return message_of<FileError>([&] { xgrad::save_safetensors<float>({}, path); });
  };
  const std::string pipe = temporary.path("pipe");  // as good as a device, and nobody misses it
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {temporary.path("."), pipe})
    EXPECT_EQ(message(path), path + ": cannot be written: it is no regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  const std::string inside = temporary.path("missing/a");
  EXPECT_EQ(message(inside), inside + ": cannot be written: No such file or directory");
  EXPECT_EQ(message(""), ": cannot be written: No such file or directory");
  EXPECT_EQ(message(temporary.path("new/")),
            temporary.path("new/") + ": cannot be written: No such file or directory");
  const std::string long_name = temporary.path(std::string(300, 'a'));
  EXPECT_EQ(message(long_name), long_name + ": cannot be written: File name too long");
}

// ---- inspect ----

TEST(Inspect, ListsTensorsAndMetadata) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("a.safetensors");
  const Array<float> weight{{1.5f, -2.0f}, {std::nanf(""), 0.25f}};
  const Array<double> nans{std::nan(""), std::nan("")};
  const xgrad::Ids ids{9007199254740993, -3};
  const xgrad::Mask mask{true, false, true};
  const std::uint64_t large[] = {1};
  xgrad::write_safetensors({view_of("größe", weight),
                            view_of("line\nbreak", nans),
                            view_of("ids", ids),
                            view_of("mask", mask),
                            {"large", DType::U64, {1}, std::as_bytes(std::span(large))}},
                           path, {{"format", "pt"}, {"note", "\x1b[31m\n"}});
  EXPECT_EQ(xgrad_tests::output_of("inspect " + path),
            "name         dtype  shape   min               max  nan\n"
            "large        U64    (1)       1                 1    0\n"
            "ids          I64    (2)      -3  9007199254740993    0\n"
            "line\\nbreak  F64    (2)       -                 -    2\n"
            "größe        F32    (2, 2)   -2               1.5    1\n"
            "mask         BOOL   (3)       0                 1    0\n"
            "5 tensors, 12 elements, 59 bytes\n"
            "metadata \"format\": \"pt\"\n"
            "metadata \"note\": \"\\u001b[31m\\n\"\n");
}

TEST(Inspect, EveryTypeThatHasARangeShowsIt) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("a.safetensors");
  const auto bytes = [](const auto& numbers) { return std::as_bytes(std::span(numbers)); };
  const std::uint64_t u64[] = {18446744073709551615u, 1};
  const std::uint32_t u32[] = {4294967295u, 2};
  const std::uint16_t u16[] = {65535, 3}, f16[] = {0x7e00, 0xfbff, 0x7bff}, bf16[] = {0x7fc0, 0xbf80, 0x4000};
  const std::uint8_t u8[] = {255, 4}, e4m3[] = {0x7f, 0xff, 0xfe, 0x7e, 0x01}, e4m3_small[] = {0x01, 0x08},
                     e5m2[] = {0x7d, 0xfc, 0x7b}, e8m0[] = {0xff, 0x7f, 0x81}, f4[] = {0x12};
  const std::int32_t i32[] = {-2147483647 - 1, 2147483647};
  const std::int16_t i16[] = {-32768, 32767};
  const std::int8_t i8[] = {-128, 127};
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const float c64[] = {1, nan, nan, 0, infinity, -infinity};
  xgrad::write_safetensors({{"u64", DType::U64, {2}, bytes(u64)},
                            {"u32", DType::U32, {2}, bytes(u32)},
                            {"u16", DType::U16, {2}, bytes(u16)},
                            {"u8", DType::U8, {2}, bytes(u8)},
                            {"i32", DType::I32, {2}, bytes(i32)},
                            {"i16", DType::I16, {2}, bytes(i16)},
                            {"i8", DType::I8, {2}, bytes(i8)},
                            {"f16", DType::F16, {3}, bytes(f16)},
                            {"bf16", DType::BF16, {3}, bytes(bf16)},
                            {"e4m3", DType::F8_E4M3, {5}, bytes(e4m3)},
                            {"e4m3_small", DType::F8_E4M3, {2}, bytes(e4m3_small)},
                            {"e5m2", DType::F8_E5M2, {3}, bytes(e5m2)},
                            {"e8m0", DType::F8_E8M0, {3}, bytes(e8m0)},
                            {"f4", DType::F4, {2}, bytes(f4)},
                            {"c64", DType::C64, {3}, bytes(c64)}},
                           path);
  EXPECT_EQ(xgrad_tests::output_of("inspect " + path),
            "name        dtype    shape          min                   max  nan\n"
            "u64         U64      (2)              1  18446744073709551615    0\n"
            "c64         C64      (3)              -                     -    2\n"
            "u32         U32      (2)              2            4294967295    0\n"
            "i32         I32      (2)    -2147483648            2147483647    0\n"
            "bf16        BF16     (3)             -1                     2    1\n"
            "f16         F16      (3)         -65504                 65504    1\n"
            "u16         U16      (2)              3                 65535    0\n"
            "i16         I16      (2)         -32768                 32767    0\n"
            "e8m0        F8_E8M0  (3)              1                     4    1\n"
            "e4m3        F8_E4M3  (5)           -448                   448    2\n"
            "e4m3_small  F8_E4M3  (2)     0.00195312              0.015625    0\n"
            "e5m2        F8_E5M2  (3)           -inf                 57344    1\n"
            "i8          I8       (2)           -128                   127    0\n"
            "u8          U8       (2)              4                   255    0\n"
            "f4          F4       (2)              -                     -    -\n"
            "15 tensors, 38 elements, 94 bytes\n");
}

}  // namespace files_test
