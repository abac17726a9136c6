#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/base/detail/system/cpu_quota.hpp>

#include "temporary_folder.hpp"

namespace cpu_quota_test {

/// The files of a system below a folder.
class CpuQuotaTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_.path(path)).parent_path());
    root_.write(path, text);
  }

  void version_2(const std::string& path, const std::string& mounted = "/") const {
    write("proc/self/cgroup", "0::" + path + "\n");
    write("proc/self/mountinfo",
          "22 1 8:1 / / rw,relatime - ext4 /dev/sda rw\n"
          "30 22 0:26 " +
              mounted + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  void version_1(const std::string& path, const std::string& mounted = "/") const {
    write("proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:" + path + "\n1:name=systemd:/init.scope\n");
    write("proc/self/mountinfo",
          "31 22 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
          "32 22 0:28 " +
              mounted + " /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
  }

  void quota_1(const std::string& group, const std::string& quota, const std::string& period) const {
    write("sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_quota_us", quota + "\n");
    write("sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_period_us", period + "\n");
  }

  std::optional<std::size_t> quota() const {
    const std::string root = root_.path("");
    return xgrad::detail::cpu_quota(root.substr(0, root.size() - 1));
  }

  const xgrad_tests::TemporaryFolder root_;
};

TEST_F(CpuQuotaTest, AQuotaIsRoundedUpAndAtLeastOne) {
  version_2("/a");
  for (const auto& [text, processors] : {std::pair{"150000 100000", 2},
                                         {"200000 100000", 2},
                                         {"1000 100000", 1},
                                         {"200001 100000", 3},
                                         {"25000 50000", 1},
                                         {"6400000 100000", 64}}) {
    write("sys/fs/cgroup/a/cpu.max", std::string(text) + "\n");
    EXPECT_EQ(quota(), processors) << text;
  }
}

TEST_F(CpuQuotaTest, OfNestedGroupsTheLeastHolds) {
  version_2("/a/b/c");
  write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 8u);
  write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3u);
  write("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 3u);
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
  write("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
  write("sys/fs/cgroup/a/b/c/d/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota(), 2u) << "only the groups above the process hold";
}

TEST_F(CpuQuotaTest, Version1IsRead) {
  version_1("/docker/x");
  quota_1("/docker/x", "-1", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  quota_1("/docker", "450000", "100000");
  EXPECT_EQ(quota(), 5u);
  quota_1("/docker/x", "70000", "50000");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(CpuQuotaTest, OfBothVersionsTheLeastHolds) {
  write("proc/self/cgroup", "3:cpu:/a\n0::/b\n");
  write("proc/self/mountinfo",
        "32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu\n"
        "33 22 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  quota_1("/a", "400000", "100000");
  EXPECT_EQ(quota(), 4u);
  write("sys/fs/cgroup/unified/b/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3u);
  quota_1("/a", "200000", "100000");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(CpuQuotaTest, AContainerSeesItsGroupWhereItIsMounted) {
  write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  for (const auto& [path, mounted] : {std::pair{"/", "/"},         // with a name space of its own
                                      {"/docker/x", "/docker/x"},  // without
                                      {"/docker/x", "/kubepods/y"},
                                      {"/../x", "/"},
                                      {"/../../x", "/../.."},
                                      {"/docker/xy", "/docker/x"}}) {
    version_2(path, mounted);
    EXPECT_EQ(quota(), 3u) << path << " in " << mounted;
  }
  version_2("/docker/x/inner", "/docker/x");
  write("sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota(), 1u);
  version_1("/docker/x", "/docker/x");
  quota_1("", "350000", "100000");
  EXPECT_EQ(quota(), 4u);
}

TEST_F(CpuQuotaTest, PathsMayHaveSpacesAndColons) {
  write("proc/self/cgroup", "0::/a:b c\n");
  write("proc/self/mountinfo", "30 22 0:26 / /sys/fs/c\\040group rw - cgroup2 none rw\n");
  write("sys/fs/c group/a:b c/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(CpuQuotaTest, WhatIsMissingOrMalformedIsNoQuota) {
  EXPECT_EQ(quota(), std::nullopt);
  version_2("/a");
  EXPECT_EQ(quota(), std::nullopt);
  for (const char* text : {"", "\n", "max", "100000", "x 100000", "100000 x", "100000 0", "0 100000",
                           "-5 100000", "100000 -1", "1 2 3", "99999999999999999999 100000", "1e5 100000"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
  write("sys/fs/cgroup/a/cpu.max", "9223372036854775807 1\n");
  EXPECT_EQ(quota(), 9223372036854775807u);
  for (const char* text : {"", "0", "0::", "nonsense\n", ":\n", "::\n", "4:cpu\n"}) {
    write("proc/self/cgroup", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
  version_2("/a");
  for (const char* text :
       {"", "- \n", "1 2 3 4 5 6 -\n", "1 2 3 / /sys/fs/cgroup rw - cgroup2\n", "- cgroup2 a b c d e f\n"}) {
    write("proc/self/mountinfo", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
  std::filesystem::remove(root_.path("proc/self/cgroup"));
  std::filesystem::create_directory(root_.path("proc/self/cgroup"));  // which cannot be read
  EXPECT_EQ(quota(), std::nullopt);
}

}  // namespace cpu_quota_test
