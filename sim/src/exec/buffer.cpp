// buffer_* instructions: addresses through a 128-bit resource descriptor, with hardware range checks.
#include "exec/atomic_ops.h"
#include "exec/buffer_address.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// The usual case: a raw buffer with an offset per lane, all lanes in range.
bool find_fast(Wave& w, const Instruction& i, u32 bytes, FastAddress& out) {
  if (!may_go_fast(w) || (i.flags & (kFlagOffen | kFlagIdxen)) != kFlagOffen) return false;
  BufferResource r(w, i.src[2], w.workgroup->launch->target->cdna);
  if (r.swizzle || r.add_lane || r.bounds != 3) return false;
  u32 soffset = i.src[3].kind == OperandKind::kNone ? 0 : scalar(w, i.src[3]);
  u64 inst_offset = static_cast<u32>(i.offset);
  out.offset = row(w, i.src[0]);
  out.base = r.base + soffset + inst_offset;
  OffsetRange range = range_of(out.offset, w.lanes);
  if (u64(soffset) + inst_offset + range.high + bytes > r.records) return false;
  return in_window(*w.workgroup, i, out.base + range.low, out.base + range.high + bytes);
}

template <Format F>
struct Load {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F);
    FastAddress fast;
    if (find_fast(w, i, bytes, fast)) return load_fast<F>(w, row(w, i.dst[0]), fast.base, fast.offset);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoad, bytes, 0);
    u64 lanes = buffer_addresses(w, i, bytes, a);
    check_global(w, i, a.address[0], bytes, lanes);
    u32* d = row(w, i.dst[0]);
    load_rows<F>(w, d, 0, a.address[0], lanes);
    for_active(a.clipped, [&](int l) {
      for (u32 k = 0; k < format_dwords(F); ++k)
        d[k * w.lanes + static_cast<u32>(l)] = is_small(F) ? extend<F>(0, d[l]) : 0;
    });
  }
};

template <Format F>
struct Store {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F);
    FastAddress fast;
    if (find_fast(w, i, bytes, fast)) return store_fast<F>(w, row(w, i.src[1]), fast.base, fast.offset);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kStore, bytes, 0);
    u64 lanes = buffer_addresses(w, i, bytes, a);
    check_global(w, i, a.address[0], bytes, lanes);
    store_rows<F>(w, row(w, i.src[1]), 0, a.address[0], lanes);
  }
};

/// LDS address = M0 + offset + lane · 4 (12, 16 for the wide forms); lanes out of range write 0.
template <Format F>
void load_to_lds(Wave& w, const Instruction& i) {
  constexpr u32 bytes = format_bytes(F), step = bytes < 4 ? 4 : bytes;
  MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoadToLds, bytes, 0);
  u64 lanes = buffer_addresses(w, i, bytes, a);
  check_global(w, i, a.address[0], bytes, lanes);
  u32 base = (w.s[cell::kM0] & 0x3ffff) + static_cast<u32>(i.offset);
  Workgroup& g = *w.workgroup;
  u64 exec = w.exec(), last = base + static_cast<u64>(w.lanes) * step;
  if constexpr (bytes >= 4) {
    if (lanes == w.full_exec && last <= g.lds_bytes && is_contiguous(a.address[0], w.lanes, step)) {
      std::memcpy(g.lds + base, reinterpret_cast<const void*>(a.address[0][0]), static_cast<size_t>(w.lanes) * step);
      for_lanes(w.lanes, [&](u32 l) { a.address[1][l] = base + static_cast<u64>(l) * step; });
      return;
    }
  }
  for_active(exec, [&](int l) {
    u64 to = base + static_cast<u64>(l) * step;
    a.address[1][l] = to;
    if (to + step > g.lds_bytes) raise_lds(w, i, l, to, step);
    u32 t[4] = {};
    if ((lanes >> l) & 1) std::memcpy(t, reinterpret_cast<const void*>(a.address[0][l]), bytes);
    if constexpr (is_small(F)) t[0] = extend<F>(t[0], 0);
    std::memcpy(g.lds + to, t, step);
  });
}

template <Format F>
struct LoadAny {
  static void run(Wave& w, const Instruction& i) { Load<F>::run(w, i); }
  /// tfe: one register more gets the residency status, 0 for memory that exists.
  static void run_with_status(Wave& w, const Instruction& i) {
    Load<F>::run(w, i);
    alignas(64) static const u32 kResident[64] = {};
    merge_row(w, row(w, i.dst[0]) + format_dwords(F) * w.lanes, kResident, w.exec());
  }
  static ExecuteFn bind(Instruction& i, const BindContext&) {
    if (i.flags & kFlagLds) return load_to_lds<F>;
    return i.dst[0].dwords > format_dwords(F) ? run_with_status : run;
  }
};

template <Atomic Op, class T>
struct AtomicAccess {
  static void run(Wave& w, const Instruction& i) {
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kAtomic, sizeof(T), 0);
    u64 lanes = buffer_addresses(w, i, sizeof(T), a);
    check_global(w, i, a.address[0], sizeof(T), lanes);
    bool returns = i.flags & kFlagReturn;
    if (order_matters(Op) || returns) {
      ++w.workgroup->yields;
      wait_for_turn(w);
    }
    const u32* data = row(w, i.src[1]);
    u32* d = returns ? row(w, i.dst[0]) : nullptr;
    for_active(lanes, [&](int l) {
      u64 at = a.address[0][l];
      if (at & (sizeof(T) - 1))
        raise_fault(w, i, FaultKind::kGlobalAddress, l, at,
                    "address of an atomic operation is not aligned to its size");
      T x = read_lane<T>(data, w.lanes, l);
      T y = Op == Atomic::kCmpSwap || Op == Atomic::kCmpSwapF ? read_lane<T>(data + sizeof(T) / 4 * w.lanes, w.lanes, l)
                                                              : T(0);
      T old = host_atomic<Op, T>(reinterpret_cast<uint8_t*>(at), x, y);
      if (d) write_lane<T>(d, w.lanes, l, old);
    });
    if (d) for_active(a.clipped, [&](int l) { write_lane<T>(d, w.lanes, l, T(0)); });
  }
};

}  // namespace

void register_buffer(Registry& r) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    (r.add(std::string("buffer_") + kLoadNames[K].gfx9, LoadAny<kLoadNames[K].format>::bind), ...);
    (r.add(std::string("buffer_") + kLoadNames[K].gfx11, LoadAny<kLoadNames[K].format>::bind), ...);
  }(std::make_index_sequence<kLoadNames.size()>{});
  add_formats<Store, kStoreNames>(r, "buffer_");
  add_atomics<AtomicAccess>(r, "buffer_");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
