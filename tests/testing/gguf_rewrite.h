#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "format/gguf.h"
#include "format/gguf_writer.h"

namespace crest::testing {

/// A GGUF file in memory that a test changes and writes again.
struct GgufCopy {
  struct Tensor {
    format::TensorSpec spec;
    std::string bytes;
  };
  format::Metadata metadata;
  std::vector<Tensor> tensors;

  explicit GgufCopy(const std::filesystem::path& path) {
    const auto file = format::GgufFile::open(path);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    metadata = (*file)->metadata();
    for (const auto& tensor : (*file)->tensors()) {
      const auto data = (*file)->data(tensor);
      tensors.push_back({{tensor.name, tensor.dtype, tensor.shape},
                         std::string(reinterpret_cast<const char*>(data.data()), data.size())});
    }
  }
  Tensor& at(const std::string& name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.spec.name == name; });
    EXPECT_NE(found, tensors.end()) << name;
    return *found;
  }
  void drop(const std::function<bool(const std::string&)>& which) {
    std::erase_if(tensors, [&](const auto& tensor) { return which(tensor.spec.name); });
  }
  void write(const std::filesystem::path& path) const {
    std::vector<format::TensorSpec> specs;
    for (const auto& tensor : tensors) specs.push_back(tensor.spec);
    auto writer = format::GgufWriter::create(path, metadata, specs);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    for (const auto& tensor : tensors) {
      ASSERT_TRUE(writer->write(std::as_bytes(std::span(tensor.bytes.data(), tensor.bytes.size()))).ok());
    }
    ASSERT_TRUE(writer->finish().ok());
  }
};

}  // namespace crest::testing
