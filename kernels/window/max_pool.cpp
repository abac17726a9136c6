#include "max_pool.hpp"

#include <cmath>
#include <vector>

namespace xgrad::kernels {
namespace {

/// Where a window begins on its axis, and how many elements it has there.
struct Range {
  std::size_t begin, size;
};

std::vector<Range> ranges(const WindowAxis& axis) {
  std::vector<Range> all;
  for (std::size_t i = 0; i < axis.count; ++i) {
    const auto [first, last] = axis.elements(i);
    all.push_back({axis.place(i, first), last - first});
  }
  return all;
}

}  // namespace

template <typename T>
void max_pool_ids(const T* x, std::size_t planes, const Windows& windows, std::int64_t* ids) {
  const std::vector<Range> rows = ranges(windows.rows), cols = ranges(windows.cols);
  const std::size_t row_step = windows.rows.dilation * windows.cols.length, col_step = windows.cols.dilation;
  parallel_pieces(planes * rows.size(), cols.size() * std::min(windows.size(), windows.image_size()) * 4,
                  [&](std::size_t begin, std::size_t end) {
                    for (; begin < end; ++begin) {
                      const T* const image = x + begin / rows.size() * windows.image_size();
                      const Range row = rows[begin % rows.size()];
                      for (std::size_t i = 0; i < cols.size(); ++i) {
                        std::size_t start = row.begin * windows.cols.length + cols[i].begin, best = start;
                        T largest = image[start];
                        for (std::size_t r = 0; r < row.size; ++r, start += row_step) {
                          for (std::size_t c = 0, place = start; c < cols[i].size; ++c, place += col_step) {
                            if (image[place] > largest || std::isnan(image[place])) {
                              largest = image[place];
                              best = place;
                            }
                          }
                        }
                        ids[begin * cols.size() + i] = static_cast<std::int64_t>(best);
                      }
                    }
                  });
}

template void max_pool_ids(const float*, std::size_t, const Windows&, std::int64_t*);
template void max_pool_ids(const double*, std::size_t, const Windows&, std::int64_t*);

}  // namespace xgrad::kernels
