#include "trace.hpp"

namespace xgrad::onnx::detail {

template <class T>
void Trace<T>::on_op(const OpEvent<T>& event) {
  TracedOp<T> op{&event.op, event.module != nullptr ? event.module->name : "", {}, event.result, {}};
  for (const Variable<T>* input : event.inputs) op.inputs.push_back(*input);
  for (const xgrad::Attribute& attribute : event.attributes) {
    std::visit(
        [&]<class A>(const A& value) {
          if constexpr (std::is_pointer_v<A>) {
            op.attributes.emplace(attribute.name, *value);
          } else {
            op.attributes.emplace(attribute.name, value);
          }
        },
        attribute.value);
  }
  ops_.push_back(std::move(op));
}

template class Trace<float>;
template class Trace<double>;

}  // namespace xgrad::onnx::detail
