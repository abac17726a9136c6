#include "windows.hpp"

namespace xgrad::kernels {
template <typename T>
void unfold(const T* x, std::size_t channels, const Windows& windows, std::size_t first, std::size_t count,
            T* columns) {
  const std::size_t size = windows.size(), stride = windows.cols.stride;
  parallel_pieces(channels * size, count, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) {
      const T* const channel = x + begin / size * windows.image_size();
      const std::size_t element = begin % size;
      T* const y = columns + begin * count;
      for_each_run(
          windows, element / windows.cols.kernel, element % windows.cols.kernel, first, count,
          [&](std::size_t from, std::size_t inside, std::size_t outside, std::size_t to, std::size_t place) {
            std::fill(y + from, y + inside, T(0));
            if (stride == 1) {
              std::copy_n(channel + place, outside - inside, y + inside);
            } else {
              for (std::size_t i = inside; i < outside; ++i, place += stride) y[i] = channel[place];
            }
            std::fill(y + outside, y + to, T(0));
          });
    }
  });
}

template <typename T>
void fold(const T* columns, std::size_t channels, const Windows& windows, std::size_t first,
          std::size_t count, T* x) {
  const std::size_t size = windows.size(), stride = windows.cols.stride;
  parallel_pieces(channels, size * count, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin * size; row < end * size; ++row) {
      T* const channel = x + row / size * windows.image_size();
      const std::size_t element = row % size;
      const T* const y = columns + row * count;
      for_each_run(windows, element / windows.cols.kernel, element % windows.cols.kernel, first, count,
                   [&](std::size_t, std::size_t inside, std::size_t outside, std::size_t, std::size_t place) {
                     for (std::size_t i = inside; i < outside; ++i, place += stride) channel[place] += y[i];
                   });
    }
  });
}

#define XGRAD_INSTANTIATE(T)                                                                 \
  template void unfold(const T*, std::size_t, const Windows&, std::size_t, std::size_t, T*); \
  template void fold(const T*, std::size_t, const Windows&, std::size_t, std::size_t, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
