#include "pickle.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "../../base/detail/text/json_text.hpp"
#include "../../base/detail/text/utf8.hpp"
#include "../../base/error.hpp"
#include "../tensor_view.hpp"

namespace xgrad::detail {
namespace {

/// Bounds the memory and the time: 35 opcodes describe a tensor.
constexpr std::size_t most_opcodes = std::size_t{1} << 21;

enum class Opcode : std::uint8_t {
  PROTO = 0x80,
  STOP = '.',
  MARK = '(',
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  NONE = 'N',
  BINPERSID = 'Q',
  REDUCE = 'R',
  SHORT_BINSTRING = 'U',
  BINUNICODE = 'X',
  BINFLOAT = 'G',
  EMPTY_LIST = ']',
  APPEND = 'a',
  BUILD = 'b',
  GLOBAL = 'c',
  APPENDS = 'e',
  BINGET = 'h',
  LONG_BINGET = 'j',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  SETITEM = 's',
  TUPLE = 't',
  SETITEMS = 'u',
  EMPTY_DICT = '}',
  EMPTY_TUPLE = ')',
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  LONG1 = 0x8a,
};

std::string full_name(const PickleValue::Global& global) {
  const std::string quoted = in_quotes(join({std::string(global.module), ".", std::string(global.name)}));
  return quoted.substr(1, quoted.size() - 2);
}

/// The stack machine that a pickle is a program for.
class PickleMachine {
 public:
  PickleMachine(const std::string& path, std::span<const std::byte> bytes,
                bool (*allowed)(const PickleValue::Global& global), std::deque<PickleValue>& values,
                std::vector<const PickleValue*>& persistent)
      : path_(path), bytes_(bytes), allowed_(allowed), values_(values), persistent_(persistent) {}

  const PickleValue& run() {
    if (next_opcode() != Opcode::PROTO) refuse("the pickle must begin with its protocol");
    const auto protocol = number<std::uint8_t>();
    if (protocol < 2 || protocol > 3)
      refuse("the pickle's protocol must be 2, as torch.save writes it, or 3, got ", protocol);
    for (;;) {
      spend(1);
      const Opcode opcode = next_opcode();
      if (opcode == Opcode::STOP) {
        const PickleValue& result = *pop();
        if (!stack_.empty() || !marks_.empty()) refuse("the pickle must end with one object");
        return result;
      }
      step(opcode);
    }
  }

  std::size_t position() const { return at_; }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(path_, ": ", parts...);
  }

  /// Counts opcodes, and the items that one copies.
  void spend(std::size_t count) {
    if (count > left_) refuse("the pickle must have at most ", most_opcodes, " opcodes");
    left_ -= count;
  }

  void step(Opcode opcode) {
    using enum Opcode;
    switch (opcode) {
      case NONE:
        return push(PickleValue::None{});
      case NEWTRUE:
        return push(true);
      case NEWFALSE:
        return push(false);
      case BININT:
        return push(std::int64_t{number<std::int32_t>()});
      case BININT1:
        return push(std::int64_t{number<std::uint8_t>()});
      case BININT2:
        return push(std::int64_t{number<std::uint16_t>()});
      case LONG1:
        return push_long(take(number<std::uint8_t>()));
      case BINFLOAT:
        return push(big_endian_double());
      case BINUNICODE:
        return push_text(take(number<std::uint32_t>()));
      case SHORT_BINSTRING:
        return push_text(take(number<std::uint8_t>()));
      case EMPTY_TUPLE:
        return push(PickleValue::Tuple{});
      case TUPLE1:
        return push(PickleValue::Tuple{pop_many(1)});
      case TUPLE2:
        return push(PickleValue::Tuple{pop_many(2)});
      case TUPLE3:
        return push(PickleValue::Tuple{pop_many(3)});
      case TUPLE:
        return push(PickleValue::Tuple{pop_to_mark()});
      case EMPTY_LIST:
        return push(PickleValue::List{});
      case APPEND:
        return append(pop_many(1));
      case APPENDS:
        return append(pop_to_mark());
      case EMPTY_DICT:
        return push(PickleValue::Dict{false, {}});
      case SETITEM:
        return set_items(pop_many(2));
      case SETITEMS:
        return set_items(pop_to_mark());
      case MARK:
        marks_.push_back(stack_.size());
        return;
      case GLOBAL:
        return push_global();
      case REDUCE:
        return reduce();
      case BUILD:
        return build();
      case BINPERSID:
        return push_persistent();
      case BINPUT:
        memo_[number<std::uint8_t>()] = top();
        return;
      case LONG_BINPUT:
        memo_[number<std::uint32_t>()] = top();
        return;
      case BINGET:
        return get(number<std::uint8_t>());
      case LONG_BINGET:
        return get(number<std::uint32_t>());
      default:
        refuse("the pickle has opcode ", static_cast<int>(opcode), " at byte ", at_ - 1,
               ", which torch.save does not write for a state dict");
    }
  }

  // ---- bytes ----

  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - at_)
      refuse("the pickle must not end inside of an opcode, got ", bytes_.size(), " bytes");
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }

  template <class T>
  T number() {
    T number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }

  Opcode next_opcode() { return static_cast<Opcode>(number<std::uint8_t>()); }

  double big_endian_double() {
    std::string bytes(take(sizeof(double)));
    std::reverse(bytes.begin(), bytes.end());
    double number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const std::string_view line = take(std::min(rest.find('\n'), rest.size()));
    take(1);
    return line;
  }

  // ---- the stack ----

  void push(PickleValue* value) { stack_.push_back(value); }

  template <class Content>
  void push(Content content) {
    values_.push_back({std::move(content)});
    push(&values_.back());
  }

  PickleValue* top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
      refuse("the pickle takes an object that is not there, before byte ", at_);
    return stack_.back();
  }

  PickleValue* pop() {
    PickleValue* const value = top();
    stack_.pop_back();
    return value;
  }

  std::vector<PickleValue*> pop_many(std::size_t count) {
    std::vector<PickleValue*> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }

  std::vector<PickleValue*> pop_to_mark() {
    if (marks_.empty()) refuse("the pickle takes a mark that is not there, before byte ", at_);
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue*> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  // ---- objects ----

  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(std::int64_t)) return push(PickleValue::LongInteger{bytes});
    const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0;
    std::int64_t number = negative ? -1 : 0;
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
    push(number);
  }

  void push_text(std::string_view text) {
    if (utf8::find_invalid_utf8(text) != text.npos)
      refuse("a text in the pickle must be UTF-8, got ", in_quotes(text));
    push(text);
  }

  void push_global() {
    const std::string_view module = line();
    const PickleValue::Global global{module, line()};
    if (!allowed_(global)) refuse("the pickle names ", full_name(global), ", which weights may not contain");
    push(global);
  }

  void push_persistent() {
    PickleValue* const id = pop();
    if (id->get_if<PickleValue::Tuple>() == nullptr)
      refuse("the pickle must name its storages by tuples, got ", pickled_type(*id));
    push(PickleValue::Persistent{id});
    persistent_.push_back(stack_.back());
  }

  void append(const std::vector<PickleValue*>& items) {
    auto* const list = std::get_if<PickleValue::List>(&top()->content);
    if (list == nullptr) refuse("the pickle appends to ", pickled_type(*top()), ", which is not a list");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<PickleValue*>& items) {
    auto* const dict = std::get_if<PickleValue::Dict>(&top()->content);
    if (dict == nullptr) refuse("the pickle sets items of ", pickled_type(*top()), ", which is not a dict");
    if (items.size() % 2 != 0) refuse("the pickle must set items by pairs of a key and a value");
    for (std::size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
  }

  /// The items of an OrderedDict from its arguments: none, or (from Python 2) a list of pairs.
  std::optional<PickleValue::Dict> ordered_dict(const PickleValue::Tuple& arguments) {
    PickleValue::Dict dict{true, {}};
    if (arguments.items.empty()) return dict;
    const auto* const pairs = arguments.items[0]->get_if<PickleValue::List>();
    if (pairs == nullptr || arguments.items.size() != 1) return std::nullopt;
    spend(pairs->items.size());
    for (const PickleValue* const item : pairs->items) {
      const auto* const pair = item->get_if<PickleValue::List>();
      if (pair == nullptr || pair->items.size() != 2) return std::nullopt;
      dict.items.emplace_back(pair->items[0], pair->items[1]);
    }
    return dict;
  }

  void reduce() {
    PickleValue* const arguments = pop();
    const PickleValue* const function = pop();
    const auto* const global = function->get_if<PickleValue::Global>();
    const auto* const tuple = arguments->get_if<PickleValue::Tuple>();
    if (global == nullptr || tuple == nullptr)
      refuse("the pickle calls ", pickled_type(*function), " with ", pickled_type(*arguments),
             ", must be a function and a tuple");
    if (!global->is("collections", "OrderedDict")) return push(PickleValue::Call{*global, arguments});
    std::optional<PickleValue::Dict> dict = ordered_dict(*tuple);
    if (!dict) refuse("the pickle must make a collections.OrderedDict of nothing or of a list of pairs");
    push(*std::move(dict));
  }

  /// The state of a dict of weights is the versions of its modules, which change no values.
  void build() {
    pop();
    const auto* const dict = top()->get_if<PickleValue::Dict>();
    if (dict == nullptr || !dict->ordered)
      refuse("the pickle sets the state of ", pickled_type(*top()),
             ", must be that of a collections.OrderedDict");
  }

  void get(std::uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end())
      refuse("the pickle has no object ", index, ", which it takes before byte ", at_);
    push(found->second);
  }

  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0, left_ = most_opcodes;
  bool (*allowed_)(const PickleValue::Global& global);
  std::deque<PickleValue>& values_;
  std::vector<const PickleValue*>& persistent_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

}  // namespace

std::string pickled_type(const PickleValue& value) {
  if (const auto* const global = value.get_if<PickleValue::Global>()) return full_name(*global);
  if (const auto* const call = value.get_if<PickleValue::Call>())
    return "a call of " + full_name(call->function);
  constexpr const char* names[] = {"None", "a bool",  "an int", "a float", "an int", "a str",
                                   "",     "a tuple", "a list", "a dict",  "",       "a storage"};
  static_assert(std::size(names) == std::variant_size_v<decltype(PickleValue::content)>);
  return names[value.content.index()];
}

Pickle::Pickle(const std::string& path, std::span<const std::byte> bytes,
               bool (*allowed)(const PickleValue::Global& global)) {
  PickleMachine machine(path, bytes, allowed, values_, persistent_);
  result_ = &machine.run();
  size_ = machine.position();
}

}  // namespace xgrad::detail
