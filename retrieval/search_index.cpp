#include "search_index.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../base/detail/bytes/digest.hpp"
#include "../base/detail/system/folder_files.hpp"
#include "../base/detail/tell.hpp"
#include "../base/detail/text/json_text.hpp"
#include "../base/detail/text/utf8.hpp"
#include "../base/error.hpp"
#include "../base/pool.hpp"
#include "../ops/index/detail/nearest.hpp"
#include "detail/nearest_hits.hpp"

namespace xgrad::retrieval {
namespace {

static_assert(sizeof(TextPlace) == 3 * sizeof(std::int64_t));

constexpr std::string_view any_format = "xgrad search index ";
constexpr const char* index_format = "xgrad search index 2";

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The texts of a corpus.
struct CorpusLines {
  std::vector<TextPlace> places;
  std::size_t skipped = 0;  // lines that are not UTF-8
};

/// The lines of a corpus but those of white space, without line ends and a byte order mark.
CorpusLines lines_of(const std::string& path, std::string_view corpus, const SearchIndexOptions& options) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  constexpr std::size_t most_notes = 5;
  CorpusLines lines;
  std::size_t begin = corpus.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  for (std::int64_t number = 1; begin < corpus.size(); ++number) {
    const std::size_t end = std::min(corpus.find('\n', begin), corpus.size());
    std::string_view line = corpus.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t invalid = xgrad::detail::utf8::find_invalid_utf8(line);
    if (invalid != line.npos) {
      const std::string what =
          xgrad::detail::join({path, ":", std::to_string(number),
                               ": a line must be UTF-8, got an invalid byte at ", std::to_string(invalid)});
      if (!options.skip_invalid) throw FileError(what);
      if (++lines.skipped <= most_notes) xgrad::detail::tell(options.note, what + "; it is left out");
    } else if (line.find_first_not_of(" \t\r\v\f") != line.npos) {
      lines.places.push_back(
          {number, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(line.size())});
    }
    begin = end + 1;
  }
  if (lines.skipped > most_notes)
    xgrad::detail::tell(options.note, xgrad::detail::join({path, ": ", std::to_string(lines.skipped),
                                                           " lines are left out"}));
  return lines;
}

/// How the texts of a corpus become vectors.
template <class T>
pretrained::EmbedOptions embed_options(const pretrained::SentenceEmbedder<T>& embedder,
                                       const SearchIndexOptions& options) {
  pretrained::EmbedOptions embed{
      .batch_size = options.batch_size,
      .prompt_name = options.prompt_name ? options.prompt_name : embedder.document_prompt(),
      .prompt = options.prompt};
  embedder(std::span<const std::string>(), embed);  // throws for an unknown prompt
  return embed;
}

std::string digest_of_corpus(std::string_view corpus) {
  return xgrad::detail::hexadecimal(xgrad::detail::xxh64(std::as_bytes(std::span(corpus))));
}

/// Whether the bytes of a corpus are those of a digest; a file may have got more since it was opened.
bool has_digest(const MappedFile& corpus, const std::string& digest) {
  return !corpus.is_changed() || digest_of_corpus(text_of_bytes(corpus.bytes())) == digest;
}

/// What an index was made of; the name of a prompt stands for its text, as the folder's digest covers that.
template <class T>
Metadata origin(std::string_view corpus, const pretrained::SentenceEmbedder<T>& embedder,
                const pretrained::EmbedOptions& embed) {
  const std::string prompt = embed.prompt        ? "text " + *embed.prompt
                             : embed.prompt_name ? "name " + *embed.prompt_name
                                                 : "default";
  return {{"format", index_format},
          {"type", to_string(dtype_of<T>)},
          {"corpus", digest_of_corpus(corpus)},
          {"model", embedder.digest()},
          {"precision", to_string(embedder.encoder().precision())},
          {"prompt", prompt}};
}

/// What an index was not made of; empty if it is as it would be made.
std::string changed_part(const Metadata& found, const Metadata& wanted) {
  for (const auto& [key, what] : {std::pair{"format", "format"},
                                  {"type", "type"},
                                  {"corpus", "corpus"},
                                  {"model", "model"},
                                  {"precision", "precision"},
                                  {"prompt", "prompt"}}) {
    const auto value = found.find(key);
    if (value == found.end() || value->second != wanted.at(key)) return what;
  }
  return "";
}

[[noreturn]] void fail_for_format(const std::string& path, const std::string& format) {
  xgrad::detail::fail<FileError>(path, ": format must be ", xgrad::detail::in_quotes(index_format), ", got ",
                                 xgrad::detail::in_quotes(format));
}

/// The metadata of a file that must be an index, of this format or another one. Throws FileError.
Metadata index_metadata(const std::string& path, const SafetensorsFile& file) {
  Metadata metadata = file.metadata();
  if (!metadata["format"].starts_with(any_format)) fail_for_format(path, metadata["format"]);
  return metadata;
}

/// The tensors of an index, in the order of their bytes: what a writer knows last comes last.
/// Throws ValueError.
std::vector<TensorView> index_tensors(std::size_t count, std::size_t vector_size, DType type) {
  if (vector_size == 0) throw ValueError("SearchIndexWriter: vector_size must be at least 1, got 0");
  return {{"places", DType::I64, {count, 3}, {}},
          {"vectors", type, {count, vector_size}, {}},
          {"lengths", DType::F64, {count}, {}},
          {"digest", DType::U64, {1}, {}}};
}

Metadata with_format(Metadata metadata) {
  metadata["format"] = index_format;
  return metadata;
}

/// The digest of the first part of an index: of its metadata and its places.
std::uint64_t digest_of_places(const Metadata& metadata, std::span<const TextPlace> places) {
  std::uint64_t digest = 0;
  for (const auto& [key, value] : metadata) {
    digest = xgrad::detail::xxh64(std::as_bytes(std::span(key)), digest);
    digest = xgrad::detail::xxh64(std::as_bytes(std::span(value)), digest);
  }
  return xgrad::detail::xxh64(std::as_bytes(places), digest);
}

/// A digest that goes on with vectors, one by one, as a writer gets any number of them at once.
template <class T>
std::uint64_t digest_of_vectors(std::span<const T> vectors, std::size_t size, std::uint64_t digest) {
  for (; !vectors.empty(); vectors = vectors.subspan(size))
    digest = xgrad::detail::xxh64(std::as_bytes(vectors.first(size)), digest);
  return digest;
}

/// A digest that goes on with the lengths of the vectors, which end it.
std::uint64_t digest_of_lengths(std::span<const double> lengths, std::uint64_t digest) {
  return xgrad::detail::xxh64(std::as_bytes(lengths), digest);
}

/// A tensor of an index, as an array of Numbers.
template <class Number>
std::span<const Number> numbers_of(const std::string& path, const SafetensorsFile& file, const char* name,
                                   DType dtype, Shape& shape) {
  const auto& tensors = file.tensors();
  const auto tensor =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorView& one) { return one.name == name; });
  if (tensor == tensors.end()) xgrad::detail::fail<FileError>(path, ": must have the tensor ", name);
  if (tensor->dtype != dtype)
    xgrad::detail::fail<FileError>(path, ": ", name, " must be ", to_string(dtype), ", got ",
                                   to_string(tensor->dtype));
  if (reinterpret_cast<std::uintptr_t>(tensor->bytes.data()) % alignof(Number) != 0)
    xgrad::detail::fail<FileError>(path, ": ", name, " must begin at a multiple of ", alignof(Number),
                                   " bytes");
  shape = tensor->shape;
  return {reinterpret_cast<const Number*>(tensor->bytes.data()), tensor->bytes.size() / sizeof(Number)};
}

}  // namespace

template <class T>
SearchIndex<T>::SearchIndex(const std::string& path, const std::string& corpus)
    : SearchIndex(path, MappedFile(corpus)) {
  const bool intact = xgrad::detail::read_unchanged(file_, [&] { return is_intact(); });
  if (!intact)
    xgrad::detail::fail<FileError>(path, ": the content must be that of its digest, got another one");
}

template <class T>
SearchIndex<T>::SearchIndex(const std::string& path, MappedFile corpus)
    : path_(path), file_(path), corpus_(std::move(corpus)) {
  const Metadata metadata = index_metadata(path, file_);
  if (metadata.at("format") != index_format) fail_for_format(path, metadata.at("format"));
  Shape places, vectors, lengths, digest;
  places_ = numbers_of<TextPlace>(path, file_, "places", DType::I64, places);
  vectors_ = numbers_of<T>(path, file_, "vectors", dtype_of<T>, vectors);
  lengths_ = numbers_of<double>(path, file_, "lengths", DType::F64, lengths);
  const std::size_t count = lengths_.size();
  if (lengths.size() != 1 || places != Shape{count, 3} || vectors.size() != 2 || vectors[0] != count ||
      vectors[1] == 0)
    xgrad::detail::fail<FileError>(
        path,
        ": places, vectors and lengths must have the shapes (texts, 3), (texts, size) and (texts), got ",
        places, ", ", vectors, " and ", lengths);
  vector_size_ = vectors[1];
  const auto digests = numbers_of<std::uint64_t>(path, file_, "digest", DType::U64, digest);
  if (digests.size() != 1)
    xgrad::detail::fail<FileError>(path, ": digest must have the shape (1), got ", digest);
  digest_ = digests[0];
}

template <class T>
bool SearchIndex<T>::is_intact() const {
  const std::uint64_t digest =
      digest_of_vectors(vectors_, vector_size_, digest_of_places(file_.metadata(), places_));
  return digest_of_lengths(lengths_, digest) == digest_;
}

template <class T>
SearchIndex<T> SearchIndex<T>::open(const std::string& path, const std::string& corpus,
                                    const pretrained::SentenceEmbedder<T>& embedder,
                                    const SearchIndexOptions& options) {
  const pretrained::EmbedOptions embed = embed_options(embedder, options);
  MappedFile file(corpus);
  const std::string_view text = text_of_bytes(file.bytes());
  Metadata metadata = xgrad::detail::read_unchanged(file, [&] { return origin(text, embedder, embed); });
  std::string why = "is made";
  if (xgrad::detail::exists(path)) {
    const Metadata found = index_metadata(path, SafetensorsFile(path));
    std::string changed = changed_part(found, metadata);
    if (changed.empty() && found.contains("skipped") && !options.skip_invalid) changed = "corpus";
    why = "is made again, for another " + changed;
    if (changed.empty()) {
      SearchIndex index(path, std::move(file));
      if (xgrad::detail::read_unchanged(index.file_, [&] { return index.is_intact(); })) return index;
      file = std::move(index.corpus_);  // `text` stays valid
      why = "is made again, as its content is not that of its digest";
    }
  }

  const CorpusLines lines =
      xgrad::detail::read_unchanged(file, [&] { return lines_of(corpus, text, options); });
  if (lines.skipped > 0) metadata["skipped"] = std::to_string(lines.skipped);
  SearchIndexWriter<T> writer(path, lines.places, embedder.size(), metadata);
  xgrad::detail::tell(options.note, xgrad::detail::join({path, ": ", why}));
  constexpr std::size_t texts_at_once = 2048;
  constexpr std::size_t texts_per_cache = 8 * texts_at_once;  // memory is cached for each length of a batch
  const std::size_t count = lines.places.size();
  for (std::size_t begin = 0; begin < count; begin += texts_at_once) {
    std::vector<std::string> texts;
    for (std::size_t i = begin; i < std::min(begin + texts_at_once, count); ++i) {
      const TextPlace& place = lines.places[i];
      texts.emplace_back(
          text.substr(static_cast<std::size_t>(place.begin), static_cast<std::size_t>(place.size)));
    }
    if (!has_digest(file, metadata.at("corpus"))) file.throw_if_changed();
    pretrained::EmbedOptions some = embed;
    some.progress = [&](std::size_t done) {
      if (options.progress) options.progress(begin + done, count);
    };
    writer.append(embedder(texts, some));
    if ((begin + texts_at_once) % texts_per_cache == 0) empty_cache();
  }
  writer.commit();
  return SearchIndex(path, std::move(file));
}

template <class T>
bool SearchIndex<T>::has_its_corpus() const {
  const auto digest = metadata().find("corpus");
  return has_digest(corpus_, digest == metadata().end() ? "" : digest->second);
}

template <class T>
bool SearchIndex<T>::is_current() const {
  try {
    file_.throw_if_changed();
  } catch (const FileError&) {
    return false;
  }
  return !corpus_.is_replaced() && has_its_corpus();
}

template <class T>
TextPlace SearchIndex<T>::place(std::size_t i) const {
  if (i >= places_.size())
    xgrad::detail::fail<IndexError>("SearchIndex: a text must be below ", places_.size(), ", got ", i);
  const TextPlace place = places_[i];
  file_.throw_if_changed();
  if (!has_its_corpus()) corpus_.throw_if_changed();
  const auto all = static_cast<std::int64_t>(corpus_.bytes().size());
  if (place.line < 1 || place.begin < 0 || place.begin > all || place.size < 0 ||
      place.size > all - place.begin)
    xgrad::detail::fail<FileError>(path_, ": places must be in the corpus of ", all, " bytes, got line ",
                                   place.line, ", begin ", place.begin, " and size ", place.size);
  return place;
}

template <class T>
std::string SearchIndex<T>::text(std::size_t i) const {
  const TextPlace where = place(i);
  std::string text(text_of_bytes(corpus_.bytes())
                       .substr(static_cast<std::size_t>(where.begin), static_cast<std::size_t>(where.size)));
  if (!has_its_corpus()) corpus_.throw_if_changed();
  return text;
}

template <class T>
std::size_t SearchIndex<T>::line(std::size_t i) const {
  return static_cast<std::size_t>(place(i).line);
}

template <class T>
std::vector<std::vector<SearchHit>> SearchIndex<T>::search(const Array<T>& queries,
                                                           const SearchOptions& options) const {
  return xgrad::detail::read_unchanged(file_, [&] {
    return detail::nearest_hits<T>("SearchIndex", queries, vectors_, lengths_, vector_size_, options);
  });
}

template <class T>
SearchIndexWriter<T>::SearchIndexWriter(const std::string& path, std::span<const TextPlace> places,
                                        std::size_t vector_size, const Metadata& metadata)
    : places_(places),
      vector_size_(vector_size),
      file_(index_tensors(places.size(), vector_size, dtype_of<T>), path, with_format(metadata)),
      digest_(digest_of_places(with_format(metadata), places)) {
  file_.write(std::as_bytes(places));
}

template <class T>
void SearchIndexWriter<T>::append(const Array<T>& vectors) {
  if (vectors.dimension() != 2 || vectors.shape(1) != vector_size_)
    xgrad::detail::fail<ShapeError>("SearchIndexWriter: vectors must have the shape (n, ", vector_size_,
                                    "), got ", vectors.shape());
  const std::size_t before = lengths_.size();
  if (vectors.shape(0) > places_.size() - before)
    xgrad::detail::fail<ValueError>("SearchIndexWriter: there must be one vector for each of the ",
                                    places_.size(), " places, got more");
  const std::span<const T> numbers(vectors.data(), vectors.size());
  const std::vector<double> lengths = xgrad::detail::lengths_of_rows(numbers, vector_size_);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (!std::isfinite(lengths[i]))
      xgrad::detail::fail<ValueError>("SearchIndexWriter: vectors must be finite, which that of line ",
                                      places_[before + i].line, " is not");
  }
  file_.write(std::as_bytes(numbers));
  digest_ = digest_of_vectors(numbers, vector_size_, digest_);
  lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
}

template <class T>
void SearchIndexWriter<T>::commit() {
  if (lengths_.size() != places_.size())
    xgrad::detail::fail<ValueError>("SearchIndexWriter: there must be one vector for each of the ",
                                    places_.size(), " places, got ", lengths_.size());
  file_.write(std::as_bytes(std::span<const double>(lengths_)));
  const std::uint64_t digest = digest_of_lengths(lengths_, digest_);
  file_.write(std::as_bytes(std::span(&digest, 1)));
  file_.commit();
}

template class SearchIndex<float>;
template class SearchIndex<double>;
template class SearchIndexWriter<float>;
template class SearchIndexWriter<double>;

}  // namespace xgrad::retrieval
