#pragma once

#include <span>
#include <string>
#include <vector>

#include "../semantic_search.hpp"

// Not installed: a search in vectors that lie anywhere.

namespace xgrad::retrieval::detail {

/// The lengths of vectors. Throws ValueError, which begins with `caller: name`, for numbers that are not
/// finite.
template <class T>
std::vector<double> checked_lengths(const char* caller, const char* name, std::span<const T> vectors,
                                    std::size_t size);

/// semantic_search() for a corpus and the lengths of its vectors; errors begin with `caller`.
template <class T>
std::vector<std::vector<SearchHit>> nearest_hits(const char* caller, const Array<T>& queries,
                                                 std::span<const T> corpus, std::span<const double> lengths,
                                                 std::size_t size, const SearchOptions& options);

}  // namespace xgrad::retrieval::detail
