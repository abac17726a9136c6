#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <xgrad/files/tensor_view.hpp>

// Pickles, and the files that torch.save makes of them. https://docs.python.org/3/library/pickletools.html

namespace xgrad_tests::torch {

inline std::string little_endian(std::uint64_t number, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 255);
  return bytes;
}

// ---- objects, as parts of a pickle ----

inline std::string text(std::string_view text) {
  return "X" + little_endian(text.size(), 4) + std::string(text);
}

inline std::string integer(std::int64_t number) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(number), 8);
}

inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

inline std::string tuple(const std::vector<std::string>& items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}

inline std::string integers(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> items;
  for (const std::int64_t number : numbers) items.push_back(integer(number));
  return tuple(items);
}

inline std::string call(const std::string& function, const std::vector<std::string>& arguments) {
  return function + tuple(arguments) + "R";
}

inline std::string ordered_dict() { return call(global("collections", "OrderedDict"), {}); }

/// A dict of these keys and values.
inline std::string dict(const std::vector<std::string>& items) {
  std::string all = "}(";
  for (const std::string& item : items) all += item;
  return all + "u";
}

inline std::string storage(const std::string& key, std::int64_t count,
                           const std::string& type = "FloatStorage", const std::string& module = "torch") {
  return tuple({text("storage"), global(module, type), text(key), text("cpu"), integer(count)}) + "Q";
}

inline std::string tensor(const std::string& storage, std::int64_t offset,
                          const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, integer(offset), integers(shape), integers(strides), "\x89", ordered_dict()});
}

inline std::string pickle(const std::string& object) { return "\x80\2" + object + "."; }

// ---- files ----

struct Storage {
  std::string key, bytes;
  std::uint64_t count;
};

/// The format before PyTorch 1.6.
inline std::string legacy_file(const std::string& object, const std::vector<Storage>& storages,
                               const std::string& little = "\x88") {
  std::string keys = "](", all;
  for (const Storage& storage : storages) {
    keys += text(storage.key);
    all += little_endian(storage.count, 8) + storage.bytes;
  }
  return pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + pickle(integer(1001)) +
         pickle(dict({text("little_endian"), little})) + pickle(object) + pickle(keys + "e") + all;
}

/// Tensors of F32 or F64.
inline std::string file_of(const std::vector<xgrad::TensorView>& tensors) {
  std::vector<std::string> items;
  std::vector<Storage> storages;
  for (const xgrad::TensorView& view : tensors) {
    const std::vector<std::int64_t> shape(view.shape.begin(), view.shape.end());
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t count = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; count *= shape[axis]) strides[axis] = count;
    const std::string key = std::to_string(storages.size()),
                      type = view.dtype == xgrad::DType::F64 ? "DoubleStorage" : "FloatStorage";
    items.push_back(text(view.name));
    items.push_back(tensor(storage(key, count, type), 0, shape, strides));
    const std::string bytes(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
    storages.push_back({key, bytes, static_cast<std::uint64_t>(count)});
  }
  return legacy_file(dict(items), storages);
}

/// A zip archive of stored members, if asked for with places of 64 bits, and with sizes of as many after the
/// first member.
inline std::string zip_archive(const std::vector<std::pair<std::string, std::string>>& members,
                               bool of_64_bits = false) {
  std::string all, directory;
  const auto field = [](std::uint64_t number, bool is_elsewhere) {
    return little_endian(is_elsewhere ? 0xffffffff : number, 4);
  };
  for (const auto& [name, bytes] : members) {
    const bool long_sizes = of_64_bits && !all.empty();
    const std::string size = little_endian(bytes.size(), 8),
                      numbers = (long_sizes ? size + size : "") + little_endian(all.size(), 8),
                      extra =
                          of_64_bits ? little_endian(1, 2) + little_endian(numbers.size(), 2) + numbers : "";
    directory += "PK\1\2" + std::string(16, '\0') + field(bytes.size(), long_sizes) +
                 field(bytes.size(), long_sizes) + little_endian(name.size(), 2) +
                 little_endian(extra.size(), 2) + std::string(10, '\0') + field(all.size(), of_64_bits) +
                 name + extra;
    all +=
        "PK\3\4" + std::string(22, '\0') + little_endian(name.size(), 2) + little_endian(0, 2) + name + bytes;
  }
  const std::size_t begin = all.size();
  all += directory;
  if (of_64_bits) {
    const std::size_t end = all.size();
    all += "PK\6\6" + little_endian(44, 8) + std::string(20, '\0') + little_endian(members.size(), 8) +
           little_endian(directory.size(), 8) + little_endian(begin, 8);
    all += "PK\6\7" + std::string(4, '\0') + little_endian(end, 8) + little_endian(1, 4);
  }
  return all + "PK\5\6" + std::string(6, '\0') + little_endian(members.size(), 2) +
         field(directory.size(), of_64_bits) + field(begin, of_64_bits) + std::string(2, '\0');
}

}  // namespace xgrad_tests::torch
