#include "metrics_log.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "../../base/detail/text/number_text.hpp"
#include "../../base/error.hpp"
#include "../../base/file.hpp"
#include "../trainer.hpp"

namespace xgrad::detail {
namespace {

constexpr std::string_view beginning = "{\"step\": ", first_beginning = "{\"run\": ";

/// The step of a complete line of a metrics file; nothing if it is some other text.
std::optional<std::size_t> step_of(std::string_view line) {
  if (!line.starts_with(beginning) || !line.ends_with("}\n")) return std::nullopt;
  std::size_t step = 0;
  const auto [end, error] = std::from_chars(line.data() + beginning.size(), line.data() + line.size(), step);
  if (error != std::errc() || *end != ',') return std::nullopt;
  return step;
}

/// Null for nan and the infinities, which JSON lacks.
std::string json(double number) { return std::isfinite(number) ? shortest_text(number) : "null"; }

std::string json_string(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      all += escaped;
    } else {
      if (c == '"' || c == '\\') all += '\\';
      all += c;
    }
  }
  return all + '"';
}

std::string first_line(const std::map<std::string, std::string>& options, std::optional<std::uint64_t> seed) {
  std::string line(first_beginning);
  line += "{\"versions\": {\"xgrad\": \"" XGRAD_VERSION "\"}, \"options\": {";
  for (const auto& [name, value] : options) {
    if (!line.ends_with('{')) line += ", ";
    line += json_string(name) + ": " + json_string(value);
  }
  line += '}';
  if (seed) line += ", \"seed\": " + json_string(std::to_string(*seed));
  return line + "}}\n";
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, std::size_t first_step,
                       const std::map<std::string, std::string>& about, std::optional<std::uint64_t> seed)
    : path_(path) {
  if (path_.empty()) return;
  const char* const mode = first_step == 0 ? "ae" : "a+e";  // cut only once it is locked
  file_.reset(retried([&] { return std::fopen(path_.c_str(), mode); }));
  if (!file_) fail(std::strerror(errno));
  if (lock_and_cut(first_step) == 0) lines_ = first_line(about, seed);
}

std::size_t MetricsLog::lock_and_cut(std::size_t first_step) {
  const int descriptor = ::fileno(file_.get());
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return 0;
  if (retried([&] { return ::flock(descriptor, LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK)
    fail("another run writes it");
  if (first_step == 0 && status.st_size > 0)
    fail("it has content, perhaps of an earlier run; remove it, or name another file");
  const std::size_t kept = first_step > 0 ? length_until(first_step) : 0;
  if (retried([&] { return ::ftruncate(descriptor, static_cast<off_t>(kept)); }) != 0)
    fail(std::strerror(errno));
  return kept;
}

/// The bytes of the first line and of the lines of earlier steps.
std::size_t MetricsLog::length_until(std::size_t first_step) {
  std::rewind(file_.get());
  std::size_t kept = 0;
  std::string line;
  bool empty = true;
  for (int c; (c = next_byte(file_.get())) != EOF;) {
    line += static_cast<char>(c);
    if (c != '\n') continue;
    const std::optional<std::size_t> step = step_of(line);
    const bool first = kept == 0 && line.starts_with(first_beginning);
    if (!first && (!step || *step >= first_step)) break;
    kept += line.size();
    line.clear();
    empty = false;
  }
  if (std::ferror(file_.get()) != 0) fail(std::strerror(errno));
  if (empty && !line.empty() && !step_of(line)) fail("it is not a training run's metrics");
  return kept;
}

void MetricsLog::write(std::size_t step, const StepResult& result, double seconds) {
  if (!file_) return;
  lines_ += join({std::string(beginning), std::to_string(step), ", \"loss\": ", json(result.loss)});
  if (result.lr) lines_ += ", \"lr\": " + json(*result.lr);
  if (result.grad_norm) lines_ += ", \"grad_norm\": " + json(*result.grad_norm);
  if (result.tokens > 0) lines_ += ", \"tokens\": " + std::to_string(result.tokens);
  lines_ += ", \"seconds\": " + json(seconds) + "}\n";
  constexpr std::size_t most_kept = 4096;
  if (lines_.size() >= most_kept) write_lines();
}

void MetricsLog::write_lines() {
  if (!file_) return;
  const SizeLimitIsAnError guard;
  // Not by fwrite(), which may lose bytes when a signal interrupts it.
  for (std::string_view left = lines_; !left.empty();) {
    const ssize_t written = retried([&] { return ::write(::fileno(file_.get()), left.data(), left.size()); });
    if (written < 0) {
      if (error_ == 0) error_ = errno;
      break;
    }
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  lines_.clear();
}

void MetricsLog::flush() {
  write_lines();
  if (error_ != 0) fail(std::strerror(error_));
}

void MetricsLog::fail(const std::string& why) const {
  detail::fail<FileError>("fit: ", path_, ": cannot be written: ", why);
}

}  // namespace xgrad::detail
