#include <algorithm>
#include <mutex>
#include <xgrad/ops/kernels/gemm.hpp>
#include <xgrad/ops/kernels/parallel.hpp>
#include <xgrad/ops/kernels/vectorized.hpp>
#include <xtensor-blas/xblas.hpp>

extern "C" {
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] void openblas_set_num_threads(int count);
[[gnu::weak]] int omp_get_max_threads();
[[gnu::weak]] void omp_set_num_threads(int count);
}

namespace xgrad::kernels {

namespace {

constexpr std::size_t tile = 8;

// Up to this many multiplications, loops are done before OpenBLAS has chosen and packed.
constexpr std::size_t small_product = 512;
constexpr std::size_t small_depth = small_product / tile;

template <typename T>
void scale_rows(std::size_t m, std::size_t n, T beta, T* c, std::size_t ldc) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
  }
}

/// y[0 .. width) = alpha sum + beta y; beta = 0 does not read y.
template <typename T, typename Row>
XGRAD_INLINE void store_row(const Row& sum, T alpha, T beta, T* y, std::size_t width) {
  for (std::size_t l = 0; l < width; ++l) y[l] = beta == T(0) ? alpha * sum[l] : alpha * sum[l] + beta * y[l];
}

/// Columns of op(B), 8 at a time and padded with zeros, are copied to the stack, so that every step
/// multiplies a number of op(A) with 8 contiguous ones. Bound by latency.
XGRAD_KERNEL(void, small_gemm,
             (bool trans_a, bool trans_b, std::size_t m, std::size_t n, std::size_t k, T alpha, const T* a,
              std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc),
             (trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)) {
  typedef T Row __attribute__((vector_size(tile * sizeof(T))));
  const std::size_t a_row = trans_a ? 1 : lda, a_step = trans_a ? lda : 1;
  const std::size_t b_step = trans_b ? 1 : ldb, b_column = trans_b ? ldb : 1;
  Row columns[small_depth];
  for (std::size_t j = 0; j < n; j += tile) {
    const std::size_t width = std::min(tile, n - j);
    for (std::size_t p = 0; p < k; ++p) {
      const T* from = b + p * b_step + j * b_column;
      columns[p] = Row{};
      for (std::size_t l = 0; l < width; ++l) columns[p][l] = from[l * b_column];
    }
    for (std::size_t i = 0; i < m; ++i) {
      Row sum{};
      for (std::size_t p = 0; p < k; ++p) sum += a[i * a_row + p * a_step] * columns[p];
      T* out = c + i * ldc + j;
      if (width == tile) {
        store_row(sum, alpha, beta, out, tile);
      } else {
        store_row(sum, alpha, beta, out, width);
      }
    }
  }
}

/// What has to be done for a call of BLAS to be single-threaded and safe beside those of other threads.
class BlasCall {
 public:
  BlasCall() {
    static std::mutex serial_blas;
    if (threading() == Threading::openmp) {  // which asks each calling thread for its own setting
      threads_before_ = omp_get_max_threads();
      omp_set_num_threads(1);
    } else if (threading() == Threading::none) {  // its buffers have no lock
      lock_ = std::unique_lock(serial_blas);
    }
  }
  ~BlasCall() {
    if (threading() == Threading::openmp) omp_set_num_threads(threads_before_);
  }

  /// True if calls can run beside each other.
  static bool is_concurrent() { return threading() != Threading::none; }

 private:
  enum class Threading { none, pthreads, openmp, other };  // the first three as OpenBLAS numbers them

  static Threading threading() {
    static const Threading found = [] {
      if (!openblas_get_parallel) return Threading::other;
      const int parallel = openblas_get_parallel();
      if (parallel == 1) openblas_set_num_threads(1);
      return static_cast<Threading>(parallel);
    }();
    return found;
  }

  int threads_before_ = 0;
  std::unique_lock<std::mutex> lock_;
};

template <typename T>
void blas_gemm(bool trans_a, bool trans_b, std::size_t m, std::size_t n, std::size_t k, T alpha, const T* a,
               std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc) {
  const BlasCall call;
  const auto index = [](std::size_t i) { return static_cast<xt::blas_index_t>(i); };
  const auto order = [](bool trans) { return trans ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<xt::blas_index_t>(cxxblas::RowMajor, order(trans_a), order(trans_b), index(m), index(n),
                                  index(k), alpha, a, index(lda), b, index(ldb), beta, c, index(ldc));
}

// OpenBLAS adds the products of an element in one order up to a million multiplications, and in another
// above, which does not depend on the row as long as its tiles begin at the same rows: pieces of twice a
// million that begin at multiples of every tile's height are bit-equal to the whole. For columns that does
// not hold.
constexpr std::size_t piece_product = std::size_t{1} << 21, piece_border = 48;

}  // namespace

template <typename T>
void gemm(bool trans_a, bool trans_b, std::size_t m, std::size_t n, std::size_t k,
          std::type_identity_t<T> alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb,
          std::type_identity_t<T> beta, T* c, std::size_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_rows(m, n, beta, c, ldc);
  const std::size_t padded_n = (n + tile - 1) / tile * tile;
  if (k <= small_depth && m <= small_product && m * padded_n * k <= small_product) {
    return small_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  const std::size_t height = (piece_product - 1) / (n * k) + 1;
  const std::size_t least = (height + piece_border - 1) / piece_border * piece_border;
  const std::size_t pieces = BlasCall::is_concurrent() ? std::min(m / least, available_threads()) : 1;
  if (pieces < 2) return blas_gemm<T>(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  const auto border = [&](std::size_t piece) {
    return piece == pieces ? m : piece * m / pieces / piece_border * piece_border;
  };
  parallel_for(pieces, [&](std::size_t piece, std::size_t) {
    const std::size_t begin = border(piece), rows = border(piece + 1) - begin;
    blas_gemm<T>(trans_a, trans_b, rows, n, k, alpha, a + begin * (trans_a ? 1 : lda), lda, b, ldb, beta,
                 c + begin * ldc, ldc);
  });
}

const char* blas_core_name() { return openblas_get_corename ? openblas_get_corename() : "unknown"; }

template void gemm(bool, bool, std::size_t, std::size_t, std::size_t, float, const float*, std::size_t,
                   const float*, std::size_t, float, float*, std::size_t);
template void gemm(bool, bool, std::size_t, std::size_t, std::size_t, double, const double*, std::size_t,
                   const double*, std::size_t, double, double*, std::size_t);

}  // namespace xgrad::kernels
