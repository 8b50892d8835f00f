// SMEM: scalar loads, stores and atomics.
#include "exec/atomic_ops.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

u64 scalar_address(const Wave& w, const Instruction& i, u64 base) {
  u64 address = base + static_cast<u64>(static_cast<int64_t>(i.offset));
  if (i.src[1].is_scalar()) address += scalar(w, i.src[1]);
  return address & ~u64(3);
}

void check(Wave& w, const Instruction& i, u64 address, u32 bytes) {
  Workgroup& g = *w.workgroup;
  if (!in_window(g, i, address, address + bytes)) raise_global(w, i, -1, address, bytes);
}

u64 begin(Wave& w, const Instruction& i, AccessKind kind, u32 bytes, u64 base) {
  u64 address = scalar_address(w, i, base);
  MemoryAccess& a = begin_access(w, MemorySpace::kConstant, kind, bytes, 1);
  a.address[0][0] = address;
  check(w, i, address, bytes);
  return address;
}

template <u32 Dwords>
void load(Wave& w, const Instruction& i) {
  u64 address = begin(w, i, AccessKind::kLoad, Dwords * 4, w.read64(i.src[0].reg));
  std::memcpy(&w.s[i.dst[0].reg], reinterpret_cast<const void*>(address), Dwords * 4);
}

/// Dwords beyond num_records read 0.
template <u32 Dwords>
void buffer_load(Wave& w, const Instruction& i) {
  const u32* r = &w.s[i.src[0].reg];
  u64 base = r[0] | static_cast<u64>(r[1] & 0xffff) << 32, stride = (r[1] >> 16) & 0x3fff;
  u64 bytes = stride ? stride * r[2] : r[2];
  u64 offset = scalar_address(w, i, 0);
  MemoryAccess& a = begin_access(w, MemorySpace::kConstant, AccessKind::kLoad, 0, 0);
  u32 values[Dwords] = {};
  u32 inside = 0;
  while (inside < Dwords && offset + inside * 4 + 4 <= bytes) ++inside;
  if (inside) {
    a.lanes = 1;
    a.bytes = static_cast<uint8_t>(inside * 4);
    a.address[0][0] = base + offset;
    check(w, i, base + offset, inside * 4);
    std::memcpy(values, reinterpret_cast<const void*>(base + offset), inside * 4);
  }
  a.clipped = inside < Dwords;
  std::memcpy(&w.s[i.dst[0].reg], values, sizeof(values));
}

template <u32 Dwords>
void store(Wave& w, const Instruction& i) {
  u64 address = begin(w, i, AccessKind::kStore, Dwords * 4, w.read64(i.src[0].reg));
  wait_for_turn(w);
  std::memcpy(reinterpret_cast<void*>(address), &w.s[i.src[2].reg], Dwords * 4);
}

template <Atomic Op, class T>
struct ScalarAtomic {
  static void run(Wave& w, const Instruction& i) {
    u64 address = begin(w, i, AccessKind::kAtomic, sizeof(T), w.read64(i.src[0].reg));
    if (address & (sizeof(T) - 1))
      raise_fault(w, i, FaultKind::kGlobalAddress, -1, address,
                  "address of an atomic operation is not aligned to its size");
    ++w.workgroup->yields;
    wait_for_turn(w);
    T x, y = 0;
    std::memcpy(&x, &w.s[i.src[2].reg], sizeof(T));
    if (Op == Atomic::kCmpSwap) std::memcpy(&y, &w.s[i.src[2].reg + sizeof(T) / 4], sizeof(T));
    T old = host_atomic<Op, T>(reinterpret_cast<uint8_t*>(address), x, y);
    if (i.flags & kFlagReturn) std::memcpy(&w.s[i.dst[0].reg], &old, sizeof(T));
  }
};

/// Address through a buffer resource; false if it is out of range (the access is then dropped).
bool buffer_address(Wave& w, const Instruction& i, u32 bytes, AccessKind kind, u64& address) {
  const u32* r = &w.s[i.src[0].reg];
  u64 base = r[0] | static_cast<u64>(r[1] & 0xffff) << 32, stride = (r[1] >> 16) & 0x3fff;
  u64 size = stride ? stride * r[2] : r[2], offset = scalar_address(w, i, 0);
  MemoryAccess& a = begin_access(w, MemorySpace::kConstant, kind, bytes, 0);
  address = base + offset;
  a.address[0][0] = address;
  if (offset + bytes > size) {
    a.clipped = 1;
    return false;
  }
  a.lanes = 1;
  check(w, i, address, bytes);
  return true;
}

template <u32 Dwords>
void buffer_store(Wave& w, const Instruction& i) {
  u64 address;
  if (!buffer_address(w, i, Dwords * 4, AccessKind::kStore, address)) return;
  wait_for_turn(w);
  std::memcpy(reinterpret_cast<void*>(address), &w.s[i.src[2].reg], Dwords * 4);
}

template <Atomic Op, class T>
struct BufferAtomic {
  static void run(Wave& w, const Instruction& i) {
    u64 address;
    T x, y = 0, old = 0;
    if (buffer_address(w, i, sizeof(T), AccessKind::kAtomic, address)) {
      ++w.workgroup->yields;
      wait_for_turn(w);
      std::memcpy(&x, &w.s[i.src[2].reg], sizeof(T));
      if (Op == Atomic::kCmpSwap) std::memcpy(&y, &w.s[i.src[2].reg + sizeof(T) / 4], sizeof(T));
      old = host_atomic<Op, T>(reinterpret_cast<uint8_t*>(address), x, y);
    }
    if (i.flags & kFlagReturn) std::memcpy(&w.s[i.dst[0].reg], &old, sizeof(T));
  }
};

/// A clock that depends on nothing but the program: instructions of the wave.
void time(Wave& w, const Instruction& i) { w.write64(i.dst[0].reg, w.instructions); }

}  // namespace

void register_scalar_memory(Registry& r) {
  auto sizes = [&]<u32 N>(std::integral_constant<u32, N>, const std::string& gfx9, const std::string& gfx11) {
    r.add<load<N>>("s_load_" + gfx9);
    r.add<load<N>>("s_load_" + gfx11);
    r.add<buffer_load<N>>("s_buffer_load_" + gfx9);
    r.add<buffer_load<N>>("s_buffer_load_" + gfx11);
  };
  sizes(std::integral_constant<u32, 1>{}, "dword", "b32");
  sizes(std::integral_constant<u32, 2>{}, "dwordx2", "b64");
  sizes(std::integral_constant<u32, 4>{}, "dwordx4", "b128");
  sizes(std::integral_constant<u32, 8>{}, "dwordx8", "b256");
  sizes(std::integral_constant<u32, 16>{}, "dwordx16", "b512");
  r.add<store<1>>("s_store_dword");
  r.add<store<2>>("s_store_dwordx2");
  r.add<store<4>>("s_store_dwordx4");
  [&]<size_t... K>(std::index_sequence<K...>) {
    (r.add<ScalarAtomic<kIntegerAtomics[K].op, u32>::run>(std::string("s_") + kIntegerAtomics[K].gfx9), ...);
    (r.add<ScalarAtomic<kIntegerAtomics[K].op, u64>::run>(std::string("s_") + kIntegerAtomics[K].gfx9 + "_x2"), ...);
  }(std::make_index_sequence<kIntegerAtomics.size()>{});
  r.add<buffer_store<1>>("s_buffer_store_dword");
  r.add<buffer_store<2>>("s_buffer_store_dwordx2");
  r.add<buffer_store<4>>("s_buffer_store_dwordx4");
  [&]<size_t... K>(std::index_sequence<K...>) {
    (r.add<BufferAtomic<kIntegerAtomics[K].op, u32>::run>(std::string("s_buffer_") + kIntegerAtomics[K].gfx9), ...);
    (r.add<BufferAtomic<kIntegerAtomics[K].op, u64>::run>(std::string("s_buffer_") + kIntegerAtomics[K].gfx9 + "_x2"),
     ...);
  }(std::make_index_sequence<kIntegerAtomics.size()>{});
  r.add<time>("s_memtime");
  r.add<time>("s_memrealtime");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
