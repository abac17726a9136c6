#include "show.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <optional>

#include <sys/resource.h>

#include "../../apps/common/command_line.hpp"

namespace {

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void print_number(const std::string& what, const Array& y) {
  const double number = y.dimension() == 0 ? y() : xt::sum(y * wave(y.shape()))();
  std::cout << what << ": " << std::setprecision(7) << number << std::endl;
}

void print_time(const std::string& what, const std::function<Array()>& f) {
  using Clock = std::chrono::steady_clock;
  const long before = peak_kilobytes();
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (times.size() < 5 || Clock::now() - begin < std::chrono::milliseconds(500)) {
    const Clock::time_point start = Clock::now();
    f();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  std::cout << what << ": " << times[times.size() / 2] << " us, "
            << static_cast<double>(peak_kilobytes() - before) / 1e3 << " MB" << std::endl;
}

}  // namespace

Array wave(const xgrad::Shape& shape, double first) {
  Array y =
      xt::sin(xt::arange<double>(first, first + static_cast<double>(xgrad::element_count(shape)) - 0.5));
  y.reshape(shape);
  return y;
}

Show::Show(int argc, char** argv) {
  apps::CommandLine app("Prints results, or how long they take.");
  app.add_flag("--time", time_, "Print microseconds and megabytes instead");
  app.add_option("--only", only_, "Only the result of this name");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) std::exit(*exit_code);
  xgrad::set_num_threads(1);
}

Show::~Show() {
  if (only_.empty() || found_) return;
  std::cerr << "--only: there is no result '" << only_ << "'\n";
  std::exit(1);
}

void Show::operator()(const std::string& what, const std::function<Array()>& f) const {
  if (!only_.empty() && what != only_) return;
  found_ = true;
  if (time_)
    print_time(what, f);
  else
    print_number(what, f());
}
