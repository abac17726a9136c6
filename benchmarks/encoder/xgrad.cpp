// The encoder in xgrad, which bench_encoder measures, and the matrix product that bounds it.

#include <memory>
#include <stdexcept>

#include <xgrad/base/threads.hpp>
#include <xgrad/kernels/gemm/gemm.hpp>
#include <xgrad/xgrad.hpp>

#include "encoder.hpp"
#include "protocol.hpp"
#include "save.hpp"
#include "worker.hpp"

using bench::Encoder, bench::pad_id, xgrad::Ids;
using nlohmann::json;

namespace {

class Work {
 public:
  explicit Work(const bench::Size& size)
      : model_(size),
        optimizer_(model_.parameters(), {.lr = 1e-3}),
        ids_(xgrad::randint(pad_id + 1, static_cast<std::int64_t>(size.vocab), {size.batch, size.seq})),
        labels_(xgrad::randint(0, static_cast<std::int64_t>(size.classes), {size.batch})) {}

  // [step]
  void step() {
    set_mode(true);
    optimizer_.zero_grad();
    cross_entropy(model_(ids_), labels_).backward();
    optimizer_.step();
  }
  // [step]
  void forward() const {
    const xgrad::NoGrad guard;
    set_mode(false);
    model_(ids_);
  }
  bench::Model description() const {
    const xgrad::NoGrad guard;
    set_mode(false);
    return {xgrad::blas_core_name(),    to_string(xgrad::matmul_precision_in_use()),
            model_.parameter_count(),   cross_entropy(model_(ids_), labels_).item(),
            {ids_.begin(), ids_.end()}, {labels_.begin(), labels_.end()}};
  }

  bench::Weights save(const std::string& path) const { return bench::save(model_, path); }

 private:
  /// Of dropout. To set it takes as long as a good part of the smallest passes.
  void set_mode(bool training) const {
    if (model_.training() != training) model_.train(training);
  }

  Encoder model_;
  xgrad::Adam<float> optimizer_;
  Ids ids_, labels_;
};

/// The product of two n x n matrices.
class Product {
 public:
  explicit Product(std::size_t n)
      : n_(n), a_(xgrad::uniform<float>({n, n})), b_(xgrad::uniform<float>({n, n})), c_(a_) {}

  void operator()() {
    xgrad::kernels::gemm<float>(1, {a_.data(), n_, n_}, {b_.data(), n_, n_}, 0, {c_.data(), n_, n_});
  }

 private:
  std::size_t n_;
  xgrad::Array<float> a_, b_, c_;
};

}  // namespace

int main() {
  std::unique_ptr<Work> work;
  std::unique_ptr<Product> product;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "start") {
      xgrad::set_num_threads(request.at("threads"));
      xgrad::set_float32_matmul_precision(request.at("precision").get<std::string>());
      xgrad::manual_seed(bench::seed);
      work = std::make_unique<Work>(request.at("size").get<bench::Size>());
      return work->description();
    }
    if (what == "start sgemm") {
      xgrad::set_num_threads(1);
      product = std::make_unique<Product>(request.at("n"));
      return json::object();
    }
    if (what == "sgemm" && product) return bench::timed(request, *product);
    if (what == "save" && work) return work->save(request.at("path"));
    if (what == "step" && work) return bench::timed(request, [&] { work->step(); });
    if (what == "forward" && work) return bench::timed(request, [&] { work->forward(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
