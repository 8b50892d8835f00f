// global_* and flat_* memory instructions.
#include "exec/atomic_ops.h"
#include "exec/memory_fast.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// Upper halves of the aperture addresses (see the cells kSharedBase and kPrivateBase).
constexpr u64 kSharedAperture = 1, kPrivateAperture = 2;

/// address = vaddr (64-bit), or saddr + vaddr (32-bit, unsigned), plus the signed offset.
void compute_addresses(Wave& w, const Instruction& i, u64* out) {
  u64 base = static_cast<u64>(static_cast<int64_t>(i.offset));
  if (i.flags & kFlagSaddr) {
    base += scalar64(w, i.src[2]);
    const u32* lo = row(w, i.src[0]);
    for_lanes(w.lanes, [&](u32 l) { out[l] = base + lo[l]; });
  } else {
    const u32* lo = row(w, i.src[0]);
    const u32* hi = lo + w.lanes;
    for_lanes(w.lanes, [&](u32 l) { out[l] = base + (static_cast<u64>(hi[l]) << 32 | lo[l]); });
  }
}

/// Loads that see other workgroups' stores (agent scope: sc1 on CDNA, glc on RDNA3) are how kernels wait for each
/// other.
void await_coherence(Wave& w, const Instruction& i) {
  if (!(i.cache & (w.workgroup->launch->target->cdna ? kCacheSc1 : kCacheSc0))) return;
  ++w.workgroup->yields;
  wait_for_turn(w);
}

/// The usual case: one base for all lanes, everything in one allocation.
bool find_fast(Wave& w, const Instruction& i, u32 bytes, FastAddress& out) {
  if (!may_go_fast(w) || (i.cache & (kCacheSc1 | kCacheSc0))) return false;
  out.offset = row(w, i.src[0]);
  out.base = static_cast<u64>(static_cast<int64_t>(i.offset));
  if (i.flags & kFlagSaddr) {
    out.base += scalar64(w, i.src[2]);
  } else {
    const u32* high = out.offset + w.lanes;
    if (!is_uniform(high, w.lanes)) return false;
    out.base += static_cast<u64>(high[0]) << 32;
  }
  return is_one_window(w, i, out, bytes);
}

template <Format F>
struct Load {
  static void run(Wave& w, const Instruction& i) {
    FastAddress fast;
    if (find_fast(w, i, format_bytes(F), fast)) [[likely]]
      return load_fast<F>(w, row(w, i.dst[0]), fast.base, fast.offset);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoad, format_bytes(F), w.exec());
    compute_addresses(w, i, a.address[0]);
    check_global(w, i, a.address[0], format_bytes(F), a.lanes);
    if (i.cache & (kCacheSc1 | kCacheSc0)) [[unlikely]]
      await_coherence(w, i);
    load_rows<F>(w, row(w, i.dst[0]), 0, a.address[0], a.lanes);
  }
};

template <Format F>
struct Store {
  static void run(Wave& w, const Instruction& i) {
    FastAddress fast;
    if (find_fast(w, i, format_bytes(F), fast)) [[likely]]
      return store_fast<F>(w, row(w, i.src[1]), fast.base, fast.offset);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kStore, format_bytes(F), w.exec());
    compute_addresses(w, i, a.address[0]);
    check_global(w, i, a.address[0], format_bytes(F), a.lanes);
    store_rows<F>(w, row(w, i.src[1]), 0, a.address[0], a.lanes);
  }
};

void check_aligned(Wave& w, const Instruction& i, const u64* address, u32 bytes, u64 mask) {
  for_active(mask, [&](int l) {
    if (address[l] & (bytes - 1))
      raise_fault(w, i, FaultKind::kGlobalAddress, l, address[l],
                  "address of an atomic operation is not aligned to its size");
  });
}

template <Atomic Op, class T>
struct AtomicAccess {
  static void run(Wave& w, const Instruction& i) {
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kAtomic, sizeof(T), w.exec());
    compute_addresses(w, i, a.address[0]);
    check_global(w, i, a.address[0], sizeof(T), a.lanes);
    check_aligned(w, i, a.address[0], sizeof(T), a.lanes);
    bool returns = i.flags & kFlagReturn;
    if (order_matters(Op) || returns) {
      ++w.workgroup->yields;
      wait_for_turn(w);
    }
    const u32* data = row(w, i.src[1]);
    u32* d = returns ? row(w, i.dst[0]) : nullptr;
    for_active(a.lanes, [&](int l) {
      T x = read_lane<T>(data, w.lanes, l);
      T y = Op == Atomic::kCmpSwap || Op == Atomic::kCmpSwapF ? read_lane<T>(data + sizeof(T) / 4 * w.lanes, w.lanes, l)
                                                              : T(0);
      T old = host_atomic<Op, T>(reinterpret_cast<uint8_t*>(a.address[0][l]), x, y);
      if (d) write_lane<T>(d, w.lanes, l, old);
    });
  }
};

/// Address = scalar base (or 0) + offset + lane · 4; `base` is the operand that holds it.
void address_by_lane(Wave& w, const Instruction& i, const Operand& base, u64* out) {
  u64 first = static_cast<u64>(static_cast<int64_t>(i.offset)) + (base.is_scalar() ? scalar64(w, base) : 0);
  for (u32 l = 0; l < w.lanes; ++l) out[l] = first + l * 4;
}
void load_by_lane(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoad, 4, w.exec());
  address_by_lane(w, i, i.src[0], a.address[0]);
  check_global(w, i, a.address[0], 4, a.lanes);
  load_rows<Format::kB32>(w, row(w, i.dst[0]), 0, a.address[0], a.lanes);
}
void store_by_lane(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kStore, 4, w.exec());
  address_by_lane(w, i, i.src[1], a.address[0]);
  check_global(w, i, a.address[0], 4, a.lanes);
  store_rows<Format::kB32>(w, row(w, i.src[0]), 0, a.address[0], a.lanes);
}

/// Where one lane of a flat access goes.
struct FlatTarget {
  MemorySpace space;
  u64 offset;  ///< address, LDS offset or offset in the lane's scratch
};

FlatTarget resolve(Wave& w, const Instruction& i, int lane, u64 address, u32 bytes) {
  Workgroup& g = *w.workgroup;
  u64 offset = address & 0xffffffff;
  if (address >> 48 == kSharedAperture) {
    if (address >> 32 & 0xffff || offset + bytes > g.lds_bytes) raise_lds(w, i, lane, offset, bytes);
    return {MemorySpace::kLds, offset};
  }
  if (address >> 48 == kPrivateAperture) {
    if (address >> 32 & 0xffff || offset + bytes > g.scratch_bytes) raise_scratch(w, i, lane, offset, bytes);
    return {MemorySpace::kScratch, offset};
  }
  if (!in_window(g, i, address, address + bytes)) raise_global(w, i, lane, address, bytes);
  return {MemorySpace::kGlobal, address};
}

/// Scratch interleaves lanes by dword, so bytes are found one at a time.
uint8_t* scratch_byte(Wave& w, int lane, u64 offset) {
  return reinterpret_cast<uint8_t*>(w.workgroup->scratch_of(w) + (offset >> 2) * w.lanes + static_cast<u32>(lane)) +
         (offset & 3);
}

void copy_in(Wave& w, const FlatTarget& t, int lane, uint8_t* out, u32 bytes) {
  if (t.space == MemorySpace::kGlobal)
    std::memcpy(out, reinterpret_cast<const void*>(t.offset), bytes);
  else if (t.space == MemorySpace::kLds)
    std::memcpy(out, w.workgroup->lds + t.offset, bytes);
  else
    for (u32 b = 0; b < bytes; ++b) out[b] = *scratch_byte(w, lane, t.offset + b);
}

void copy_out(Wave& w, const FlatTarget& t, int lane, const uint8_t* in, u32 bytes) {
  if (t.space == MemorySpace::kGlobal)
    std::memcpy(reinterpret_cast<void*>(t.offset), in, bytes);
  else if (t.space == MemorySpace::kLds)
    std::memcpy(w.workgroup->lds + t.offset, in, bytes);
  else
    for (u32 b = 0; b < bytes; ++b) *scratch_byte(w, lane, t.offset + b) = in[b];
}

bool any_aperture(const u64* address, u64 mask) {
  u64 any = 0;
  for_active(mask, [&](int l) { any |= address[l] >> 48; });
  return any != 0;
}

/// Resolves all lanes and records where they went.
void resolve_all(Wave& w, const Instruction& i, MemoryAccess& a, FlatTarget* targets) {
  for_active(a.lanes, [&](int l) {
    targets[l] = resolve(w, i, l, a.address[0][l], a.bytes);
    a.address[0][l] = targets[l].offset;
    if (targets[l].space == MemorySpace::kLds) a.lds_lanes |= u64(1) << l;
    if (targets[l].space == MemorySpace::kScratch) a.scratch_lanes |= u64(1) << l;
  });
}

template <Format F>
struct FlatLoad {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoad, bytes, w.exec());
    compute_addresses(w, i, a.address[0]);
    u32* d = row(w, i.dst[0]);
    if (!any_aperture(a.address[0], a.lanes)) {
      check_global(w, i, a.address[0], bytes, a.lanes);
      if (i.cache & (kCacheSc1 | kCacheSc0)) [[unlikely]]
        await_coherence(w, i);
      load_rows<F>(w, d, 0, a.address[0], a.lanes);
      return;
    }
    FlatTarget targets[64];
    resolve_all(w, i, a, targets);
    for_active(a.lanes, [&](int l) {
      u32 t[4] = {};
      copy_in(w, targets[l], l, reinterpret_cast<uint8_t*>(t), bytes);
      if constexpr (is_small(F))
        d[l] = extend<F>(t[0], d[l]);
      else
        for (u32 k = 0; k < format_dwords(F); ++k) d[k * w.lanes + static_cast<u32>(l)] = t[k];
    });
  }
};

template <Format F>
struct FlatStore {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kStore, bytes, w.exec());
    compute_addresses(w, i, a.address[0]);
    const u32* s = row(w, i.src[1]);
    if (!any_aperture(a.address[0], a.lanes)) {
      check_global(w, i, a.address[0], bytes, a.lanes);
      store_rows<F>(w, s, 0, a.address[0], a.lanes);
      return;
    }
    FlatTarget targets[64];
    resolve_all(w, i, a, targets);
    for_active(a.lanes, [&](int l) {
      u32 t[4] = {};
      for (u32 k = 0; k < format_dwords(F); ++k) t[k] = s[k * w.lanes + static_cast<u32>(l)];
      if constexpr (is_small(F)) t[0] = reduce<F>(t[0]);
      copy_out(w, targets[l], l, reinterpret_cast<const uint8_t*>(t), bytes);
    });
  }
};

template <Atomic Op, class T>
struct FlatAtomic {
  static void run(Wave& w, const Instruction& i) {
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kAtomic, sizeof(T), w.exec());
    compute_addresses(w, i, a.address[0]);
    bool returns = i.flags & kFlagReturn;
    FlatTarget targets[64];
    resolve_all(w, i, a, targets);
    if ((order_matters(Op) || returns) && (a.lanes & ~a.lds_lanes)) {
      ++w.workgroup->yields;
      wait_for_turn(w);
    }
    const u32* data = row(w, i.src[1]);
    u32* d = returns ? row(w, i.dst[0]) : nullptr;
    for_active(a.lanes, [&](int l) {
      if (targets[l].space == MemorySpace::kScratch)
        raise_fault(w, i, FaultKind::kScratchAddress, l, targets[l].offset, "atomic operation on scratch memory");
      uint8_t* at = targets[l].space == MemorySpace::kLds ? w.workgroup->lds + targets[l].offset
                                                          : reinterpret_cast<uint8_t*>(targets[l].offset);
      if (reinterpret_cast<u64>(at) & (sizeof(T) - 1))
        raise_fault(w, i, FaultKind::kGlobalAddress, l, targets[l].offset,
                    "address of an atomic operation is not aligned to its size");
      T x = read_lane<T>(data, w.lanes, l);
      T y = Op == Atomic::kCmpSwap || Op == Atomic::kCmpSwapF ? read_lane<T>(data + sizeof(T) / 4 * w.lanes, w.lanes, l)
                                                              : T(0);
      T old = host_atomic<Op, T>(at, x, y);
      if (d) write_lane<T>(d, w.lanes, l, old);
    });
  }
};

/// Loads straight into LDS at M0 + offset + lane · 4 (12, 16 for the wide forms).
template <Format F>
struct LoadToLds {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F), step = bytes < 4 ? 4 : bytes;
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoadToLds, bytes, w.exec());
    compute_addresses(w, i, a.address[0]);
    check_global(w, i, a.address[0], bytes, a.lanes);
    u32 base = (w.s[cell::kM0] & 0x3ffff) + static_cast<u32>(i.offset);
    for_active(a.lanes, [&](int l) {
      u64 to = base + static_cast<u64>(l) * step;
      a.address[1][l] = to;
      if (to + step > w.workgroup->lds_bytes) raise_lds(w, i, l, to, step);
      u32 t[4] = {};
      std::memcpy(t, reinterpret_cast<const void*>(a.address[0][l]), bytes);
      if constexpr (is_small(F)) t[0] = extend<F>(t[0], 0);
      std::memcpy(w.workgroup->lds + to, t, step);
    });
  }
};

}  // namespace

void register_global(Registry& r) {
  add_formats<Load, kLoadNames>(r, "global_");
  add_formats<Store, kStoreNames>(r, "global_");
  add_atomics<AtomicAccess>(r, "global_");
  add_formats<FlatLoad, kLoadNames>(r, "flat_");
  add_formats<FlatStore, kStoreNames>(r, "flat_");
  add_atomics<FlatAtomic>(r, "flat_");
  r.add<load_by_lane>("global_load_addtid_b32");
  r.add<store_by_lane>("global_store_addtid_b32");
  r.add<LoadToLds<Format::kU8>::run>("global_load_lds_ubyte");
  r.add<LoadToLds<Format::kI8>::run>("global_load_lds_sbyte");
  r.add<LoadToLds<Format::kU16>::run>("global_load_lds_ushort");
  r.add<LoadToLds<Format::kI16>::run>("global_load_lds_sshort");
  r.add<LoadToLds<Format::kB32>::run>("global_load_lds_dword");
  r.add<LoadToLds<Format::kB96>::run>("global_load_lds_dwordx3");
  r.add<LoadToLds<Format::kB128>::run>("global_load_lds_dwordx4");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
