// How many texts a second a tokenizer encodes, beside Hugging Face's Rust library
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/temporary_file.hpp"

using nlohmann::json, xgrad::tokenizers::Tokenizer;

namespace {

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw xgrad::FileError(path + ": cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) throw xgrad::FileError(path + ": must have a line, got none");
  return lines;
}

/// Texts of random tokens, the same every time.
std::vector<std::string> random_texts(const Tokenizer& tokenizer) {
  constexpr std::size_t texts = 2000, tokens = 100;
  std::mt19937 generator(0);
  std::vector<std::string> result(texts);
  for (std::string& text : result) {
    std::vector<std::int64_t> ids(tokens);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(generator() % tokenizer.size());
    text = tokenizer.decode(ids);
    for (char& c : text) c = c == '\n' ? ' ' : c;
  }
  return result;
}

/// What was encoded in all, to be compared.
struct Count {
  std::size_t tokens = 0;
  std::int64_t sum = 0;  // of the ids

  bool operator==(const Count&) const = default;
};

Count encode(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  Count count;
  for (const std::string& text : texts) {
    const auto encoding = tokenizer.encode(text);
    count.tokens += encoding.size();
    for (const std::int64_t id : encoding.ids) count.sum += id;
  }
  return count;
}

double texts_per_second(const Tokenizer& tokenizer, const std::vector<std::string>& texts, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::size_t rounds = 0;
  do {
    encode(tokenizer, texts);
    ++rounds;
  } while (elapsed() < seconds);
  return static_cast<double>(rounds * texts.size()) / elapsed();
}

/// What tokenizers.mjs prints.
json run_library(const std::string& folder, const std::vector<std::string>& texts, double seconds) {
  const bench::TemporaryFile file;
  {
    std::ofstream lines(file.path());
    for (const std::string& text : texts) lines << text << '\n';
  }
  std::string command = "node";
  for (const std::string& argument :
       {std::string(XGRAD_BENCH_TOKENIZERS_SCRIPT), std::string(XGRAD_BENCH_TOKENIZERS_FOLDER), folder,
        file.path(), std::to_string(seconds)})
    command += " " + apps::shell_word(argument);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  char part[256];
  while (pipe && std::fgets(part, sizeof part, pipe.get()) != nullptr) output += part;
  if (output.empty()) throw std::runtime_error("--vs tokenizers: node and npm must run it");
  return json::parse(output);
}

void print_row(const std::string& name, double rate, double bytes, double tokens) {
  std::printf("%-20s %10.0f %10.1f %12.2f\n", name.c_str(), rate, rate * bytes / 1e6, rate * tokens / 1e6);
}

/// So many bytes of the texts in turn, as words or as one.
std::string long_text(const std::vector<std::string>& texts, std::size_t size, bool is_one_word) {
  std::string all;
  for (std::size_t i = 0; all.size() < size; ++i) {
    std::string text = texts[i % texts.size()] + ' ';
    if (is_one_word) std::erase(text, ' ');
    all += text;
    if (i >= texts.size() && all.empty())
      throw xgrad::FileError("--long: the texts must have more than blanks");
  }
  return all;
}

/// The median of several times of the processor, in milliseconds, which other programs do not prolong much.
double milliseconds_of(const Tokenizer& tokenizer, const std::string& text) {
  constexpr std::size_t times = 15;
  std::vector<double> taken;
  for (std::size_t i = 0; i < times; ++i) {
    const std::clock_t start = std::clock();
    tokenizer.encode(text);
    taken.push_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::nth_element(taken.begin(), taken.begin() + times / 2, taken.end());
  return taken[times / 2];
}

void print_long(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::printf("%-20s %10s %10s %12s\n", "one text", "100 kB, ms", "1 MB, ms", "quotient");
  for (const bool is_one_word : {false, true}) {
    const double shorter = milliseconds_of(tokenizer, long_text(texts, 100'000, is_one_word)),
                 longer = milliseconds_of(tokenizer, long_text(texts, 1'000'000, is_one_word));
    std::printf("%-20s %10.2f %10.2f %12.1f\n", is_one_word ? "without blanks" : "words", shorter, longer,
                longer / shorter);
  }
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine app("Times a tokenizer on one thread, text by text.");
  std::string folder, file, peer;
  double seconds = 2;
  bool measures_long = false;
  app.add_option("folder", folder, "a model's folder, with a tokenizer.json or the older files")->required();
  app.add_option("--texts", file, "a file with a text a line; without it, random tokens");
  app.add_option("--seconds", seconds, "how long to measure each")
      ->check(apps::in_range(1e-3, 1e4))
      ->capture_default_str();
  app.add_flag("--long", measures_long, "also time one text of 100 kB and one of 1 MB");
  app.add_option("--vs", peer, "also measure Hugging Face's Rust library, which npm fetches")
      ->check(apps::one_of({"tokenizers"}));
  if (const auto code = app.parse(argc, argv)) return *code;
  return apps::run_program("bench_tokenizer", [&] {
    const Tokenizer tokenizer = Tokenizer::from_folder(folder);
    const std::vector<std::string> texts = file.empty() ? random_texts(tokenizer) : read_lines(file);
    const Count count = encode(tokenizer, texts);
    std::size_t size = 0;
    for (const std::string& text : texts) size += text.size();
    const auto number = static_cast<double>(texts.size());
    const double bytes = static_cast<double>(size) / number,
                 tokens = static_cast<double>(count.tokens) / number;
    std::printf("%zu texts of %.0f bytes and %.0f tokens, %zu tokens in the vocabulary, 1 thread\n",
                texts.size(), bytes, tokens, tokenizer.size());
    std::printf("%-20s %10s %10s %12s\n", "", "texts/s", "MB/s", "Mtokens/s");
    const double rate = texts_per_second(tokenizer, texts, seconds);
    print_row("xgrad", rate, bytes, tokens);
    if (measures_long) print_long(tokenizer, texts);
    if (peer.empty()) return 0;
    std::fflush(stdout);
    const json library = run_library(folder, texts, seconds);
    const double other = library.at("texts_per_second");
    print_row(library.at("library"), other, bytes, tokens);
    const bool equal = count == Count{library.at("tokens"), library.at("sum")};
    std::printf("xgrad / %s: %.1f; the ids are %s\n", library.at("library").get<std::string>().c_str(),
                rate / other, equal ? "equal" : "not equal");
    return equal ? 0 : 1;
  });
}
