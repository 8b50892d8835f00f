// Offload bundles, plain and compressed, and their damaged forms.
#include <gtest/gtest.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/Compression.h>

#include <cstring>
#include <random>

#include "crest_sim/code_object.h"

namespace crest_sim::test {
namespace {

using Bytes = std::vector<uint8_t>;

template <class T>
void append(Bytes& out, T value) {
  size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(&out[at], &value, sizeof(T));
}

Bytes bundle(const std::vector<std::pair<std::string, Bytes>>& entries) {
  Bytes out;
  for (char c : std::string("__CLANG_OFFLOAD_BUNDLE__")) out.push_back(static_cast<uint8_t>(c));
  append(out, uint64_t(entries.size()));
  uint64_t offset = 4096;
  for (const auto& [triple, data] : entries) {
    append(out, offset);
    append(out, uint64_t(data.size()));
    append(out, uint64_t(triple.size()));
    out.insert(out.end(), triple.begin(), triple.end());
    offset += data.size();
  }
  out.resize(4096);
  for (const auto& [triple, data] : entries) out.insert(out.end(), data.begin(), data.end());
  return out;
}

Bytes compressed(const Bytes& plain, uint16_t version, bool zstd) {
  llvm::SmallVector<uint8_t, 0> packed;
  llvm::compression::compress(
      llvm::compression::Params(zstd ? llvm::compression::Format::Zstd : llvm::compression::Format::Zlib),
      llvm::ArrayRef<uint8_t>(plain.data(), plain.size()), packed);
  Bytes out{'C', 'C', 'O', 'B'};
  append(out, version);
  append(out, uint16_t(zstd));
  size_t header = version == 1 ? 20 : version == 2 ? 24 : 32;
  if (version == 2) append(out, uint32_t(header + packed.size()));
  if (version == 3) append(out, uint64_t(header + packed.size()));
  if (version == 3)
    append(out, uint64_t(plain.size()));
  else
    append(out, uint32_t(plain.size()));
  append(out, uint64_t(0x1234));  // hash
  out.insert(out.end(), packed.begin(), packed.end());
  return out;
}

const Bytes kGfx942{1, 2, 3}, kGfx1100{4, 5}, kGeneric{6};

Bytes three() {
  return bundle({{"host-x86_64-unknown-linux-gnu-", {}},
                 {"hipv4-amdgcn-amd-amdhsa--gfx1100", kGfx1100},
                 {"hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", kGfx942},
                 {"hipv4-amdgcn-amd-amdhsa--gfx11-generic", kGeneric}});
}

TEST(Bundle, PicksTheTarget) {
  EXPECT_EQ(*extract_code_object(three(), Arch::kGfx942), kGfx942);
  EXPECT_EQ(*extract_code_object(three(), Arch::kGfx1100), kGfx1100);
  EXPECT_EQ(*extract_code_object(three(), Arch::kGfx1151), kGeneric);
  auto missing = extract_code_object(three(), Arch::kGfx950);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().find("gfx950"), std::string::npos);
  EXPECT_NE(missing.error().find("gfx942:sramecc+"), std::string::npos);
}

TEST(Bundle, Compressed) {
  for (uint16_t version : {1, 2, 3})
    for (bool zstd : {false, true}) {
      auto got = extract_code_object(compressed(three(), version, zstd), Arch::kGfx942);
      ASSERT_TRUE(got.ok()) << version << zstd << got.error();
      EXPECT_EQ(*got, kGfx942);
    }
}

TEST(Bundle, DamageIsReported) {
  std::mt19937 random(1);
  EXPECT_FALSE(extract_code_object({}, Arch::kGfx942).ok());
  EXPECT_FALSE(extract_code_object(Bytes(100, 7), Arch::kGfx942).ok());
  EXPECT_FALSE(extract_code_object(compressed(three(), 4, true), Arch::kGfx942).ok());
  for (const Bytes& whole : {three(), compressed(three(), 2, true), compressed(three(), 3, false)})
    for (int n = 0; n < 2000; ++n) {
      Bytes damaged(whole.begin(), whole.begin() + static_cast<long>(random() % (whole.size() + 1)));
      for (int k = 0; k < 4 && !damaged.empty(); ++k)
        damaged[random() % std::min<size_t>(damaged.size(), 200)] = static_cast<uint8_t>(random());
      auto r = extract_code_object(damaged, Arch::kGfx942);
      if (!r.ok()) EXPECT_FALSE(r.error().empty());
    }
}

}  // namespace
}  // namespace crest_sim::test
