#pragma once

// Command lines. CLI11 parses them; as its header takes seconds to compile, only command_line.cpp includes
// it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "paths.hpp"

namespace CLI {
class Option;
}  // namespace CLI

namespace apps {

/// A condition on an argument.
struct Check {
  std::function<std::string(const std::string&)> error;  ///< what is wrong with a text; empty if nothing is
  std::string name;                                      ///< of the condition, for the help
};

/// A number in [least, most]. CLI::Range would accept nan, and would turn -1 into the largest number of an
/// unsigned type. T: double or an unsigned type.
template <class T>
Check in_range(T least, T most);

Check one_of(const std::vector<std::string>& texts);

Check existing_folder();
Check existing_file();

/// An argument of a command line, which owns it. Each function returns it, so that calls can be chained.
class Option {
 public:
  Option* required();

  Option* check(const Check& check);

  /// The help shows the value of the variable as the default.
  Option* capture_default_str();

  /// The default in the help, which is also the value of an option that is given without one.
  Option* default_str(const std::string& text);

  /// The option takes at least and at most so many values.
  Option* expected(int least, int most);

  /// The option is an error without the other one, or with it.
  Option* needs(Option* other);
  Option* excludes(Option* other);

  /// The option takes paths, which must not be empty; parse() compares what is written with what is read.
  Option* path(PathUse use);

  /// find(text) gives the path that the option's value stands for, such as that of a model's name, or throws.
  Option* found_by(std::string (*find)(const std::string&));

 private:
  friend class CommandLine;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
  std::optional<PathUse> path_use_;
  std::string (*find_)(const std::string&) = nullptr;
};

/// The arguments of a program.
class CommandLine {
 public:
  /// description: of what the program does, for its help.
  explicit CommandLine(const std::string& description = "");
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// Adds an option, "--name" or "-n,--name", or a positional argument, "name"; parse() writes to
  /// the variable. T: std::string, double, an unsigned type, an optional or a vector of some of
  /// these, which command_line.cpp lists.
  template <class T>
  Option* add_option(const std::string& name, T& variable, const std::string& help);

  /// Adds an option without a value.
  Option* add_flag(const std::string& name, bool& variable, const std::string& help);

  /// An option that was added.
  Option* get_option(const std::string& name);

  /// Reads the command line. Returns an exit code if the program should end: 0 after --help, 2 after an error
  /// in the arguments, which is one line on stderr.
  std::optional<int> parse(int argc, char** argv);

 private:
  std::vector<NamedPath> paths() const;

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apps
