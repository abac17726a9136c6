// The page "Pretrained encoders", section by section, on the folder that is its argument
#include <iostream>

#include <xgrad/pretrained.hpp>
#include <xgrad/retrieval.hpp>
#include <xgrad/xgrad.hpp>

namespace {

namespace pretrained = xgrad::pretrained;
namespace retrieval = xgrad::retrieval;
namespace tokenizers = xgrad::tokenizers;

void tokens(const std::string& folder) {
  std::cout << "# tokens\n";
  // [tokens]
  const auto tokenizer = tokenizers::Tokenizer::from_folder(folder);
  const tokenizers::Encoding encoding = tokenizer.encode("The jury said", {.max_length = 16});
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const auto [begin, end] = encoding.offsets[i];
    std::cout << tokenizer.token(encoding.ids[i]) << " " << begin << "-" << end << '\n';
  }

  const std::vector<std::string> texts{"The jury said", "It is late."};
  const pretrained::Batch batch =
      pretrained::encode(tokenizer, texts, {.max_length = 16});  // padded to one length
  std::cout << xgrad::to_string(batch.input_ids.shape()) << '\n';
  // [tokens]
}

void models(const std::string& folder) {
  std::cout << "# models\n";
  const auto tokenizer = tokenizers::Tokenizer::from_folder(folder);
  // [models]
  const auto encoder = pretrained::Encoder<float>::from_folder(folder);
  const pretrained::Batch batch = pretrained::encode(tokenizer, std::vector<std::string>{"The jury said"});
  const auto output = encoder(batch, {.hidden_states = true, .attentions = true});
  std::cout << xgrad::to_string(output.last_hidden_state.shape()) << ", " << output.hidden_states.size()
            << " hidden states, attention " << xgrad::to_string(output.attentions[0].shape()) << '\n';

  const auto model = pretrained::MaskedLM<float>::from_folder(folder);
  const pretrained::Batch hidden = pretrained::encode(tokenizer, std::vector<std::string>{"The [MASK] said"});
  std::cout << xgrad::to_string(model(hidden).shape()) << '\n';  // logits of every token at every place
  // [models]
}

void vectors(const std::string& folder) {
  std::cout << "# vectors\n";
  // [vectors]
  const auto embedder = pretrained::SentenceEmbedder<float>::from_folder(folder);
  const xgrad::Array<float> vectors = embedder(std::vector<std::string>{"The jury said", "It is late."});
  std::cout << xgrad::to_string(vectors.shape()) << '\n';
  // [vectors]
}

void search(const std::string& folder) {
  std::cout << "# search\n";
  // [search]
  const auto embedder = pretrained::SentenceEmbedder<float>::from_folder(folder);
  const auto index = retrieval::SearchIndex<float>::open("text.index", "text.txt", embedder);
  const auto hits = index.search(embedder(std::vector<std::string>{"The jury said"}), {.top_k = 1});
  for (const auto& [i, score] : hits[0]) std::cout << index.text(i) << '\n';
  // [search]
}

void pairs(const std::string& folder) {
  std::cout << "# pairs\n";
  // [pairs]
  const auto reranker = pretrained::CrossEncoder<float>::from_folder(
      folder, {.labels = std::vector<std::string>{"score"}});  // new weights, as the folder has no scores
  const std::vector<std::string> documents{"The jury said", "It is late.", "It was early."};
  const auto ranked = reranker.rank("When was it?", documents);  // (index, score), the highest score first
  std::cout << ranked.size() << (ranked[0].second >= ranked[1].second ? " sorted" : " unsorted") << '\n';
  // [pairs]
}

void precision(const std::string& folder) {
  std::cout << "# precision\n";
  // [precision]
  const auto embedder =
      pretrained::SentenceEmbedder<float>::from_folder(folder, {.precision = pretrained::Precision::int8});
  std::cout << xgrad::to_string(embedder(std::vector<std::string>{"The jury said"}).shape()) << '\n';
  embedder.save("int8");
  // [precision]
}

void training(const std::string& folder) {
  std::cout << "# training\n";
  // [training]
  const auto tokenizer = tokenizers::Tokenizer::from_folder(folder);
  const auto model = pretrained::SequenceClassifier<float>::from_folder(
      folder, {.labels = std::vector<std::string>{"late", "early"}});
  model.train();
  model.encoder().skip_padding();

  const std::vector<std::string> texts{"It is late.", "It was early in the day."};
  const pretrained::Batch batch = pretrained::encode(tokenizer, texts, {.max_length = 16});
  const xgrad::Ids labels{0, 1};
  constexpr std::size_t steps = 40;
  xgrad::AdamW<float> optimizer(
      pretrained::decay_groups(model.trainable_parameters(), {.lr = 5e-3, .weight_decay = 0.01}));
  xgrad::LinearWarmupLR<float> schedule(optimizer, steps / 10, steps);
  for (std::size_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    model.loss(batch, labels).backward();
    clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
    schedule.step();
  }
  model.eval();
  std::cout << (model.loss(batch, labels).item() < 0.1F ? "learned" : "not learned") << '\n';

  xgrad::write_folder("classifier", [&](const std::string& other) {  // both or none
    save_folder(model, other);
    tokenizer.save(other);
  });
  // [training]
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "tiny";
  tokens(folder);
  models(folder);
  vectors(folder);
  search(folder);
  pairs(folder);
  precision(folder);
  training(folder);
}
