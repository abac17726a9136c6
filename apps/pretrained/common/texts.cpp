#include "texts.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <xgrad/base/detail/text/utf8.hpp>
#include <xgrad/base/pool.hpp>

#include "../../common/interruption.hpp"
#include "../../common/program.hpp"

namespace apps {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr std::size_t bytes_at_once = std::size_t{1} << 20, longest_line = std::size_t{16} << 20,
                      most_notes = 5;
// A model caches memory for each length of a batch: all lengths of a long input would be too many.
constexpr std::size_t texts_per_cache = 8 * texts_at_once;

std::string line_name(std::size_t number) { return "input:" + std::to_string(number) + ": "; }

}  // namespace

std::vector<std::string> InputLines::next(std::size_t most) {
  std::vector<std::string> lines;
  for (std::size_t bytes = 0; lines.size() < most && bytes < bytes_at_once;) {
    if (std::optional<std::string> line = complete_line()) {
      bytes += line->size();
      lines.push_back(*std::move(line));
    } else if (at_end_ || (!lines.empty() && buffer_.size() - begin_ > bytes_at_once) ||
               !has_more(lines.empty())) {
      break;  // the lines before one that may be too long are answered first
    } else {
      read_some();
    }
  }
  return lines;
}

/// The next line, if its end has been read.
std::optional<std::string> InputLines::complete_line() {
  std::size_t end = buffer_.find('\n', searched_);
  searched_ = std::min(end, buffer_.size());
  if (searched_ - begin_ > longest_line)
    throw std::runtime_error(line_name(count_ + 1) + "a line must have at most " +
                             std::to_string(longest_line) + " bytes");
  if (end == buffer_.npos) {
    if (!at_end_ || begin_ == buffer_.size()) return std::nullopt;
    end = buffer_.size();
  }
  std::string line = buffer_.substr(begin_, end - begin_);
  begin_ = searched_ = std::min(end + 1, buffer_.size());
  if (line.ends_with('\r')) line.pop_back();
  if (count_++ == 0 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
  return line;
}

/// Whether reading would not wait; if `wait`, waits until it would not.
bool InputLines::has_more(bool wait) const {
  constexpr int second = 1000;  // a signal just before the call does not end it
  for (;;) {
    if (wait) check_interruption();
    pollfd file{descriptor_, POLLIN, 0};
    const int ready = ::poll(&file, 1, wait ? second : 0);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR && errno != EAGAIN)
      throw std::runtime_error("the input cannot be read: " + std::system_category().message(errno));
    if (!wait) return false;
  }
}

void InputLines::read_some() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  constexpr std::size_t piece = std::size_t{1} << 16;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + piece);
  const ssize_t count = ::read(descriptor_, buffer_.data() + before, piece);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count == 0) at_end_ = true;
  if (count < 0 && errno != EINTR && errno != EAGAIN)
    throw std::runtime_error("the input cannot be read: " + std::system_category().message(errno));
}

TextSource::TextSource(const std::vector<std::string>& given, std::function<void(const std::string&)> note)
    : reads_lines_(given.empty()), lines_(STDIN_FILENO), note_(std::move(note)) {
  for (const std::string& text : given) given_.push_back({text, given_.size() + 1});
}

std::vector<NumberedText> TextSource::next() {
  if (!reads_lines_) return std::exchange(given_, {});
  std::vector<NumberedText> texts;
  while (texts.empty()) {
    if (!error_.empty()) throw std::runtime_error(error_);
    const std::size_t before = lines_.count();
    std::vector<std::string> lines = lines_.next(texts_at_once);
    if (lines_.count() / texts_per_cache > before / texts_per_cache) xgrad::empty_cache();
    if (lines.empty()) {
      if (left_out_ > most_notes) note_("input: " + std::to_string(left_out_) + " lines are left out");
      break;
    }
    texts = valid(std::move(lines));
  }
  return texts;
}

/// The lines that are UTF-8, up to the first that must be and is not.
std::vector<NumberedText> TextSource::valid(std::vector<std::string> lines) {
  std::vector<NumberedText> texts;
  std::size_t number = lines_.count() - lines.size();
  for (std::string& line : lines) {
    ++number;
    const std::size_t invalid = xgrad::detail::utf8::find_invalid_utf8(line);
    if (invalid == line.npos) {
      texts.push_back({std::move(line), number});
      continue;
    }
    const std::string what =
        line_name(number) + "a line must be UTF-8, got an invalid byte at " + std::to_string(invalid);
    if (!note_) {
      error_ = what;
      break;
    }
    if (++left_out_ <= most_notes) note_(what + "; it is left out");
  }
  return texts;
}

std::vector<std::string> without_numbers(std::vector<NumberedText> texts) {
  std::vector<std::string> alone;
  for (NumberedText& one : texts) alone.push_back(std::move(one.text));
  return alone;
}

void for_each_text(const std::vector<std::string>& given,
                   const std::function<void(const std::string&)>& use) {
  TextSource source(given);
  for (std::vector<NumberedText> some = source.next(); !some.empty(); some = source.next()) {
    for (const NumberedText& one : some) {
      try {
        use(one.text);
      } catch (const std::invalid_argument& error) {
        if (given.size() == 1) throw;
        const std::string name =
            given.empty() ? line_name(one.number) : "TEXT " + std::to_string(one.number) + ": ";
        throw std::invalid_argument(name + error.what());
      }
    }
    flush_output();
  }
}

void for_each_batch(const std::vector<std::string>& given,
                    const std::function<void(std::span<const std::string>)>& use) {
  TextSource source(given);
  for (;;) {
    const std::vector<std::string> texts = without_numbers(source.next());
    if (texts.empty()) return;
    const std::span<const std::string> all(texts);
    for (std::size_t begin = 0; begin < all.size(); begin += texts_of_a_batch)
      use(all.subspan(begin, std::min(texts_of_a_batch, all.size() - begin)));
    flush_output();
  }
}

}  // namespace apps
