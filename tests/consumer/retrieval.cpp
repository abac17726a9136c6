#include <iostream>

#include <xgrad/retrieval.hpp>

int main() {
  const xgrad::Array<float> corpus{{1, 0}, {0, 1}, {1, 1}}, query{{0, 2}};
  const auto hits = xgrad::retrieval::semantic_search(query, corpus, {.top_k = 1});
  std::cout << "text " << hits[0][0].index << '\n';
  return hits[0][0].index == 1 ? 0 : 1;
}
