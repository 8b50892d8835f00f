#include <gtest/gtest.h>

#include <chrono>

#include "format/gguf_builder.h"
#include "format/model_file.h"
#include "testing/temporary_folder.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;
using tensor::DType;

GgufBuilder sample() {
  GgufBuilder b;
  b.set("llama.block_count", Value::u32(2));
  b.set("llama.rope.freq_base", Value::f32(10000.5f));
  b.set("tokenizer.ggml.tokens", Value::strings({"a", "", "ccc"}));
  b.set("flags", Value::bools({true, false, true}));
  b.set("wide", Value::u64(~uint64_t{0}));
  b.f32("token_embd.weight", {4, 3}, 1);
  b.tensor("blk.0.q", DType::kQ4_0, {32, 2}, std::string(36, 'q'));
  b.f32("norm", {5});
  return b;
}

std::string message(const std::string& bytes) {
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  return file.ok() ? "" : file.error().message;
}

#define EXPECT_REFUSED(bytes, word) EXPECT_NE(message(bytes).find(word), std::string::npos) << message(bytes)

TEST(GgufReader, ReadsWhatTheWriterWrites) {
  const std::string bytes = sample().bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x");
  ASSERT_TRUE(file.ok()) << file.error().message;
  const Metadata& m = (*file)->metadata();
  EXPECT_EQ(*m.integer("llama.block_count", 1, 10), 2);
  EXPECT_EQ(*m.number("llama.rope.freq_base"), 10000.5);
  EXPECT_EQ((*m.strings("tokenizer.ggml.tokens"))[2], "ccc");
  EXPECT_EQ(*m.integers("flags", 0, 1), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(m.find("wide")->as_unsigned(), ~uint64_t{0});
  EXPECT_FALSE(m.find("wide")->as_integer());
  ASSERT_EQ((*file)->tensors().size(), 3u);
  const GgufTensor& q = (*file)->tensors()[1];
  EXPECT_EQ(q.name, "blk.0.q");
  EXPECT_EQ(q.shape, (Shape{32, 2}));
  EXPECT_EQ((*file)->data(q).size(), 36u);
  EXPECT_EQ((*file)->data(q)[0], std::byte{'q'});
  float last = 0;
  std::memcpy(&last, (*file)->data((*file)->tensors()[2]).data() + 16, 4);
  EXPECT_EQ(last, 4.0f);
}

// Input 1 of the hostile list: cut at every byte up to the data, then in steps.
TEST(GgufReader, CutAnywhereIsAnError) {
  GgufBuilder b = sample();
  b.f32("big", {700, 3});
  const std::string bytes = b.bytes();
  const size_t data = b.header().size();
  const size_t needed = data + 64 + 64 + 32 + 8400;
  for (size_t size = 0; size < needed; size += size < data ? 1 : 1024) {
    EXPECT_NE(message(bytes.substr(0, size)), "") << size;
  }
  EXPECT_EQ(message(bytes.substr(0, needed)), "") << "padding behind the last tensor may be missing";
}

// Input 2: each integer of the header replaced by extreme values; no value may crash, and a changed count or length is
// reported.
TEST(GgufReader, ExtremeIntegersAreErrors) {
  const std::string bytes = sample().bytes();
  const uint64_t values[] = {
      0, 1, ~uint64_t{0}, 1ull << 31, 1ull << 32, (1ull << 63) - 1, 1ull << 63, ~uint64_t{0} - 31};
  const struct {
    size_t offset;
    const char* word;
    uint64_t right;
  } fields[] = {{8, "n_tensors", 3},
                {16, "n_kv", 6},
                {24, "key", 20},
                {behind(bytes, "tokenizer.ggml.tokens") + 8, "tokenizer.ggml.tokens", 3},
                {behind(bytes, "tokenizer.ggml.tokens") + 16, "tokenizer.ggml.tokens", 1},
                {behind(bytes, "token_embd.weight") + 4, "token_embd.weight", 4},
                {behind(bytes, "token_embd.weight") + 12, "token_embd.weight", 3},
                {behind(bytes, "token_embd.weight") + 24, "token_embd.weight", 0},
                {behind(bytes, "blk.0.q") + 24, "blk.0.q", 64}};
  for (const auto& field : fields) {
    for (const uint64_t value : values) {
      if (value == field.right) continue;
      EXPECT_NE(message(patched(bytes, field.offset, value)), "") << field.word << " " << value;
      if (value > 1) {
        EXPECT_REFUSED(patched(bytes, field.offset, value), field.word) << value;
      }
    }
  }
  // Every byte of the header, each bit of it: whatever is accepted must be consistent.
  const size_t header = sample().header().size();
  for (size_t i = 0; i < header; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      const auto file = GgufFile::parse(as_bytes(changed), "x");
      if (!file.ok()) continue;
      for (const GgufTensor& t : (*file)->tensors()) ASSERT_LE(t.offset + t.bytes, changed.size());
    }
  }
}

TEST(GgufReader, VersionsAndByteOrder) {
  const std::string bytes = sample().bytes();
  EXPECT_EQ(message(patched<uint32_t>(bytes, 4, 2)), "");
  EXPECT_REFUSED(patched<uint32_t>(bytes, 4, 1), "version is 1");
  EXPECT_REFUSED(patched<uint32_t>(bytes, 4, 4), "version is 4");
  EXPECT_REFUSED(patched<uint32_t>(bytes, 4, 0), "version is 0");
  EXPECT_REFUSED(patched<uint32_t>(bytes, 4, 0x03000000), "big-endian");
}

// Input 3: the offsets.
TEST(GgufReader, OffsetsMustFollowOneAnother) {
  const std::string bytes = sample().bytes();
  const size_t second = behind(bytes, "blk.0.q") + 24;
  EXPECT_EQ(message(patched<uint64_t>(bytes, second, 64)), "");
  EXPECT_REFUSED(patched<uint64_t>(bytes, second, 32), "offset is 32, expected 64");  // overlap
  EXPECT_REFUSED(patched<uint64_t>(bytes, second, 96), "offset is 96, expected 64");  // hole
  EXPECT_REFUSED(patched<uint64_t>(bytes, second, 65), "multiple of the alignment");  // unaligned
  EXPECT_REFUSED(patched<uint64_t>(bytes, second, 1 << 20), "expected 64");           // past the end
  EXPECT_REFUSED(patched<uint64_t>(bytes, second, ~uint64_t{31}), "expected 64");     // wraps
}

// Input 4: the dimensions. Decided once: a GGUF tensor with a zero dimension is refused.
TEST(GgufReader, Dimensions) {
  const std::string bytes = sample().bytes();
  const size_t rank = behind(bytes, "blk.0.q");
  EXPECT_REFUSED(patched<uint32_t>(bytes, rank, 5), "n_dims is 5");
  EXPECT_REFUSED(patched<uint32_t>(bytes, rank, 0), "n_dims is 0");
  EXPECT_REFUSED(patched<int64_t>(bytes, rank + 4, 0), "dimension 0 is 0");
  EXPECT_REFUSED(patched<int64_t>(bytes, rank + 4, -32), "dimension 0 is -32");
  EXPECT_REFUSED(patched<int64_t>(bytes, rank + 4, 33), "blocks of 32");
  EXPECT_REFUSED(patched<int64_t>(patched<int64_t>(bytes, rank + 4, 1ll << 32), rank + 12, 1ll << 32), "2^62");
  EXPECT_REFUSED(patched<int64_t>(bytes, rank + 4, 1ll << 61), "2^62");
}

TEST(GgufReader, TypesThatCannotBeReadAreNamed) {
  const std::string bytes = sample().bytes();
  const size_t type = behind(bytes, "blk.0.q") + 20;
  EXPECT_REFUSED(patched<uint32_t>(bytes, type, 19), "IQ1_S");
  EXPECT_REFUSED(patched<uint32_t>(bytes, type, 4), "type 4 is unknown");
  EXPECT_REFUSED(patched<uint32_t>(bytes, type, 0xffffffff), "is unknown; supported are F32, F16");
}

// Input 5: names, keys and value types.
TEST(GgufReader, NamesAndKeys) {
  const std::string bytes = sample().bytes();
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string changed = bytes;
    changed.replace(behind(bytes, from) - from.size(), from.size(), to);
    return changed;
  };
  EXPECT_REFUSED(replaced("flags", std::string_view("fl\0gs", 5)), "zero byte");
  EXPECT_REFUSED(replaced("flags", "fl\xff\xfes"), "not UTF-8");
  EXPECT_REFUSED(replaced("norm", "n\xc3rm"), "not UTF-8");
  GgufBuilder twice = sample();
  twice.specs[2].name = "blk.0.k";
  std::string two = twice.bytes();
  two.replace(two.rfind("blk.0.k"), 7, "blk.0.q");
  EXPECT_REFUSED(two, "blk.0.q is there twice");
  GgufBuilder keys = sample();
  keys.set("flagt", Value::u32(1));
  std::string repeated = keys.bytes();
  repeated.replace(repeated.rfind("flagt"), 5, "flags");
  EXPECT_REFUSED(repeated, "the key flags is there twice");
  EXPECT_REFUSED(patched<uint32_t>(bytes, behind(bytes, "flags"), 13), "value type is 13");
  EXPECT_REFUSED(patched<uint32_t>(bytes, behind(bytes, "flags") + 4, 9), "arrays of arrays");
  EXPECT_REFUSED(patched<uint8_t>(bytes, behind(bytes, "flags") + 16, 2), "boolean");
  GgufBuilder name = sample();
  name.f32(std::string(63, 'n'), {1});
  EXPECT_EQ(message(name.bytes()), "");
  name.f32(std::string(64, 'n'), {1});
  EXPECT_FALSE(gguf_header(name.metadata, name.specs).ok());
}

// Input 6: the alignment.
TEST(GgufReader, Alignment) {
  for (const int64_t good : {8, 64, 4096}) {
    GgufBuilder b = sample();
    b.set("general.alignment", Value::u32(static_cast<uint32_t>(good)));
    EXPECT_EQ(message(b.bytes()), "");
  }
  const GgufBuilder b = [] {
    GgufBuilder made = sample();
    made.set("general.alignment", Value::u32(64));
    return made;
  }();
  const size_t value = behind(b.bytes(), "general.alignment") + 4;
  for (const uint32_t bad : {0u, 1u, 3u, 48u, 8192u, 1u << 31, ~0u}) {
    EXPECT_REFUSED(patched(b.bytes(), value, bad), "general.alignment");
  }
  std::string text = sample().set("general.alignmenu", Value::string("32")).bytes();
  text.replace(text.find("general.alignmenu"), 17, "general.alignment");
  EXPECT_REFUSED(text, "general.alignment is string, expected an integer");
}

// Input 7: a small file that asks for a lot of memory.
TEST(GgufReader, SmallFileCannotAskForMemory) {
  GgufBuilder b;
  b.set("s", Value::string("short"));
  std::string bytes = b.bytes();
  bytes.resize(160, '\0');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_REFUSED(patched<uint64_t>(bytes, bytes.find("short") - 8, 1ull << 30), "length is 1073741824");
  GgufBuilder array;
  array.set("s", Value::i32s(std::vector<int32_t>{1}));
  EXPECT_REFUSED(patched<uint64_t>(array.bytes(), behind(array.bytes(), "s") + 8, 1ull << 63), "elements of i32");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
}

// Input 8: a file that shrinks after it was opened is an error, not a bus error.
TEST(GgufReader, FileThatShrinks) {
  const TemporaryFolder folder;
  const auto path = folder.write("m.gguf", sample().bytes());
  const auto model = ModelFile::open(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const TensorEntry* entry = (*model)->find("norm");
  ASSERT_NE(entry, nullptr);
  EXPECT_TRUE((*model)->data(*entry).ok());
  std::filesystem::resize_file(path, 200);
  const auto data = (*model)->data(*entry);
  ASSERT_FALSE(data.ok());
  EXPECT_NE(data.error().message.find("when opened and is now 200"), std::string::npos);
}

// Input 10: things that are no model.
TEST(GgufReader, NotAModel) {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  const std::pair<std::string, const char*> files[] = {
      {"", "empty"},
      {"GG", "starts with \"GG\""},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git-lfs pointer"},
      {"\x7f"
       "ELF\2\1\1",
       "an ELF program"},
      {"\x1f\x8b\x08\0\0"s, "gzip"},
      {"<!DOCTYPE html><html>", "an HTML page"},
      {"\n <HTML><head>", "an HTML page"},
      {"PK\3\4....", "pickle"},
      {"\x80\2}q\0."s, "a pickle file"},
      {std::string(4096, '\0'), "filled with zeros"},
      {"{\"a\": 1}", "JSON"},
      {"lmgg....", "old GGML format"}};
  for (const auto& [content, word] : files) {
    const auto model = ModelFile::open(folder.write("file", content));
    ASSERT_FALSE(model.ok());
    EXPECT_NE(model.error().message.find(word), std::string::npos) << model.error().message;
    EXPECT_NE(model.error().message.find("expected a GGUF file"), std::string::npos) << model.error().message;
  }
}

TEST(Metadata, GettersConvertOnlyWhatFits) {
  Metadata m("file");
  m.set("u64", Value::u64(7));
  m.set("huge", Value::u64(1ull << 63));
  m.set("negative", Value::i32(-1));
  m.set("text", Value::string("seven"));
  m.set("per_layer", Value::i32s(std::vector<int32_t>{3, 3, 4}));
  m.set("nan", Value::f32(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(*m.integer("u64", 0, 10), 7);
  EXPECT_FALSE(m.integer("huge", 0, std::numeric_limits<int64_t>::max()).ok());
  EXPECT_EQ(m.integer("negative", 0, 9).error().message, "file: negative is -1, allowed is 0 to 9");
  EXPECT_EQ(m.integer("text", 0, 9).error().message, "file: text is string, expected an integer");
  EXPECT_EQ(m.integer("none", 0, 9).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*m.integer_or("none", 5, 0, 9), 5);
  EXPECT_FALSE(m.integer_or("text", 5, 0, 9).ok()) << "a wrong type is never replaced by the default";
  EXPECT_EQ(*m.integer_per_layer("per_layer", 3, 1, 9), (std::vector<int64_t>{3, 3, 4}));
  EXPECT_EQ(*m.integer_per_layer("u64", 2, 1, 9), (std::vector<int64_t>{7, 7}));
  EXPECT_FALSE(m.integer_per_layer("per_layer", 2, 1, 9).ok());
  EXPECT_FALSE(m.number("nan").ok());
  EXPECT_EQ(*m.number("negative"), -1.0);
}

}  // namespace
}  // namespace crest::format
