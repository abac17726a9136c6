// Indices of a search, whose corpus is the input, too
// seeds: tests/data/badfiles/valid
#include <xgrad/retrieval.hpp>

#include "safetensors_mutator.hpp"

namespace {

namespace retrieval = xgrad::retrieval;

std::string index() {
  return fuzz::written([](const std::string& path) {
    const std::vector<retrieval::TextPlace> places{{1, 0, 1}, {3, 4, 2}};
    retrieval::SearchIndexWriter<float> writer(path, places, 2);
    writer.append({{1, 2}, {-2, 1}});
    writer.commit();
  });
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string whole = index();
  return fuzz::mutate_safetensors(data, size, most, seed, whole);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<xgrad::FileError>([&] {
    const retrieval::SearchIndex<float> index(input.path(), input.path());
    if (index.size() == 0) return;  // and a vector of any size
    xgrad::Array<float> query = xgrad::Array<float>::from_shape({1, index.vector_size()});
    query.fill(1);
    const auto hits = index.search(query, {.top_k = 3});
    for (const retrieval::SearchHit& hit : hits[0]) {
      fuzz::require(hit.index < index.size() && hit.score == hit.score, "a hit is a text with a score");
      fuzz::accepts<xgrad::FileError>([&] {
        fuzz::require(index.text(hit.index).size() <= size && index.line(hit.index) > 0,
                      "a text is in the file");
      });
    }
  });
  return 0;
}
