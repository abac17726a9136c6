#pragma once

// Where programs get their texts, and how many at a time.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace apps {

/// Texts in one batch of a model, and in one reading of a long input.
inline constexpr std::size_t texts_of_a_batch = 32, texts_at_once = 64 * texts_of_a_batch;

/// The lines of an open file, without line ends and a byte order mark.
class InputLines {
 public:
  explicit InputLines(int descriptor) : descriptor_(descriptor) {}

  /// Waits for a line, and takes with it those that can be read without waiting, at most `most` and a
  /// megabyte: in a pipe each line can be answered before the next one is written. None at the end of the
  /// file. Throws std::runtime_error for a file that cannot be read and for a line of more than 16 MiB, and
  /// Interruption.
  std::vector<std::string> next(std::size_t most);

  /// Number of lines that have been taken.
  std::size_t count() const { return count_; }

 private:
  std::optional<std::string> complete_line();
  bool has_more(bool wait) const;
  void read_some();

  int descriptor_;
  std::string buffer_;
  std::size_t begin_ = 0, searched_ = 0, count_ = 0;  // of the next line; where its end is looked for
  bool at_end_ = false;
};

/// A text and its number: of its line, or among those of the command line; from 1 on.
struct NumberedText {
  std::string text;
  std::size_t number;
};

/// The texts of the command line, or else the lines of the input.
class TextSource {
 public:
  /// note: is told which lines are left out as they are not UTF-8, of many only the first and their number;
  /// without it, such a line is an error.
  explicit TextSource(const std::vector<std::string>& given,
                      std::function<void(const std::string&)> note = nullptr);

  /// All texts of the command line, or the next lines, as InputLines takes them; none at the end. A line that
  /// is not UTF-8 ends them, and the next call throws std::runtime_error: `input:3: a line must be UTF-8, got
  /// an invalid byte at 4`.
  std::vector<NumberedText> next();

 private:
  std::vector<NumberedText> valid(std::vector<std::string> lines);

  std::vector<NumberedText> given_;
  bool reads_lines_;
  InputLines lines_;
  std::function<void(const std::string&)> note_;
  std::string error_;  // of the line behind the last texts
  std::size_t left_out_ = 0;
};

/// The texts alone.
std::vector<std::string> without_numbers(std::vector<NumberedText> texts);

/// Calls use(text) for each text of the command line, or else for each line of the input, and flushes the
/// output before it waits for more. A std::invalid_argument of use() says which text was wrong, `input:3:
/// ...`, unless it is the only one of the command line.
void for_each_text(const std::vector<std::string>& given, const std::function<void(const std::string&)>& use);

/// The same for texts_of_a_batch texts at a time, whose errors are as they are.
void for_each_batch(const std::vector<std::string>& given,
                    const std::function<void(std::span<const std::string>)>& use);

}  // namespace apps
