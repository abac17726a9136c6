#include "trace.hpp"

#include <type_traits>

namespace xgrad::detail {

template <class T>
void Trace<T>::on_op(const OpEvent<T>& event) {
  if (event.in_backward && gradient_ops_ == GradientOps::without) return;
  TracedOp<T>& op = ops_.emplace_back(TracedOp<T>{&event.op, {}, {}, event.result, {}, event.output});
  for (const RunningModule* module = event.module; module != nullptr; module = module->outer)
    op.modules.push_back({module->name, module->type});
  for (const Variable<T>* input : event.inputs) op.inputs.push_back(*input);
  for (const Attribute& attribute : event.attributes) {
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
}

template class Trace<float>;
template class Trace<double>;

}  // namespace xgrad::detail
