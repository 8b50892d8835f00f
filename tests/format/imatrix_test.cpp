#include "format/imatrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "format/gguf_builder.h"
#include "testing/temporary_folder.h"

namespace crest::format {
namespace {

Imatrix sample() {
  Imatrix imatrix;
  const float x[6] = {1, 2, 3, -1, 0, 2};
  EXPECT_TRUE(imatrix.add("blk.0.attn_q.weight", 3, 1, 0, x, 2).ok());
  EXPECT_TRUE(imatrix.add("blk.0.ffn_up_exps.weight", 2, 3, 1, x, 3).ok());
  EXPECT_TRUE(imatrix.add("blk.0.ffn_up_exps.weight", 2, 3, 2, x, 1).ok());
  imatrix.add_chunks(7, 512);
  imatrix.set_dataset("calibration.txt");
  return imatrix;
}

TEST(Imatrix, AddsSquares) {
  const Imatrix imatrix = sample();
  const Imatrix::Entry* dense = imatrix.find("blk.0.attn_q.weight");
  ASSERT_NE(dense, nullptr);
  EXPECT_EQ(dense->in_sum2, (std::vector<float>{2, 4, 13}));
  EXPECT_EQ(mean_importance(*dense, 0), (std::vector<float>{1, 2, 6.5}));
  const Imatrix::Entry* experts = imatrix.find("blk.0.ffn_up_exps.weight");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->counts, (std::vector<float>{0, 3, 1}));
  EXPECT_TRUE(mean_importance(*experts, 0).empty());
  EXPECT_EQ(mean_importance(*experts, 2), (std::vector<float>{1, 4}));
  EXPECT_EQ(imatrix.find("blk.1.attn_q.weight"), nullptr);
  Imatrix other = sample();
  const auto status = other.add("blk.0.attn_q.weight", 4, 1, 0, dense->in_sum2.data(), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("blk.0.attn_q.weight"), std::string::npos);
}

TEST(Imatrix, GgufFileGoesThereAndBack) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "imatrix.gguf";
  const Imatrix imatrix = sample();
  ASSERT_TRUE(imatrix.write(path).ok());
  const auto read = Imatrix::read(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->entries().size(), 2u);
  EXPECT_EQ(read->chunks(), 7);
  EXPECT_EQ(read->chunk_tokens(), 512);
  EXPECT_EQ(read->dataset(), "calibration.txt");
  for (const auto& [name, entry] : imatrix.entries()) {
    const Imatrix::Entry* other = read->find(name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->in_sum2, entry.in_sum2);
    EXPECT_EQ(other->counts, entry.counts);
    EXPECT_EQ(other->experts, entry.experts);
  }
  // The layout that llama.cpp expects.
  const auto file = GgufFile::open(path).value();
  EXPECT_EQ(file->metadata().string("general.type").value(), "imatrix");
  EXPECT_EQ(file->tensors()[2].name, "blk.0.ffn_up_exps.weight.in_sum2");
  EXPECT_EQ(file->tensors()[2].shape, (Shape{2, 3}));
  EXPECT_EQ(file->tensors()[3].name, "blk.0.ffn_up_exps.weight.counts");
  EXPECT_EQ(file->tensors()[3].shape, (Shape{1, 3}));
  // Writing over an input through another name is refused.
  const std::filesystem::path inputs[] = {path};
  EXPECT_FALSE(imatrix.write(folder.path() / "." / "imatrix.gguf", inputs).ok());
  EXPECT_FALSE(imatrix.write(folder.path() / "missing" / "imatrix.gguf").ok());
}

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
std::string dat_file(int32_t calls, int32_t values, const std::vector<float>& sums) {
  std::string out;
  put<int32_t>(out, 1);
  const std::string name = "blk.0.attn_q.weight";
  put(out, static_cast<int32_t>(name.size()));
  out += name;
  put(out, calls);
  put(out, values);
  for (const float sum : sums) put(out, sum);
  return out;
}

TEST(Imatrix, OldFilesAreRead) {
  const testing::TemporaryFolder folder;
  std::string bytes = dat_file(4, 2, {8, 2});
  const auto short_form = Imatrix::read(folder.write("a.dat", bytes));
  ASSERT_TRUE(short_form.ok()) << short_form.error().message;
  EXPECT_EQ(mean_importance(*short_form->find("blk.0.attn_q.weight"), 0), (std::vector<float>{2, 0.5}));
  put<int32_t>(bytes, 60);
  put<int32_t>(bytes, 5);
  bytes += "a.txt";
  const auto long_form = Imatrix::read(folder.write("b.dat", bytes));
  ASSERT_TRUE(long_form.ok()) << long_form.error().message;
  EXPECT_EQ(long_form->chunks(), 60);
  EXPECT_EQ(long_form->dataset(), "a.txt");
}

// Counts that promise more than the file holds, and numbers that would poison every weight they meet.
TEST(Imatrix, RefusesBrokenFiles) {
  const testing::TemporaryFolder folder;
  const std::string good = dat_file(4, 2, {8, 2});
  std::vector<std::string> bad = {
      "",
      "abc",
      good.substr(0, good.size() - 1),
      good + "x",
      dat_file(4, 2000000000, {8, 2}),
      dat_file(4, -1, {}),
      dat_file(4, 0, {}),
      dat_file(-4, 2, {8, 2}),
      dat_file(4, 2, {8, NAN}),
      dat_file(4, 2, {8, -1}),
      dat_file(4, 2, {8, INFINITY}),
  };
  std::string twice;
  put<int32_t>(twice, 2);
  twice += good.substr(4) + good.substr(4);
  bad.push_back(twice);
  std::string many;
  put<int32_t>(many, 2147483647);
  bad.push_back(many + good.substr(4));
  for (const std::string& bytes : bad) {
    const auto read = Imatrix::read(folder.write("bad.dat", bytes));
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message.find("bad.dat"), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(Imatrix::read(folder.path() / "missing.dat").ok());

  const auto gguf = [&](const char* type, Shape sums, Shape counts, float first) {
    GgufBuilder builder;
    builder.set("general.type", Value::string(type));
    builder.f32("a.weight.in_sum2", sums, first);
    builder.f32("a.weight.counts", counts);
    return Imatrix::read(folder.write("bad.gguf", builder.bytes())).ok();
  };
  EXPECT_TRUE(gguf("imatrix", {4, 2}, {1, 2}, 0));
  EXPECT_FALSE(gguf("model", {4, 2}, {1, 2}, 0));
  EXPECT_FALSE(gguf("imatrix", {4, 2}, {1, 3}, 0));
  EXPECT_FALSE(gguf("imatrix", {4, 2}, {1, 2}, -1));
  GgufBuilder lonely;
  lonely.set("general.type", Value::string("imatrix")).f32("a.weight.in_sum2", {4, 2});
  EXPECT_FALSE(Imatrix::read(folder.write("bad.gguf", lonely.bytes())).ok());
}

}  // namespace
}  // namespace crest::format
