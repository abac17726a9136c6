// ONNX files that other processes cut while they are read.

#include "../changed_files.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/onnx.hpp>

#include "../expect_error.hpp"
#include "../temporary_folder.hpp"
#include "model_builder.hpp"

namespace changed_onnx_files_test {

namespace fs = std::filesystem;
using xgrad::FileError;
using xgrad_tests::MappingHook, xgrad_tests::message_of, xgrad_tests::MessageWriter,
    xgrad_tests::ModelBuilder, xgrad_tests::size_message;

TEST(ChangedOnnxFilesTest, AreErrorsWithTheName) {
  constexpr std::int64_t count = 20'000;
  const std::vector<float> numbers(count, 1);
  const xgrad_tests::TemporaryFolder folder;
  const std::string home = fs::canonical(folder.path("")), bytes = ModelBuilder::raw(numbers);
  MessageWriter external, entry;
  external.integers(1, std::vector<std::int64_t>{count});
  external.integer(2, 1);
  external.text(8, "w");
  entry.text(1, "location");
  entry.text(2, "data.bin");
  external.message(13, entry);
  external.integer(14, 1);
  ModelBuilder model;
  model.input("x", 1, {count});
  model.floats("v", {count}, numbers);
  model.initializer(external);
  model.node("Add", {"x", "v"}, {"z"});
  model.node("Add", {"z", "w"}, {"y"});
  model.output("y");
  const std::string path = home + "/model.onnx", data = home + "/data.bin";
  for (const std::string& cut : {path, data}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{9}, std::size_t{50'000}}) {
      folder.write("model.onnx", model.bytes());
      folder.write("data.bin", bytes);
      EXPECT_EQ(xgrad::onnx::Graph<float>(path).outputs().size(), 1u);
      const std::size_t before = fs::file_size(cut);
      const MappingHook hook([&](const std::string& mapped) {
        if (mapped == cut) fs::resize_file(cut, size);
      });
      EXPECT_EQ(message_of<FileError>([&] { xgrad::onnx::Graph<float>{path}; }),
                size_message(cut, before, size));
    }
  }
}

}  // namespace changed_onnx_files_test
