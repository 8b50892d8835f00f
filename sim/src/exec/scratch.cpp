// scratch_* instructions. A lane's segment is stored interleaved by dword, [dword][lane], so that a spill of one
// register is one row.
#include "exec/memory_format.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// Offsets within the segments; all lanes alike if there is no vector offset.
void compute_offsets(Wave& w, const Instruction& i, u64* out) {
  u64 base = static_cast<u64>(static_cast<int64_t>(i.offset));
  if (i.flags & kFlagSaddr) base += scalar(w, i.src[2]);
  if (i.flags & kFlagVaddr) {
    const u32* v = row(w, i.src[0]);
    for_lanes(w.lanes, [&](u32 l) { out[l] = (base + v[l]) & 0xffffffff; });
  } else {
    for_lanes(w.lanes, [&](u32 l) { out[l] = base & 0xffffffff; });
  }
}

void check_scratch(Wave& w, const Instruction& i, const u64* offset, u32 bytes, u64 mask) {
  for_active(mask, [&](int l) {
    if (offset[l] + bytes > w.workgroup->scratch_bytes) raise_scratch(w, i, l, offset[l], bytes);
  });
}

uint8_t* byte_at(u32* segment, u32 lanes, int lane, u64 offset) {
  return reinterpret_cast<uint8_t*>(segment + (offset >> 2) * lanes + static_cast<u32>(lane)) + (offset & 3);
}

template <Format F>
struct Load {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F), n = format_dwords(F);
    MemoryAccess& a = begin_access(w, MemorySpace::kScratch, AccessKind::kLoad, bytes, w.exec());
    compute_offsets(w, i, a.address[0]);
    check_scratch(w, i, a.address[0], bytes, a.lanes);
    u32* segment = w.workgroup->scratch_of(w);
    u32* d = row(w, i.dst[0]);
    u64 first = a.address[0][0];
    if (!is_small(F) && a.lanes == w.full_exec && !(i.flags & kFlagVaddr) && first % 4 == 0) {
      std::memcpy(d, segment + first / 4 * w.lanes, static_cast<size_t>(n) * w.lanes * 4);
      return;
    }
    for_active(a.lanes, [&](int l) {
      u32 t[4] = {};
      for (u32 b = 0; b < bytes; ++b)
        reinterpret_cast<uint8_t*>(t)[b] = *byte_at(segment, w.lanes, l, a.address[0][l] + b);
      if constexpr (is_small(F))
        d[l] = extend<F>(t[0], d[l]);
      else
        for (u32 k = 0; k < n; ++k) d[k * w.lanes + static_cast<u32>(l)] = t[k];
    });
  }
};

template <Format F>
struct Store {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F), n = format_dwords(F);
    MemoryAccess& a = begin_access(w, MemorySpace::kScratch, AccessKind::kStore, bytes, w.exec());
    compute_offsets(w, i, a.address[0]);
    check_scratch(w, i, a.address[0], bytes, a.lanes);
    u32* segment = w.workgroup->scratch_of(w);
    const u32* s = row(w, i.src[1]);
    u64 first = a.address[0][0];
    if (!is_small(F) && a.lanes == w.full_exec && !(i.flags & kFlagVaddr) && first % 4 == 0) {
      std::memcpy(segment + first / 4 * w.lanes, s, static_cast<size_t>(n) * w.lanes * 4);
      return;
    }
    for_active(a.lanes, [&](int l) {
      u32 t[4] = {};
      for (u32 k = 0; k < n; ++k) t[k] = s[k * w.lanes + static_cast<u32>(l)];
      if constexpr (is_small(F)) t[0] = reduce<F>(t[0]);
      for (u32 b = 0; b < bytes; ++b)
        *byte_at(segment, w.lanes, l, a.address[0][l] + b) = reinterpret_cast<const uint8_t*>(t)[b];
    });
  }
};

/// Loads into LDS at M0 + offset + lane · 4.
template <Format F>
struct LoadToLds {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F);
    MemoryAccess& a = begin_access(w, MemorySpace::kScratch, AccessKind::kLoadToLds, bytes, w.exec());
    compute_offsets(w, i, a.address[0]);
    check_scratch(w, i, a.address[0], bytes, a.lanes);
    u32* segment = w.workgroup->scratch_of(w);
    u32 base = (w.s[cell::kM0] & 0x3ffff) + static_cast<u32>(i.offset);
    for_active(a.lanes, [&](int l) {
      u64 to = base + static_cast<u64>(l) * 4;
      a.address[1][l] = to;
      if (to + 4 > w.workgroup->lds_bytes) raise_lds(w, i, l, to, 4);
      u32 value = 0;
      for (u32 b = 0; b < bytes; ++b)
        reinterpret_cast<uint8_t*>(&value)[b] = *byte_at(segment, w.lanes, l, a.address[0][l] + b);
      value = extend<F>(value, 0);
      std::memcpy(w.workgroup->lds + to, &value, 4);
    });
  }
};

}  // namespace

void register_scratch(Registry& r) {
  r.add<LoadToLds<Format::kU8>::run>("scratch_load_lds_ubyte");
  r.add<LoadToLds<Format::kI8>::run>("scratch_load_lds_sbyte");
  r.add<LoadToLds<Format::kU16>::run>("scratch_load_lds_ushort");
  r.add<LoadToLds<Format::kI16>::run>("scratch_load_lds_sshort");
  r.add<LoadToLds<Format::kB32>::run>("scratch_load_lds_dword");
  add_formats<Load, kLoadNames>(r, "scratch_");
  add_formats<Store, kStoreNames>(r, "scratch_");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
