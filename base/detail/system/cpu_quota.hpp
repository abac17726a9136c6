#pragma once

#include <cstddef>
#include <optional>
#include <string>

// Not installed.

namespace xgrad::detail {

/// The number of processors that the CPU quota of the process's control groups amounts to: quota / period,
/// rounded up, at least 1; of nested groups the minimum. Empty without a quota, or where none can be read.
/// Reads versions 1 (cpu.cfs_quota_us and cpu.cfs_period_us) and 2 (cpu.max) of control groups, found by
/// proc/self/cgroup and proc/self/mountinfo; all paths are below `root`.
/// https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/scheduler/sched-bwc.html
std::optional<std::size_t> cpu_quota(const std::string& root);

}  // namespace xgrad::detail
