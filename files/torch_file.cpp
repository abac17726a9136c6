#include "torch_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "../base/detail/text/json_text.hpp"
#include "../base/error.hpp"
#include "detail/pickle.hpp"
#include "detail/row_major.hpp"
#include "detail/zip_directory.hpp"

namespace xgrad {
namespace {

using detail::in_quotes, detail::Pickle, detail::PickleValue, detail::pickled_type, detail::ZipDirectory;

/// torch's names of a type and of its storages; those without the latter lie in untyped storages.
struct TorchType {
  std::string_view name, storage;
  DType dtype;
};
constexpr TorchType torch_types[] = {{"float64", "DoubleStorage", DType::F64},
                                     {"float32", "FloatStorage", DType::F32},
                                     {"float16", "HalfStorage", DType::F16},
                                     {"bfloat16", "BFloat16Storage", DType::BF16},
                                     {"int64", "LongStorage", DType::I64},
                                     {"int32", "IntStorage", DType::I32},
                                     {"int16", "ShortStorage", DType::I16},
                                     {"int8", "CharStorage", DType::I8},
                                     {"uint8", "ByteStorage", DType::U8},
                                     {"bool", "BoolStorage", DType::BOOL},
                                     {"complex64", "ComplexFloatStorage", DType::C64},
                                     {"uint16", "", DType::U16},
                                     {"uint32", "", DType::U32},
                                     {"uint64", "", DType::U64},
                                     {"float8_e4m3fn", "", DType::F8_E4M3},
                                     {"float8_e5m2", "", DType::F8_E5M2},
                                     {"float8_e4m3fnuz", "", DType::F8_E4M3FNUZ},
                                     {"float8_e5m2fnuz", "", DType::F8_E5M2FNUZ},
                                     {"float8_e8m0fnu", "", DType::F8_E8M0}};

std::optional<DType> dtype_of_name(const PickleValue::Global& global) {
  for (const TorchType& type : torch_types) {
    if (global.is("torch", type.name)) return type.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_storage(const PickleValue::Global& global) {
  for (const TorchType& type : torch_types) {
    if (!type.storage.empty() && (global.is("torch", type.storage) || global.is("torch.cuda", type.storage)))
      return type.dtype;
  }
  return std::nullopt;
}

bool is_untyped_storage(const PickleValue::Global& global) {
  return global.is("torch.storage", "UntypedStorage");
}

/// A function that makes a tensor: of a storage, an offset, a size and strides, and of more.
struct Rebuild {
  std::string_view name;
  std::size_t fewest, most;  // arguments
  std::size_t dtype;         // the place of the type among them; 0: it is the storage's
  std::size_t metadata;      // the place of what else the tensor has; 0: nothing
};
constexpr Rebuild rebuilds[] = {
    {"_rebuild_tensor", 4, 4, 0, 0}, {"_rebuild_tensor_v2", 6, 7, 0, 6}, {"_rebuild_tensor_v3", 7, 8, 6, 7}};

const Rebuild* rebuild_named(const PickleValue::Global& function) {
  for (const Rebuild& rebuild : rebuilds) {
    if (function.is("torch._utils", rebuild.name)) return &rebuild;
  }
  return nullptr;
}

bool is_rebuild_parameter(const PickleValue::Global& function) {
  return function.is("torch._utils", "_rebuild_parameter");
}

/// What the pickle of a state dict may name.
bool is_part_of_weights(const PickleValue::Global& global) {
  return global.is("collections", "OrderedDict") || global.is("torch", "Size") ||
         is_untyped_storage(global) || rebuild_named(global) != nullptr || is_rebuild_parameter(global) ||
         dtype_of_name(global) || dtype_of_storage(global);
}

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A storage that the pickle names.
struct Storage {
  std::optional<DType> dtype;  // empty: untyped
  std::uint64_t count;         // of elements, of bytes if untyped
  std::optional<std::span<const std::byte>> bytes = {};

  bool operator==(const Storage& other) const { return dtype == other.dtype && count == other.count; }
};

/// Reads the tensors of a file.
class StateDictReader {
 public:
  StateDictReader(const std::string& path, std::span<const std::byte> file,
                  std::vector<std::vector<std::byte>>& copies)
      : path_(path), file_(file), copies_(copies) {}

  std::vector<TensorView> read() {
    constexpr std::string_view zip("PK\3\4"), proto("\x80");
    const std::string_view text = text_of_bytes(file_);
    if (text.starts_with(zip)) return read_zip();
    if (text.starts_with(proto)) return read_pickles();
    fail("must be a file of torch.save, a zip archive or a pickle, got ", in_quotes(text.substr(0, 20)));
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    detail::fail<FileError>(path_, ": ", parts...);
  }

  /// The format since PyTorch 1.6: NAME/data.pkl, and each storage as a member NAME/data/KEY.
  std::vector<TensorView> read_zip() {
    const ZipDirectory members(path_, file_);
    const std::string_view first = members.first_name();
    const std::string folder(first.substr(0, first.find('/') + 1));
    if (members.contains(folder + "constants.pkl"))
      fail("is a TorchScript program, must be a state dict: torch.save(model.state_dict(), path)");
    if (members.contains(folder + "byteorder")) {
      const std::string_view order = text_of_bytes(members.at(folder + "byteorder"));
      if (order != "little") fail("its numbers must be little-endian, got byteorder ", in_quotes(order));
    }
    const std::span<const std::byte> bytes = members.at(folder + "data.pkl");
    const Pickle pickle(path_, bytes, is_part_of_weights);
    if (pickle.size() != bytes.size()) fail("data.pkl must end with its pickle");
    find_storages(pickle);
    for (auto& [key, storage] : storages_) {
      storage.bytes = members.at(detail::join({folder, "data/", std::string(key)}));
      if (storage.bytes->size() != size_of(key, storage))
        fail("the storage ", in_quotes(key), " must have ", size_of(key, storage), " bytes, got ",
             storage.bytes->size());
    }
    return tensors_of(pickle.result());
  }

  /// The format before: pickles of a magic number, the version, the system, the dict and the storages' keys,
  /// then each storage as a count of 8 bytes and its elements.
  std::vector<TensorView> read_pickles() {
    std::span<const std::byte> rest = file_;
    const auto next = [&] {
      Pickle pickle(path_, rest, is_part_of_weights);
      rest = rest.subspan(pickle.size());
      return pickle;
    };
    if (const Pickle number = next(); !is_magic(number.result()))
      fail("must begin with torch.save's number, got ", pickled_type(number.result()));
    if (const Pickle version = next(); !is_known_version(version.result()))
      fail("must have the version 1001 of torch.save's format");
    if (const Pickle system = next(); !is_little_endian(system.result()))
      fail("its numbers must be little-endian");
    const Pickle dict = next();
    find_storages(dict);
    const Pickle keys = next();
    const auto* const list = keys.result().get_if<PickleValue::List>();
    if (list == nullptr) fail("must have a list of its storages, got ", pickled_type(keys.result()));
    for (const PickleValue* const item : list->items) {
      const auto* const key = item->get_if<std::string_view>();
      const auto found = key == nullptr ? storages_.end() : storages_.find(*key);
      if (found == storages_.end() || found->second.bytes) fail("must list each storage of the dict once");
      Storage& storage = found->second;
      std::uint64_t count = 0;
      if (rest.size() < sizeof count)
        fail("must have the storage ", in_quotes(*key), ", got the end of the file");
      std::memcpy(&count, rest.data(), sizeof count);
      rest = rest.subspan(sizeof count);
      const std::size_t size = size_of(*key, storage);
      if (count != storage.count || size > rest.size())
        fail("the storage ", in_quotes(*key), " must have ", size, " bytes, got ", count, " elements in ",
             rest.size(), " bytes");
      storage.bytes = rest.first(size);
      rest = rest.subspan(size);
    }
    if (list->items.size() != storages_.size()) fail("must list each storage of the dict once");
    if (!rest.empty()) fail("must end with its last storage, got ", rest.size(), " bytes after it");
    return tensors_of(dict.result());
  }

  static bool is_magic(const PickleValue& value) {
    const auto* const number = value.get_if<PickleValue::LongInteger>();
    return number != nullptr && number->bytes == "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  }

  static bool is_known_version(const PickleValue& value) {
    const auto* const version = value.get_if<std::int64_t>();
    return version != nullptr && *version == 1001;
  }

  static bool is_little_endian(const PickleValue& system) {
    const auto* const dict = system.get_if<PickleValue::Dict>();
    if (dict == nullptr) return false;
    return std::any_of(dict->items.begin(), dict->items.end(), [](const auto& item) {
      const auto* const key = item.first->template get_if<std::string_view>();
      const auto* const value = item.second->template get_if<bool>();
      return key != nullptr && *key == "little_endian" && value != nullptr && *value;
    });
  }

  // ---- storages ----

  /// Reads the names ("storage", type, key, device, count) of all storages, after which files of several
  /// pickles have None.
  void find_storages(const Pickle& pickle) {
    for (const PickleValue* const persistent : pickle.persistent()) {
      const auto& [key, storage] = storage_of(*persistent);
      const auto [found, is_new] = storages_.try_emplace(key, storage);
      if (!(found->second == storage)) fail("the storage ", in_quotes(key), " must have one type and size");
    }
  }

  std::pair<std::string_view, Storage> storage_of(const PickleValue& persistent) const {
    const auto& id = persistent.get_if<PickleValue::Persistent>()->id->get_if<PickleValue::Tuple>()->items;
    const bool has_size = id.size() == 5 || (id.size() == 6 && id[5]->get_if<PickleValue::None>() != nullptr);
    const auto* const kind = has_size ? id[0]->get_if<std::string_view>() : nullptr;
    const auto* const type = has_size ? id[1]->get_if<PickleValue::Global>() : nullptr;
    const auto* const key = has_size ? id[2]->get_if<std::string_view>() : nullptr;
    const auto* const count = has_size ? id[4]->get_if<std::int64_t>() : nullptr;
    const std::optional<DType> dtype = type == nullptr ? std::nullopt : dtype_of_storage(*type);
    if (kind == nullptr || *kind != "storage" || type == nullptr || (!dtype && !is_untyped_storage(*type)) ||
        key == nullptr || count == nullptr || *count < 0)
      fail("the pickle must name a storage by \"storage\", type, key, device and number of elements");
    return {*key, {dtype, static_cast<std::uint64_t>(*count)}};
  }

  std::size_t size_of(std::string_view key, const Storage& storage) const {
    const std::optional<std::size_t> size =
        byte_count(storage.dtype.value_or(DType::U8), {static_cast<std::size_t>(storage.count)});
    if (!size)
      fail("the storage ", in_quotes(key), " must fit into memory, got ", storage.count, " elements");
    return *size;
  }

  // ---- tensors ----

  std::vector<TensorView> tensors_of(const PickleValue& state) {
    const auto* const dict = state.get_if<PickleValue::Dict>();
    if (dict == nullptr) fail("must hold a state dict, tensors by name, got ", pickled_type(state));
    std::vector<TensorView> tensors;
    std::unordered_set<std::string_view> names;
    for (const auto& [key, value] : dict->items) {
      const auto* const name = key->get_if<std::string_view>();
      if (name == nullptr)
        fail("must hold a state dict, tensors by name, got a name that is ", pickled_type(*key));
      if (!names.insert(*name).second) fail("the name ", in_quotes(*name), " must be unique, got it twice");
      tensors.push_back(tensor_of(*name, *value));
    }
    return tensors;
  }

  TensorView tensor_of(std::string_view name, const PickleValue& value) {
    const auto refuse = [&](const auto&... parts) { fail("tensor ", in_quotes(name), ": ", parts...); };
    const auto* call = value.get_if<PickleValue::Call>();
    if (call != nullptr && is_rebuild_parameter(call->function)) {  // of a tensor, requires_grad and hooks
      const auto& arguments = call->arguments->get_if<PickleValue::Tuple>()->items;
      if (arguments.size() != 3) refuse("a parameter must be made of 3 values, got ", arguments.size());
      call = arguments[0]->get_if<PickleValue::Call>();
    }
    const Rebuild* const rebuild = call == nullptr ? nullptr : rebuild_named(call->function);
    if (rebuild == nullptr)
      refuse("must be a tensor, got ", pickled_type(value),
             value.get_if<PickleValue::Dict>() == nullptr ? "" : "; only a state dict itself is read");
    const auto& arguments = call->arguments->get_if<PickleValue::Tuple>()->items;
    if (arguments.size() < rebuild->fewest || arguments.size() > rebuild->most)
      refuse("must be made of ", rebuild->fewest, " to ", rebuild->most, " values, got ", arguments.size());
    if (rebuild->metadata != 0 && arguments.size() > rebuild->metadata &&
        !is_nothing(*arguments[rebuild->metadata]))
      refuse("must be stored as it is, got metadata such as conj or neg");

    if (arguments[0]->get_if<PickleValue::Persistent>() == nullptr)
      refuse("must have a storage, got ", pickled_type(*arguments[0]));
    const Storage& storage = storages_.at(storage_of(*arguments[0]).first);
    std::optional<DType> dtype = storage.dtype;
    if (rebuild->dtype != 0) {
      const auto* const type = arguments[rebuild->dtype]->get_if<PickleValue::Global>();
      dtype = type == nullptr ? std::nullopt : dtype_of_name(*type);
    }
    if (!dtype) refuse("must have a dtype");
    const std::optional<std::size_t> offset = size_in(*arguments[1]);
    const std::optional<std::vector<std::size_t>> lengths = sizes_in(*arguments[2]),
                                                  strides = sizes_in(*arguments[3]);
    constexpr std::size_t most_axes = 64;  // in torch
    if (!offset || !lengths || !strides || lengths->size() != strides->size() || lengths->size() > most_axes)
      refuse("must have an offset, and a length and a stride from 0 for each of at most ", most_axes,
             " axes");
    return view_of_storage(name, *dtype, *storage.bytes, *offset, Shape(lengths->begin(), lengths->end()),
                           *strides);
  }

  static bool is_nothing(const PickleValue& value) {
    const auto* const dict = value.get_if<PickleValue::Dict>();
    return value.get_if<PickleValue::None>() != nullptr || (dict != nullptr && dict->items.empty());
  }

  /// An integer from 0; empty for anything else.
  static std::optional<std::size_t> size_in(const PickleValue& value) {
    const auto* const size = value.get_if<std::int64_t>();
    if (size == nullptr || *size < 0) return std::nullopt;
    return static_cast<std::size_t>(*size);
  }

  /// The integers from 0 of a tuple or of a torch.Size; empty for anything else.
  static std::optional<std::vector<std::size_t>> sizes_in(const PickleValue& value) {
    const PickleValue* list = &value;
    if (const auto* const call = value.get_if<PickleValue::Call>()) {
      const auto& arguments = call->arguments->get_if<PickleValue::Tuple>()->items;
      if (!call->function.is("torch", "Size") || arguments.size() != 1) return std::nullopt;
      list = arguments[0];
    }
    const auto* const tuple = list->get_if<PickleValue::Tuple>();
    if (tuple == nullptr) return std::nullopt;
    std::vector<std::size_t> sizes;
    for (const PickleValue* const item : tuple->items) {
      const std::optional<std::size_t> size = size_in(*item);
      if (!size) return std::nullopt;
      sizes.push_back(*size);
    }
    return sizes;
  }

  /// The elements of a tensor, where they lie or, if they are in another order, as a copy.
  TensorView view_of_storage(std::string_view name, DType dtype, std::span<const std::byte> storage,
                             std::size_t offset, const Shape& shape,
                             const std::vector<std::size_t>& strides) {
    const std::size_t element_size = *byte_count(dtype, {}), stored = storage.size() / element_size;
    const auto refuse = [&] {
      fail("tensor ", in_quotes(name), ": shape ", shape, " with strides ",
           Shape(strides.begin(), strides.end()), " from element ", offset, " must stay in its storage of ",
           stored, " elements of ", to_string(dtype));
    };
    const std::optional<std::size_t> size = byte_count(dtype, shape);
    if (!size) refuse();
    if (*size == 0) return {std::string(name), dtype, shape, {}};
    if (offset >= stored) refuse();
    std::size_t left = stored - 1 - offset, row_major_stride = 1;
    bool ordered = true;
    std::vector<std::size_t> byte_strides(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const std::size_t steps = shape[axis] - 1;
      if (steps == 0) continue;
      if (strides[axis] > left / steps) refuse();
      left -= strides[axis] * steps;
      byte_strides[axis] = strides[axis] * element_size;
      ordered = ordered && strides[axis] == row_major_stride;
      row_major_stride *= shape[axis];
    }
    const std::span<const std::byte> from = storage.subspan(offset * element_size);
    if (ordered) return {std::string(name), dtype, shape, from.first(*size)};
    constexpr std::size_t most_repeated = std::size_t{1} << 20;
    if (*size > file_.size() + most_repeated - copied_)
      fail("tensor ", in_quotes(name), ": strides ", Shape(strides.begin(), strides.end()),
           " must not repeat elements, got more of them than the file holds");
    copied_ += *size;
    copies_.push_back(detail::row_major(from, shape, byte_strides, element_size));
    return {std::string(name), dtype, shape, copies_.back()};
  }

  const std::string& path_;
  std::span<const std::byte> file_;
  std::vector<std::vector<std::byte>>& copies_;
  std::size_t copied_ = 0;
  std::unordered_map<std::string_view, Storage> storages_;
};

}  // namespace

TorchFile::TorchFile(const std::string& path)
    : file_(path), tensors_(detail::read_unchanged(file_, [&] {
        return StateDictReader(path, file_.bytes(), copies_).read();
      })) {
  constexpr std::size_t most_times = 100;  // a small file must not ask for all memory
  std::size_t total = 0;
  for (const TensorView& tensor : tensors_) {
    total += tensor.bytes.size();
    if (total / most_times > file_.bytes().size())
      detail::fail<FileError>(path, ": tensor ", in_quotes(tensor.name),
                              ": tensors that share storages must not have 100 times the bytes of the file");
  }
}

template <class T>
StateDict<T> load_torch(const std::string& path) {
  const TorchFile file(path);
  StateDict<T> state;
  for (const TensorView& tensor : file.tensors()) {
    state[tensor.name] = detail::array_from<T>(path, tensor);
    file.release(tensor);
  }
  file.throw_if_changed();
  return state;
}

template StateDict<float> load_torch(const std::string&);
template StateDict<double> load_torch(const std::string&);

}  // namespace xgrad
