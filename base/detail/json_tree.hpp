#pragma once

namespace xgrad::detail {

/// Empties a value of nlohmann's from its leaves on. Its destructor moves the children of a value into a new
/// vector, and ends the process if there is no memory for it; that of an empty value allocates nothing. As
/// deep a recursion as the value.
template <class Json>
void empty_tree(Json& value) noexcept {
  if (value.is_object()) {
    auto& members = *value.template get_ptr<typename Json::object_t*>();
    for (auto& [name, member] : members) empty_tree(member);
    members.clear();
  } else if (value.is_array()) {
    auto& items = *value.template get_ptr<typename Json::array_t*>();
    for (Json& item : items) empty_tree(item);
    items.clear();
  }
}

/// Empties a local value at the end of its scope, also when an error leaves it.
template <class Json>
class EmptiedTree {
 public:
  explicit EmptiedTree(Json& value) noexcept : value_(value) {}
  EmptiedTree(const EmptiedTree&) = delete;
  EmptiedTree& operator=(const EmptiedTree&) = delete;
  ~EmptiedTree() { empty_tree(value_); }

 private:
  Json& value_;
};

}  // namespace xgrad::detail
