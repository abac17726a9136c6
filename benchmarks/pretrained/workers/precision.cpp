// The encoder of a folder at a precision, which bench_precision measures.

#include <algorithm>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <xgrad/base/threads.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../encoder/worker.hpp"
#include "precision.hpp"

using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::Variable;
using namespace xgrad::pretrained;

namespace {

/// A model with random weights and the vocabulary of a BERT, which other libraries ask for.
void save(const bench::BertSize& size, const std::string& folder) {
  xgrad::manual_seed(0);
  Config config;
  config.vocab_size = size.vocab_size;
  config.max_position_embeddings = size.max_position_embeddings;
  config.hidden_size = config.embedding_size = size.hidden_size;
  config.num_hidden_layers = size.num_hidden_layers;
  config.num_attention_heads = size.num_attention_heads;
  config.intermediate_size = size.intermediate_size;
  save_folder(Encoder<float>(config), folder);
  std::ofstream vocabulary(folder + "/vocab.txt");
  for (const char* const token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) vocabulary << token << '\n';
  for (std::size_t id = 5; id < size.vocab_size; ++id) vocabulary << 't' << id << '\n';
  std::ofstream(folder + "/tokenizer_config.json") << R"({"tokenizer_class": "BertTokenizer"})";
}

class Work {
 public:
  explicit Work(const bench::Folder& folder)
      : texts_(folder.lengths.size()),
        encoder_(
            Encoder<float>::from_folder(folder.folder, {.precision = precision_named(folder.precision)})) {
    const std::size_t longest = folder.ids.size() / texts_;
    input_.input_ids = Ids::from_shape({texts_, longest});
    std::copy(folder.ids.begin(), folder.ids.end(), input_.input_ids.begin());
    Ids mask = Ids::from_shape({texts_, longest});
    for (std::size_t i = 0; i < mask.size(); ++i)
      mask.data()[i] = i % longest < folder.lengths[i / longest] ? 1 : 0;
    input_.attention_mask = std::move(mask);
    encoder_.skip_padding();
  }

  Variable<float> forward() const {
    const xgrad::NoGrad guard;
    return encoder_(input_).last_hidden_state;
  }

  /// The mean of each text's hidden states.
  std::vector<double> vectors() const {
    const xgrad::NoGrad guard;
    const Variable<float> means = pool(forward(), input_, Pooling::mean);
    return {means.value().begin(), means.value().end()};
  }

 private:
  std::size_t texts_;
  Encoder<float> encoder_;
  Input input_;
};

}  // namespace

int main() {
  std::unique_ptr<Work> work;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "save") {
      save(request.at("size").get<bench::BertSize>(), request.at("folder"));
      return json::object();
    }
    if (what == "start") {
      xgrad::set_num_threads(request.at("threads"));
      const double begin = bench::now(CLOCK_PROCESS_CPUTIME_ID);
      work = std::make_unique<Work>(request.get<bench::Folder>());
      bench::Vectors answer{xgrad::blas_core_name(), work->vectors(), 0};
      answer.start = bench::now(CLOCK_PROCESS_CPUTIME_ID) - begin;
      return answer;
    }
    if (what == "forward" && work) return bench::timed(request, [&] { work->forward(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
