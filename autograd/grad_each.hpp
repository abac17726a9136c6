#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <vector>

#include "../graph/variable.hpp"

namespace xgrad {

/// d(output)/d(leaf) for each of the leaves, as in grad(), but passes each gradient and its leaf's index to
/// `take` as soon as it is complete, while the pass continues: `take` may send it to another process, or
/// change the leaf and discard the gradient. Changes no grad(). Leaves come in the order of completion; with
/// allow_unused, those that output does not depend on come first, with an undefined Variable. Under
/// create_graph only, the operations of `take` are recorded. Throws as grad() does, before the first call of
/// `take`; an op whose backward returns no gradient for anything that depends on a leaf is detected at the
/// end. Also throws GraphError for a Variable that is not a leaf, and ValueError for a duplicate.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html
template <class T>
void grad_each(const Variable<T>& output, const std::vector<Variable<T>>& leaves,
               const std::function<void(std::size_t, Variable<std::type_identity_t<T>>)>& take,
               const GradOptions<std::type_identity_t<T>>& options = {});

}  // namespace xgrad
