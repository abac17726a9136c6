#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/file.hpp"
#include "../files/safetensors.hpp"
#include "semantic_search.hpp"

namespace xgrad::retrieval {

/// Where a text of a file is: its line, from 1 on, and its bytes.
struct TextPlace {
  std::int64_t line, begin, size;
};

struct SearchIndexOptions {
  xgrad::detail::ByName by_name = {};
  std::size_t batch_size = 32;  ///< texts at a time
  /// Name of the prompt before each text of the corpus. Empty: document_prompt(), if the folder has one, or
  /// else the default prompt.
  std::optional<std::string> prompt_name = {};
  /// The prompt itself, instead of one with a name; "" for none.
  std::optional<std::string> prompt = {};
  bool skip_invalid = false;  ///< whether lines that are not UTF-8 are left out, rather than an error
  /// Is told why the index is made, and which lines are left out. Empty: stderr.
  std::function<void(const std::string&)> note = {};
  /// Is called with the number of texts that are done and that of all; what it throws ends the call.
  std::function<void(std::size_t, std::size_t)> progress = {};
};

/// Vectors of the lines of a file, in a file that is mapped into memory: safetensors with "places" (texts, 3)
/// of I64, "vectors" (texts, size) of T, "lengths" (texts) of F64 and "digest" (1) of U64, XXH64 of the
/// others and of the metadata, which has digests of the corpus and of the model. Lines of white space have
/// none.
///
/// Opening compares the digest, and so reads the whole file once.
template <class T>
class SearchIndex {
 public:
  /// The index at `path` for a corpus. It is made, as an AtomicFile, if there is none, or if the corpus, the
  /// embedder's folder, the prompt or the type T is not that of the index, if the index has another format,
  /// or if its content is not that of its digest; a file that is no index is never replaced. Throws FileError
  /// for a file that cannot be read or written, for an index that is broken, for a file that is no index, and
  /// for a line that is not UTF-8, `corpus.txt:3: a line must be UTF-8, got an invalid byte at 4`; ValueError
  /// for an unknown prompt_name, and for vectors that are not finite.
  static SearchIndex open(const std::string& path, const std::string& corpus,
                          const pretrained::SentenceEmbedder<T>& embedder,
                          const SearchIndexOptions& options = {});

  /// Reads an index as it is. Throws FileError, also for another format and for a content that is not that of
  /// the digest.
  SearchIndex(const std::string& path, const std::string& corpus);

  /// The number of texts.
  std::size_t size() const { return lengths_.size(); }
  /// The size of a vector.
  std::size_t vector_size() const { return vector_size_; }
  const Metadata& metadata() const& { return file_.metadata(); }
  /// A text, and its line. Throws IndexError, and FileError for a place that is not in the corpus and where
  /// the index or the corpus has changed.
  std::string text(std::size_t i) const;
  std::size_t line(std::size_t i) const;

  /// Whether the index and the corpus are the files that were opened, with the same content. Lines that were
  /// added to the corpus since then are no part of it.
  bool is_current() const;

  /// semantic_search() in the vectors of the index. Throws FileError where the index has changed.
  std::vector<std::vector<SearchHit>> search(const Array<T>& queries,
                                             const SearchOptions& options = {}) const;

 private:
  SearchIndex(const std::string& path, MappedFile corpus);  // does not compare the digest

  bool is_intact() const;
  bool has_its_corpus() const;
  TextPlace place(std::size_t i) const;

  std::string path_;
  SafetensorsFile file_;
  MappedFile corpus_;
  std::span<const TextPlace> places_;
  std::span<const T> vectors_;
  std::span<const double> lengths_;
  std::size_t vector_size_ = 0;
  std::uint64_t digest_ = 0;  // as the file has it
};

/// Writes an index vector by vector.
template <class T>
class SearchIndexWriter {
 public:
  /// The places must live as long as this. Throws FileError, and ValueError for a vector_size of 0.
  SearchIndexWriter(const std::string& path, std::span<const TextPlace> places, std::size_t vector_size,
                    const Metadata& metadata = {});

  /// Appends vectors (n, vector_size). Throws FileError, ShapeError, and ValueError for numbers that are not
  /// finite and for more vectors than places.
  void append(const Array<T>& vectors);

  /// Puts the file into place. Call once, after the vectors of all places. Throws FileError, and ValueError
  /// if some are missing.
  void commit();

 private:
  std::span<const TextPlace> places_;
  std::size_t vector_size_;
  SafetensorsWriter file_;
  std::uint64_t digest_;  // of what is written
  std::vector<double> lengths_;
};

}  // namespace xgrad::retrieval
