#include "print.hpp"

#include <ostream>

namespace xgrad {

template <class T>
std::string to_string(const Variable<T>& x) {
  if (!x.defined()) return "undefined";
  if (!x.requires_grad()) return detail::tensor_text(x.value());
  return detail::tensor_text(x.value(),
                             x.is_leaf() ? "requires_grad=True" : detail::join({"grad_fn=<", x.op(), ">"}));
}

template <class T>
std::ostream& operator<<(std::ostream& out, const Variable<T>& x) {
  return out << to_string(x);
}

template std::string to_string(const Variable<float>&);
template std::string to_string(const Variable<double>&);
template std::ostream& operator<<(std::ostream&, const Variable<float>&);
template std::ostream& operator<<(std::ostream&, const Variable<double>&);

}  // namespace xgrad
