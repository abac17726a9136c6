// The encoder as a file that ONNX Runtime runs, which bench_encoder measures beside xgrad's.

#include <stdexcept>
#include <variant>

#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "encoder.hpp"
#include "protocol.hpp"
#include "worker.hpp"

int main() {
  return bench::serve([](const std::string& what, const nlohmann::json& request) -> nlohmann::json {
    if (what != "export") throw std::invalid_argument("cannot do '" + what + "' now");
    const auto size = request.at("size").get<bench::Size>();
    xgrad::manual_seed(bench::seed);
    const bench::Encoder model(size);
    model.eval();
    const auto forward = [&](const xgrad::onnx::Values<float>& in) {
      return xgrad::onnx::Values<float>{{"logits", model(std::get<xgrad::Ids>(in.at("ids")))}};
    };
    const auto vocab = static_cast<std::int64_t>(size.vocab);
    xgrad::onnx::save<float>(model, request.at("path"),
                             {{"ids", {size.batch, size.seq}, 0, vocab, bench::pad_id}}, forward);
    return nlohmann::json::object();
  });
}
