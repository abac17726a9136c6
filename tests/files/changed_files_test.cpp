// Files that other processes cut or overwrite while they are read: an error with their name, whatever reads
// them.

#include "changed_files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/detail/system/folder_files.hpp>
#include <xgrad/base/file.hpp>
#include <xgrad/files.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "gguf_writer.hpp"
#include "torch_writer.hpp"

namespace changed_files_test {

namespace fs = std::filesystem;
using xgrad::Array, xgrad::FileError, xgrad::MappedFile, xgrad::TensorView;
using xgrad_tests::MappingHook, xgrad_tests::message_of, xgrad_tests::size_message,
    xgrad_tests::TemporaryFolder;

constexpr std::size_t whole = 100'000;

bool is_zero(std::byte byte) { return byte == std::byte{0}; }

class MappedFileChangesTest : public testing::Test {
 protected:
  std::string message() const {
    return message_of<FileError>([&] { file_->throw_if_changed(); });
  }
  void set_time(fs::file_time_type time) const { fs::last_write_time(path_, time); }

  const TemporaryFolder temporary_;
  const std::string path_ = temporary_.write("file", std::string(whole, 'x'));
  const fs::file_time_type time_ = fs::last_write_time(path_);
  std::optional<MappedFile> file_{path_};
};

TEST_F(MappedFileChangesTest, BytesThatAreCutOffAreZerosAndAnErrorWithTheName) {
  file_->throw_if_changed();
  fs::resize_file(path_, 10);
  EXPECT_EQ(std::ranges::count(file_->bytes(), std::byte{'x'}), 10);
  EXPECT_TRUE(std::ranges::all_of(file_->bytes().subspan(10), is_zero));
  EXPECT_TRUE(file_->is_changed());
  EXPECT_EQ(message(), size_message(path_, whole, 10));
  file_->release(file_->bytes());
  EXPECT_TRUE(std::ranges::all_of(file_->bytes(), is_zero) || file_->bytes()[0] == std::byte{'x'});
  const MappedFile again(path_);
  EXPECT_EQ(again.bytes().size(), 10u) << "a new object knows nothing of it";
  again.throw_if_changed();
}

TEST_F(MappedFileChangesTest, AllThreadsReadOn) {
  fs::resize_file(path_, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(std::ranges::all_of(file_->bytes(), is_zero)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(message(), size_message(path_, whole, 0));
}

TEST_F(MappedFileChangesTest, ACutWithinThePageIsFound) {
  fs::resize_file(path_, whole - 1);
  EXPECT_EQ(message(), size_message(path_, whole, whole - 1));
}

TEST_F(MappedFileChangesTest, WhatOverwritesIsFound) {
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_EQ(message(), size_message(path_, whole, whole + 4));
  temporary_.write("file", std::string(whole, 'y'));
  set_time(time_ + std::chrono::seconds(1));
  EXPECT_EQ(message(), path_ + ": must not change while it is read, got another time of modification");
}

TEST_F(MappedFileChangesTest, BytesThatCannotBeReadAreAnErrorOfTheDisk) {
  fs::resize_file(path_, 0);
  EXPECT_TRUE(is_zero(file_->bytes().back()));
  fs::resize_file(path_, whole);
  set_time(time_);
  EXPECT_EQ(message(), path_ + ": cannot be read: Input/output error");
}

TEST_F(MappedFileChangesTest, ReplacingAndRemovingChangeNothing) {
  temporary_.write("new", "new");
  EXPECT_FALSE(file_->is_replaced());
  fs::rename(temporary_.path("new"), path_);
  EXPECT_TRUE(file_->is_replaced());
  file_->throw_if_changed();
  fs::remove(path_);
  EXPECT_TRUE(file_->is_replaced());
  file_->throw_if_changed();
  EXPECT_EQ(std::ranges::count(file_->bytes(), std::byte{'x'}), static_cast<std::ptrdiff_t>(whole));
}

TEST_F(MappedFileChangesTest, AFileWithoutANameThatIsCutIsAnError) {
  fs::create_hard_link(path_, temporary_.path("other"));
  fs::remove(path_);
  fs::resize_file(temporary_.path("other"), 0);
  EXPECT_TRUE(is_zero(file_->bytes()[0]));
  EXPECT_EQ(message(),
            path_ + ": must not change while it is read, got a file that ends before its 100000 bytes");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using SigbusTest = MappedFileChangesTest;

TEST_F(SigbusTest, OfOtherMemoryGoesToTheHandlerBefore) {
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "died in SigbusTest.OfOther");
  const int other = ::open(temporary_.write("other", "x").c_str(), O_RDONLY);
  const auto* const bytes =
      static_cast<const volatile char*>(::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, other, 0));
  ::close(other);
  fs::resize_file(temporary_.path("other"), 0);
  EXPECT_EXIT(static_cast<void>(*bytes), testing::KilledBySignal(SIGBUS), "died in SigbusTest.OfOther");
  EXPECT_EQ(::munmap(const_cast<char*>(bytes), 1), 0);
}
#endif

// ---- readers ----

std::string gguf_file() {
  namespace gguf = xgrad_tests::gguf;
  return gguf::file({gguf::key("general.name", 8, gguf::text(std::string(whole, 'n')))},
                    {gguf::tensor("a", {whole}, 0, 0), gguf::tensor("b", {8}, 0, 4 * whole)},
                    std::string(4 * whole + 32, '\0'));
}

struct Reader {
  std::function<void(const std::string&path)> write, read;
};

/// Reads a file of one of the classes, its tensors or array, and asks for changes.
template <class File>
void read_all(const std::string& path) {
  const File file(path);
  if constexpr (std::is_same_v<File, xgrad::NpyFile>) {
    xgrad::to_array<float>(file.tensor());
  } else {
    for (const TensorView& tensor : file.tensors()) {
      xgrad::to_array<float>(tensor);
      file.release(tensor);
    }
  }
  if constexpr (std::is_same_v<File, xgrad::GgufFile>) {
    EXPECT_LE(file.at("general.name").text().size(), whole);
  }
  file.throw_if_changed();
}

class ChangedFilesTest : public testing::TestWithParam<const char*> {
 protected:
  static std::map<std::string, Reader> readers() {
    const Array<float> a = xt::ones<float>({whole}), b{1, 2};
    const auto safetensors = [=](const std::string& path) {
      xgrad::save_safetensors<float>({{"a", a}, {"b", b}}, path);
    };
    const auto bytes = [](const std::string& content) {
      return [content](const std::string& path) { std::ofstream(path, std::ios::binary) << content; };
    };
    const std::string torch = xgrad_tests::torch::file_of({xgrad::view_of("a", a), xgrad::view_of("b", b)});
    const auto npy = [=](const std::string& path) { xgrad::save_npy(a, path); };
    std::string lines = "[UNK]\n";
    for (std::size_t i = 0; i < whole; ++i) lines += std::to_string(i) + "\n";
    return {{"safetensors", {safetensors, read_all<xgrad::SafetensorsFile>}},
            {"load_safetensors", {safetensors, xgrad::load_safetensors<float>}},
            {"gguf", {bytes(gguf_file()), read_all<xgrad::GgufFile>}},
            {"load_gguf", {bytes(gguf_file()), xgrad::load_gguf<float>}},
            {"is_gguf", {bytes(gguf_file()), xgrad::is_gguf}},
            {"torch", {bytes(torch), read_all<xgrad::TorchFile>}},
            {"load_torch", {bytes(torch), xgrad::load_torch<float>}},
            {"npy", {npy, read_all<xgrad::NpyFile>}},
            {"load_npy", {npy, xgrad::load_npy<float>}},
            {"npz",
             {[=](const std::string& path) {
                xgrad::save_npz<float>({{"a", a}}, path);
              },
              [](const std::string& path) { xgrad::NpzFile{path}; }}},
            {"checkpoint",
             {[](const std::string& path) {
                const xgrad::Linear<float> model(300, 300);
                xgrad::save_checkpoint({{"model", model}}, path, 1);
              },
              [](const std::string& path) {
                const xgrad::Linear<float> model(300, 300);
                xgrad::load_checkpoint(path, {{"model", model}});
              }}},
            {"read_file", {bytes(lines), xgrad::detail::read_file}},
            {"vocabulary", {bytes(lines), [](const std::string& path) { xgrad::Vocabulary::load(path); }}}};
  }
};

TEST_P(ChangedFilesTest, AreErrorsWithTheName) {
  const TemporaryFolder temporary;
  const std::string path = fs::canonical(temporary.path("")) / "file";
  const auto [write, read] = readers().at(GetParam());
  write(path);
  read(path);
  const std::string bytes = xgrad_tests::read_bytes(path);
  const std::size_t size = bytes.size();
  bool releases = false;  // whether it gives memory back to the system
  {
    const MappingHook note([](const std::string&) {}, [&] { releases = true; });
    read(path);
  }
  for (const std::size_t cut : {std::size_t{0}, std::size_t{9}, size / 2, size - 1}) {
    for (const bool at_release : {false, true}) {
      if (at_release && !releases) continue;
      const auto cut_if = [&](bool condition) {
        if (condition) fs::resize_file(path, cut);
      };
      const MappingHook hook([&](const std::string&) { cut_if(!at_release); }, [&] { cut_if(at_release); });
      EXPECT_EQ(message_of<FileError>([&] { read(path); }), size_message(path, size, cut)) << at_release;
      std::ofstream(path, std::ios::binary) << bytes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, ChangedFilesTest,
                         testing::Values("safetensors", "load_safetensors", "gguf", "load_gguf", "is_gguf",
                                         "torch", "load_torch", "npy", "load_npy", "npz", "checkpoint",
                                         "read_file", "vocabulary"),
                         [](const auto& info) { return info.param; });

}  // namespace changed_files_test
