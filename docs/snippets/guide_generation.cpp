// The page "Choosing tokens", section by section
#include <filesystem>
#include <fstream>
#include <iostream>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

namespace {

namespace generation = xgrad::generation;

void choosing() {
  std::cout << "# choosing\n";
  // [choosing]
  const generation::GenerationOptions options{
      .repetition_penalty = 2, .do_sample = true, .temperature = 0.5, .top_k = 3};
  const std::vector<std::int64_t> text{0, 4};   // the prompt, and a token that has been written
  std::vector<float> logits{1, 3, 2.5, -1, 4};  // of the next token, by a model
  generation::process_logits<float>(options, text, 1, logits);
  for (const float logit : logits) std::cout << logit << ' ';
  xgrad::manual_seed(3);
  std::cout << "-> " << generation::next_token<float>(options, logits) << '\n';
  for (const std::string& name : names_of_processors(options)) std::cout << name << '\n';
  // [choosing]
}

void stopping() {
  std::cout << "# stopping\n";
  // [stopping]
  const std::vector<std::string> pieces{"the", " c", "ats", " sat"};  // a token each
  const generation::StopStrings stop_strings(
      {"cat"}, [&](std::int64_t id) { return pieces.at(static_cast<std::size_t>(id)); });
  std::vector<std::int64_t> text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    text.push_back(static_cast<std::int64_t>(i));
    std::cout << pieces[i] << (stop_strings.end(text) ? "|" : "");
  }
  std::cout << '\n';
  // [stopping]
}

void file() {
  std::cout << "# file\n";
  std::filesystem::create_directory("model");
  // [file]
  std::ofstream("model/generation_config.json")
      << R"({"do_sample": true, "top_p": 0.9, "eos_token_id": [2, 7]})";
  generation::GenerationOptions options = generation::GenerationOptions::from_folder("model");
  options.temperature = 0.7;
  std::cout << options.json();
  // [file]
}

}  // namespace

int main() {
  choosing();
  stopping();
  file();
}
