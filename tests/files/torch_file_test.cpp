// Files of torch.save: reading, refusing. data/torch/ holds files that PyTorch wrote.

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/files/safetensors.hpp>
#include <xgrad/files/torch_file.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "program.hpp"
#include "torch_writer.hpp"

namespace torch_file_test {

using namespace xgrad_tests::torch;
using xgrad::Array, xgrad::DType, xgrad::FileError, xgrad::SafetensorsFile, xgrad::StateDict,
    xgrad::TensorView, xgrad::TorchFile;
using xgrad_tests::expect_same_bits, xgrad_tests::message_of, xgrad_tests::read_bytes,
    xgrad_tests::TemporaryFolder;

const std::string data_folder = XGRAD_TEST_DATA_DIR "/torch/";

const std::vector<float> six{0, 1, 2, 3, 4, 5};
const Storage stored{"s", {reinterpret_cast<const char*>(six.data()), 24}, 6};

/// A file with one tensor, "w".
std::string file_of(const std::string& tensor) { return legacy_file(dict({text("w"), tensor}), {stored}); }

/// What the error says after the path.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder temporary;
  const std::string path = temporary.write("pytorch_model.bin", bytes);
  const std::string message = message_of<FileError>([&] { TorchFile file(path); });
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
}

StateDict<float> loaded(const std::string& bytes) {
  const TemporaryFolder temporary;
  return xgrad::load_torch<float>(temporary.write("pytorch_model.bin", bytes));
}

TEST(Torch, FilesOfPyTorchAreRead) {
  const SafetensorsFile expected(data_folder + "expected.safetensors");
  std::map<std::string, TensorView> by_name;
  for (const TensorView& tensor : expected.tensors()) by_name.emplace(tensor.name, tensor);
  for (const char* name : {"zip.bin", "legacy.bin"}) {
    const TorchFile file(data_folder + name);
    ASSERT_EQ(file.tensors().size(), by_name.size());
    EXPECT_EQ(file.tensors().front().name, "first.weight");
    for (const TensorView& tensor : file.tensors()) {
      const TensorView& other = by_name.at(tensor.name);
      EXPECT_EQ(tensor.dtype, other.dtype) << tensor.name;
      EXPECT_EQ(xgrad::to_string(tensor.shape), xgrad::to_string(other.shape)) << tensor.name;
      EXPECT_TRUE(
          std::equal(tensor.bytes.begin(), tensor.bytes.end(), other.bytes.begin(), other.bytes.end()))
          << tensor.name;
    }
  }
}

TEST(Torch, OtherFilesOfPyTorchAreRefused) {
  const std::pair<const char*, const char*> files[] = {
      {"checkpoint.bin",
       R"(tensor "state_dict": must be a tensor, got a dict; only a state dict itself is read)"},
      {"conjugate.bin", R"(tensor "w": must be stored as it is, got metadata such as conj or neg)"},
      {"list.bin", "must hold a state dict, tensors by name, got a list"},
      {"module.bin", "the pickle names torch.nn.modules.linear.Linear, which weights may not contain"},
      {"protocol_4.bin", "the pickle's protocol must be 2, as torch.save writes it, or 3, got 4"},
      {"script.bin", "is a TorchScript program, must be a state dict: torch.save(model.state_dict(), path)"},
      {"sparse.bin", "the pickle names torch._utils._rebuild_sparse_tensor, which weights may not contain"}};
  for (const auto& [name, message] : files) EXPECT_EQ(refusal(read_bytes(data_folder + name)), message);
  EXPECT_EQ(refusal("a text of no torch.save"),
            R"(must be a file of torch.save, a zip archive or a pickle, got "a text of no torch.s")");
  EXPECT_EQ(refusal(""), R"(must be a file of torch.save, a zip archive or a pickle, got "")");
}

TEST(Torch, TensorsOfOneStorageAreReadByTheirStrides) {
  const auto array = [](std::int64_t offset, const std::vector<std::int64_t>& shape,
                        const std::vector<std::int64_t>& strides) {
    return loaded(file_of(tensor(storage("s", 6), offset, shape, strides))).at("w");
  };
  expect_same_bits(array(0, {2, 3}, {3, 1}), Array<float>{{0, 1, 2}, {3, 4, 5}});
  expect_same_bits(array(0, {3, 2}, {1, 3}), Array<float>{{0, 3}, {1, 4}, {2, 5}});
  expect_same_bits(array(1, {2, 2}, {3, 1}), Array<float>{{1, 2}, {4, 5}});
  expect_same_bits(array(4, {1, 2}, {1000, 1}), Array<float>{{4, 5}});
  expect_same_bits(array(2, {2, 2}, {0, 1}), Array<float>{{2, 3}, {2, 3}});
  expect_same_bits(array(4, {}, {}), Array<float>(4));
  expect_same_bits(array(9, {2, 0}, {1, 1}), Array<float>::from_shape({2, 0}));
}

TEST(Torch, DictsParametersAndSizesAreReadInAllTheirForms) {
  const Array<float> expected{0, 1, 2, 3, 4, 5};
  const std::string whole = tensor(storage("s", 6), 0, {6}, {1});
  const auto expect_loaded = [&](const std::string& object) {
    expect_same_bits(loaded(legacy_file(object, {stored})).at("w"), expected);
  };
  expect_loaded(ordered_dict() + text("w") + whole + "s");
  expect_loaded(dict({text("w"), whole}));
  expect_loaded(dict({"U\1w", whole}));
  // Python 2: a list of pairs
  expect_loaded(call(global("collections", "OrderedDict"), {"](](" + text("w") + whole + "ee"}));
  // the state of the dict, and a memo
  expect_loaded(ordered_dict() + "q" + std::string(1, '\0') + text("w") + whole + "s" +
                dict({text("_metadata"), "h" + std::string(1, '\0')}) + "b");
  expect_loaded(
      dict({text("w"), call(global("torch._utils", "_rebuild_parameter"), {whole, "\x88", ordered_dict()})}));
  const std::string size = call(global("torch", "Size"), {integers({6})});
  expect_loaded(dict(
      {text("w"), call(global("torch._utils", "_rebuild_tensor"),
                       {storage("s", 6, "FloatStorage", "torch.cuda"), integer(0), size, integers({1})})}));
  expect_loaded(dict(
      {text("w"), call(global("torch._utils", "_rebuild_tensor_v2"),
                       {storage("s", 6), integer(0), size, integers({1}), "\x89", ordered_dict(), "}"})}));
  const std::string in_bytes = storage("s", 24, "UntypedStorage", "torch.storage");
  const std::string untyped = dict({text("w"), call(global("torch._utils", "_rebuild_tensor_v3"),
                                                    {in_bytes, integer(0), size, integers({1}), "\x89",
                                                     ordered_dict(), global("torch", "float32"), "N"})});
  expect_same_bits(loaded(legacy_file(untyped, {{"s", stored.bytes, 24}})).at("w"), expected);
}

TEST(Torch, GlobalsBesideThoseOfTensorsAreRefused) {
  const std::pair<const char*, const char*> globals[] = {{"posix", "system"},
                                                         {"builtins", "eval"},
                                                         {"__builtin__", "getattr"},
                                                         {"torch", "load"},
                                                         {"torch._utils", "_rebuild"},
                                                         {"torch", "ComplexDoubleStorage"},
                                                         {"torch.FloatStorage", ""},
                                                         {"collections", "Counter"},
                                                         {"torch.cuda", "UntypedStorage"},
                                                         {"", "collections.OrderedDict"}};
  for (const auto& [module, name] : globals) {
    const std::string expected =
        "the pickle names " + std::string(module) + "." + name + ", which weights may not contain";
    EXPECT_EQ(refusal(file_of(call(global(module, name), {text("x")}))), expected);
    EXPECT_EQ(refusal(zip_archive({{"a/data.pkl", pickle(global(module, name))}})), expected);
  }
  EXPECT_EQ(refusal(file_of(global("a\x1b", "b\xff"))),
            "the pickle names a\\u001b.b\xEF\xBF\xBD, which weights may not contain");
}

struct BadPickle {
  std::string object;
  const char* message;
};

/// A list of 1000 pairs, of which 3000 dicts are made.
std::string copied_often() {
  const std::string get_list = "h" + std::string(1, '\0'), get_type = "h\1";
  std::string object = global("collections", "OrderedDict") + "q\1](";
  for (int i = 0; i < 1000; ++i) object += "](NNe";
  object += "eq" + std::string(1, '\0');
  for (int i = 0; i < 3000; ++i) object += get_type + get_list + "\x85R";
  return object;
}

TEST(Torch, BadPicklesAreRefused) {
  const std::string zero(1, '\0'), ordered = global("collections", "OrderedDict"),
                                   rebuild = global("torch._utils", "_rebuild_tensor_v2");
  const BadPickle pickles[] = {
      {"I1\n", "the pickle has opcode 73 at byte 2, which torch.save does not write for a state dict"},
      {"(" + text("x") + "iposix\nsystem\n", "the pickle has opcode 105 at byte 9, which"},
      {"(" + ordered + "o", "the pickle has opcode 111 at byte 28, which"},
      {ordered + ")\x81", "the pickle has opcode 129 at byte 28, which"},
      {text("posix") + text("system") + "\x93", "the pickle has opcode 147 at byte 23, which"},
      {"\x82\1", "the pickle has opcode 130 at byte 2, which"},
      {"Pid\n", "the pickle has opcode 80 at byte 2, which"},
      {"}}b", "the pickle sets the state of a dict, must be that of a collections.OrderedDict"},
      {rebuild + ")R}b", "the pickle sets the state of a call of torch._utils._rebuild_tensor_v2, must be"},
      {"})R", "the pickle calls a dict with a tuple, must be a function and a tuple"},
      {ordered + "NR", "the pickle calls collections.OrderedDict with None, must be a function and a tuple"},
      {call(ordered, {"}"}),
       "the pickle must make a collections.OrderedDict of nothing or of a list of pairs"},
      {call(ordered, {"](Ne"}), "the pickle must make a collections.OrderedDict of nothing"},
      {"NQ", "the pickle must name its storages by tuples, got None"},
      {")Q", "the pickle must name a storage by \"storage\", type, key, device and number of elements"},
      {tuple({text("module"), global("torch", "FloatStorage"), text("s"), text("cpu"), integer(6)}) + "Q",
       "the pickle must name a storage by"},
      {tuple({text("storage"), global("torch", "Size"), text("s"), text("cpu"), integer(6)}) + "Q",
       "the pickle must name a storage by"},
      {tuple({text("storage"), global("torch", "FloatStorage"), text("s"), text("cpu"), integer(6),
              text("view")}) +
           "Q",
       "the pickle must name a storage by"},
      {storage("s", -1), "the pickle must name a storage by"},
      {storage("s", std::int64_t{1} << 62),
       "the storage \"s\" must fit into memory, got 4611686018427387904 elements"},
      {storage("s", 6) + storage("s", 5) + "\x86", "the storage \"s\" must have one type and size"},
      {storage("s", 6) + storage("s", 6, "IntStorage") + "\x86",
       "the storage \"s\" must have one type and size"},
      {storage("s", 5), "the storage \"s\" must have 20 bytes, got 6 elements in 24 bytes"},
      {storage("s", 6, "DoubleStorage"), "the storage \"s\" must have 48 bytes, got 6 elements in 24 bytes"},
      {storage("t", 6), "must list each storage of the dict once"},
      {"h\5", "the pickle has no object 5, which it takes before byte 4"},
      {"j\xff\xff\xff\xff", "the pickle has no object 4294967295, which it takes before byte 7"},
      {"a", "the pickle takes an object that is not there, before byte 3"},
      {"R", "the pickle takes an object that is not there, before byte 3"},
      {"NN(R", "the pickle takes an object that is not there, before byte 6"},
      {"q" + zero, "the pickle takes an object that is not there, before byte 3"},
      {"Nt", "the pickle takes a mark that is not there, before byte 4"},
      {"", "the pickle takes an object that is not there, before byte 3"},
      {"NN", "the pickle must end with one object"},
      {"(N", "the pickle must end with one object"},
      {"N(", "the pickle takes an object that is not there"},
      {"}Na", "the pickle appends to a dict, which is not a list"},
      {"]NNs", "the pickle sets items of a list, which is not a dict"},
      {"}(Nu", "the pickle must set items by pairs of a key and a value"},
      {text("\xff"), "a text in the pickle must be UTF-8, got"},
      {"X\xff\xff\xff\xff", "the pickle must not end inside of an opcode, got"},
      {"ctorch", "the pickle must not end inside of an opcode, got 15 bytes"},
      {"N", "must hold a state dict, tensors by name, got None"},
      {"\x88", "must hold a state dict, tensors by name, got a bool"},
      {"K\1", "must hold a state dict, tensors by name, got an int"},
      {"\x8a\x09" + std::string(9, '\1'), "must hold a state dict, tensors by name, got an int"},
      {"G" + std::string(8, '\1'), "must hold a state dict, tensors by name, got a float"},
      {text("x"), "must hold a state dict, tensors by name, got a str"},
      {"]q" + zero + "h" + zero + "a", "must hold a state dict, tensors by name, got a list"},
      {global("torch", "float32"), "must hold a state dict, tensors by name, got torch.float32"},
      {")" + std::string(1'000'000, '\x85'), "must hold a state dict, tensors by name, got a tuple"},
      {std::string(1 << 21, 'N'), "the pickle must have at most 2097152 opcodes"},
      // a list of pairs that many dicts copy
      {copied_often(), "the pickle must have at most 2097152 opcodes"},
  };
  for (const BadPickle& bad : pickles) {
    // The part before the pickle of the dict is as long as in any file.
    const std::vector<Storage> storages =
        bad.object.find("Storage\n") == std::string::npos ? std::vector<Storage>{} : std::vector{stored};
    const std::string message = refusal(legacy_file(bad.object, storages));
    EXPECT_TRUE(message.starts_with(bad.message)) << bad.object.substr(0, 100) << '\n' << message;
  }
}

TEST(Torch, BadTensorsAreRefused) {
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2"), six_floats = storage("s", 6),
                    one = integers({1});
  const auto made_by = [&](const std::vector<std::string>& arguments) { return call(rebuild, arguments); };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const BadPickle tensors[] = {
      {"K\3", "must be a tensor, got an int"},
      {"}", "must be a tensor, got a dict; only a state dict itself is read"},
      {six_floats, "must be a tensor, got a storage"},
      {call(global("torch", "Size"), {one}), "must be a tensor, got a call of torch.Size"},
      {call(global("torch._utils", "_rebuild_parameter"), {"N", "\x88", "N"}),
       "must be a tensor, got a call of torch._utils._rebuild_parameter"},
      {call(global("torch._utils", "_rebuild_parameter"), {}), "a parameter must be made of 3 values, got 0"},
      {made_by({six_floats}), "must be made of 6 to 7 values, got 1"},
      {made_by({six_floats, integer(0), one, one, "\x89", "N", dict({text("neg"), "\x88"})}),
       "must be stored as it is, got metadata such as conj or neg"},
      {made_by({"N", integer(0), one, one, "\x89", "N"}), "must have a storage, got None"},
      {made_by({storage("s", 6, "UntypedStorage", "torch.storage"), integer(0), one, one, "\x89", "N"}),
       "must have a dtype"},
      {call(global("torch._utils", "_rebuild_tensor_v3"),
            {six_floats, integer(0), one, one, "\x89", "N", "N"}),
       "must have a dtype"},
      {made_by({six_floats, "\x88", one, one, "\x89", "N"}),
       "must have an offset, and a length and a stride"},
      {made_by({six_floats, "\x8a\1\xff", one, one, "\x89", "N"}),
       "must have an offset, and a length and a stride"},
      {made_by({six_floats, integer(0), integer(1), one, "\x89", "N"}),
       "must have an offset, and a length and a stride"},
      {made_by({six_floats, integer(0), tuple({"\x88"}), one, "\x89", "N"}),
       "must have an offset, and a length and a stride"},
      {tensor(six_floats, -1, {1}, {1}), "must have an offset, and a length and a stride from 0 for each"},
      {tensor(six_floats, 0, {-1}, {1}), "must have an offset, and a length and a stride from 0 for each"},
      {tensor(six_floats, 5, {2}, {-1}), "must have an offset, and a length and a stride from 0 for each"},
      {tensor(six_floats, 0, {1, 1}, {1}), "must have an offset, and a length and a stride from 0 for each"},
      {tensor(six_floats, 0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1)),
       "must have an offset, and a length and a stride from 0 for each of at most 64 axes"},
      {tensor(six_floats, 0, {7}, {1}),
       "shape (7) with strides (1) from element 0 must stay in its storage of 6 elements of F32"},
      {tensor(six_floats, 6, {1}, {1}), "shape (1) with strides (1) from element 6 must stay"},
      {tensor(six_floats, 4, {3}, {1}), "shape (3) with strides (1) from element 4 must stay"},
      {tensor(six_floats, 0, {2, 3}, {4, 1}), "shape (2, 3) with strides (4, 1) from element 0 must stay"},
      {tensor(six_floats, most, {1}, {1}),
       "shape (1) with strides (1) from element 9223372036854775807 must"},
      {tensor(six_floats, 0, {3}, {most}),
       "shape (3) with strides (9223372036854775807) from element 0 must"},
      {tensor(six_floats, 0, {3, 3}, {most, most}), "shape (3, 3) with strides"},
      {tensor(six_floats, 0, {most}, {0}),
       "shape (9223372036854775807) with strides (0) from element 0 must"},
      {tensor(six_floats, 0, {1 << 20, 1 << 20, 1 << 20}, {0, 0, 0}),
       "shape (1048576, 1048576, 1048576) with"},
      {tensor(six_floats, 0, {0, most, most}, {1, 1, 1}),
       "shape (0, 9223372036854775807, 9223372036854775807)"},
      {tensor(six_floats, 0, {1 << 26}, {0}),
       "strides (0) must not repeat elements, got more of them than the file holds"},
  };
  for (const BadPickle& bad : tensors) {
    const bool is_untyped = bad.object.find("UntypedStorage") != std::string::npos;
    const std::string file =
        is_untyped ? legacy_file(dict({text("w"), bad.object}), {{"s", "123456", 6}})
                   : legacy_file(dict({text("w"), bad.object}),
                                 bad.object.find("Storage") == std::string::npos ? std::vector<Storage>{}
                                                                                 : std::vector{stored});
    const std::string message = refusal(file);
    EXPECT_TRUE(message.starts_with(std::string("tensor \"w\": ") + bad.message)) << message;
  }
  const std::string good = tensor(six_floats, 0, {6}, {1});
  EXPECT_EQ(refusal(legacy_file(dict({"K\1", good}), {stored})),
            "must hold a state dict, tensors by name, got a name that is an int");
  EXPECT_EQ(refusal(legacy_file(dict({text("w"), good, text("w"), good}), {stored})),
            "the name \"w\" must be unique, got it twice");
}

TEST(Torch, BadSequencesOfPicklesAreRefused) {
  const std::string good = file_of(tensor(storage("s", 6), 0, {6}, {1}));
  EXPECT_EQ(refusal(""), "must be a file of torch.save, a zip archive or a pickle, got \"\"");
  EXPECT_EQ(refusal(pickle("K\1")), "must begin with torch.save's number, got an int");
  EXPECT_EQ(refusal(good + "x"), "must end with its last storage, got 1 bytes after it");
  EXPECT_EQ(refusal(legacy_file("}", {}, "\x89")), "its numbers must be little-endian");
  EXPECT_EQ(refusal(legacy_file("}", {stored})), "must list each storage of the dict once");
  EXPECT_EQ(refusal(legacy_file(storage("s", 6), {stored, stored})),
            "must list each storage of the dict once");
  EXPECT_EQ(refusal(legacy_file(dict({text("w"), tensor(storage("s", 6), 0, {6}, {1})}), {})),
            "must list each storage of the dict once");
  std::string other_version = good;
  other_version[other_version.find(integer(1001)) + 2] ^= 1;
  EXPECT_EQ(refusal(other_version), "must have the version 1001 of torch.save's format");
}

std::string changed(std::string file, const std::string& from, const std::string& to) {
  std::size_t changes = 0;
  for (std::size_t at = 0; (at = file.find(from, at)) != std::string::npos; ++changes)
    file.replace(at, from.size(), to);
  EXPECT_GT(changes, 0u) << from;
  return file;
}

TEST(Torch, ArchivesOf64BitsAreRead) {
  const std::string object = dict({text("w"), tensor(storage("s", 6), 0, {6}, {1})});
  for (const bool of_64_bits : {false, true}) {
    const auto state = loaded(zip_archive(
        {{"a/data.pkl", pickle(object)}, {"a/byteorder", "little"}, {"a/data/s", stored.bytes}}, of_64_bits));
    expect_same_bits(state.at("w"), Array<float>{0, 1, 2, 3, 4, 5});
  }
}

TEST(Torch, BadArchivesAreRefused) {
  const std::string object = pickle(dict({text("w"), tensor(storage("s", 6), 0, {6}, {1})}));
  const auto archive = [&](const std::string& storage_name, const std::string& order,
                           bool of_64_bits = false) {
    return zip_archive({{"a/data.pkl", object}, {"a/byteorder", order}, {storage_name, stored.bytes}},
                       of_64_bits);
  };
  const std::string good = archive("a/data/s", "little");
  EXPECT_EQ(refusal(good), "no exception");
  EXPECT_EQ(refusal(archive("a/data/t", "little")), "the member \"a/data/s\" is missing");
  EXPECT_EQ(refusal(archive("a/data/s", "big")), "its numbers must be little-endian, got byteorder \"big\"");
  EXPECT_EQ(refusal(archive("a/data.pkl", "little")),
            "the member \"a/data.pkl\" must be unique, got it twice");
  EXPECT_EQ(refusal(zip_archive({{"a/data.pkl", object}, {"a/data/s", "short"}})),
            "the storage \"s\" must have 24 bytes, got 5");
  EXPECT_EQ(refusal(zip_archive({{"a/data.pkl", object + "x"}})), "data.pkl must end with its pickle");
  EXPECT_EQ(refusal(zip_archive({{"w.npy", "x"}})), "the member \"data.pkl\" is missing");
  EXPECT_EQ(refusal(zip_archive({})),
            "must be a file of torch.save, a zip archive or a pickle, got "
            "\"PK\\u0005\\u0006\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000"
            "\\u0000\\u0000\\u0000\\u0000\\u0000\"");

  // The entry of data.pkl is the first of the directory.
  const std::size_t entry = good.find("PK\1\2"), end = good.find("PK\5\6");
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string file = good;
    return file.replace(at, bytes.size(), bytes);
  };
  EXPECT_EQ(refusal(with(entry + 8, "\1")), "the member \"a/data.pkl\" must not be encrypted");
  EXPECT_EQ(refusal(with(entry + 10, "\x8")),
            "the member \"a/data.pkl\" must be stored, got compression method 8");
  for (const std::size_t field : {20, 24, 42})  // both sizes and the place
    EXPECT_EQ(refusal(with(entry + field, "\xff\xff\xff\x7f")),
              "the member \"a/data.pkl\" is not where the directory says");
  EXPECT_EQ(refusal(with(26, "\xff\xff")), "the member \"a/data.pkl\" is not where the directory says");
  EXPECT_EQ(refusal(with(30, "b")), "the member \"a/data.pkl\" is not where the directory says");
  for (const std::size_t field : {28, 30, 32})  // lengths of the name and of what follows
    EXPECT_EQ(refusal(with(entry + field, "\xff\xff")),
              "must be a whole zip archive: its directory is broken");
  EXPECT_EQ(refusal(with(end + 10, "\xff\xff")), "must be a whole zip archive: its directory is broken");
  EXPECT_EQ(refusal(with(end + 10, "\1")), "must be a whole zip archive: its directory is broken");
  EXPECT_EQ(refusal(with(end + 12, "\xff\xff\xff\xff")),
            "must be a whole zip archive: its directory is not in the file");
  EXPECT_EQ(refusal(with(end + 16, "\xff\xff\xff\xff")),
            "must be a whole zip archive: its directory is not in the file");
  const std::string long_sizes = archive("a/data/s", "little", true);
  EXPECT_EQ(refusal(changed(long_sizes, "PK\6\6", "PK\6\5")),
            "must be a whole zip archive: its record of 64 bits is missing");
  std::string nowhere = long_sizes;
  nowhere.replace(nowhere.find("PK\6\7") + 8, 8, 8, '\xff');
  EXPECT_EQ(refusal(nowhere), "must be a whole zip archive: its record of 64 bits is missing");
}

/// A file of each format: the pickles, and archives without and with sizes of 64 bits.
std::vector<std::string> small_files() {
  const std::string object = dict({text("w"), tensor(storage("s", 6), 0, {3, 2}, {1, 3})});
  std::vector<std::string> files{legacy_file(object, {stored})};
  for (const bool of_64_bits : {false, true})
    files.push_back(zip_archive({{"a/data.pkl", pickle(object)}, {"a/data/s", stored.bytes}}, of_64_bits));
  return files;
}

TEST(Torch, EveryPartOfAFileIsRefused) {
  const TemporaryFolder temporary;
  for (const std::string& whole : small_files()) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string path = temporary.write("part.bin", whole.substr(0, size));
      const std::string message = message_of<FileError>([&] { TorchFile file(path); });
      ASSERT_TRUE(message.starts_with(path + ": ")) << size << message;
    }
  }
}

TEST(Torch, AChangedByteIsRefusedOrAnotherFile) {
  const TemporaryFolder temporary;
  for (const std::string& whole : small_files()) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string file = whole;
      file[i] = static_cast<char>(file[i] ^ (i % 2 == 0 ? 0xff : 1 << i % 7));
      const std::string path = temporary.write("changed.bin", file);
      const std::string message = message_of<FileError>([&] { TorchFile opened(path); });
      ASSERT_TRUE(message == "no exception" || message.starts_with(path + ": ")) << i << message;
    }
  }
}

TEST(Torch, InspectListsTheTensors) {
  const auto program = xgrad_tests::run_program("inspect " + data_folder + "zip.bin");
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_NE(program.output.find("\ntransposed       F32          (3, 4) "), std::string::npos)
      << program.output;
  EXPECT_NE(program.output.find("\n26 tensors, 1139 elements, 1471 bytes\n"), std::string::npos)
      << program.output;
}

TEST(Torch, TensorsOfOneStorageMayNotAskForAllMemory) {
  constexpr std::int64_t count = 1 << 18;
  const auto file_of_copies = [](std::size_t copies) {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < copies; ++i) {
      items.push_back(text("w" + std::to_string(i)));
      items.push_back(tensor(storage("0", count), 0, {count}, {1}));
    }
    return legacy_file(dict(items), {{"0", std::string(count * 4, '\0'), count}});
  };
  EXPECT_EQ(refusal(file_of_copies(50)), "no exception");
  EXPECT_EQ(refusal(file_of_copies(150)),
            "tensor \"w102\": tensors that share storages must not have 100 times the bytes of the file");
}

}  // namespace torch_file_test
