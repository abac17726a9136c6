#include "linear_map.hpp"

#include <memory>

#include "../../graph/record.hpp"

namespace xgrad {
namespace {

template <class T>
using MapOfArrays = std::function<Array<T>(const Array<T>&)>;

template <class T>
struct Maps {
  MapOfArrays<T> map, transposed;
};

template <class T>
Variable<T> mapped(const std::shared_ptr<const Maps<T>>& maps, const Variable<T>& x, bool transposed,
                   const Shape* shape) {
  Variable<T> y((transposed ? maps->transposed : maps->map)(x.value()));
  if (shape != nullptr && y.shape() != *shape) {
    detail::fail<ShapeError>("linear_map: ", transposed ? "transposed" : "map",
                             " must return an array of shape ", *shape, ", got ", y.shape(),
                             ", for one of shape ", x.shape());
  }
  return record<T>(ops::linear_map, std::move(y), Inputs(x), Attributes(transposed), Saved(),
                   [maps, transposed](Variable<T> dy, Needs needs) -> Grads<T, 1> {
                     return {mapped(maps, dy, !transposed, &needs.shape(0))};
                   });
}

}  // namespace

template <class T>
Variable<T> linear_map(const Variable<T>& x,
                       std::type_identity_t<std::function<Array<T>(const Array<T>&)>> map,
                       std::type_identity_t<std::function<Array<T>(const Array<T>&)>> transposed) {
  if (!map || !transposed) {
    detail::fail<ValueError>("linear_map: map and transposed must be functions, got none for ",
                             map ? "transposed" : "map");
  }
  return mapped<T>(std::make_shared<const Maps<T>>(Maps<T>{std::move(map), std::move(transposed)}), x, false,
                   nullptr);
}

#define XGRAD_INSTANTIATE(T)                                                                    \
  template Variable<T> linear_map(const Variable<T>&, std::function<Array<T>(const Array<T>&)>, \
                                  std::function<Array<T>(const Array<T>&)>);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
