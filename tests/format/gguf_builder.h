#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "format/gguf_writer.h"

namespace crest::format {

/// A small GGUF file made in memory, byte by byte under the test's control where it matters.
struct GgufBuilder {
  Metadata metadata{"test"};
  std::vector<TensorSpec> specs;
  std::vector<std::string> data;

  GgufBuilder() { metadata.set("general.architecture", Value::string("llama")); }

  GgufBuilder& set(std::string_view key, Value value) {
    metadata.set(key, std::move(value));
    return *this;
  }
  GgufBuilder& tensor(std::string name, tensor::DType dtype, Shape shape, std::string bytes) {
    EXPECT_EQ(*tensor_bytes(dtype, shape), bytes.size());
    specs.push_back({std::move(name), dtype, shape});
    data.push_back(std::move(bytes));
    return *this;
  }
  GgufBuilder& f32(std::string name, Shape shape, float first = 0) {
    std::string bytes;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const float value = first + static_cast<float>(i);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return tensor(std::move(name), tensor::DType::kF32, shape, std::move(bytes));
  }
  std::string header() const {
    auto result = gguf_header(metadata, specs);
    EXPECT_TRUE(result.ok());
    return *result;
  }
  std::string bytes() const {
    const auto alignment = static_cast<size_t>(*metadata.integer_or("general.alignment", 32, 8, 4096));
    std::string out = header();
    for (const std::string& part : data) {
      out += part;
      out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
    }
    return out;
  }
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Offset just behind the last occurrence of `text`.
inline size_t behind(const std::string& bytes, std::string_view text) {
  const size_t at = bytes.rfind(text);
  EXPECT_NE(at, std::string::npos) << text;
  return at + text.size();
}

template <typename T>
std::string patched(std::string bytes, size_t offset, T value) {
  EXPECT_LE(offset + sizeof value, bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

}  // namespace crest::format
