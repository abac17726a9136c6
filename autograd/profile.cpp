#include "profile.hpp"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <map>
#include <unordered_map>

#include "../base/detail/system/seconds_since.hpp"
#include "../graph/variable.hpp"
#include "../graph/watch.hpp"

namespace xgrad {
namespace {

using Clock = std::chrono::steady_clock;

class Profiler : public Watcher {
 public:
  Profile result() const {
    Profile profile{ops_, {}, detail::seconds_since(start_)};
    for (const ModuleRow& module : modules_) profile.modules.push_back(module.row);
    std::stable_sort(profile.ops.begin(), profile.ops.end(), [](const ProfileRow& a, const ProfileRow& b) {
      return a.forward_seconds + a.backward_seconds > b.forward_seconds + b.backward_seconds;
    });
    return profile;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct ModuleRow {
    ProfileRow row;
    std::size_t outer;  // its row, or none
  };

  void on_op(const OpEvent<float>& event) override { add_op(event); }
  void on_op(const OpEvent<double>& event) override { add_op(event); }
  void on_backward_begin(const BackwardEvent<float>&) override { begin_backward(); }
  void on_backward_begin(const BackwardEvent<double>&) override { begin_backward(); }
  void on_backward_end(const BackwardEvent<float>& event) override { add_backward(event); }
  void on_backward_end(const BackwardEvent<double>& event) override { add_backward(event); }

  void on_module_begin(const RunningModule& module) noexcept override {
    running_.push_back(module_row(module, running_.empty() ? none : running_.back()));
    ++modules_[running_.back()].row.calls;
    last_ = Clock::now();
  }
  void on_module_end(const RunningModule&) noexcept override {
    if (!running_.empty()) running_.pop_back();  // else it had begun before
  }

  template <class T>
  void add_op(const OpEvent<T>& event) {
    if (event.in_backward) return;
    backward_depth_ = 0;  // not yet if a backward has thrown
    const std::size_t op = op_row(event.op.name), module = running_.empty() ? none : running_.back();
    const std::size_t bytes = event.result.size() * sizeof(T);
    if (event.number != 0) origins_[event.number] = module;
    ++ops_[op].calls;
    add(op, module, &ProfileRow::forward_seconds, detail::seconds_since(last_));
    add(op, module, &ProfileRow::bytes, bytes);
    last_ = Clock::now();
  }

  void begin_backward() {
    if (backward_depth_++ == 0) last_ = Clock::now();
  }

  template <class T>
  void add_backward(const BackwardEvent<T>& event) {
    if (--backward_depth_ > 0) return;
    const auto origin = origins_.find(event.number);
    add(op_row(event.op.name), origin != origins_.end() ? origin->second : none,
        &ProfileRow::backward_seconds, detail::seconds_since(last_));
    last_ = Clock::now();
  }

  /// To the op, and to the module with all around it.
  template <class Amount>
  void add(std::size_t op, std::size_t module, Amount ProfileRow::*column, Amount amount) {
    ops_[op].*column += amount;
    for (; module != none; module = modules_[module].outer) modules_[module].row.*column += amount;
  }

  std::size_t op_row(const std::string& name) {
    const auto [place, fresh] = op_rows_.emplace(name, ops_.size());
    if (fresh) ops_.push_back({name, 0, 0, 0, 0});
    return place->second;
  }

  std::size_t module_row(const RunningModule& module, std::size_t outer) {
    const std::string& name = module.name.empty() ? module.type : module.name;
    const auto [place, fresh] = module_rows_.emplace(std::pair(name, outer), modules_.size());
    if (fresh) modules_.push_back({{name, 0, 0, 0, 0}, outer});
    return place->second;
  }

  Clock::time_point start_ = Clock::now(), last_ = start_;
  std::vector<ProfileRow> ops_;
  std::vector<ModuleRow> modules_;
  std::map<std::string, std::size_t> op_rows_;
  std::map<std::pair<std::string, std::size_t>, std::size_t> module_rows_;
  std::vector<std::size_t> running_;                        // rows, the innermost last
  int backward_depth_ = 0;                                  // of backwards within each other
  std::unordered_map<std::uint64_t, std::size_t> origins_;  // the module row of each recorded op
};

void print_table(std::ostream& out, const char* title, const std::vector<ProfileRow>& rows, double seconds) {
  std::size_t width = std::string_view(title).size();
  for (const ProfileRow& row : rows) width = std::max(width, row.name.size());
  out << std::left << std::setw(static_cast<int>(width)) << title << std::right
      << "   calls  forward ms  backward ms   share      MiB\n";
  for (const ProfileRow& row : rows) {
    const double both = row.forward_seconds + row.backward_seconds;
    out << std::left << std::setw(static_cast<int>(width)) << row.name << std::right << std::setw(8)
        << row.calls << std::fixed << std::setprecision(3) << std::setw(12) << 1e3 * row.forward_seconds
        << std::setw(13) << 1e3 * row.backward_seconds << std::setprecision(1) << std::setw(6)
        << (seconds > 0 ? 100 * both / seconds : 0) << " %" << std::setprecision(3) << std::setw(9)
        << static_cast<double>(row.bytes) / (1 << 20) << '\n';
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Profile& profile) {
  const std::ios_base::fmtflags flags = out.flags();
  const std::streamsize precision = out.precision();
  print_table(out, "op", profile.ops, profile.seconds);
  if (!profile.modules.empty()) {
    out << '\n';
    print_table(out, "module", profile.modules, profile.seconds);
  }
  out << "\ntotal " << std::fixed << std::setprecision(3) << 1e3 * profile.seconds << " ms\n";
  out.flags(flags);
  out.precision(precision);
  return out;
}

Profile profile(const std::function<void()>& run) {
  Profiler profiler;
  run();
  return profiler.result();
}

}  // namespace xgrad
