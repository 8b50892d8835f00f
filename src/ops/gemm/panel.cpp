#include "ops/gemm/panel.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "tensor/blocks.h"
#include "tensor/half.h"

namespace crest::ops::panel {
namespace {

using namespace parts;
using tensor::DType;

constexpr int kMaxSteps = 64;

/// Unsigned quants of a chunk, unpacked: 64 bytes a step.
struct Quants {
  alignas(64) uint8_t step[kMaxSteps][kStepBytes];

  void set_row(int64_t row, const uint8_t* quants, int64_t cols) {
    for (int64_t s = 0; s < cols / 4; ++s) std::memcpy(&step[s][4 * row], quants + 4 * s, 4);
  }
  uint8_t at(int64_t row, int64_t col) const { return step[col / 4][4 * row + col % 4]; }
};

void pack_nibbles(const Quants& q, int64_t subs, uint8_t* out) {
  for (int64_t v = 0; v < 4 * subs; ++v) {
    const uint8_t* low = q.step[v / 4 * 8 + v % 4];
    const uint8_t* high = q.step[v / 4 * 8 + v % 4 + 4];
    for (int64_t i = 0; i < kStepBytes; ++i)
      out[v * kStepBytes + i] = static_cast<uint8_t>((low[i] & 15) | high[i] << 4);
  }
}

void pack_pairs(const Quants& q, int64_t subs, int shift, uint8_t* out) {
  for (int64_t v = 0; v < 2 * subs; ++v) {
    for (int64_t i = 0; i < kStepBytes; ++i) {
      int byte = 0;
      for (int j = 0; j < 4; ++j) byte |= (q.step[4 * v + j][i] >> shift & 3) << (2 * j);
      out[v * kStepBytes + i] = static_cast<uint8_t>(byte);
    }
  }
}

void pack_bits(const Quants& q, int64_t subs, int shift, uint8_t* out) {
  for (int64_t b = 0; b < subs; ++b) {
    for (int64_t i = 0; i < kStepBytes; ++i) {
      int byte = 0;
      for (int s = 0; s < 8; ++s) byte |= (q.step[8 * b + s][i] >> shift & 1) << s;
      out[b * kStepBytes + i] = static_cast<uint8_t>(byte);
    }
  }
}

int nibble(const uint8_t* planes, int64_t row, int64_t col) {
  const int64_t sub = col / 32, step = col / 4 % 8;
  const uint8_t byte = planes[(sub * 4 + step % 4) * kStepBytes + 4 * row + col % 4];
  return step < 4 ? byte & 15 : byte >> 4;
}
int pair(const uint8_t* planes, int64_t row, int64_t col) {
  const int64_t step = col / 4;
  return planes[step / 4 * kStepBytes + 4 * row + col % 4] >> (2 * (step % 4)) & 3;
}
int bit(const uint8_t* planes, int64_t row, int64_t col) {
  return planes[col / 32 * kStepBytes + 4 * row + col % 4] >> (col / 4 % 8) & 1;
}

void put16(uint8_t* at, int64_t row, uint16_t value) { std::memcpy(at + 2 * row, &value, 2); }
uint16_t get16(const uint8_t* at, int64_t row) {
  uint16_t value;
  std::memcpy(&value, at + 2 * row, 2);
  return value;
}
float half_at(const uint8_t* at, int64_t row) { return tensor::f16_to_f32(get16(at, row)); }

template <typename Block>
const Block& block_of(const uint8_t* bytes) {
  return *reinterpret_cast<const Block*>(bytes);
}

// ---- 32 columns ----------------------------------------------------------------------------------------------------

template <typename Block>
void nibbles_of(const Block& b, uint8_t* u) {
  for (int j = 0; j < 16; ++j) {
    u[j] = b.qs[j] & 15;
    u[j + 16] = b.qs[j] >> 4;
  }
}
template <typename Block>
void fifth_bits_of(const Block& b, uint8_t* u) {
  uint32_t bits;
  std::memcpy(&bits, b.qh, 4);
  for (int j = 0; j < 32; ++j) u[j] = static_cast<uint8_t>(u[j] | (bits >> j & 1) << 4);
}

template <typename Block, int64_t kScale, bool kFifth, int64_t kMin>
void pack_32(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const Block& b = block_of<Block>(rows[r]);
    uint8_t u[32];
    nibbles_of(b, u);
    if constexpr (kFifth) fifth_bits_of(b, u);
    q.set_row(r, u, 32);
    put16(chunk + kScale, r, b.d);
    if constexpr (kMin > 0) put16(chunk + kMin, r, b.m);
  }
  pack_nibbles(q, 1, chunk);
  if constexpr (kFifth) pack_bits(q, 1, 4, chunk + kNibbles32);
}

template <int64_t kScale, int kOffset>
void decode_q4_0(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kScale, row);
  for (int j = 0; j < 32; ++j) {
    int q = nibble(chunk, row, j);
    if constexpr (kOffset == 16) q |= bit(chunk + kNibbles32, row, j) << 4;
    out[j] = d * static_cast<float>(q - kOffset);
  }
}
template <int64_t kScale, int64_t kMin, bool kFifth>
void decode_q4_1(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kScale, row), m = half_at(chunk + kMin, row);
  for (int j = 0; j < 32; ++j) {
    int q = nibble(chunk, row, j);
    if constexpr (kFifth) q |= bit(chunk + kNibbles32, row, j) << 4;
    out[j] = d * static_cast<float>(q) + m;
  }
}
void decode_iq4_nl(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kQ4_0_Scale, row);
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(tensor::kIQ4Values[nibble(chunk, row, j)]);
}

void pack_q8_0(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q;
  for (int64_t s = 0; s < 8; ++s) std::memset(q.step[s], 128, kStepBytes);
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<tensor::BlockQ8_0>(rows[r]);
    uint8_t u[32];
    for (int j = 0; j < 32; ++j) u[j] = static_cast<uint8_t>(b.qs[j] + 128);
    q.set_row(r, u, 32);
    put16(chunk + kQ8_0_Scale, r, b.d);
  }
  std::memcpy(chunk, q.step, 8 * kStepBytes);
}
void decode_q8_0(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kQ8_0_Scale, row);
  for (int64_t j = 0; j < 32; ++j) out[j] = d * static_cast<float>(chunk[j / 4 * kStepBytes + 4 * row + j % 4] - 128);
}

void pack_mxfp4(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<tensor::BlockMXFP4>(rows[r]);
    uint8_t u[32];
    nibbles_of(b, u);
    q.set_row(r, u, 32);
    chunk[kMxfp4_Scale + r] = b.e;
  }
  pack_nibbles(q, 1, chunk);
}
void decode_mxfp4(const uint8_t* chunk, int64_t row, float* out) {
  const int e = chunk[kMxfp4_Scale + row];
  // Half of 2^(e - 127), because the table holds doubled values; subnormal for e < 2.
  const float d = std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(tensor::kE2M1Doubled[nibble(chunk, row, j)]);
}

// ---- 128 columns ---------------------------------------------------------------------------------------------------

void pack_paro(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<ParoBlock>(rows[r]);
    uint8_t u[128];
    for (int j = 0; j < 128; ++j) u[j] = b.quants[j / 2] >> (4 * (j % 2)) & 15;
    q.set_row(r, u, 128);
    put16(chunk + kParo_Scale, r, b.scale);
    chunk[kParo_Zero + r] = b.zero;
  }
  pack_nibbles(q, 4, chunk);
}
void decode_paro(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kParo_Scale, row);
  for (int j = 0; j < 128; ++j) out[j] = d * static_cast<float>(nibble(chunk, row, j) - chunk[kParo_Zero + row]);
}

// ---- 256 columns ---------------------------------------------------------------------------------------------------

template <typename Block>
void k_nibbles_of(const Block& b, uint8_t* u) {
  for (int c = 0; c < 4; ++c) {
    for (int l = 0; l < 32; ++l) {
      u[64 * c + l] = b.qs[32 * c + l] & 15;
      u[64 * c + 32 + l] = b.qs[32 * c + l] >> 4;
    }
  }
}

template <typename Block, bool kFifth>
void pack_q4_k(const uint8_t* const* rows, uint8_t* chunk) {
  constexpr int64_t scales = kFifth ? kQ5_K_Scales : kQ4_K_Scales, mins = kFifth ? kQ5_K_Mins : kQ4_K_Mins;
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const Block& b = block_of<Block>(rows[r]);
    uint8_t u[256];
    k_nibbles_of(b, u);
    if constexpr (kFifth) {
      for (int j = 0; j < 256; ++j) u[j] = static_cast<uint8_t>(u[j] | (b.qh[j % 32] >> (j / 32) & 1) << 4);
    }
    q.set_row(r, u, 256);
    for (int j = 0; j < 8; ++j) {
      const auto pair = tensor::unpack_scale_min(b.scales, j);
      chunk[scales + 16 * j + r] = pair.scale;
      chunk[mins + 16 * j + r] = pair.minimum;
    }
    put16(chunk + (kFifth ? kQ5_K_Scale : kQ4_K_Scale), r, b.d);
    put16(chunk + (kFifth ? kQ5_K_Min : kQ4_K_Min), r, b.dmin);
  }
  pack_nibbles(q, 8, chunk);
  if constexpr (kFifth) pack_bits(q, 8, 4, chunk + kQ5_K_Bits);
}
template <bool kFifth>
void decode_q4_k(const uint8_t* chunk, int64_t row, float* out) {
  constexpr int64_t scales = kFifth ? kQ5_K_Scales : kQ4_K_Scales, mins = kFifth ? kQ5_K_Mins : kQ4_K_Mins;
  const float d = half_at(chunk + (kFifth ? kQ5_K_Scale : kQ4_K_Scale), row);
  const float dmin = half_at(chunk + (kFifth ? kQ5_K_Min : kQ4_K_Min), row);
  for (int j = 0; j < 256; ++j) {
    int q = nibble(chunk, row, j);
    if constexpr (kFifth) q |= bit(chunk + kQ5_K_Bits, row, j) << 4;
    const float scale = d * static_cast<float>(chunk[scales + j / 32 * 16 + row]);
    const float minimum = dmin * static_cast<float>(chunk[mins + j / 32 * 16 + row]);
    out[j] = scale * static_cast<float>(q) - minimum;
  }
}

void pack_q6_k(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<tensor::BlockQ6_K>(rows[r]);
    uint8_t u[256];
    for (int n = 0; n < 2; ++n) {
      for (int k = 0; k < 4; ++k) {
        for (int l = 0; l < 32; ++l) {
          const int low = b.ql[64 * n + l + 32 * (k & 1)] >> (k < 2 ? 0 : 4) & 15;
          u[128 * n + 32 * k + l] = static_cast<uint8_t>(low | (b.qh[32 * n + l] >> (2 * k) & 3) << 4);
        }
      }
    }
    q.set_row(r, u, 256);
    for (int j = 0; j < 16; ++j) chunk[kQ6_K_Scales + 16 * j + r] = static_cast<uint8_t>(b.scales[j]);
    put16(chunk + kQ6_K_Scale, r, b.d);
  }
  pack_nibbles(q, 8, chunk);
  pack_pairs(q, 8, 4, chunk + kQ6_K_Pairs);
}
void decode_q6_k(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kQ6_K_Scale, row);
  for (int j = 0; j < 256; ++j) {
    const int q = nibble(chunk, row, j) | pair(chunk + kQ6_K_Pairs, row, j) << 4;
    const auto scale = static_cast<int8_t>(chunk[kQ6_K_Scales + j / 16 * 16 + row]);
    out[j] = d * static_cast<float>(scale) * static_cast<float>(q - 32);
  }
}

void pack_q3_k(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<tensor::BlockQ3_K>(rows[r]);
    uint8_t u[256];
    for (int j = 0; j < 256; ++j) {
      const int low = b.qs[32 * (j / 128) + j % 32] >> (2 * (j / 32 % 4)) & 3;
      u[j] = static_cast<uint8_t>(low | (b.hmask[j % 32] >> (j / 32) & 1) << 2);
    }
    q.set_row(r, u, 256);
    for (int j = 0; j < 16; ++j)
      chunk[kQ3_K_Scales + 16 * j + r] = static_cast<uint8_t>(tensor::unpack_q3_scale(b.scales, j) - 32);
    put16(chunk + kQ3_K_Scale, r, b.d);
  }
  pack_pairs(q, 8, 0, chunk);
  pack_bits(q, 8, 2, chunk + kQ3_K_Bits);
}
void decode_q3_k(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kQ3_K_Scale, row);
  for (int j = 0; j < 256; ++j) {
    const int q = pair(chunk, row, j) | bit(chunk + kQ3_K_Bits, row, j) << 2;
    const auto scale = static_cast<int8_t>(chunk[kQ3_K_Scales + j / 16 * 16 + row]);
    out[j] = d * static_cast<float>(scale) * static_cast<float>(q - 4);
  }
}

void pack_q2_k(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<tensor::BlockQ2_K>(rows[r]);
    uint8_t u[256];
    for (int j = 0; j < 256; ++j) u[j] = b.qs[32 * (j / 128) + j % 32] >> (2 * (j / 32 % 4)) & 3;
    q.set_row(r, u, 256);
    for (int j = 0; j < 16; ++j) chunk[kQ2_K_Scales + 16 * j + r] = b.scales[j];
    put16(chunk + kQ2_K_Scale, r, b.d);
    put16(chunk + kQ2_K_Min, r, b.dmin);
  }
  pack_pairs(q, 8, 0, chunk);
}
void decode_q2_k(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kQ2_K_Scale, row), dmin = half_at(chunk + kQ2_K_Min, row);
  for (int j = 0; j < 256; ++j) {
    const uint8_t s = chunk[kQ2_K_Scales + j / 16 * 16 + row];
    const float scale = d * static_cast<float>(s & 15), minimum = dmin * static_cast<float>(s >> 4);
    out[j] = scale * static_cast<float>(pair(chunk, row, j)) - minimum;
  }
}

void pack_iq4_xs(const uint8_t* const* rows, uint8_t* chunk) {
  Quants q{};
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] == nullptr) continue;
    const auto& b = block_of<tensor::BlockIQ4_XS>(rows[r]);
    uint8_t u[256];
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 16; ++j) {
        u[32 * i + j] = b.qs[16 * i + j] & 15;
        u[32 * i + 16 + j] = b.qs[16 * i + j] >> 4;
      }
      const int low = b.scales_l[i / 2] >> (4 * (i % 2)) & 15, high = b.scales_h >> (2 * i) & 3;
      chunk[kIQ4_XS_Scales + 16 * i + r] = static_cast<uint8_t>((low | high << 4) - 32);
    }
    q.set_row(r, u, 256);
    put16(chunk + kIQ4_XS_Scale, r, b.d);
  }
  pack_nibbles(q, 8, chunk);
}
void decode_iq4_xs(const uint8_t* chunk, int64_t row, float* out) {
  const float d = half_at(chunk + kIQ4_XS_Scale, row);
  for (int j = 0; j < 256; ++j) {
    const auto scale = static_cast<int8_t>(chunk[kIQ4_XS_Scales + j / 32 * 16 + row]);
    out[j] = d * static_cast<float>(scale) * static_cast<float>(tensor::kIQ4Values[nibble(chunk, row, j)]);
  }
}

// ---- plain types ---------------------------------------------------------------------------------------------------

template <int64_t kBytes>
void pack_plain(const uint8_t* const* rows, uint8_t* chunk) {
  for (int64_t r = 0; r < kRows; ++r) {
    if (rows[r] != nullptr) std::memcpy(chunk + kBytes * r, rows[r], kBytes);
  }
}
void decode_f32(const uint8_t* chunk, int64_t row, float* out) { std::memcpy(out, chunk + 4 * row, 4); }
void decode_f16(const uint8_t* chunk, int64_t row, float* out) { *out = half_at(chunk, row); }
void decode_bf16(const uint8_t* chunk, int64_t row, float* out) { *out = tensor::bf16_to_f32(get16(chunk, row)); }

constexpr Format kFormats[] = {
    {DType::kF32, 1, 64, pack_plain<4>, decode_f32},
    {DType::kF16, 1, 32, pack_plain<2>, decode_f16},
    {DType::kBF16, 1, 32, pack_plain<2>, decode_bf16},
    {DType::kQ4_0, 32, kQ4_0_Bytes, pack_32<tensor::BlockQ4_0, kQ4_0_Scale, false, 0>, decode_q4_0<kQ4_0_Scale, 8>},
    {DType::kQ4_1, 32, kQ4_1_Bytes, pack_32<tensor::BlockQ4_1, kQ4_1_Scale, false, kQ4_1_Min>,
     decode_q4_1<kQ4_1_Scale, kQ4_1_Min, false>},
    {DType::kQ5_0, 32, kQ5_0_Bytes, pack_32<tensor::BlockQ5_0, kQ5_0_Scale, true, 0>, decode_q4_0<kQ5_0_Scale, 16>},
    {DType::kQ5_1, 32, kQ5_1_Bytes, pack_32<tensor::BlockQ5_1, kQ5_1_Scale, true, kQ5_1_Min>,
     decode_q4_1<kQ5_1_Scale, kQ5_1_Min, true>},
    {DType::kQ8_0, 32, kQ8_0_Bytes, pack_q8_0, decode_q8_0},
    {DType::kIQ4_NL, 32, kQ4_0_Bytes, pack_32<tensor::BlockIQ4_NL, kQ4_0_Scale, false, 0>, decode_iq4_nl},
    {DType::kMXFP4, 32, kMxfp4_Bytes, pack_mxfp4, decode_mxfp4},
    {DType::kParoW4, 128, kParo_Bytes, pack_paro, decode_paro},
    {DType::kQ4_K, 256, kQ4_K_Bytes, pack_q4_k<tensor::BlockQ4_K, false>, decode_q4_k<false>},
    {DType::kQ5_K, 256, kQ5_K_Bytes, pack_q4_k<tensor::BlockQ5_K, true>, decode_q4_k<true>},
    {DType::kQ6_K, 256, kQ6_K_Bytes, pack_q6_k, decode_q6_k},
    {DType::kQ3_K, 256, kQ3_K_Bytes, pack_q3_k, decode_q3_k},
    {DType::kQ2_K, 256, kQ2_K_Bytes, pack_q2_k, decode_q2_k},
    {DType::kIQ4_XS, 256, kIQ4_XS_Bytes, pack_iq4_xs, decode_iq4_xs},
};

int64_t block_bytes(DType dtype) {
  return dtype == DType::kParoW4 ? static_cast<int64_t>(sizeof(ParoBlock)) : tensor::info(dtype).block_bytes;
}

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kChunkBytes = int64_t{64} << 20;

/// Zeroed memory that begins at a huge page.
struct Chunk {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  int64_t used = 0;
  ~Chunk() {
    if (data != nullptr) ::munmap(data, static_cast<size_t>(bytes));
  }

  Status map(int64_t wanted) {
    const int64_t size = (wanted + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = ::mmap(nullptr, static_cast<size_t>(size + kHugePage), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return make_error(ErrorCode::kOutOfMemory, "no memory for {} bytes of repacked weights", wanted);
    auto* first = static_cast<std::byte*>(memory);
    const int64_t before =
        (kHugePage - static_cast<int64_t>(reinterpret_cast<uintptr_t>(first)) % kHugePage) % kHugePage;
    if (before > 0) ::munmap(first, static_cast<size_t>(before));
    if (before < kHugePage) ::munmap(first + before + size, static_cast<size_t>(kHugePage - before));
    data = first + before;
    bytes = size;
    ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    return {};
  }
};

/// Zeroed memory for one weight. NOTE: small weights share chunks of huge pages: walking through all of them once a
/// token would otherwise miss the TLB at every other panel, which halved the speed of decoding in a virtual machine.
Result<std::shared_ptr<void>> allocate_weights(int64_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Chunk> open;  // lives as long as the weights in it
  const std::lock_guard lock(mutex);
  const int64_t size = (bytes + 63) / 64 * 64;
  std::shared_ptr<Chunk> chunk = open.lock();
  if (chunk == nullptr || chunk->bytes - chunk->used < size) {
    chunk = std::make_shared<Chunk>();
    CREST_RETURN_IF_ERROR(chunk->map(size > kChunkBytes / 4 ? size : kChunkBytes));
    if (size <= kChunkBytes / 4) open = chunk;
  }
  std::byte* memory = chunk->data + chunk->used;
  chunk->used += size;
  return std::shared_ptr<void>(std::move(chunk), memory);
}

}  // namespace

const Format* find_format(DType dtype) {
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

Result<Weight> pack(const Weight& weight, core::ThreadPool& pool) {
  const Format* format = find_format(weight.dtype);
  CREST_CHECK(format != nullptr && weight.layout == WeightLayout::kRows && weight.cols % format->chunk_cols == 0);
  const int64_t panels = (weight.rows + kRows - 1) / kRows, chunks = weight.cols / format->chunk_cols;
  const int64_t panel_bytes = chunks * format->chunk_bytes, total = weight.experts * panels * panel_bytes;
  CREST_TRY(std::shared_ptr<void> owner, allocate_weights(total));
  auto* memory = static_cast<uint8_t*>(owner.get());
  pool.parallel_dynamic(weight.experts * panels, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t expert = p / panels, first = p % panels * kRows;
      uint8_t* chunk = memory + p * panel_bytes;
      const int64_t step = block_bytes(weight.dtype) * format->chunk_cols / tensor::info(weight.dtype).block_size;
      const uint8_t* rows[kRows];
      for (int64_t c = 0; c < chunks; ++c, chunk += format->chunk_bytes) {
        for (int64_t r = 0; r < kRows; ++r) {
          rows[r] = first + r < weight.rows ? reinterpret_cast<const uint8_t*>(weight.row(first + r, expert)) + c * step
                                            : nullptr;
        }
        format->pack(rows, chunk);
      }
    }
  });
  Weight packed = weight;
  packed.layout = WeightLayout::kPanels;
  packed.data = reinterpret_cast<const std::byte*>(memory);
  packed.row_bytes = panel_bytes / kRows;
  packed.expert_bytes = panels * panel_bytes;
  packed.owner = std::move(owner);
  return packed;
}

void decode_row(const Weight& weight, int64_t expert, int64_t row, float* out) {
  const Format* format = find_format(weight.dtype);
  const int64_t chunks = weight.cols / format->chunk_cols;
  const auto* chunk = reinterpret_cast<const uint8_t*>(weight.data) + expert * weight.expert_bytes +
                      row / kRows * chunks * format->chunk_bytes;
  for (int64_t c = 0; c < chunks; ++c)
    format->decode(chunk + c * format->chunk_bytes, row % kRows, out + c * format->chunk_cols);
}

}  // namespace crest::ops::panel
