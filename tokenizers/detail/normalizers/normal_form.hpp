#pragma once

#include "normalizer.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A normalization form of Unicode (https://www.unicode.org/reports/tr15/): NFD, NFC, NFKD or NFKC.
struct NormalForm {
  bool compatibility, composes;

  void operator()(const TextBuffer& from, TextBuffer& to) const;
};

}  // namespace xgrad::tokenizers::detail
