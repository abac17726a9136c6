#include "max_pool.hpp"

#include <algorithm>
#include <cmath>

#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {
namespace {

std::size_t longest_window(const PoolAxis& axis) {
  std::size_t longest = 0;
  for (const PoolAxis::Range& window : axis.windows) longest = std::max(longest, window.size);
  return longest;
}

}  // namespace

template <typename T>
void max_pool(const T* x, std::size_t planes, const PoolAxis& rows, const PoolAxis& cols, T* y,
              std::int64_t* ids) {
  const std::size_t row_count = rows.windows.size(), col_count = cols.windows.size();
  const std::size_t image_size = rows.length * cols.length, row_step = rows.step * cols.length;
  parallel_pieces(planes * row_count, col_count * longest_window(rows) * longest_window(cols) * 4,
                  [&](std::size_t begin, std::size_t end) {
                    for (; begin < end; ++begin) {
                      const T* const image = x + begin / row_count * image_size;
                      const PoolAxis::Range row = rows.windows[begin % row_count];
                      for (std::size_t i = 0; i < col_count; ++i) {
                        const PoolAxis::Range col = cols.windows[i];
                        std::size_t start = row.begin * cols.length + col.begin, best = start;
                        T largest = image[start];
                        for (std::size_t r = 0; r < row.size; ++r, start += row_step) {
                          for (std::size_t c = 0, place = start; c < col.size; ++c, place += cols.step) {
                            if (image[place] > largest || std::isnan(image[place])) {
                              largest = image[place];
                              best = place;
                            }
                          }
                        }
                        y[begin * col_count + i] = largest;
                        ids[begin * col_count + i] = static_cast<std::int64_t>(best);
                      }
                    }
                  });
}

template void max_pool(const float*, std::size_t, const PoolAxis&, const PoolAxis&, float*, std::int64_t*);
template void max_pool(const double*, std::size_t, const PoolAxis&, const PoolAxis&, double*, std::int64_t*);

}  // namespace xgrad::kernels
