// Offload bundles as hipcc makes them. Format: clang's documentation of clang-offload-bundler.
#include <fmt/format.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/Compression.h>
#include <llvm/Support/Error.h>

#include <cstring>

#include "crest_sim/code_object.h"

namespace crest_sim {
namespace {

constexpr std::string_view kPlainMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressedMagic = "CCOB";
constexpr uint64_t kMaxUncompressed = uint64_t(1) << 32;

template <class T>
bool read(std::span<const uint8_t> data, uint64_t at, T& value) {
  if (at > data.size() || data.size() - at < sizeof(T)) return false;
  std::memcpy(&value, data.data() + at, sizeof(T));
  return true;
}

bool has_magic(std::span<const uint8_t> data, std::string_view magic) {
  return data.size() >= magic.size() && std::memcmp(data.data(), magic.data(), magic.size()) == 0;
}

Result<std::vector<uint8_t>> decompress(std::span<const uint8_t> data) {
  uint16_t version = 0, method = 0;
  uint64_t total = data.size(), uncompressed = 0, header = 0;
  read(data, 4, version);
  read(data, 6, method);
  bool good = false;
  uint32_t small = 0;
  if (version == 1) {
    good = read(data, 8, small);
    uncompressed = small, header = 20;
  } else if (version == 2) {
    good = read(data, 8, small);
    total = small;
    good = good && read(data, 12, small);
    uncompressed = small, header = 24;
  } else if (version == 3) {
    good = read(data, 8, total) && read(data, 16, uncompressed);
    header = 32;
  } else {
    return Error{fmt::format("compressed offload bundle: version {}; 1 to 3 are supported", version)};
  }
  if (!good || header > data.size() || total < header || total > data.size())
    return Error{fmt::format("compressed offload bundle: says it has {} bytes, {} are there", total, data.size())};
  if (uncompressed > kMaxUncompressed)
    return Error{fmt::format("compressed offload bundle: {} uncompressed bytes; at most 4 GiB", uncompressed)};
  auto format = method == 0 ? llvm::compression::Format::Zlib : llvm::compression::Format::Zstd;
  if (method > 1)
    return Error{fmt::format("compressed offload bundle: method {}; 0 (zlib) and 1 (zstd) are known", method)};
  if (const char* reason = llvm::compression::getReasonIfUnsupported(format))
    return Error{fmt::format("compressed offload bundle: {}", reason)};
  llvm::SmallVector<uint8_t, 0> out;
  llvm::ArrayRef<uint8_t> in(data.data() + header, total - header);
  if (llvm::Error e = llvm::compression::decompress(format, in, out, uncompressed))
    return Error{fmt::format("compressed offload bundle: {}", llvm::toString(std::move(e)))};
  return std::vector<uint8_t>(out.begin(), out.end());
}

struct Entry {
  std::string triple;
  std::span<const uint8_t> data;
};

Result<std::vector<Entry>> read_entries(std::span<const uint8_t> data) {
  uint64_t count = 0, at = kPlainMagic.size();
  if (!read(data, at, count) || count > data.size() / 24)
    return Error{fmt::format("offload bundle: {} entries do not fit into {} bytes", count, data.size())};
  at += 8;
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t offset = 0, size = 0, length = 0;
    if (!read(data, at, offset) || !read(data, at + 8, size) || !read(data, at + 16, length) ||
        length > data.size() - at - 24)
      return Error{fmt::format("offload bundle: entry {} is cut off", i)};
    if (offset > data.size() || size > data.size() - offset)
      return Error{
          fmt::format("offload bundle: entry {} [{}, +{}) lies outside the {} bytes", i, offset, size, data.size())};
    entries.push_back(
        {std::string(reinterpret_cast<const char*>(data.data() + at + 24), length), data.subspan(offset, size)});
    at += 24 + length;
  }
  return entries;
}

/// 2: made for exactly this target, 1: generic code that runs on it, 0: other.
int suitability(std::string_view triple, Arch arch) {
  if (parse_arch(triple) == arch) return 2;
  bool cdna3 = arch == Arch::kGfx942 || arch == Arch::kGfx950;
  std::string_view generic = cdna3 ? "gfx9-4-generic" : "gfx11-generic";
  return triple.find(generic) != std::string_view::npos ? 1 : 0;
}

}  // namespace

Result<std::vector<uint8_t>> extract_code_object(std::span<const uint8_t> data, Arch arch) {
  if (has_magic(data,
                "\x7f"
                "ELF"))
    return std::vector<uint8_t>(data.begin(), data.end());
  if (has_magic(data, kCompressedMagic)) {
    auto plain = decompress(data);
    if (!plain) return plain;
    if (has_magic(*plain, kCompressedMagic)) return Error{"compressed offload bundle: holds another compressed bundle"};
    return extract_code_object(*plain, arch);
  }
  if (!has_magic(data, kPlainMagic)) return Error{"neither an ELF file nor an offload bundle"};
  auto entries = read_entries(data);
  if (!entries) return Error{entries.error()};
  const Entry* best = nullptr;
  int best_rank = 0;
  std::string present;
  for (const Entry& e : *entries) {
    present += (present.empty() ? "" : ", ") + e.triple;
    int rank = e.triple.starts_with("host") ? 0 : suitability(e.triple, arch);
    if (rank > best_rank) best = &e, best_rank = rank;
  }
  if (!best)
    return Error{fmt::format("offload bundle: no code object for {}; it holds: {}", target_info(arch).name, present)};
  return std::vector<uint8_t>(best->data.begin(), best->data.end());
}

}  // namespace crest_sim
