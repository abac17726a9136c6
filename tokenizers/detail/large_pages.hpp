#pragma once

#include <cstddef>

#ifdef __linux__
#include <sys/mman.h>

#include <cstdint>
#endif

// Not installed.

namespace xgrad::tokenizers::detail {

#ifdef __linux__
/// Tells the system about the pages in a block of a quarter of a megabyte or more. Where it does not take the
/// advice, nothing is different but the time.
inline void advise_pages(const void* block, std::size_t bytes, int advice) {
  constexpr std::size_t least = std::size_t{1} << 18, page = 4096;
  if (bytes < least) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, advice));
}
#endif

/// Makes room for at most so many values, by large pages where that are megabytes and the system has them:
/// most of the time of a long text would go into getting pages from it, one by one.
template <class Values>
void reserve_large(Values& values, std::size_t count) {
  values.reserve(count);
#ifdef __linux__
  advise_pages(values.data(), values.capacity() * sizeof(typename Values::value_type), MADV_HUGEPAGE);
#endif
}

/// The same where all of them will be written.
template <class Values>
void reserve_whole(Values& values, std::size_t count) {
  reserve_large(values, count);
#if defined(__linux__) && defined(MADV_POPULATE_WRITE)
  advise_pages(values.data(), count * sizeof(typename Values::value_type), MADV_POPULATE_WRITE);
#endif
}

}  // namespace xgrad::tokenizers::detail
