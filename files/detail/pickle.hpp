#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Not installed: pickles, read without running anything.

namespace xgrad::detail {

/// An object of a pickle. Texts are views of its bytes; the objects may refer to each other in circles.
struct PickleValue {
  struct None {};
  /// An integer of more than 8 bytes, little-endian.
  struct LongInteger {
    std::string_view bytes;
  };
  struct Global {
    std::string_view module, name;

    bool is(std::string_view module_name, std::string_view own_name) const {
      return module == module_name && name == own_name;
    }
  };
  struct Tuple {
    std::vector<PickleValue*> items;
  };
  struct List {
    std::vector<PickleValue*> items;
  };
  struct Dict {
    bool ordered;  // a collections.OrderedDict
    std::vector<std::pair<PickleValue*, PickleValue*>> items;
  };
  /// A call that unpickling would make; the arguments are a tuple.
  struct Call {
    Global function;
    PickleValue* arguments;
  };
  /// What lies outside of the pickle, by its id, a tuple.
  struct Persistent {
    PickleValue* id;
  };

  std::variant<None, bool, std::int64_t, double, LongInteger, std::string_view, Global, Tuple, List, Dict,
               Call, Persistent>
      content;

  template <class Content>
  const Content* get_if() const {
    return std::get_if<Content>(&content);
  }
};

/// The type of an object as errors name it: "a dict".
std::string pickled_type(const PickleValue& value);

/// A pickle of protocol 2 or 3, of the opcodes that torch.save writes for a state dict. Nothing is run or
/// imported: a call is recorded as it is, except that of collections.OrderedDict.
/// https://docs.python.org/3/library/pickletools.html
class Pickle {
 public:
  /// `path` begins errors, and `bytes` may go on after the pickle; they must outlive this. Throws FileError
  /// for other opcodes, and for a global that is not `allowed`: `path: the pickle names posix.system, which
  /// weights may not contain`.
  Pickle(const std::string& path, std::span<const std::byte> bytes,
         bool (*allowed)(const PickleValue::Global& global));

  const PickleValue& result() const { return *result_; }
  /// All that lies outside of the pickle, in the order of the opcodes.
  const std::vector<const PickleValue*>& persistent() const { return persistent_; }
  /// The number of bytes of the pickle.
  std::size_t size() const { return size_; }

 private:
  std::deque<PickleValue> values_;
  std::vector<const PickleValue*> persistent_;
  const PickleValue* result_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace xgrad::detail
