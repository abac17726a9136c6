#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <xgrad/base/detail/parse.hpp>
#include <xgrad/train/vocabulary.hpp>

// Words with labels: reading them, a fixed split, and baselines to compare with.

namespace apps {

struct LabelledWord {
  std::string word;   ///< UTF-8, as the file spells it
  std::string label;  ///< any text without blanks
  bool operator==(const LabelledWord&) const = default;
};

inline constexpr std::size_t max_line_bytes = std::size_t{1} << 20;
inline constexpr std::size_t max_classes = 1000;

// Text

struct CodePoint {
  char32_t value;
  std::size_t bytes;
};

/// The code point at the start of a non-empty text, if it is strict UTF-8 (RFC 3629).
inline std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};

  const std::size_t bytes = lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return std::nullopt;
  char32_t value = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < smallest[bytes] || value > 0x10FFFF || surrogate) return std::nullopt;
  return CodePoint{value, bytes};
}

/// The code points of a text, or nothing when it is not strict UTF-8.
inline std::optional<std::u32string> decode_utf8(std::string_view text) {
  std::u32string points;
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point) return std::nullopt;
    points.push_back(point->value);
    text.remove_prefix(point->bytes);
  }
  return points;
}

/// The code point as UTF-8.
inline std::string encode_utf8(char32_t point) {
  const auto rest = [&](int shift) { return static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), rest(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | point >> 12), rest(6), rest(0)};
  return {static_cast<char>(0xF0 | point >> 18), rest(12), rest(6), rest(0)};
}

/// The C0 and C1 control characters, NUL and the terminal's escape among them.
inline bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

/// A text for an error message: in quotes, with bytes that cannot be printed as \xNN, cut after 40
/// characters.
inline std::string printable(std::string_view text) {
  constexpr char hex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (int shown = 0; !text.empty(); ++shown) {
    if (shown == 40) return out + "...\"";
    const auto point = first_code_point(text);
    const std::size_t bytes = point ? point->bytes : 1;
    if (point && !is_control(point->value)) {
      out += text.substr(0, bytes);
    } else {
      for (const char c : text.substr(0, bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
      }
    }
    text.remove_prefix(bytes);
  }
  return out + "\"";
}

/// The characters of a word: its code points. Throws std::invalid_argument when it is not UTF-8.
inline std::u32string characters(std::string_view word) {
  auto points = decode_utf8(word);
  if (!points) throw std::invalid_argument("characters: word must be valid UTF-8, got " + printable(word));
  return *std::move(points);
}

// Reading

namespace detail {

/// The bytes of a file, plain or compressed by gzip (RFC 1952), with nothing behind its last member.
/// Decompresses by inflate(), as gzread() of zlib 1.3.2 gives what stands before the end of a cut file and no
/// error.
class ByteReader {
 public:
  /// Throws std::runtime_error.
  explicit ByteReader(const std::string& path) : file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) throw std::runtime_error(std::strerror(errno));
    read_input();
    compressed_ = input_size_ >= 2 && input_[0] == 0x1F && input_[1] == 0x8B;
    if (compressed_ && inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  }
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ~ByteReader() {
    if (compressed_) inflateEnd(&stream_);
  }

  /// The next byte; -1 at the end. Throws std::runtime_error.
  int next() {
    if (at_ == size_ && !(compressed_ ? inflate_more() : copy_more())) return -1;
    return output_[at_++];
  }

 private:
  void read_input() {
    input_size_ = std::fread(input_.data(), 1, input_.size(), file_.get());
    if (std::ferror(file_.get()) != 0) throw std::runtime_error(std::strerror(errno));
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(input_size_);
  }

  bool copy_more() {
    output_ = input_;
    at_ = 0;
    size_ = input_size_;
    if (size_ > 0) read_input();
    return size_ > 0;
  }

  bool inflate_more() {
    at_ = size_ = 0;
    while (size_ == 0) {
      if (stream_.avail_in == 0) read_input();
      if (stream_.avail_in == 0 && !in_member_) return false;
      if (!in_member_) inflateReset(&stream_);  // a file may have several members
      stream_.next_out = output_.data();
      stream_.avail_out = static_cast<uInt>(output_.size());
      const int code = stream_.avail_in == 0 ? Z_BUF_ERROR : inflate(&stream_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END) throw std::runtime_error("damaged or incomplete gzip data");
      in_member_ = code == Z_OK;
      size_ = output_.size() - stream_.avail_out;
    }
    return true;
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::unique_ptr<std::FILE, Close> file_;
  std::array<unsigned char, 1 << 14> input_, output_;
  std::size_t input_size_ = 0, at_ = 0, size_ = 0;
  bool compressed_ = false, in_member_ = false;
  z_stream stream_ = {};
};

/// The lines of a regular file, plain or compressed by gzip, read one at a time.
class LineReader {
 public:
  explicit LineReader(std::string path) : path_(std::move(path)) {
    check_regular_file();
    try {
      bytes_ = std::make_unique<ByteReader>(path_);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path_ + ": cannot open: " + error.what());
    }
  }

  /// Reads the next line without its LF or CRLF; false at the end of the file.
  bool next(std::string& line) {
    line.clear();
    ++number_;
    int c;
    while ((c = next_byte()) != -1 && c != '\n') {
      if (line.size() == max_line_bytes) {
        fail("a line must be at most " + std::to_string(max_line_bytes) + " bytes", line);
      }
      line.push_back(static_cast<char>(c));
    }
    const bool found = c == '\n' || !line.empty();
    if (line.ends_with('\r')) line.pop_back();
    if (number_ == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    return found;
  }

  std::size_t number() const { return number_; }

  [[noreturn]] void fail(const std::string& rule, std::string_view got) const {
    throw std::runtime_error(here() + rule + ", got " + printable(got));
  }

 private:
  static constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

  std::string here() const { return path_ + ":" + std::to_string(number_) + ": "; }

  int next_byte() {
    try {
      return bytes_->next();
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(here() + "cannot read: " + error.what());
    }
  }

  // Opening a FIFO waits for its writer, and a device may never end.
  void check_regular_file() const {
    std::error_code error;
    const auto status = std::filesystem::status(path_, error);
    if (!std::filesystem::status_known(status) || !std::filesystem::exists(status)) {
      throw std::runtime_error(path_ + ": cannot open: " + error.message());
    }
    if (std::filesystem::is_regular_file(status)) return;
    throw std::runtime_error(path_ + ": must be a regular file, got " + kind(status));
  }

  static std::string kind(const std::filesystem::file_status& status) {
    if (std::filesystem::is_directory(status)) return "a directory";
    if (std::filesystem::is_fifo(status)) return "a FIFO";
    return "a device or socket";
  }

  std::string path_;
  std::unique_ptr<ByteReader> bytes_;
  std::size_t number_ = 0;
};

inline void check_text(const LineReader& reader, std::string_view line) {
  const auto points = decode_utf8(line);
  if (!points) reader.fail("a line must be valid UTF-8", line);
  const auto forbidden = [](char32_t point) { return is_control(point) && point != U'\t'; };
  if (std::ranges::any_of(*points, forbidden)) reader.fail("a line must hold no control characters", line);
}

}  // namespace detail

/// The distinct labels: in numerical order when all are integers, else in the order of their bytes.
inline std::vector<std::string> classes_of(const std::vector<LabelledWord>& words) {
  std::set<std::string> distinct;
  for (const auto& entry : words) distinct.insert(entry.label);
  std::vector<std::string> labels(distinct.begin(), distinct.end());

  const auto number = [](const std::string& label) { return xgrad::detail::parsed<long long>(label); };
  if (std::ranges::all_of(labels, [&](const std::string& label) { return number(label).has_value(); }))
    std::ranges::stable_sort(labels, {}, number);
  return labels;
}

/// Reads a UTF-8 file, plain or compressed by gzip, of lines `word label`, separated by tabs or spaces.
///
/// Blank lines, CRLF, a byte order mark and a missing last newline are accepted; repeated rows count once.
/// Throws std::runtime_error, `FILE:LINE: what must hold, got what`, for: anything but a regular file; a line
/// without exactly a word and a label, of more than max_line_bytes, with control characters, or not UTF-8; a
/// word with two different labels; fewer than 2 or more than max_classes labels.
inline std::vector<LabelledWord> read_word_labels(const std::string& path) {
  detail::LineReader reader(path);
  std::vector<LabelledWord> words;
  struct Earlier {
    std::string label;
    std::size_t line;
  };
  std::unordered_map<std::string, Earlier> earlier;

  for (std::string line; reader.next(line);) {
    detail::check_text(reader, line);
    auto parts = xgrad::whitespace_tokens(line);
    if (parts.empty()) continue;
    if (parts.size() != 2) reader.fail("a line must be a word and a label", line);
    const LabelledWord entry{std::move(parts[0]), std::move(parts[1])};
    const auto [found, is_new] = earlier.try_emplace(entry.word, Earlier{entry.label, reader.number()});
    if (is_new) {
      words.push_back(entry);
    } else if (const auto& [label, number] = found->second; label != entry.label) {
      reader.fail("a word must keep its label " + printable(label) + " of line " + std::to_string(number),
                  line);
    }
  }
  if (words.empty()) throw std::runtime_error(path + ": must hold words and labels, got no line with any");
  const std::size_t classes = classes_of(words).size();
  if (classes < 2 || classes > max_classes) {
    throw std::runtime_error(path + ": must hold 2 to " + std::to_string(max_classes) +
                             " different labels, got " + std::to_string(classes));
  }
  return words;
}

// The split

/// The 64-bit FNV-1a hash of Fowler, Noll and Vo, the same on every machine.
inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Whether a word is held out, as about one in ten is. It depends on the word alone, not on the case of A to
/// Z.
inline bool is_held_out(std::string_view word) { return fnv1a(xgrad::to_ascii_lowercase(word)) % 10 == 0; }

struct WordSplit {
  std::vector<LabelledWord> train;
  std::vector<LabelledWord> held_out;
};

/// Splits the words by is_held_out. Throws std::invalid_argument if a part is empty.
inline WordSplit split_words(const std::vector<LabelledWord>& words) {
  WordSplit split;
  for (const auto& entry : words) (is_held_out(entry.word) ? split.held_out : split.train).push_back(entry);
  if (split.train.empty() || split.held_out.empty()) {
    throw std::invalid_argument("split_words: words must be enough to train on some and hold out some, got " +
                                std::to_string(split.train.size()) + " to train on and " +
                                std::to_string(split.held_out.size()) + " held out");
  }
  return split;
}

// Baselines

struct Baseline {
  std::string name;
  double accuracy;  ///< share of the held-out words that it labels correctly
};

/// The accuracy on the words of predict(word), which gives a label.
template <class Predict>
double accuracy(const std::vector<LabelledWord>& words, Predict predict) {
  const auto right =
      std::ranges::count_if(words, [&](const auto& entry) { return predict(entry.word) == entry.label; });
  return static_cast<double>(right) / static_cast<double>(words.size());
}

/// Multinomial naive Bayes on the 1 to 4 letters in a row of a word with its boundaries marked, with Laplace
/// smoothing: argmax_c log P(c) + sum_g log((n(g, c) + 1) / (n(c) + V)), over the n-grams g seen in training,
/// V different ones.
class NgramBayes {
 public:
  explicit NgramBayes(const std::vector<LabelledWord>& train)
      : classes_(classes_of(train)), words_(classes_.size()), ngrams_(classes_.size()) {
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t c = 0; c < classes_.size(); ++c) index.emplace(classes_[c], c);
    for (const auto& [word, label] : train) count(word, index.at(label));
    for (const double words : words_) {
      log_prior_.push_back(std::log(words / static_cast<double>(train.size())));
    }
    for (const double ngrams : ngrams_) {
      log_total_.push_back(std::log(ngrams + static_cast<double>(counts_.size())));
    }
  }

  /// log P(c) + sum_g log P(g | c) of every class, in the order of classes_of.
  std::vector<double> scores(const std::string& word) const {
    std::vector<double> score = log_prior_;
    double known = 0;
    each_ngram(word, [&](const Ngram& ngram) {
      const auto found = counts_.find(ngram);
      if (found == counts_.end()) return;
      ++known;
      for (const auto& [c, n] : found->second) score[c] += std::log1p(n);
    });
    for (std::size_t c = 0; c < score.size(); ++c) score[c] -= known * log_total_[c];
    return score;
  }

  /// The label of the highest score; of several the first.
  const std::string& predict(const std::string& word) const {
    const auto score = scores(word);
    return classes_[static_cast<std::size_t>(std::ranges::max_element(score) - score.begin())];
  }

 private:
  static constexpr std::size_t max_order = 4;
  using Ngram = std::array<char32_t, max_order>;  // shorter ones end in zeros
  struct Hash {
    std::size_t operator()(const Ngram& ngram) const {
      std::uint64_t hash = 0;
      for (const char32_t point : ngram) hash = (hash ^ point) * 0x9E3779B97F4A7C15;
      return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
  };

  template <class Visit>
  static void each_ngram(const std::string& word, Visit visit) {
    // Control characters mark the boundaries: no word holds them.
    const std::u32string marked = U'\x02' + characters(word) + U'\x03';
    for (std::size_t begin = 0; begin < marked.size(); ++begin) {
      Ngram ngram{};
      for (std::size_t i = 0; i < std::min(max_order, marked.size() - begin); ++i) {
        ngram[i] = marked[begin + i];
        visit(ngram);
      }
    }
  }

  void count(const std::string& word, std::size_t c) {
    ++words_[c];
    each_ngram(word, [&](const Ngram& ngram) {
      auto& of_ngram = counts_[ngram];
      const auto found = std::ranges::find(of_ngram, c, &std::pair<std::size_t, double>::first);
      if (found == of_ngram.end()) {
        of_ngram.emplace_back(c, 1);
      } else {
        ++found->second;
      }
      ++ngrams_[c];
    });
  }

  std::vector<std::string> classes_;
  std::vector<double> words_, ngrams_, log_prior_, log_total_;
  std::unordered_map<Ngram, std::vector<std::pair<std::size_t, double>>, Hash> counts_;
};

/// The label that most training words have; of several the first.
inline std::string majority_label(const std::vector<LabelledWord>& train) {
  std::unordered_map<std::string, std::size_t> counts;
  for (const auto& entry : train) ++counts[entry.label];
  return std::ranges::max(classes_of(train), {}, [&](const auto& label) { return counts.at(label); });
}

/// The accuracies of `majority` and `letter_ngram_bayes`, learned from the training words.
inline std::vector<Baseline> baselines(const WordSplit& split) {
  const std::string majority = majority_label(split.train);
  const NgramBayes bayes(split.train);
  return {{"majority", accuracy(split.held_out, [&](const std::string&) { return majority; })},
          {"letter_ngram_bayes",
           accuracy(split.held_out, [&](const auto& word) { return bayes.predict(word); })}};
}

/// The number of English syllables by a rule: groups of vowels, without a silent e at the end (that of
/// "table" is not), and at least 1.
inline int vowel_rule(std::string_view word) {
  const std::string text = xgrad::to_ascii_lowercase(word);
  const auto vowel = [&](std::size_t i) {
    return std::string_view("aeiouy").find(text[i]) != std::string_view::npos;
  };
  int groups = 0;
  for (std::size_t i = 0; i < text.size(); ++i) groups += vowel(i) && (i == 0 || !vowel(i - 1));

  const std::size_t n = text.size();
  const bool lone_e = n >= 2 && text[n - 1] == 'e' && !vowel(n - 2);
  const bool sounded = n >= 3 && text[n - 2] == 'l' && !vowel(n - 3);
  return std::max(1, groups - (lone_e && !sounded));
}

/// The accuracy of vowel_rule on words labelled with their number of English syllables.
inline Baseline vowel_rule_baseline(const WordSplit& split) {
  return {"vowel_rule",
          accuracy(split.held_out, [](const auto& word) { return std::to_string(vowel_rule(word)); })};
}

}  // namespace apps
