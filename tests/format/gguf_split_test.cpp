#include <gtest/gtest.h>

#include <functional>

#include "format/gguf_builder.h"
#include "format/model_file.h"
#include "testing/temporary_folder.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;

std::string name(int number, int count = 5) { return fmt::format("sp-{:05}-of-{:05}.gguf", number, count); }

// A set as llama-gguf-split makes it: the first file has the metadata and no tensor.
GgufBuilder part(int index, uint16_t count = 5, int32_t total = 8) {
  GgufBuilder b;
  if (index != 0) b.metadata = Metadata("part");
  if (index == 0) b.set("llama.block_count", Value::u32(4));
  b.set("split.no", Value::u16(static_cast<uint16_t>(index)));
  b.set("split.count", Value::u16(count));
  b.set("split.tensors.count", Value::i32(total));
  for (int i = 0; index != 0 && i < 2; ++i)
    b.f32(fmt::format("t{}.{}", index, i), {2 + i, index}, static_cast<float>(100 * index + i));
  return b;
}

void write_set(const TemporaryFolder& folder) {
  for (int i = 0; i < 5; ++i) folder.write(name(i + 1), part(i).bytes());
}

// Only the named file is read, a first file without tensors breaks things, a later file fails obscurely.
TEST(GgufSplit, AnyFileLoadsTheSet) {
  const TemporaryFolder folder;
  write_set(folder);
  for (int i = 1; i <= 5; ++i) {
    const auto model = ModelFile::open(folder.path() / name(i));
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)->files().size(), 5u);
    EXPECT_EQ((*model)->tensors().size(), 8u);
    EXPECT_EQ((*model)->architecture(), "llama");
    EXPECT_EQ(*(*model)->metadata().integer("llama.block_count", 1, 9), 4);
    const TensorEntry* entry = (*model)->find("t3.1");
    ASSERT_NE(entry, nullptr);
    std::vector<float> row(3);
    ASSERT_TRUE((*model)->read_rows(*entry, 1, 1, row.data()).ok());
    EXPECT_EQ(row, (std::vector<float>{304, 305, 306}));
  }
}

// Files that disagree must not be merged. The message names the file, the key and both values.
TEST(GgufSplit, SetsThatDisagreeAreRefused) {
  const auto check = [&](const std::function<void(const TemporaryFolder&)>& change,
                         const std::vector<std::string>& words) {
    const TemporaryFolder folder;
    write_set(folder);
    change(folder);
    const auto model = ModelFile::open(folder.path() / name(1));
    ASSERT_FALSE(model.ok());
    for (const std::string& word : words)
      EXPECT_NE(model.error().message.find(word), std::string::npos) << model.error().message;
  };
  check([](const TemporaryFolder& f) { f.write(name(3), part(2, 4).bytes()); },
        {name(3), "split.count is 4, expected 5"});
  check(
      [](const TemporaryFolder& f) {
        f.write(name(3), part(3).bytes());
        f.write(name(4), part(2).bytes());
      },
      {name(3), "split.no is 3, expected 2"});
  check([](const TemporaryFolder& f) { f.write(name(3), part(2, 5, 9).bytes()); },
        {name(3), "split.tensors.count is 9, expected 8"});
  check(
      [](const TemporaryFolder& f) {
        f.write(name(3), part(2).set("general.architecture", Value::string("qwen3")).bytes());
      },
      {name(3), "general.architecture is qwen3, expected llama"});
  check([](const TemporaryFolder& f) { std::filesystem::remove(f.path() / name(5)); }, {name(5), "No such file"});
  check([](const TemporaryFolder& f) { f.write(name(3), part(1).bytes()); }, {name(3), "split.no is 1, expected 2"});
  check(
      [](const TemporaryFolder& f) {
        GgufBuilder b = part(2);
        b.specs = part(1).specs;
        b.data = part(1).data;
        f.write(name(3), b.bytes());
      },
      {name(3), "tensor t1.0 is in another file"});
  check(
      [](const TemporaryFolder& f) {
        GgufBuilder b = part(2);
        b.f32("more", {1});
        f.write(name(3), b.bytes());
      },
      {"split.tensors.count is 8, but the 5 files hold 9 tensors"});
  check([](const TemporaryFolder& f) { f.write(name(1), part(0, 4).bytes()); },
        {name(1), "split.count is 4, expected 5"});
}

TEST(GgufSplit, TheNameMustSayTheNumber) {
  const TemporaryFolder folder;
  for (const char* wrong :
       {"model.gguf", "sp-00001-of-0005.gguf", "sp-00000-of-00005.gguf", "sp-00006-of-00005.gguf"}) {
    const auto model = ModelFile::open(folder.write(wrong, part(0).bytes()));
    ASSERT_FALSE(model.ok());
    EXPECT_NE(model.error().message.find("must be named like"), std::string::npos) << model.error().message;
  }
}

// Valid metadata that readers refuse, or where the cursor slips.
TEST(GgufMetadata, KeysInAnyOrderAndUnknownOnesOfEveryType) {
  GgufBuilder b;
  b.metadata = Metadata("reversed");
  int i = 0;
  for (const ValueType type :
       {ValueType::kU8, ValueType::kI8, ValueType::kU16, ValueType::kI16, ValueType::kU32, ValueType::kI32,
        ValueType::kF32, ValueType::kBool, ValueType::kU64, ValueType::kI64, ValueType::kF64}) {
    b.set(fmt::format("unknown.{}", i++), Value::raw(type, std::string(value_bytes(type), '\1'), false));
  }
  b.set("unknown.string", Value::string("text"));
  b.set("unknown.strings", Value::strings({"a", "bb", ""}));
  const double doubles[] = {1.5, -2};
  b.set("unknown.doubles", Value::raw(ValueType::kF64, std::string(reinterpret_cast<const char*>(doubles), 16), true));
  const std::vector<int32_t> heads = {4, 4, 4};
  b.set("llama.attention.head_count", Value::i32s(heads));
  b.set("llama.block_count", Value::u64(3));
  b.set("general.architecture", Value::string("llama"));
  b.f32("t", {2});
  const TemporaryFolder folder;
  const auto model = ModelFile::open(folder.write("m.gguf", b.bytes()));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Metadata& m = (*model)->metadata();
  EXPECT_EQ((*model)->architecture(), "llama");
  EXPECT_EQ(*m.integer((*model)->key("block_count"), 1, 100), 3);
  EXPECT_EQ(*m.integer_per_layer("llama.attention.head_count", 3, 1, 100), (std::vector<int64_t>{4, 4, 4}));
  EXPECT_EQ(m.entries().size(), 17u);
  EXPECT_EQ(m.find("unknown.doubles")->as_double(1), -2.0);
  EXPECT_EQ((*m.strings("unknown.strings"))[1], "bb");
}

}  // namespace
}  // namespace crest::format
