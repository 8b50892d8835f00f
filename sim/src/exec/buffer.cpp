// buffer_* instructions: addresses through a 128-bit resource descriptor, with hardware range checks.
#include "exec/atomic_ops.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

struct Resource {
  u64 base;
  u32 stride, records, index_stride, element;
  bool swizzle, add_lane;
  u32 bounds;  ///< RDNA3 OOB_SELECT; gfx9 is given the value that behaves alike

  Resource(const Wave& w, const Operand& o, bool cdna) {
    const u32* d = &w.s[o.reg];
    base = d[0] | static_cast<u64>(d[1] & 0xffff) << 32;
    stride = (d[1] >> 16) & 0x3fff;
    swizzle = cdna ? d[1] >> 31 : (d[1] >> 30) != 0;
    records = d[2];
    index_stride = 8u << ((d[3] >> 21) & 3);
    element = cdna ? 2u << ((d[3] >> 19) & 3) : 4u << ((d[1] >> 30) == 3 ? 2 : 0);
    add_lane = (d[3] >> 23) & 1;
    // gfx9: with stride and swizzle the index is checked, otherwise bytes (also for a stride without swizzle: published
    // kernels set stride 4 and expect num_records in bytes).
    bounds = cdna ? (stride != 0 && swizzle ? 1 : 3) : (d[3] >> 28) & 3;
  }
};

/// Fills address[0] and returns the lanes whose access is in range.
u64 compute_addresses(Wave& w, const Instruction& i, u32 bytes, MemoryAccess& a) {
  Resource r(w, i.src[2], w.workgroup->launch->target->cdna);
  u32 soffset = i.src[3].kind == OperandKind::kNone ? 0 : scalar(w, i.src[3]);
  bool offen = i.flags & kFlagOffen, idxen = i.flags & kFlagIdxen;
  const u32* index = idxen ? row(w, i.src[0]) : nullptr;
  const u32* voffset = offen ? row(w, i.src[0]) + (idxen ? w.lanes : 0) : nullptr;
  u32 inst_offset = static_cast<u32>(i.offset);
  u64 byte_limit = r.records > soffset ? r.records - soffset : 0, in_range = 0;
  if (!r.swizzle && !index && !r.add_lane && r.bounds == 3) {
    // The usual raw buffer.
    alignas(64) u32 good[64];
    u64 origin = r.base + soffset;
    for_lanes(w.lanes, [&](u32 l) {
      u64 offset = static_cast<u64>(inst_offset) + (voffset ? voffset[l] : 0);
      a.address[0][l] = origin + offset;
      good[l] = offset + bytes <= byte_limit ? ~0u : 0u;
    });
    in_range = collect_signs(good, w.lanes);
  } else {
    for (u32 l = 0; l < w.lanes; ++l) {
      u64 offset = static_cast<u64>(inst_offset) + (voffset ? voffset[l] : 0);
      u64 n = (index ? index[l] : 0) + (r.add_lane ? l : 0);
      u64 linear = r.swizzle ? (n / r.index_stride * r.stride + offset / r.element * r.element) * r.index_stride +
                                   n % r.index_stride * r.element + offset % r.element
                             : offset + n * r.stride;
      bool good = r.bounds == 0   ? n < r.records && offset + bytes <= r.stride
                  : r.bounds == 1 ? n < r.records
                  : r.bounds == 2 ? r.records != 0
                                  : linear + bytes <= byte_limit;
      a.address[0][l] = r.base + soffset + linear;
      in_range |= static_cast<u64>(good) << l;
    }
  }
  u64 exec = w.exec();
  a.clipped = exec & ~in_range;
  a.lanes = exec & in_range;
  return a.lanes;
}

template <Format F>
struct Load {
  static void run(Wave& w, const Instruction& i) {
    constexpr u32 bytes = format_bytes(F);
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoad, bytes, 0);
    u64 lanes = compute_addresses(w, i, bytes, a);
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
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kStore, bytes, 0);
    u64 lanes = compute_addresses(w, i, bytes, a);
    check_global(w, i, a.address[0], bytes, lanes);
    store_rows<F>(w, row(w, i.src[1]), 0, a.address[0], lanes);
  }
};

/// LDS address = M0 + offset + lane · 4 (12, 16 for the wide forms); lanes out of range write 0.
template <Format F>
void load_to_lds(Wave& w, const Instruction& i) {
  constexpr u32 bytes = format_bytes(F), step = bytes < 4 ? 4 : bytes;
  MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoadToLds, bytes, 0);
  u64 lanes = compute_addresses(w, i, bytes, a);
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
  static ExecuteFn bind(Instruction& i, const BindContext&) { return i.flags & kFlagLds ? load_to_lds<F> : run; }
};

template <Atomic Op, class T>
struct AtomicAccess {
  static void run(Wave& w, const Instruction& i) {
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kAtomic, sizeof(T), 0);
    u64 lanes = compute_addresses(w, i, sizeof(T), a);
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
