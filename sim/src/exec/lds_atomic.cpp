// LDS atomics. A workgroup runs on one host thread at a time, so plain reads and writes serve.
#include "exec/atomic_ops.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

uint8_t* lane_pointer(Wave& w, const Instruction& i, u32 offset, int lane, u32 bytes, int part = 0) {
  u64 at = static_cast<u32>(row(w, i.src[0])[lane] + offset);
  w.workgroup->access->address[part][lane] = at;
  if (at + bytes > w.workgroup->lds_bytes || (at & (bytes - 1))) raise_lds(w, i, lane, at, bytes);
  return w.workgroup->lds + at;
}

/// Compare-and-swap order: ds_cmpst has the comparand first, ds_cmpstore (RDNA3) the new value first.
template <Atomic Op, class T, bool ComparandFirst = false>
void atomic(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kAtomic, sizeof(T), w.exec());
  const u32* first = row(w, i.src[1]);
  const u32* second = i.src_count > 2 ? row(w, i.src[2]) : first;
  u32* d = i.dst_count ? row(w, i.dst[0]) : nullptr;
  for_active(a.lanes, [&](int l) {
    uint8_t* at = lane_pointer(w, i, static_cast<u32>(i.offset), l, sizeof(T));
    T x = read_lane<T>(ComparandFirst ? second : first, w.lanes, l),
      y = read_lane<T>(ComparandFirst ? first : second, w.lanes, l), old;
    std::memcpy(&old, at, sizeof(T));
    T next = apply_atomic<Op, T>(old, x, y);
    std::memcpy(at, &next, sizeof(T));
    if (d) write_lane<T>(d, w.lanes, l, old);
  });
}

template <class T, u32 Stride>
void exchange_pair(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kAtomic, sizeof(T), w.exec());
  a.parts = 2;
  u32* d = row(w, i.dst[0]);
  const u32 *x = row(w, i.src[1]), *y = row(w, i.src[2]);
  for_active(a.lanes, [&](int l) {
    uint8_t* p = lane_pointer(w, i, static_cast<u32>(i.offset) * sizeof(T) * Stride, l, sizeof(T), 0);
    uint8_t* q = lane_pointer(w, i, static_cast<u32>(i.offset2) * sizeof(T) * Stride, l, sizeof(T), 1);
    T new_p = read_lane<T>(x, w.lanes, l), new_q = read_lane<T>(y, w.lanes, l), old_p, old_q;
    std::memcpy(&old_p, p, sizeof(T));
    std::memcpy(p, &new_p, sizeof(T));
    std::memcpy(&old_q, q, sizeof(T));
    std::memcpy(q, &new_q, sizeof(T));
    write_lane<T>(d, w.lanes, l, old_p);
    write_lane<T>(d + sizeof(T) / 4 * w.lanes, w.lanes, l, old_q);
  });
}

/// The old value wraps around at a limit: down by it once it is reached, otherwise up by another amount.
void wrap(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kAtomic, 4, w.exec());
  const u32 *limit = row(w, i.src[1]), *step = row(w, i.src[2]);
  u32* d = row(w, i.dst[0]);
  for_active(a.lanes, [&](int l) {
    uint8_t* at = lane_pointer(w, i, static_cast<u32>(i.offset), l, 4);
    u32 old;
    std::memcpy(&old, at, 4);
    u32 next = old >= limit[l] ? old - limit[l] : old + step[l];
    std::memcpy(at, &next, 4);
    d[l] = old;
  });
}

/// Two dwords, each replaced by the low 31 bits of its data if the top bit of the data is set.
void conditional_exchange(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kAtomic, 8, w.exec());
  const u32* data = row(w, i.src[1]);
  u32* d = row(w, i.dst[0]);
  for_active(a.lanes, [&](int l) {
    uint8_t* at = lane_pointer(w, i, static_cast<u32>(i.offset), l, 8);
    u64 old = 0, wanted = read_lane<u64>(data, w.lanes, l);
    std::memcpy(&old, at, 8);
    u64 next = old;
    for (int part : {0, 32})
      if (wanted >> (part + 31) & 1)
        next = (next & ~(u64(0xffffffff) << part)) | (wanted >> part & 0x7fffffff) << part;
    std::memcpy(at, &next, 8);
    write_lane<u64>(d, w.lanes, l, old);
  });
}

/// ds_append / ds_consume: one counter per wave, at M0 + offset.
template <int Sign>
void count(Wave& w, const Instruction& i) {
  MemoryAccess& a = begin_access(w, MemorySpace::kLds, AccessKind::kAtomic, 4, 1);
  u64 at = (w.s[cell::kM0] & 0xffff) + static_cast<u32>(i.offset);
  a.address[0][0] = at;
  if (at + 4 > w.workgroup->lds_bytes || (at & 3)) raise_lds(w, i, -1, at, 4);
  u32 old, n = static_cast<u32>(std::popcount(w.exec()));
  std::memcpy(&old, w.workgroup->lds + at, 4);
  u32 next = Sign > 0 ? old + n : old - n;
  std::memcpy(w.workgroup->lds + at, &next, 4);
  alignas(64) u32 r[64];
  broadcast(r, old, w.lanes);
  merge_row(w, row(w, i.dst[0]), r, w.exec());
}

template <Atomic Op>
void add_integer(Registry& r, const std::string& op, const std::string& type32, const std::string& type64) {
  r.add<atomic<Op, u32>>("ds_" + op + "_" + type32);
  r.add<atomic<Op, u32>>("ds_" + op + "_rtn_" + type32);
  r.add<atomic<Op, u64>>("ds_" + op + "_" + type64);
  r.add<atomic<Op, u64>>("ds_" + op + "_rtn_" + type64);
}

template <Atomic Op, class T>
void add_one(Registry& r, const std::string& op, const std::string& type) {
  r.add<atomic<Op, T>>("ds_" + op + "_" + type);
  r.add<atomic<Op, T>>("ds_" + op + "_rtn_" + type);
}

}  // namespace

void register_lds_atomic(Registry& r) {
  add_integer<Atomic::kAdd>(r, "add", "u32", "u64");
  add_integer<Atomic::kSub>(r, "sub", "u32", "u64");
  add_integer<Atomic::kRsub>(r, "rsub", "u32", "u64");
  add_integer<Atomic::kInc>(r, "inc", "u32", "u64");
  add_integer<Atomic::kDec>(r, "dec", "u32", "u64");
  add_integer<Atomic::kSmin>(r, "min", "i32", "i64");
  add_integer<Atomic::kSmax>(r, "max", "i32", "i64");
  add_integer<Atomic::kUmin>(r, "min", "u32", "u64");
  add_integer<Atomic::kUmax>(r, "max", "u32", "u64");
  add_integer<Atomic::kAnd>(r, "and", "b32", "b64");
  add_integer<Atomic::kOr>(r, "or", "b32", "b64");
  add_integer<Atomic::kXor>(r, "xor", "b32", "b64");
  add_integer<Atomic::kMskor>(r, "mskor", "b32", "b64");
  add_integer<Atomic::kAddF>(r, "add", "f32", "f64");
  add_integer<Atomic::kMinF>(r, "min", "f32", "f64");
  add_integer<Atomic::kMaxF>(r, "max", "f32", "f64");
  add_one<Atomic::kPkAddF16, u32>(r, "pk_add", "f16");
  add_one<Atomic::kPkAddBf16, u32>(r, "pk_add", "bf16");
  for (auto [type, wide] : {std::pair{std::string("b32"), false}, {std::string("b64"), true}}) {
    if (wide) {
      r.add<atomic<Atomic::kSwap, u64>>("ds_wrxchg_rtn_" + type);
      r.add<exchange_pair<u64, 1>>("ds_wrxchg2_rtn_" + type);
      r.add<exchange_pair<u64, 64>>("ds_wrxchg2st64_rtn_" + type);
    } else {
      r.add<atomic<Atomic::kSwap, u32>>("ds_wrxchg_rtn_" + type);
      r.add<exchange_pair<u32, 1>>("ds_wrxchg2_rtn_" + type);
      r.add<exchange_pair<u32, 64>>("ds_wrxchg2st64_rtn_" + type);
    }
    r.alias("ds_storexchg_rtn_" + type, "ds_wrxchg_rtn_" + type);
    r.alias("ds_storexchg_2addr_rtn_" + type, "ds_wrxchg2_rtn_" + type);
    r.alias("ds_storexchg_2addr_stride64_rtn_" + type, "ds_wrxchg2st64_rtn_" + type);
  }
  for (std::string rtn : {"", "rtn_"}) {
    r.add<atomic<Atomic::kCmpSwap, u32, true>>("ds_cmpst_" + rtn + "b32");
    r.add<atomic<Atomic::kCmpSwap, u64, true>>("ds_cmpst_" + rtn + "b64");
    r.add<atomic<Atomic::kCmpSwapF, u32, true>>("ds_cmpst_" + rtn + "f32");
    r.add<atomic<Atomic::kCmpSwapF, u64, true>>("ds_cmpst_" + rtn + "f64");
    r.add<atomic<Atomic::kCmpSwap, u32>>("ds_cmpstore_" + rtn + "b32");
    r.add<atomic<Atomic::kCmpSwap, u64>>("ds_cmpstore_" + rtn + "b64");
    r.add<atomic<Atomic::kCmpSwapF, u32>>("ds_cmpstore_" + rtn + "f32");
    r.add<atomic<Atomic::kCmpSwapF, u64>>("ds_cmpstore_" + rtn + "f64");
  }
  r.add<wrap>("ds_wrap_rtn_b32");
  r.add<conditional_exchange>("ds_condxchg32_rtn_b64");
  r.add<count<1>>("ds_append");
  r.add<count<-1>>("ds_consume");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
