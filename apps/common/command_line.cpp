#include "command_line.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <xgrad/base/detail/system/launcher.hpp>
#include <xgrad/base/detail/text/parse.hpp>
#include <xgrad/base/error.hpp>

namespace apps {
namespace {

Check check_of(const CLI::Validator& validator) {
  return {[validator](const std::string& text) { return validator(text); }, validator.get_description()};
}

/// Whether this is the rank that prints: rank 0, or a process that mpirun has not started.
bool is_first_rank() { return xgrad::detail::launched_rank().value_or(0) == 0; }

}  // namespace

template <class T>
Check in_range(T least, T most) {
  const std::string range =
      xgrad::detail::join({"[", xgrad::detail::text(least), ", ", xgrad::detail::text(most), "]"});
  const auto error = [=](const std::string& text) {
    const std::optional<T> number = xgrad::detail::parsed<T>(text);
    const bool right = number && least <= *number && *number <= most;
    return right ? std::string() : "must be a number in " + range + ", got " + text;
  };
  return {error, "in " + range};
}

// std::size_t and std::uint64_t, whatever they are.
template Check in_range(double, double);
template Check in_range(unsigned, unsigned);
template Check in_range(unsigned long, unsigned long);
template Check in_range(unsigned long long, unsigned long long);

Check one_of(const std::vector<std::string>& texts) { return check_of(CLI::IsMember(texts)); }

Check existing_folder() { return check_of(CLI::ExistingDirectory); }

Check existing_file() { return check_of(CLI::ExistingFile); }

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::check(const Check& check) {
  option_->check(CLI::Validator(check.error, check.name));
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::default_str(const std::string& text) {
  option_->default_str(text);
  return this;
}

Option* Option::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}

Option* Option::needs(Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::path(PathUse use) {
  path_use_ = use;
  const auto error = [](const std::string& text) {
    return std::string(text.empty() ? "must not be empty" : "");
  };
  return check({error, ""});
}

Option* Option::found_by(std::string (*find)(const std::string&)) {
  find_ = find;
  return this;
}

namespace {

// CLI11 takes "[MASK] and [MASK]" for a list, unless something stands before the bracket.
constexpr char mark = '\1';

std::string with_mark(const std::string& argument) {
  const bool looks_like_list = argument.starts_with('[') || argument.starts_with(mark);
  return looks_like_list && argument.ends_with(']') ? mark + argument : argument;
}

std::string without_mark(const std::string& argument) {
  return argument.starts_with(mark) && argument.ends_with(']') ? argument.substr(1) : argument;
}

}  // namespace

struct CommandLine::Parts {
  explicit Parts(const std::string& description) : app(description) {}

  Option* keep(CLI::Option* option) {
    options.push_back(Option(option));
    return &options.back();
  }

  CLI::App app;
  std::deque<Option> options;  // which do not move as more are added
};

CommandLine::CommandLine(const std::string& description) : parts_(std::make_unique<Parts>(description)) {}

CommandLine::~CommandLine() = default;

template <class T>
Option* CommandLine::add_option(const std::string& name, T& variable, const std::string& help) {
  CLI::Option* const option = parts_->app.add_option(name, variable, help);
  option->transform(without_mark, "");
  return parts_->keep(option);
}

// What the programs have; of the unsigned types std::size_t and std::uint64_t, whatever they are.
template Option* CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option* CommandLine::add_option(const std::string&, double&, const std::string&);
template Option* CommandLine::add_option(const std::string&, unsigned&, const std::string&);
template Option* CommandLine::add_option(const std::string&, unsigned long&, const std::string&);
template Option* CommandLine::add_option(const std::string&, unsigned long long&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<unsigned>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<unsigned long>&,
                                         const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<unsigned long long>&,
                                         const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<std::size_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<double>&, const std::string&);

Option* CommandLine::add_flag(const std::string& name, bool& variable, const std::string& help) {
  return parts_->keep(parts_->app.add_flag(name, variable, help));
}

Option* CommandLine::get_option(const std::string& name) {
  return parts_->keep(parts_->app.get_option(name));
}

std::vector<NamedPath> CommandLine::paths() const {
  std::vector<NamedPath> paths;
  for (const Option& option : parts_->options) {
    if (!option.path_use_) continue;
    for (const std::string& result : option.option_->results()) {
      std::string path = without_mark(result);
      try {
        if (option.find_ != nullptr) path = option.find_(path);
      } catch (const xgrad::FileError&) {  // the program finds out
      }
      paths.push_back({option.option_->get_name(), path, *option.path_use_});
    }
  }
  std::error_code error;
  if (std::filesystem::is_regular_file("/dev/stdin", error))  // as of `program < file`
    paths.push_back({"on", "/dev/stdin", PathUse::input});
  return paths;
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  CLI::App& app = parts_->app;
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  std::vector<std::string> arguments(argv, argv + argc);
  std::transform(arguments.begin() + 1, arguments.end(), arguments.begin() + 1, with_mark);
  std::vector<const char*> texts;
  for (const std::string& argument : arguments) texts.push_back(argument.c_str());
  const auto refuse = [&](const std::string& what) {
    if (is_first_rank()) std::cerr << name << ": " << what << "; --help lists the arguments\n";
  };
  try {
    app.parse(argc, texts.data());
    check_paths(paths());
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    return is_first_rank() ? app.exit(asked) : 0;
  } catch (const CLI::ParseError& error) {
    // Of several unknown arguments the first; where one is required, a mistyped one may be why it is missing.
    const std::vector<std::string> unknown = app.remaining();
    refuse(unknown.empty() ? error.what() : "there is no argument '" + without_mark(unknown.front()) + "'");
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  return 2;
}

}  // namespace apps
