#include "format/safetensors.h"

#include <gtest/gtest.h>

#include <functional>

#include "format/gguf_builder.h"
#include "format/hf_builder.h"
#include "testing/temporary_folder.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;

std::string message(const std::string& bytes) {
  const auto file = SafetensorsFile::parse(as_bytes(bytes), "x.safetensors");
  return file.ok() ? "" : file.error().message;
}

#define EXPECT_REFUSED(bytes, word) EXPECT_NE(message(bytes).find(word), std::string::npos) << message(bytes)

std::string with(const std::string& extra, const std::string& data = "abcdefgh") {
  return safetensors_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})" + extra + "}", data);
}
std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& range) {
  return fmt::format(R"(,"{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, range);
}

// Readers that are too strict or too lax. What the format's reference accepts and refuses was measured.
TEST(Safetensors, EdgesOfTheHeader) {
  const std::string plain = with("");
  EXPECT_EQ(message(plain), "");
  const std::string header = plain.substr(8, plain.size() - 16);
  EXPECT_EQ(message(safetensors_bytes(header + "     ", "abcdefgh")), "");
  EXPECT_REFUSED(safetensors_bytes(header + std::string(5, '\0'), "abcdefgh"), "not valid JSON");
  EXPECT_EQ(message(with(R"(,"__metadata__":{})")), "");
  EXPECT_EQ(message(with(R"(,"__metadata__":{"k":"v"})")), "");
  EXPECT_REFUSED(with(R"(,"__metadata__":{"k":1})"), "__metadata__: k is not a string");
  EXPECT_EQ(message(with(tensor("z", "F32", "[0]", "[0,0]"))), "");
  EXPECT_EQ(message(with(tensor("z", "F32", "[0,3]", "[8,8]"))), "");
  EXPECT_EQ(message(with(tensor("s", "F32", "[]", "[8,12]"), "abcdefghijkl")), "");
  EXPECT_EQ(message(safetensors_bytes(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "abcd")), "");
  EXPECT_REFUSED(with(tensor("z", "F32", "[1]", "[0,0]")), "data_offsets span 0");
  EXPECT_REFUSED(with("", "abcdefgh1234"), "bytes behind the last tensor");
  EXPECT_EQ(message(safetensors_bytes(R"({"b":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
                                      R"("f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                      "abcde")),
            "");
  EXPECT_EQ(message(safetensors_bytes("{}", "")), "");
}

// Inputs 3 to 5: ranges, sizes, names.
TEST(Safetensors, RangesMustTileTheData) {
  EXPECT_REFUSED(with(tensor("b", "F32", "[1]", "[4,8]")), "start at 4, expected 8");
  EXPECT_REFUSED(with(tensor("b", "F32", "[1]", "[12,16]"), "abcdefgh12345678"), "start at 12, expected 8");
  EXPECT_REFUSED(with(tensor("b", "F32", "[1]", "[12,8]"), "abcdefgh1234"), "run backwards");
  EXPECT_REFUSED(with(tensor("b", "F32", "[1]", "[8,12]")), "cut short");
  EXPECT_REFUSED(with(tensor("b", "F32", "[4611686018427387904,4]", "[8,8]")), "too large");
  EXPECT_REFUSED(with(tensor("b", "F32", "[-1]", "[8,8]")), "shape[0] is not an integer");
  EXPECT_REFUSED(with(tensor("b", "F32", "[1.0]", "[8,12]")), "shape[0] is not an integer");
  EXPECT_REFUSED(with(tensor("b", "F32", "[1]", "[8]")), "has 1 numbers");
  EXPECT_REFUSED(with(tensor("b", "Q9", "[1]", "[8,12]")), "dtype \"Q9\" is unknown");
  EXPECT_REFUSED(with(tensor("b", "F4", "[3]", "[8,9]")), "whole bytes");
  EXPECT_EQ(message(with(tensor("b", "F4", "[4]", "[8,10]"), "abcdefghij")), "");
  EXPECT_REFUSED(with(tensor("a", "F32", "[0]", "[8,8]")), "a is there twice");
  EXPECT_REFUSED(with(R"(,"b":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[8,8]})"),
                 "dtype is there twice");
  EXPECT_REFUSED(with(R"(,"b":{"dtype":"F32","shape":[0]})"), "data_offsets is missing");
  EXPECT_REFUSED(with(R"(,"b":7)"), "not described by an object");
  EXPECT_REFUSED(safetensors_bytes("[1]", ""), "not a JSON object");
  EXPECT_REFUSED(safetensors_bytes("{\"\xff\":{}}", ""), "JSON");
  EXPECT_REFUSED(safetensors_bytes("{\"a\":" + std::string(5000, '['), ""), "JSON");
}

// Input 1, 2 and 7: cut anywhere; the one integer of the start; a length beyond the file.
TEST(Safetensors, CutsAndLengths) {
  const std::string bytes = with(tensor("b", "F32", "[700]", "[8,2808]"), std::string(2808, 'x'));
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(message(bytes.substr(0, size)), "") << size;
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63,
                                ~uint64_t{0}, ~uint64_t{0} - 7, bytes.size() - 7})
    EXPECT_NE(message(patched(bytes, 0, length)), "") << length;
  EXPECT_REFUSED(patched(bytes, 0, uint64_t{100'000'001}), "header length is 100000001");
}

// Input 10.
TEST(Safetensors, OtherFiles) {
  EXPECT_REFUSED("", "is empty, expected a safetensors file");
  EXPECT_REFUSED("version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer");
  EXPECT_REFUSED("<!doctype html><html><body>", "HTML");
  EXPECT_REFUSED(GgufBuilder().bytes(), "a GGUF file");
}

std::string open_error(const std::filesystem::path& folder) {
  const auto set = SafetensorsSet::open(folder);
  return set.ok() ? "" : set.error().message;
}

// Input 11: the files that an index names.
TEST(SafetensorsSet, IndexAndFilesMustAgree) {
  HfBuilder b;
  for (const char* name : {"a", "b", "c", "d"}) b.add(name, {3});
  const auto check = [&](const std::function<void(const TemporaryFolder&)>& change, std::string_view word) {
    const TemporaryFolder folder;
    b.write_sharded(folder, 2);
    change(folder);
    const std::string text = open_error(folder.path());
    if (word.empty()) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_NE(text.find(word), std::string::npos) << text;
    }
  };
  const auto index = [](const std::string& json) {
    return [json](const TemporaryFolder& f) { f.write("model.safetensors.index.json", json); };
  };
  const std::string second = "model-00002-of-00002.safetensors";
  check([](const TemporaryFolder&) {}, "");
  check([&](const TemporaryFolder& f) { std::filesystem::remove(f.path() / second); }, second);
  check([&](const TemporaryFolder& f) { f.write(second, HfBuilder::pack({{"other", b.tensors.at("a")}})); },
        "tensor b is missing");
  check([&](const TemporaryFolder& f) { f.write(second, HfBuilder::pack(b.tensors)); }, "tensor a is in another file");
  check([&](const TemporaryFolder& f) { f.write("model-00003-of-00002.safetensors", "rubbish"); }, "");
  check(index(R"({"weight_map":{"a":"../model.safetensors"}})"), "\"../model.safetensors\" is not allowed");
  check(index(R"({"weight_map":{"a":"/etc/passwd"}})"), "is not allowed");
  check(index(R"({"weight_map":{"a":"model.bin"}})"), "is not allowed");
  check(index(R"({"weight_map":{"a":""}})"), "is not allowed");
  check(index(R"({"weight_map":{"a":1}})"), "a is not a file name");
  check(index(R"({"weight_map":{}})"), "weight_map is empty");
  check(index(R"({})"), "weight_map is missing");
  check(index(R"([])"), "not a JSON object");
  check(index("{"), "not valid JSON");
  check(index(std::string(1000, '[') + std::string(1000, ']')), "deeper than");
}

TEST(SafetensorsSet, FolderWithoutWeights) {
  const TemporaryFolder folder;
  EXPECT_NE(open_error(folder.path()).find("no weights"), std::string::npos);
  folder.write("pytorch_model.bin", "PK");
  EXPECT_NE(open_error(folder.path()).find("pickle"), std::string::npos);
}

}  // namespace
}  // namespace crest::format
