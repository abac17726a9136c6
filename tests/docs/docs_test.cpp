// What the README, the pages in docs/ and the comments of headers show is source that is compiled and run,
// and transcripts that docs/transcripts.sh compares with what the programs print.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "files.hpp"

namespace docs_test {

namespace fs = std::filesystem;

const fs::path root = XGRAD_SOURCE_DIR;

/// The files with this extension in a folder and below it.
std::vector<fs::path> files_in(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  EXPECT_FALSE(found.empty()) << folder;
  return found;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The lines without their indentation, so that a part of a function is found where it stands.
std::string flush_left(const std::vector<std::string>& lines) {
  std::string text = "\n";
  for (const std::string& line : lines)
    text += line.substr(std::min(line.find_first_not_of(' '), line.size())) + "\n";
  return text;
}

bool is_part_of(const std::vector<std::string>& lines, const std::vector<fs::path>& files) {
  const std::string part = flush_left(lines);
  return std::any_of(files.begin(), files.end(), [&](const fs::path& file) {
    return flush_left(lines_of(xgrad_tests::read_bytes(file))).find(part) != std::string::npos;
  });
}

/// What the tests compile and run.
std::vector<fs::path> sources() {
  std::vector<fs::path> files = files_in("examples", ".cpp");
  for (const fs::path& file : files_in("docs/snippets", ".cpp")) files.push_back(file);
  return files;
}

/// Whether a file is compiled, or compared with what programs print.
bool is_checked(const std::string& path) {
  const auto is_in = [&](const char* folder) { return path.starts_with(folder); };
  return is_in("docs/snippets/") || is_in("docs/transcripts/") || is_in("docs/project/") ||
         is_in("docs/mistakes/") || is_in("examples/") || is_in("ops/") || is_in("tests/ops/") ||
         is_in("benchmarks/encoder/") || is_in("pretrained/families/");
}

std::vector<fs::path> transcripts() { return files_in("docs/transcripts", ".txt"); }

std::vector<fs::path> pages() {
  std::vector<fs::path> files = files_in("docs", ".md");
  for (const char* name : {"README.md", "CONTRIBUTING.md"}) files.push_back(root / name);
  return files;
}

/// A piece between two fences of a Markdown file.
struct Block {
  std::string above;     ///< the line above the fence
  std::string language;  ///< what stands behind the fence
  std::vector<std::string> lines;
  std::size_t line;  ///< of the fence
};

struct Page {
  std::vector<Block> blocks;
  std::vector<std::size_t> indented;  ///< lines that Markdown takes for code because they are indented
};

Page read_page(const fs::path& path) {
  Page page;
  std::string fence, above;
  bool blank_before = true, in_list = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(xgrad_tests::read_bytes(path))) {
    ++number;
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string text = line.substr(indent);
    if (!fence.empty()) {
      if (text == fence) {
        fence.clear();
      } else {
        page.blocks.back().lines.push_back(line);
      }
    } else if (text.starts_with("```") || text.starts_with("~~~") || text.starts_with(":::")) {
      fence = text.substr(0, text.find_first_not_of(text[0]));
      page.blocks.push_back({above, text.substr(fence.size()), {}, number});
    } else if (indent >= 4 && blank_before && !in_list) {
      page.indented.push_back(number);
    }
    in_list = text.starts_with("* ") || text.starts_with("- ") || text.starts_with("1. ") ||
              (in_list && (text.empty() || indent > 0));
    blank_before = text.empty();
    above = line;
  }
  EXPECT_EQ(fence, "") << path << " has a fence without an end";
  return page;
}

/// The name in a line `// [name]` of a source or `# name` of a transcript.
std::optional<std::string> marker(const std::string& line) {
  static const std::regex form(R"( *// \[(.+)\]|# (.+))");
  std::smatch match;
  if (!std::regex_match(line, match, form)) return std::nullopt;
  return match[1].matched ? match[1] : match[2];
}

/// Removes the indentation that all lines share, and empty lines at both ends.
std::vector<std::string> dedented(std::vector<std::string> lines) {
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  while (!lines.empty() && lines.front().empty()) lines.erase(lines.begin());
  std::size_t indent = std::string::npos;
  for (const std::string& line : lines) indent = std::min(indent, line.find_first_not_of(' '));
  for (std::string& line : lines) line.erase(0, indent);
  return lines;
}

/// The lines that `<!-- PATH -->`, `<!-- PATH [NAME] -->` or `<!-- PATH FIRST-LAST -->` names, as
/// docs/code.py explains; none if there are none.
std::vector<std::string> named_lines(const std::string& comment) {
  static const std::regex form(R"(<!-- (\S+)(?: \[(.+)\]| (\d+)-(\d+))? -->)");
  std::smatch match;
  if (!std::regex_match(comment, match, form)) return {};
  const std::string path = match[1];
  if (!is_checked(path) || !fs::is_regular_file(root / path)) return {};
  const std::vector<std::string> lines = lines_of(xgrad_tests::read_bytes(root / path));
  if (match[3].matched) {
    const std::size_t first = std::stoul(match[3]) - 1, last = std::min(std::stoul(match[4]), lines.size());
    return first < last ? dedented({lines.begin() + first, lines.begin() + last})
                        : std::vector<std::string>();
  }
  if (!match[2].matched) return dedented(lines);
  const auto begin = std::find_if(lines.begin(), lines.end(),
                                  [&](const std::string& line) { return marker(line) == match[2].str(); });
  if (begin == lines.end()) return {};
  return dedented({begin + 1, std::find_if(begin + 1, lines.end(),
                                           [](const std::string& line) { return marker(line); })});
}

TEST(DocsTest, BlocksAreTheLinesOfTheirSources) {
  const std::vector<std::string> directives = {"{toctree}", "{graphviz}"};
  for (const fs::path& path : pages()) {
    const Page page = read_page(path);
    EXPECT_TRUE(page.indented.empty()) << path << ":" << page.indented.front() << ": use a fence for code";
    for (const Block& block : page.blocks) {
      const std::string at = fs::relative(path, root).string() + ":" + std::to_string(block.line);
      if (block.language.starts_with("{")) {  // drawn or put together by Sphinx
        const std::string directive = block.language.substr(0, block.language.find(' '));
        EXPECT_TRUE(std::find(directives.begin(), directives.end(), directive) != directives.end())
            << at << ": nothing checks a block of '" << directive << "'";
        continue;
      }
      EXPECT_NE(block.language, "") << at << ": name the language";
      const std::vector<std::string> lines = named_lines(block.above);
      EXPECT_FALSE(lines.empty()) << at << ": the line above must name lines of a file that is compiled or "
                                  << "compared, got '" << block.above << "'";
      EXPECT_TRUE(lines.empty() || block.lines == lines)
          << at << ": differs from " << block.above << ", run docs/code.py write";
    }
  }
}

TEST(DocsTest, EveryPartOfASnippetIsShown) {
  std::string shown;
  for (const fs::path& path : pages()) shown += xgrad_tests::read_bytes(path);
  for (const fs::path& path : sources()) {
    for (const std::string& line : lines_of(xgrad_tests::read_bytes(path))) {
      if (!line.ends_with("]") || !marker(line)) continue;
      const std::string part = fs::relative(path, root).generic_string() + " [" + *marker(line) + "]";
      EXPECT_NE(shown.find("<!-- " + part + " -->"), std::string::npos) << "no page shows " << part;
    }
  }
}

TEST(DocsTest, PagesOfTheReferenceHaveNoCode) {
  for (const fs::path& path : files_in("docs", ".rst")) {
    for (const std::string& line : lines_of(xgrad_tests::read_bytes(path))) {
      EXPECT_TRUE(line.find("::") == std::string::npos || line.starts_with(".. headers:: "))
          << path << ": " << line;
    }
  }
}

TEST(DocsTest, EveryTranscriptIsShown) {
  std::string shown;
  for (const fs::path& path : pages()) shown += xgrad_tests::read_bytes(path);
  for (const fs::path& path : transcripts()) {
    const std::string name = fs::relative(path, root).generic_string();
    EXPECT_NE(shown.find("<!-- " + name + " "), std::string::npos) << "no page shows " << name;
  }
}

TEST(DocsTest, TablesOfNamesAreInAProgram) {
  const std::string program = xgrad_tests::read_bytes(root / "docs/snippets/from_pytorch.cpp");
  std::size_t found = 0;
  for (const char* page : {"docs/from_pytorch.md", "docs/from_libtorch.md"}) {
    for (const std::string& line : lines_of(xgrad_tests::read_bytes(root / page))) {
      if (!line.starts_with("| `")) continue;  // PyTorch's name | xgrad's
      for (std::size_t at = line.find(" | "); (at = line.find('`', at)) != std::string::npos;) {
        const std::size_t end = line.find('`', at + 1);
        const std::string code = line.substr(at + 1, end - at - 1);
        at = end + 1;
        const std::size_t dots = code.find("...");  // stand for arguments
        EXPECT_NE(program.find(code.substr(0, dots)), std::string::npos) << page << ": " << code;
        ++found;
      }
    }
  }
  EXPECT_GT(found, 50u);
}

TEST(DocsTest, CodeInCommentsOfHeadersIsInASource) {
  std::size_t found = 0;
  for (const char* folder : {"base", "graph", "ops", "autograd", "models", "train", "files"}) {
    for (const fs::path& path : files_in(folder, ".hpp")) {
      std::vector<std::string> code;
      for (const std::string& line : lines_of(xgrad_tests::read_bytes(path))) {
        const std::string text = line.substr(std::min(line.find_first_not_of('/'), line.size()));
        const bool is_comment = line.starts_with("//");
        if (is_comment && (text.starts_with("   ") || (text.empty() && !code.empty()))) {
          code.push_back(text);
          continue;
        }
        while (!code.empty() && code.back().empty()) code.pop_back();
        if (!code.empty() && code.front().find("template <") != std::string::npos) {
          EXPECT_TRUE(is_part_of(code, sources()))
              << path << " shows code that nothing compiles: " << code.front();
          ++found;
        }
        code.clear();
      }
    }
  }
  EXPECT_GT(found, 0u);
}

TEST(DocsTest, TheReadmeIsShort) {
  EXPECT_LE(lines_of(xgrad_tests::read_bytes(root / "README.md")).size(), 120u);
}

TEST(DocsTest, PagesAreOfAReadableLength) {
  for (const fs::path& path : files_in("docs", ".md")) {
    EXPECT_LE(lines_of(xgrad_tests::read_bytes(path)).size(), 250u) << path << ": split or shorten it";
  }
}

TEST(DocsTest, MeasurementsNameTheirCommand) {
  const std::string page = xgrad_tests::read_bytes(root / "docs/speed.md");
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "benchmarks/results")) {
    const std::string name = entry.path().filename().string();
    EXPECT_NE(page.find("(../benchmarks/results/" + name + ")"), std::string::npos) << name;
    if (entry.path().extension() == ".svg") continue;  // drawn from encoder.jsonl
    const std::string text = xgrad_tests::read_bytes(entry.path());
    for (const char* line : {"# command: ", "\n# processor: ", "\n# commit: "})
      EXPECT_NE(text.find(line), std::string::npos) << name << " has no line" << line;
  }
}

TEST(DocsTest, TablesOfSpeedHaveTheNumbersOfMeasurements) {
  const std::regex link(R"(\(\.\./benchmarks/results/([\w.]+)\))"), number(R"(\d+\.\d+|\d{3,})");
  std::vector<std::string> sections(1);
  for (const std::string& line : lines_of(xgrad_tests::read_bytes(root / "docs/speed.md"))) {
    if (line.starts_with("##")) sections.emplace_back();
    sections.back() += line + "\n";
  }
  std::size_t found = 0;
  for (const std::string& section : sections) {
    std::string measured;
    for (std::sregex_iterator file(section.begin(), section.end(), link), last; file != last; ++file)
      measured += xgrad_tests::read_bytes(root / "benchmarks/results" / (*file)[1].str());
    if (measured.empty() || section.find("encoder.jsonl") != std::string::npos)
      continue;  // speed.py compares
    for (const std::string& line : lines_of(section)) {
      if (!line.starts_with("| ")) continue;
      const std::string cells = line.substr(line.find(" | "));
      for (std::sregex_iterator cell(cells.begin(), cells.end(), number), last; cell != last; ++cell, ++found)
        EXPECT_NE(measured.find(cell->str()), std::string::npos) << cell->str() << " is in no file: " << line;
    }
  }
  EXPECT_GT(found, 100u);
}

}  // namespace docs_test
