// Makes a page of one or several training runs, from their data or their logs
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/base/detail/system/folder_files.hpp>
#include <xgrad/report.hpp>

#include "common/command_line.hpp"
#include "common/program.hpp"

namespace {

/// A run's data, which a log has little of.
std::string data_of(const std::string& path) {
  if (!path.ends_with(".jsonl")) return xgrad::detail::read_file(path);
  xgrad::Report report(std::filesystem::path(path).filename().string());
  report.log(path);
  return report.json();
}

int run_command(int argc, char** argv) {
  std::vector<std::string> paths;
  std::string out;
  apps::CommandLine app(
      "Makes an HTML report of one training run, or a comparison of several, from the .json files of "
      "--report or the .jsonl files of --log.");
  app.add_option("RUN", paths, "Files, .json or .jsonl")->required()->path(apps::PathUse::input);
  app.add_option("-o,--output", out, "The HTML file to write")->required()->path(apps::PathUse::output);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  std::vector<std::pair<std::string, std::string>> runs;
  runs.reserve(paths.size());
  for (const std::string& path : paths) runs.emplace_back(path, data_of(path));
  xgrad::write_comparison(runs, out);
  apps::tell_where_it_is(out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("report", [&] { return run_command(argc, argv); });
}
