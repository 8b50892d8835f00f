#include "format/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/file_map.h"
#include "core/sha256.h"
#include "format/gguf_builder.h"
#include "format/model_file.h"
#include "tensor/quant.h"
#include "testing/temporary_folder.h"

namespace crest::format {
namespace {

using tensor::DType;
namespace fs = std::filesystem;

std::vector<float> noise(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = 0;
    for (int k = 0; k < 4; ++k) {
      seed = seed * 1664525 + 1013904223;
      value += static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f;
    }
  }
  return values;
}
std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Two blocks with 3 experts; rows of 256 and 512; a tensor of every kind that must stay as it is.
GgufBuilder small_model() {
  GgufBuilder builder;
  builder.set("llama.block_count", Value::u32(2)).set("llama.expert_count", Value::u32(3));
  builder.set("general.name", Value::string("small")).set("general.alignment", Value::u32(64));
  const auto add = [&](const std::string& name, Shape shape, uint32_t seed) {
    builder.tensor(name, DType::kF32, shape, bytes_of(noise(static_cast<size_t>(shape.elements()), seed)));
  };
  add("token_embd.weight", {256, 7}, 1);
  add("output_norm.weight", {256}, 2);
  for (int b = 0; b < 2; ++b) {
    const std::string prefix = "blk." + std::to_string(b) + ".";
    add(prefix + "attn_norm.weight", {256}, 3);
    add(prefix + "attn_q.weight", {256, 5}, 4);
    add(prefix + "ffn_gate_inp.weight", {256, 3}, 5);
    add(prefix + "ffn_up_exps.weight", {256, 3, 3}, 6);
    add(prefix + "ffn_down_exps.weight", {512, 2, 3}, 7);
  }
  return builder;
}

struct Files {
  testing::TemporaryFolder folder;
  fs::path in = folder.write("in.gguf", small_model().bytes());
  fs::path out = folder.path() / "out.gguf";
  core::ThreadPool pool{2};
  Result<QuantizeReport> run(std::string_view type, const QuantizeOptions& options = {}) {
    return quantize_file(in, out, type, options, pool);
  }
};

std::vector<float> values_of(const ModelFile& model, std::string_view name) {
  const TensorEntry* entry = model.find(name);
  EXPECT_NE(entry, nullptr) << name;
  const TensorData data = model.data(*entry).value();
  std::vector<float> values(static_cast<size_t>(entry->shape.elements()));
  tensor::dequantize_row(entry->dtype, data.bytes.data(), values.data(), entry->shape.elements());
  return values;
}

TEST(Quantize, EveryMixWritesAReadableModel) {
  Files files;
  for (const QuantMix& mix : quant_mixes()) {
    const auto report = files.run(mix.name);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->fallbacks, 0u);
    const auto model = ModelFile::open(files.out).value();
    const auto source = ModelFile::open(files.in).value();
    EXPECT_EQ(model->metadata().integer("general.file_type", 0, 100).value(), mix.file_type);
    EXPECT_EQ(model->metadata().integer("general.quantization_version", 0, 9).value(), 2);
    EXPECT_EQ(model->metadata().string("general.name").value(), "small");
    EXPECT_EQ(model->metadata().integer("general.alignment", 0, 99).value(), 64);
    ASSERT_EQ(model->tensors().size(), source->tensors().size());
    for (size_t i = 0; i < model->tensors().size(); ++i) {
      const TensorEntry& to = model->tensors()[i];
      EXPECT_EQ(to.name, source->tensors()[i].name);
      EXPECT_EQ(to.shape, source->tensors()[i].shape);
      EXPECT_EQ(to.dtype, report->tensors[i].choice.dtype);
      const auto x = values_of(*source, to.name);
      const auto y = values_of(*model, to.name);
      double error = 0;
      double norm = 0;
      for (size_t k = 0; k < x.size(); ++k) {
        error += (x[k] - y[k]) * (x[k] - y[k]);
        norm += x[k] * x[k];
      }
      EXPECT_LE(error, (report->tensors[i].choice.quantise ? 0.08 : 0.0) * norm) << mix.name << " " << to.name;
    }
  }
}

// The same bytes as quantising each row alone, whatever the number of threads.
TEST(Quantize, RowsAndThreadsDoNotMatter) {
  Files files;
  ASSERT_TRUE(files.run("Q4_K_M").ok());
  const std::string two = core::read_file(files.out, 1 << 20).value();
  core::ThreadPool one(1);
  ASSERT_TRUE(quantize_file(files.in, files.out, "Q4_K_M", {}, one).ok());
  EXPECT_EQ(core::read_file(files.out, 1 << 20).value(), two);

  const auto model = ModelFile::open(files.out).value();
  const auto source = ModelFile::open(files.in).value();
  const TensorEntry* entry = model->find("blk.1.attn_q.weight");
  const auto x = values_of(*source, entry->name);
  std::vector<uint8_t> expected(static_cast<size_t>(entry->bytes));
  const auto row = static_cast<size_t>(tensor::row_bytes(entry->dtype, 256));
  for (size_t r = 0; r < 5; ++r) {
    ASSERT_TRUE(tensor::quantize_row(entry->dtype, x.data() + 256 * r, expected.data() + row * r, 256, nullptr).ok());
  }
  const auto data = model->data(*entry).value();
  ASSERT_EQ(data.bytes.size(), expected.size());
  EXPECT_EQ(std::memcmp(data.bytes.data(), expected.data(), expected.size()), 0);
}

TEST(Quantize, QuantisedInputsNeedPermission) {
  Files files;
  ASSERT_TRUE(files.run("Q8_0").ok());
  fs::rename(files.out, files.in);
  const auto refused = files.run("Q4_K_M");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("token_embd.weight"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(fs::exists(files.out));
  QuantizeOptions allowed;
  allowed.allow_requantize = true;
  EXPECT_TRUE(files.run("Q4_K_M", allowed).ok());
  // The same type is a copy; plain types lose nothing.
  EXPECT_TRUE(files.run("Q8_0").ok());
  EXPECT_EQ(core::read_file(files.out, 1 << 20).value(), core::read_file(files.in, 1 << 20).value());
  ASSERT_TRUE(files.run("F32").ok());
  const auto model = ModelFile::open(files.out).value();
  const auto source = ModelFile::open(files.in).value();
  for (const TensorEntry& tensor : model->tensors()) {
    EXPECT_EQ(tensor.dtype, DType::kF32) << tensor.name;
    EXPECT_EQ(values_of(*model, tensor.name), values_of(*source, tensor.name));
  }
}

// MXFP4 with extreme scale bytes through the file path; a tensor of any name is dequantised to F32.
TEST(Quantize, DequantisesHandMadeBlocks) {
  Files files;
  std::string blocks;
  for (const int scale : {127, 0, 1, 128, 254, 255}) {
    blocks += static_cast<char>(scale);
    for (int i = 0; i < 16; ++i) blocks += static_cast<char>(i | (15 - i) << 4);
  }
  GgufBuilder builder;
  builder.tensor("x", DType::kMXFP4, {32, 6}, blocks);
  files.in = files.folder.write("mx.gguf", builder.bytes());
  ASSERT_TRUE(files.run("F32").ok());
  const auto y = values_of(*ModelFile::open(files.out).value(), "x");
  const float half[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(y[static_cast<size_t>(k)], half[k]);
    EXPECT_EQ(y[static_cast<size_t>(k + 8)], -half[k]);
    EXPECT_EQ(y[static_cast<size_t>(31 - k)], half[k]);
  }
  EXPECT_EQ(y[32 + 1], 0x1p-128f);
  EXPECT_EQ(y[96 + 7], 12.0f);
  EXPECT_EQ(y[128 + 2], 0x1p127f);
  EXPECT_EQ(y[128 + 7], std::numeric_limits<float>::infinity());
}

std::string sha(const fs::path& path) {
  const std::string text = core::read_file(path, 1 << 22).value();
  return core::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

// Output = input destroyed the mapped file in other tools; it must be refused whatever name leads to it.
TEST(Quantize, NeverWritesOverItsInput) {
  Files files;
  const std::string before = sha(files.in);
  fs::create_directory(files.folder.path() / "x");
  fs::create_hard_link(files.in, files.folder.path() / "hard.gguf");
  fs::create_symlink(files.in, files.folder.path() / "soft.gguf");
  for (const fs::path& out : {files.in, files.folder.path() / "hard.gguf", files.folder.path() / "soft.gguf",
                              files.folder.path() / "x" / ".." / "in.gguf"}) {
    const auto report = quantize_file(files.in, out, "Q4_0", {}, files.pool);
    ASSERT_FALSE(report.ok()) << out;
    EXPECT_NE(report.error().message.find("same file"), std::string::npos) << report.error().message;
    EXPECT_EQ(sha(files.in), before);
  }
  const auto missing = quantize_file(files.in, files.folder.path() / "no" / "out.gguf", "Q4_0", {}, files.pool);
  ASSERT_FALSE(missing.ok());
  EXPECT_FALSE(fs::exists(files.folder.path() / "no"));
  EXPECT_FALSE(quantize_file(files.folder.path() / "none.gguf", files.out, "Q4_0", {}, files.pool).ok());
  EXPECT_FALSE(files.run("Q9_0").ok());
  EXPECT_FALSE(fs::exists(files.out));
}

TEST(Quantize, StoppingLeavesNoFile) {
  Files files;
  QuantizeOptions options;
  uint64_t last = 0;
  options.progress = [&](const QuantizeProgress& progress) {
    EXPECT_GE(progress.elements_done, last);
    EXPECT_LE(progress.elements_done, progress.elements);
    last = progress.elements_done;
    return progress.index < 5;
  };
  const auto report = files.run("Q4_K_M", options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(files.folder.path())) ++count;
  EXPECT_EQ(count, 1u);
  options.progress = [&](const QuantizeProgress& progress) {
    last = progress.elements_done;
    return true;
  };
  ASSERT_TRUE(files.run("Q4_K_M", options).ok());
  EXPECT_EQ(last, 7u * 256 + 256 + 2 * (256 + 5 * 256 + 3 * 256 + 9 * 256 + 6 * 512));
}

// A NaN must not become a block of noise: the message names tensor, expert, row and element.
TEST(Quantize, NamesTensorAndRowOfBadValues) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3e38f}) {
    Files files;
    GgufBuilder builder = small_model();
    const size_t index = 5;  // blk.0.ffn_up_exps.weight, {256, 3, 3}
    ASSERT_EQ(builder.specs[index].name, "blk.0.ffn_up_exps.weight");
    builder.data[index] = patched(builder.data[index], (7 * 256 + 9) * sizeof(float), bad);
    files.in = files.folder.write("bad.gguf", builder.bytes());
    for (const char* type : {"Q4_K_M", "Q8_0", "IQ4_NL", "Q2_K"}) {
      const auto report = files.run(type);
      ASSERT_FALSE(report.ok()) << type;
      for (const char* part : {"bad.gguf", "blk.0.ffn_up_exps.weight", "row 1 of matrix 2", "element 9"}) {
        EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
      }
      EXPECT_FALSE(fs::exists(files.out));
    }
    EXPECT_EQ(files.run("F16").ok(), !std::isfinite(bad));
    EXPECT_TRUE(files.run("BF16").ok());
  }
}

TEST(Quantize, ImportanceIsUsedForEachExpert) {
  Files files;
  Imatrix imatrix;
  std::vector<float> inputs(256, 0.1f);
  for (size_t c = 0; c < 256; c += 4) inputs[c] = 5;
  ASSERT_TRUE(imatrix.add("blk.0.ffn_up_exps.weight", 256, 3, 1, inputs.data(), 1).ok());
  QuantizeOptions options;
  options.imatrix = &imatrix;
  options.imatrix_name = "i.gguf";
  ASSERT_TRUE(files.run("Q2_K").ok());
  const auto plain = values_of(*ModelFile::open(files.out).value(), "blk.0.ffn_up_exps.weight");
  const auto report = files.run("Q2_K", options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->no_importance, report->quantised - 1);
  const auto model = ModelFile::open(files.out).value();
  EXPECT_EQ(model->metadata().string("quantize.imatrix.file").value(), "i.gguf");
  EXPECT_EQ(model->metadata().integer("quantize.imatrix.entries_count", 0, 9).value(), 1);
  const auto weighted = values_of(*model, "blk.0.ffn_up_exps.weight");
  const auto x = values_of(*ModelFile::open(files.in).value(), "blk.0.ffn_up_exps.weight");
  const auto error = [&](const std::vector<float>& y, size_t expert) {
    double sum = 0;
    for (size_t r = 0; r < 3; ++r) {
      for (size_t c = 0; c < 256; c += 4) {
        const size_t i = (expert * 3 + r) * 256 + c;
        sum += (x[i] - y[i]) * (x[i] - y[i]);
      }
    }
    return sum;
  };
  EXPECT_EQ(error(weighted, 0), error(plain, 0));  // experts never seen are treated as without importance
  EXPECT_LT(error(weighted, 1), 0.9 * error(plain, 1));
  EXPECT_EQ(error(weighted, 2), error(plain, 2));

  Imatrix wrong;
  ASSERT_TRUE(wrong.add("blk.0.attn_q.weight", 255, 1, 0, inputs.data(), 1).ok());
  options.imatrix = &wrong;
  const auto refused = files.run("Q2_K", options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("blk.0.attn_q.weight"), std::string::npos) << refused.error().message;
}

TEST(Quantize, SplitInputsBecomeOneFile) {
  Files files;
  const GgufBuilder whole = small_model();
  for (uint16_t part = 0; part < 2; ++part) {
    GgufBuilder builder;
    if (part == 0) builder.metadata = whole.metadata;
    builder.set("split.no", Value::u16(part)).set("split.count", Value::u16(2));
    builder.set("split.tensors.count", Value::i32(static_cast<int32_t>(whole.specs.size())));
    for (size_t i = part == 0 ? 0 : 4; i < (part == 0 ? 4 : whole.specs.size()); ++i) {
      builder.tensor(whole.specs[i].name, whole.specs[i].dtype, whole.specs[i].shape, whole.data[i]);
    }
    files.folder.write("s-0000" + std::to_string(part + 1) + "-of-00002.gguf", builder.bytes());
  }
  ASSERT_TRUE(files.run("Q5_K_M").ok());
  const std::string expected = sha(files.out);
  files.in = files.folder.path() / "s-00001-of-00002.gguf";
  const auto report = files.run("Q5_K_M");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(sha(files.out), expected);
  EXPECT_FALSE(quantize_file(files.in, files.folder.path() / "s-00002-of-00002.gguf", "Q5_K_M", {}, files.pool).ok());
}

}  // namespace
}  // namespace crest::format
