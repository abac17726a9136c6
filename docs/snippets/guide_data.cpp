// The page "Data", section by section
#include <iostream>

#include <xgrad/xgrad.hpp>

namespace {

void vocabulary() {
  std::cout << "# vocabulary\n";
  // [vocabulary]
  const std::vector<std::vector<std::string>> texts{xgrad::whitespace_tokens("the cat sees the dog"),
                                                    xgrad::whitespace_tokens("the dog sleeps")};
  const auto vocabulary = xgrad::Vocabulary::build(texts);
  for (const std::string& token : vocabulary.tokens()) std::cout << token << '\n';
  std::cout << vocabulary.id("dog") << ' ' << vocabulary.id("horse") << '\n';  // horse: [UNK]
  // [vocabulary]
}

void padding() {
  std::cout << "# padding\n";
  // [padding]
  const xgrad::Ids batch = xgrad::pad_sequence({{2, 5, 6}, {2, 3}}, 0);
  std::cout << batch << '\n' << xgrad::padding_mask(batch, 0) << '\n';
  // [padding]
}

void batches() {
  std::cout << "# batches\n";
  // [batches]
  xgrad::manual_seed(0);
  xgrad::BatchSampler sampler(5, {.batch_size = 2});
  for (std::size_t batch = 0; batch < sampler.batches_per_epoch(); ++batch) {
    for (const std::size_t example : sampler.next()) std::cout << example << ' ';
    std::cout << "in epoch " << sampler.epoch() << '\n';
  }
  // [batches]
}

void splitting() {
  std::cout << "# splitting\n";
  // [splitting]
  xgrad::manual_seed(0);
  const std::vector<std::vector<std::size_t>> parts = xgrad::random_split(10, {8, 2});
  std::cout << parts[0].size() << " to train on, " << parts[1].size() << " held out\n";
  // [splitting]
}

}  // namespace

int main() {
  vocabulary();
  padding();
  batches();
  splitting();
}
