// Compares tokenizers with what Hugging Face's library and sentencepiece gave
#include <iostream>
#include <map>
#include <string>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "tokenizer_goldens.hpp"

int main(int argc, char** argv) {
  std::string root;
  apps::CommandLine app("Compares tokenizers with what Hugging Face's library and sentencepiece gave.");
  app.add_option("DIR", root,
                 "directory with tokenizers (cases.json) and what is done to characters and texts "
                 "(unicode.json, regex.json, invalid.json), at any depth")
      ->required()
      ->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("tokenizer_parity", [&] {
    std::map<std::string, std::size_t> counts;
    std::size_t passed = 0, failed = 0;
    xgrad_tests::compare_tokenizer_goldens(root, [&](const std::string& name, bool right) {
      ++counts[name.substr(0, name.find(':'))];
      ++(right ? passed : failed);
      if (!right) std::cout << "FAILED  " << name << '\n';
    });
    for (const auto& [file, count] : counts) std::cout << file << ": " << count << " comparisons\n";
    std::cout << passed << " passed, " << failed << " failed\n";
    return failed > 0 ? 1 : 0;
  });
}
