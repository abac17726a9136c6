#pragma once

#include <cstddef>
#include <vector>

#include "../pretrained/heads/sentence_embedder.hpp"

namespace xgrad::retrieval {

struct SearchOptions {
  xgrad::detail::ByName by_name = {};
  std::size_t top_k = 10;                                              ///< vectors for each query
  pretrained::Similarity similarity = pretrained::Similarity::cosine;  ///< cosine or dot
};

/// A vector that is near to a query.
struct [[nodiscard]] SearchHit {
  std::size_t index;  ///< of the vector in the corpus
  double score;       ///< its similarity to the query
};

/// For each of the queries (queries, size) the top_k vectors of the corpus (texts, size) with the highest
/// scores (sentence_transformers.util.semantic_search): the highest first, equal ones in the order of the
/// corpus. The cosine with a vector of zeros is 0.
///
/// The search is exact: it has the result of comparing all vectors in double, whatever the precision of
/// products and for any number of threads. Throws ShapeError for vectors of different sizes, and ValueError
/// for numbers that are not finite and for euclidean or manhattan.
template <class T>
std::vector<std::vector<SearchHit>> semantic_search(const Array<T>& queries, const Array<T>& corpus,
                                                    const SearchOptions& options = {});

}  // namespace xgrad::retrieval
