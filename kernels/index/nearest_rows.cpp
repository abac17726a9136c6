#include "nearest_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../base/detail/product_precision.hpp"
#include "../../base/detail/system/parallel.hpp"
#include "../gemm/gemm.hpp"

namespace xgrad::kernels {
namespace {

// Of one product, whose scores stay in a core's cache.
constexpr std::size_t rows_at_once = 960, queries_at_once = 64;

/// a . b, added up in a fixed order.
template <typename T>
double exact_product(const T* a, const T* b, std::size_t size) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  }
  double sum = 0;
  for (; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (const double part : sums) sum += part;
  return sum;
}

bool is_nearer(const NearRow& a, const NearRow& b) {
  return a.score != b.score ? a.score > b.score : a.row < b.row;
}

/// The nearest rows of a query that one thread has seen, a heap with the farthest in front.
class Nearest {
 public:
  explicit Nearest(std::size_t most) : most_(most) {}

  /// The score that a row needs at least.
  double least() const {
    return rows_.size() < most_ ? -std::numeric_limits<double>::infinity() : rows_.front().score;
  }

  void offer(const NearRow& row) {
    if (rows_.size() == most_) {
      if (!is_nearer(row, rows_.front())) return;
      std::pop_heap(rows_.begin(), rows_.end(), is_nearer);
      rows_.pop_back();
    }
    rows_.push_back(row);
    std::push_heap(rows_.begin(), rows_.end(), is_nearer);
  }

  const std::vector<NearRow>& rows() const { return rows_; }

 private:
  std::size_t most_;
  std::vector<NearRow> rows_;
};

/// What a thread works with.
template <typename T>
struct Worker {
  std::vector<Nearest> nearest;  // of each query
  std::vector<T> products;
};

/// Offers a query the rows from `first` on, of which it has the products.
template <typename T>
void offer_rows(const Vectors<T>& queries, std::size_t query, const Vectors<T>& rows, std::size_t first,
                std::size_t count, bool cosine, const T* products, Nearest& nearest) {
  const auto size = static_cast<double>(rows.size), norm = queries.norms[query];
  // Of rounded and of underflowing products.
  const double error = size * static_cast<double>(std::numeric_limits<T>::epsilon()),
               least_error = size * static_cast<double>(std::numeric_limits<T>::min());
  const T* const q = queries.data + query * queries.size;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = first + i;
    const double product = static_cast<double>(products[i]), lengths = norm * rows.norms[row];
    const auto score_of = [=](double exact) {
      if (!cosine) return exact;
      return lengths > 0 ? exact / lengths : 0;
    };
    if (std::isfinite(product) && score_of(product + error * lengths + least_error) < nearest.least())
      continue;
    const double score = score_of(exact_product(q, rows.data + row * rows.size, rows.size));
    if (!std::isnan(score)) nearest.offer({row, score});
  }
}

}  // namespace

template <typename T>
void row_norms(const T* x, std::size_t count, std::size_t size, double* norms) {
  constexpr std::size_t grain = 256;
  parallel_chunks(count, grain, [=](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i)
      norms[i] = std::sqrt(exact_product(x + i * size, x + i * size, size));
  });
}

template <typename T>
void nearest_rows(const Vectors<T>& queries, const Vectors<T>& rows, std::size_t most, bool cosine,
                  std::vector<std::vector<NearRow>>& nearest) {
  const detail::RoundingScope full_precision(false);  // whose error is known
  nearest.assign(queries.count, {});
  most = std::min(most, rows.count);
  if (most == 0) return;
  const std::size_t blocks = (rows.count + rows_at_once - 1) / rows_at_once, size = rows.size;
  for (std::size_t done = 0; done < queries.count; done += queries_at_once) {
    const std::size_t count = std::min(queries_at_once, queries.count - done);
    const Matrix<const T> some_queries(queries.data + done * size, count, size);
    const std::size_t threads = std::min(available_threads(), blocks);
    std::vector<Worker<T>> workers(threads);
    const auto search_block = [&](std::size_t block, std::size_t thread) {
      Worker<T>& worker = workers[thread];
      worker.nearest.resize(count, Nearest(most));
      worker.products.resize(count * rows_at_once);
      const std::size_t first = block * rows_at_once, end = std::min(first + rows_at_once, rows.count);
      const Matrix<const T> some_rows(rows.data + first * size, end - first, size);
      const Matrix<T> products(worker.products.data(), count, end - first);
      gemm<T>(1, some_queries, some_rows.transpose(), 0, products);
      for (std::size_t i = 0; i < count; ++i)
        offer_rows(queries, done + i, rows, first, end - first, cosine, products.data + i * products.stride,
                   worker.nearest[i]);
    };
    parallel_for(blocks, search_block, threads);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<NearRow>& all = nearest[done + i];
      for (const Worker<T>& worker : workers) {
        if (worker.nearest.empty()) continue;
        const std::vector<NearRow>& some = worker.nearest[i].rows();
        all.insert(all.end(), some.begin(), some.end());
      }
      std::sort(all.begin(), all.end(), is_nearer);
      all.resize(std::min(most, all.size()));
    }
  }
}

#define XGRAD_INSTANTIATE(T)                                                          \
  template void row_norms(const T*, std::size_t, std::size_t, double*);               \
  template void nearest_rows(const Vectors<T>&, const Vectors<T>&, std::size_t, bool, \
                             std::vector<std::vector<NearRow>>&);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels
