// What the README, the pages in docs/ and the comments of headers show is source that is compiled and run,
// and transcripts that docs/transcripts.sh compares with what the programs print.

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "files.hpp"

namespace {

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

/// Whether the files in a folder are compiled, or compared with what programs print.
bool is_checked(const fs::path& folder) {
  const std::string path = folder.generic_string() + "/";
  const auto is_in = [&](const char* checked) { return path.starts_with(checked); };
  return is_in("docs/snippets/") || is_in("docs/transcripts/") || is_in("docs/project/") ||
         is_in("examples/") || is_in("ops/") || is_in("tests/ops/") || is_in("benchmarks/encoder/");
}

std::vector<fs::path> transcripts() { return files_in("docs/transcripts", ".txt"); }

/// A piece between two fences of a Markdown file.
struct Block {
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
  std::string fence;
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
    } else if (text.starts_with("```") || text.starts_with(":::")) {
      fence = text.substr(0, text.find_first_not_of(text[0]));
      page.blocks.push_back({text.substr(fence.size()), {}, number});
    } else if (indent >= 4 && blank_before && !in_list) {
      page.indented.push_back(number);
    }
    in_list = text.starts_with("* ") || text.starts_with("- ") || text.starts_with("1. ") ||
              (in_list && (text.empty() || indent > 0));
    blank_before = text.empty();
  }
  EXPECT_EQ(fence, "") << path << " has a fence without an end";
  return page;
}

TEST(DocsTest, BlocksOfTheReadmeAreInASourceOrATranscript) {
  for (const char* name : {"README.md", "CONTRIBUTING.md"}) {
    const Page page = read_page(root / name);
    EXPECT_TRUE(page.indented.empty()) << name << ":" << page.indented.front() << ": use a fence for code";
    for (const Block& block : page.blocks) {
      const std::string at = name + std::string(":") + std::to_string(block.line);
      if (block.language == "cpp") {
        EXPECT_TRUE(is_part_of(block.lines, sources()))
            << at << " is in no source of examples/ or docs/snippets/";
      } else if (block.language == "console") {
        EXPECT_TRUE(is_part_of(block.lines, transcripts())) << at << " is in no file of docs/transcripts/";
      } else if (block.language == "cmake") {
        EXPECT_TRUE(is_part_of(block.lines, files_in("docs/project", ".txt")))
            << at << " is in no project of docs/project/";
      } else {
        ADD_FAILURE() << at << ": nothing checks a block of '" << block.language << "'";
      }
    }
  }
}

TEST(DocsTest, PagesIncludeTheirCode) {
  for (const fs::path& path : files_in("docs", ".md")) {
    const Page page = read_page(path);
    EXPECT_TRUE(page.indented.empty())
        << path << ":" << page.indented.front() << ": include code from a source";
    for (const Block& block : page.blocks) {
      const std::string language = block.language.substr(0, block.language.find(' '));
      EXPECT_TRUE(language.starts_with("{") && !language.starts_with("{code") && language != "{sourcecode}")
          << path << ":" << block.line << ": nothing checks a block of '" << language
          << "'; include it from a source or a transcript";
      if (language != "{literalinclude}") continue;
      const std::string file = block.language.substr(block.language.find(' ') + 1);
      EXPECT_TRUE(fs::exists(path.parent_path() / file)) << path << ":" << block.line;
      const fs::path folder = fs::relative(path.parent_path() / file, root).parent_path();
      EXPECT_TRUE(is_checked(folder))
          << path << ":" << block.line << ": nothing compiles or compares " << file;
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
  const std::string readme = flush_left(lines_of(xgrad_tests::read_bytes(root / "README.md")));
  std::string pages;
  for (const fs::path& path : files_in("docs", ".md")) pages += xgrad_tests::read_bytes(path);
  for (const fs::path& path : transcripts()) {
    const std::string transcript = flush_left(lines_of(xgrad_tests::read_bytes(path)));
    EXPECT_TRUE(pages.find("/" + path.filename().string()) != std::string::npos ||
                readme.find(transcript) != std::string::npos)
        << path;
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
  for (const char* folder : {"graph", "ops", "autograd", "models", "train", "files"}) {
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

}  // namespace
