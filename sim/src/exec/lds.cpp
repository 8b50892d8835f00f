// ds_* loads, stores and lane exchanges.
#include <algorithm>

#include "exec/memory_fast.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// Byte offsets of all lanes (32-bit wrap-around, as the hardware adds).
void compute_offsets(Wave& w, const Instruction& i, u32 offset, u64* out) {
  const u32* a = row(w, i.src[0]);
  for_lanes(w.lanes, [&](u32 l) { out[l] = a[l] + offset; });
}

u64 lds_base(const Wave& w) { return reinterpret_cast<u64>(w.workgroup->lds); }

void check_lds(Wave& w, const Instruction& i, const u64* offset, u32 bytes, u64 mask) {
  u64 size = w.workgroup->lds_bytes;
  if (mask == w.full_exec && size >= bytes) {
    u64 bad = 0, limit = size - bytes;
    for (u32 base = 0; base < w.lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
      for (u32 l = 0; l < 32; ++l) bad |= static_cast<u64>(offset[base + l] > limit);
    }
    if (!bad) return;
  }
  for_active(mask, [&](int l) {
    if (offset[l] + bytes > size) raise_lds(w, i, l, offset[l], bytes);
  });
}

/// The usual case: all lanes, and all of them inside.
bool find_fast(Wave& w, const Instruction& i, u32 offset, u32 bytes, FastAddress& out) {
  out.offset = row(w, i.src[0]);
  out.base = lds_base(w) + offset;
  return may_go_fast(w) && u64(range_of(out.offset, w.lanes).high) + offset + bytes <= w.workgroup->lds_bytes;
}

template <Format F>
struct Load {
  static void run(Wave& w, const Instruction& i) {
    FastAddress fast;
    if (find_fast(w, i, static_cast<u32>(i.offset), format_bytes(F), fast)) [[likely]]
      return load_fast<F>(w, row(w, i.dst[0]), fast.base, fast.offset);
    MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kLoad, format_bytes(F), w.exec());
    compute_offsets(w, i, static_cast<u32>(i.offset), a.address[0]);
    check_lds(w, i, a.address[0], format_bytes(F), a.lanes);
    load_rows<F>(w, row(w, i.dst[0]), lds_base(w), a.address[0], a.lanes);
  }
};

template <Format F>
struct Store {
  static void run(Wave& w, const Instruction& i) {
    FastAddress fast;
    if (find_fast(w, i, static_cast<u32>(i.offset), format_bytes(F), fast)) [[likely]]
      return store_fast<F>(w, row(w, i.src[1]), fast.base, fast.offset);
    MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kStore, format_bytes(F), w.exec());
    compute_offsets(w, i, static_cast<u32>(i.offset), a.address[0]);
    check_lds(w, i, a.address[0], format_bytes(F), a.lanes);
    store_rows<F>(w, row(w, i.src[1]), lds_base(w), a.address[0], a.lanes);
  }
};

/// Paired access: offset0 and offset1 count elements (64 elements for the st64 forms).
template <Format F, u32 Stride>
void load_pair(Wave& w, const Instruction& i) {
  constexpr u32 bytes = format_bytes(F), unit = bytes * Stride;
  u32* d = row(w, i.dst[0]);
  FastAddress fast;
  u32 last = static_cast<u32>(std::max(i.offset, i.offset2)) * unit;
  bool overwrites = i.src[0].reg >= i.dst[0].reg && i.src[0].reg < i.dst[0].reg + format_dwords(F);
  if (!overwrites && find_fast(w, i, last, bytes, fast)) [[likely]] {
    load_fast<F>(w, d, lds_base(w) + static_cast<u32>(i.offset) * unit, fast.offset);
    load_fast<F>(w, d + format_dwords(F) * w.lanes, lds_base(w) + static_cast<u32>(i.offset2) * unit, fast.offset);
    return;
  }
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kLoad, bytes, w.exec());
  a.parts = 2;
  compute_offsets(w, i, static_cast<u32>(i.offset) * unit, a.address[0]);
  compute_offsets(w, i, static_cast<u32>(i.offset2) * unit, a.address[1]);
  check_lds(w, i, a.address[0], bytes, a.lanes);
  check_lds(w, i, a.address[1], bytes, a.lanes);
  load_rows<F>(w, d, lds_base(w), a.address[0], a.lanes);
  load_rows<F>(w, d + format_dwords(F) * w.lanes, lds_base(w), a.address[1], a.lanes);
}

template <Format F, u32 Stride>
void store_pair(Wave& w, const Instruction& i) {
  constexpr u32 bytes = format_bytes(F), unit = bytes * Stride;
  FastAddress fast;
  if (find_fast(w, i, static_cast<u32>(std::max(i.offset, i.offset2)) * unit, bytes, fast)) [[likely]] {
    store_fast<F>(w, row(w, i.src[1]), lds_base(w) + static_cast<u32>(i.offset) * unit, fast.offset);
    store_fast<F>(w, row(w, i.src[2]), lds_base(w) + static_cast<u32>(i.offset2) * unit, fast.offset);
    return;
  }
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kStore, bytes, w.exec());
  a.parts = 2;
  compute_offsets(w, i, static_cast<u32>(i.offset) * unit, a.address[0]);
  compute_offsets(w, i, static_cast<u32>(i.offset2) * unit, a.address[1]);
  check_lds(w, i, a.address[0], bytes, a.lanes);
  check_lds(w, i, a.address[1], bytes, a.lanes);
  store_rows<F>(w, row(w, i.src[1]), lds_base(w), a.address[0], a.lanes);
  store_rows<F>(w, row(w, i.src[2]), lds_base(w), a.address[1], a.lanes);
}

/// Address = M0 + offset + lane · 4.
void load_by_lane(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kLoad, 4, w.exec());
  u32 base = (w.s[cell::kM0] & 0xffff) + static_cast<u32>(i.offset);
  for (u32 l = 0; l < w.lanes; ++l) a.address[0][l] = base + l * 4;
  check_lds(w, i, a.address[0], 4, a.lanes);
  load_rows<Format::kB32>(w, row(w, i.dst[0]), lds_base(w), a.address[0], a.lanes);
}
void store_by_lane(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kStore, 4, w.exec());
  u32 base = (w.s[cell::kM0] & 0xffff) + static_cast<u32>(i.offset);
  for (u32 l = 0; l < w.lanes; ++l) a.address[0][l] = base + l * 4;
  check_lds(w, i, a.address[0], 4, a.lanes);
  store_rows<Format::kB32>(w, row(w, i.src[0]), lds_base(w), a.address[0], a.lanes);
}

/// Lane l reads lane (address / 4) mod lanes; inactive sources give 0.
void bpermute(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  const u32 *a = row(w, i.src[0]), *s = row(w, i.src[1]);
  alignas(64) u32 r[64];
  u32 offset = static_cast<u32>(i.offset);
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 from = ((a[l] + offset) >> 2) & (w.lanes - 1);
    r[l] = (exec >> from) & 1 ? s[from] : 0;
  }
  merge_row(w, row(w, i.dst[0]), r, exec);
}

/// Lane l writes lane (address / 4) mod lanes; the highest writer wins, lanes without a writer get 0.
void permute(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  const u32 *a = row(w, i.src[0]), *s = row(w, i.src[1]);
  alignas(64) u32 r[64] = {};
  u32 offset = static_cast<u32>(i.offset);
  for_active(exec, [&](int l) { r[((a[l] + offset) >> 2) & (w.lanes - 1)] = s[l]; });
  merge_row(w, row(w, i.dst[0]), r, exec);
}

u32 reverse_five_bits(u32 x) { return (x & 1) << 4 | (x & 2) << 2 | (x & 4) | (x & 8) >> 2 | (x & 16) >> 4; }

/// Patterns from 0xe000 on reorder for a Fourier transform of 32 lanes: bit-reversed, the bits of the mask kept. 0x8000
/// quad permutation, 0xc000 rotation of 32 lanes, below 0x8000 and/or/xor masks.
u32 swizzle_source(u32 pattern, u32 lane) {
  if (pattern >= 0xe000) {
    u32 keep = pattern & 31;
    return (lane & 32) | reverse_five_bits(lane & 31) >> std::popcount(keep) | (lane & keep);
  }
  if (pattern >= 0xc000) {
    u32 amount = (pattern >> 5) & 31, keep = pattern & 31, i = lane & 31;
    u32 moved = pattern & 0x400 ? i - amount : i + amount;
    return (lane & 32) | (((i & keep) | (moved & ~keep)) & 31);
  }
  if (pattern & 0x8000) return (lane & ~3u) | ((pattern >> ((lane & 3) * 2)) & 3);
  u32 keep = pattern & 31, set = (pattern >> 5) & 31, flip = (pattern >> 10) & 31;
  return (lane & 32) | ((((lane & 31) & keep) | set) ^ flip);
}

void swizzle(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  const u32* s = row(w, i.src[0]);
  u32 pattern = static_cast<u32>(i.offset);
  alignas(64) u32 r[64];
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 from = swizzle_source(pattern, l);
    r[l] = (exec >> from) & 1 ? s[from] : 0;
  }
  merge_row(w, row(w, i.dst[0]), r, exec);
}

/// gfx950: transposing loads. Sixteen lanes read a matrix of `count` rows by sixteen columns, `count` columns per lane;
/// each lane gets one column.
template <u32 Bits>
void load_transposed(Wave& w, const Instruction& i) {
  constexpr u32 row_bytes = Bits == 6 ? 12 : 8, count = Bits == 6 ? 16 : 64 / Bits;
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kLoad, row_bytes, w.exec());
  compute_offsets(w, i, static_cast<u32>(i.offset), a.address[0]);
  check_lds(w, i, a.address[0], row_bytes, a.lanes);
  u32* d = row(w, i.dst[0]);
  alignas(64) u32 out[3][64] = {};
  auto element = [&](u32 lane, u32 k) -> u32 {
    u32 value = 0;
    for (u32 b = 0; b < Bits; ++b) {
      u32 bit = k * Bits + b;
      value |= static_cast<u32>((w.workgroup->lds[a.address[0][lane] + bit / 8] >> (bit % 8)) & 1) << b;
    }
    return value;
  };
  for_active(a.lanes, [&](int lane) {
    u32 l = static_cast<u32>(lane), group = l & ~15u, c = l & 15;
    for (u32 k = 0; k < count; ++k) {
      u32 source = group + k * (16 / count) + c / count;
      u32 value = element(source, c % count);
      u32 bit = k * Bits;
      out[bit / 32][l] |= value << (bit % 32);
      if (bit % 32 + Bits > 32) out[bit / 32 + 1][l] |= value >> (32 - bit % 32);
    }
  });
  for (u32 k = 0; k < row_bytes / 4; ++k) merge_row(w, d + k * w.lanes, out[k], a.lanes);
}

void register_plain(Registry& r) {
  auto load = [&]<Format F>(std::integral_constant<Format, F>, const char* gfx9, const char* gfx11) {
    r.add<Load<F>::run>(gfx9);
    r.add<Load<F>::run>(gfx11);
  };
  auto store = [&]<Format F>(std::integral_constant<Format, F>, const char* gfx9, const char* gfx11) {
    r.add<Store<F>::run>(gfx9);
    r.add<Store<F>::run>(gfx11);
  };
#define CREST_SIM_F(name) \
  std::integral_constant<Format, Format::name> {}
  load(CREST_SIM_F(kU8), "ds_read_u8", "ds_load_u8");
  load(CREST_SIM_F(kI8), "ds_read_i8", "ds_load_i8");
  load(CREST_SIM_F(kU16), "ds_read_u16", "ds_load_u16");
  load(CREST_SIM_F(kI16), "ds_read_i16", "ds_load_i16");
  load(CREST_SIM_F(kD16U8), "ds_read_u8_d16", "ds_load_u8_d16");
  load(CREST_SIM_F(kD16HiU8), "ds_read_u8_d16_hi", "ds_load_u8_d16_hi");
  load(CREST_SIM_F(kD16I8), "ds_read_i8_d16", "ds_load_i8_d16");
  load(CREST_SIM_F(kD16HiI8), "ds_read_i8_d16_hi", "ds_load_i8_d16_hi");
  load(CREST_SIM_F(kD16), "ds_read_u16_d16", "ds_load_u16_d16");
  load(CREST_SIM_F(kD16Hi), "ds_read_u16_d16_hi", "ds_load_u16_d16_hi");
  load(CREST_SIM_F(kB32), "ds_read_b32", "ds_load_b32");
  load(CREST_SIM_F(kB64), "ds_read_b64", "ds_load_b64");
  load(CREST_SIM_F(kB96), "ds_read_b96", "ds_load_b96");
  load(CREST_SIM_F(kB128), "ds_read_b128", "ds_load_b128");
  store(CREST_SIM_F(kU8), "ds_write_b8", "ds_store_b8");
  store(CREST_SIM_F(kD16HiU8), "ds_write_b8_d16_hi", "ds_store_b8_d16_hi");
  store(CREST_SIM_F(kU16), "ds_write_b16", "ds_store_b16");
  store(CREST_SIM_F(kD16Hi), "ds_write_b16_d16_hi", "ds_store_b16_d16_hi");
  store(CREST_SIM_F(kB32), "ds_write_b32", "ds_store_b32");
  store(CREST_SIM_F(kB64), "ds_write_b64", "ds_store_b64");
  store(CREST_SIM_F(kB96), "ds_write_b96", "ds_store_b96");
  store(CREST_SIM_F(kB128), "ds_write_b128", "ds_store_b128");
#undef CREST_SIM_F
}

void register_pairs(Registry& r) {
  r.add<load_pair<Format::kB32, 1>>("ds_read2_b32");
  r.add<load_pair<Format::kB64, 1>>("ds_read2_b64");
  r.add<load_pair<Format::kB32, 64>>("ds_read2st64_b32");
  r.add<load_pair<Format::kB64, 64>>("ds_read2st64_b64");
  r.add<store_pair<Format::kB32, 1>>("ds_write2_b32");
  r.add<store_pair<Format::kB64, 1>>("ds_write2_b64");
  r.add<store_pair<Format::kB32, 64>>("ds_write2st64_b32");
  r.add<store_pair<Format::kB64, 64>>("ds_write2st64_b64");
  for (auto width : {"_b32", "_b64"}) {
    r.alias(std::string("ds_load_2addr") + width, std::string("ds_read2") + width);
    r.alias(std::string("ds_load_2addr_stride64") + width, std::string("ds_read2st64") + width);
    r.alias(std::string("ds_store_2addr") + width, std::string("ds_write2") + width);
    r.alias(std::string("ds_store_2addr_stride64") + width, std::string("ds_write2st64") + width);
  }
}

}  // namespace

void register_lds(Registry& r) {
  register_plain(r);
  register_pairs(r);
  r.add<load_by_lane>("ds_read_addtid_b32");
  r.add<store_by_lane>("ds_write_addtid_b32");
  r.alias("ds_load_addtid_b32", "ds_read_addtid_b32");
  r.alias("ds_store_addtid_b32", "ds_write_addtid_b32");
  r.add<bpermute>("ds_bpermute_b32");
  r.add<permute>("ds_permute_b32");
  r.add<swizzle>("ds_swizzle_b32");
  r.add<load_transposed<16>>("ds_read_b64_tr_b16", Fidelity::kModelled);
  r.add<load_transposed<8>>("ds_read_b64_tr_b8", Fidelity::kModelled);
  r.add<load_transposed<4>>("ds_read_b64_tr_b4", Fidelity::kModelled);
  r.add<load_transposed<6>>("ds_read_b96_tr_b6", Fidelity::kModelled);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
