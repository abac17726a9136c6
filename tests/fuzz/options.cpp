// Command lines of the training programs, an argument a line
// seeds: tests/fuzz/seeds/options
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "../../apps/common/command_line.hpp"
#include "../../apps/training/training_options.hpp"

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::cerr.setstate(std::ios::failbit);  // every refusal would print a line
  std::cout.setstate(std::ios::failbit);
  std::vector<std::string> arguments{"program"};
  std::string_view text = fuzz::text_of(data, size);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(std::string_view("\n\0", 2)), text.size());
    arguments.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  apps::TrainingOptions options{{.steps = 1, .batch = 1, .lr = 1},
                                {.d_model = 1, .heads = 1, .d_ff = 1, .layers = 1}};
  apps::CommandLine app;
  apps::add_options(app, options);
  if (app.parse(static_cast<int>(pointers.size()), pointers.data())) return 0;
  for (const std::size_t size_option : {options.batch, options.d_model, options.heads, options.d_ff})
    fuzz::require(size_option >= 1 && size_option <= 4096, "a size is in its range");
  fuzz::require(options.lr >= 1e-9 && options.lr <= 10, "the rate is in its range");
  fuzz::require(!options.resume || !options.checkpoint.empty(), "--resume needs --checkpoint");
  return 0;
}
