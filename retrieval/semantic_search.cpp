#include "semantic_search.hpp"

#include <algorithm>
#include <cmath>

#include "../base/error.hpp"
#include "../ops/index/detail/nearest.hpp"
#include "detail/nearest_hits.hpp"

namespace xgrad::retrieval {
namespace {

/// Whether the similarity is cosine rather than dot. Throws ValueError, which begins with `caller`, for
/// others.
bool is_cosine(const char* caller, pretrained::Similarity similarity) {
  if (similarity != pretrained::Similarity::cosine && similarity != pretrained::Similarity::dot)
    xgrad::detail::fail<ValueError>(
        caller, ": similarity must be cosine or dot, got ",
        similarity == pretrained::Similarity::euclidean ? "euclidean" : "manhattan");
  return similarity == pretrained::Similarity::cosine;
}

}  // namespace

namespace detail {

template <class T>
std::vector<double> checked_lengths(const char* caller, const char* name, std::span<const T> vectors,
                                    std::size_t size) {
  std::vector<double> lengths = xgrad::detail::lengths_of_rows(vectors, size);
  const auto found =
      std::find_if(lengths.begin(), lengths.end(), [](double length) { return !std::isfinite(length); });
  if (found != lengths.end())
    xgrad::detail::fail<ValueError>(caller, ": ", name, " must be finite, which vector ",
                                    static_cast<std::size_t>(found - lengths.begin()), " is not");
  return lengths;
}

template <class T>
std::vector<std::vector<SearchHit>> nearest_hits(const char* caller, const Array<T>& queries,
                                                 std::span<const T> corpus, std::span<const double> lengths,
                                                 std::size_t size, const SearchOptions& options) {
  if (queries.dimension() != 2 || queries.shape(1) != size)
    xgrad::detail::fail<ShapeError>(caller, ": queries must have the shape (queries, ", size, "), got ",
                                    queries.shape());
  const bool cosine = is_cosine(caller, options.similarity);
  const std::span<const T> of_queries(queries.data(), queries.size());
  const std::vector<double> own = checked_lengths(caller, "queries", of_queries, size);
  const auto nearest = xgrad::detail::nearest_of<T>({queries.data(), own.data(), own.size(), size},
                                                    {corpus.data(), lengths.data(), lengths.size(), size},
                                                    options.top_k, cosine);
  std::vector<std::vector<SearchHit>> hits(nearest.size());
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    for (const auto& [row, score] : nearest[i]) hits[i].push_back({row, score});
  }
  return hits;
}

#define XGRAD_INSTANTIATE(T)                                                                               \
  template std::vector<double> checked_lengths(const char*, const char*, std::span<const T>, std::size_t); \
  template std::vector<std::vector<SearchHit>> nearest_hits(const char*, const Array<T>&,                  \
                                                            std::span<const T>, std::span<const double>,   \
                                                            std::size_t, const SearchOptions&);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace detail

template <class T>
std::vector<std::vector<SearchHit>> semantic_search(const Array<T>& queries, const Array<T>& corpus,
                                                    const SearchOptions& options) {
  constexpr const char* caller = "semantic_search";
  if (corpus.dimension() != 2 || corpus.shape(1) == 0)
    xgrad::detail::fail<ShapeError>(caller, ": corpus must have the shape (texts, size), got ",
                                    corpus.shape());
  const std::span<const T> vectors(corpus.data(), corpus.size());
  const std::vector<double> lengths = detail::checked_lengths(caller, "corpus", vectors, corpus.shape(1));
  return detail::nearest_hits<T>(caller, queries, vectors, lengths, corpus.shape(1), options);
}

template std::vector<std::vector<SearchHit>> semantic_search(const Array<float>&, const Array<float>&,
                                                             const SearchOptions&);
template std::vector<std::vector<SearchHit>> semantic_search(const Array<double>&, const Array<double>&,
                                                             const SearchOptions&);

}  // namespace xgrad::retrieval
