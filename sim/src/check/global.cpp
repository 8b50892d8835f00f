// Global memory: bytes that nobody wrote, and races between workgroups (or waves) that nothing orders.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "check/state.h"

namespace crest_sim {

// The loops over dwords exist for AVX2 as well.
#define CREST_SIM_CLONES __attribute__((target_clones("avx2", "default")))

/// 1: a live record of another wave or workgroup wrote one of the dwords, or used it at byte granularity. 2: some have
/// not been read by this one yet.
CREST_SIM_CLONES uint32_t inspect_read_dwords(const uint32_t* writer, const uint32_t* reader, const uint32_t* meta,
                                              uint32_t n, uint32_t base, uint32_t tag) {
  uint32_t busy = 0, fresh = 0;
  for (uint32_t k = 0; k < n; ++k) {
    busy |= static_cast<uint32_t>(writer[k] >= base) & static_cast<uint32_t>(writer[k] != tag);
    uint32_t other = static_cast<uint32_t>(reader[k] != tag);
    uint32_t partial = static_cast<uint32_t>((meta[k] & (15u << 24)) != 15u << 24);
    busy |= static_cast<uint32_t>(reader[k] >= base) & other & partial;
    fresh |= other;
  }
  return busy | fresh << 1;
}

CREST_SIM_CLONES uint32_t inspect_write_dwords(const uint32_t* writer, const uint32_t* reader, const uint32_t* reader2,
                                               uint32_t n, uint32_t base, uint32_t tag) {
  uint32_t busy = 0;
  for (uint32_t k = 0; k < n; ++k) {
    busy |= static_cast<uint32_t>(writer[k] >= base) & static_cast<uint32_t>(writer[k] != tag);
    busy |= static_cast<uint32_t>(reader[k] >= base) & static_cast<uint32_t>(reader[k] != tag);
    busy |= static_cast<uint32_t>(reader2[k] >= base) & static_cast<uint32_t>(reader2[k] != tag);
  }
  return busy;
}

CREST_SIM_CLONES void add_reader_dwords(uint32_t* r1, uint32_t* m1, uint32_t* r2, uint32_t* m2, uint32_t n,
                                        uint32_t tag, uint32_t meta) {
  for (uint32_t k = 0; k < n; ++k) {
    bool other = r1[k] != tag;
    r2[k] = other ? r1[k] : r2[k];
    m2[k] = other ? m1[k] : m2[k];
    r1[k] = tag;
    m1[k] = meta;
  }
}

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using Class = InstructionClass;

// meta: instruction, wave within the workgroup is in the tag, which bytes, atomic.
constexpr u32 kInstruction = 0xffffff, kBytesShift = 24, kAllBytes = 15u << 24, kAtomic = 1u << 28;

struct Access {
  Wave& wave;
  const Instruction& i;
  WorkgroupCheck& g;
  LaunchCheck& launch;
  GlobalOrder& order;
  GlobalRaces& races;
  u32 tag, base, meta;
  bool atomic = false;  ///< atomic or coherent: orders, and does not race with its like
  int lane = -1;

  Access(Wave& w, const Instruction& instruction)
      : wave(w),
        i(instruction),
        g(check_of(*w.workgroup)),
        launch(*g.launch),
        order(launch.order),
        races(*order.races),
        tag(g.segment << 5 | w.index),
        base(order.base_tag()),
        meta((index_of(launch, instruction) & kInstruction) | kAllBytes) {}

  bool ordered(u32 other) {
    const GlobalOrder::Segment& s = order[other];
    if (s.released && s.released <= g.acquired) return true;
    if (s.workgroup != wave.workgroup->linear) return false;
    return s.epoch != wave.workgroup->barriers || (other & 31) == wave.index;
  }

  void race(u32 other, u32 other_meta, u64 address, const char* what) {
    const Instruction* instruction = launch.code + (other_meta & kInstruction);
    if (!launch.is_new(CheckKind::kGlobalRace, i, instruction)) return;
    u64 workgroup = order[other].workgroup;
    bool same = workgroup == wave.workgroup->linear;
    launch.report(wave, {CheckKind::kGlobalRace, &i, lane, address,
                         fmt::format("{} bytes at {:#x} ({}) are {} another {} and nothing orders the two", 4, address,
                                     wave.workgroup->memory->describe(address), what, same ? "wave" : "workgroup"),
                         instruction, workgroup, static_cast<int>(other & 31)});
  }

  bool live(u32 other) const { return other >= base && other != tag; }

  /// `what` tells about this access and the other one.
  void meet(u32 other, u32 other_meta, u64 address, const char* what) {
    if (!live(other)) return;
    bool other_atomic = other_meta & kAtomic;
    if (atomic && (other_atomic || !launch.cdna)) return;  // on RDNA3 coherent stores look like plain ones
    if (!ordered(other)) race(other, other_meta, address, what);
  }

  GlobalPage::ByteRecord& byte(GlobalPage& p, u32 d, u32 b) { return (*p.bytes)[d * 4 + b]; }

  void split(GlobalPage& p, u32 d) {
    if (p.writer[d] == GlobalPage::kSplit) return;
    if (!p.bytes) p.bytes = std::make_unique<std::unordered_map<u32, GlobalPage::ByteRecord>>();
    for (u32 b = 0; b < 4; ++b) {
      bool w = p.writer_meta[d] >> kBytesShift >> b & 1, r = p.reader_meta[d] >> kBytesShift >> b & 1;
      byte(p, d, b) = {w ? p.writer[d] : 0, p.writer_meta[d], r ? p.reader[d] : 0, p.reader_meta[d]};
    }
    p.writer[d] = p.reader[d] = GlobalPage::kSplit;
    races.split.emplace_back(&p, d);
  }

  void read_bytes(GlobalPage& p, u32 d, u32 bytes, u64 address) {
    for (u32 b = 0; b < 4; ++b) {
      if (!(bytes >> b & 1)) continue;
      GlobalPage::ByteRecord& r = byte(p, d, b);
      meet(r.writer, r.writer_meta, address + b, "read here and written by");
      if (!atomic) r.reader = tag, r.reader_meta = meta;
    }
  }
  void write_bytes(GlobalPage& p, u32 d, u32 bytes, u64 address) {
    for (u32 b = 0; b < 4; ++b) {
      if (!(bytes >> b & 1)) continue;
      GlobalPage::ByteRecord& r = byte(p, d, b);
      meet(r.writer, r.writer_meta, address + b, "written here and by");
      meet(r.reader, r.reader_meta, address + b, "written here and read by");
      r.writer = tag, r.writer_meta = meta;
    }
  }

  bool partial(u32 other, u32 other_meta, u32 bytes) const {
    return live(other) && other != GlobalPage::kSplit && (other_meta >> kBytesShift & 15) != bytes;
  }

  void read(GlobalPage& p, u32 d, u32 bytes, u64 address) {
    if (partial(p.writer[d], p.writer_meta[d], bytes) || partial(p.reader[d], p.reader_meta[d], bytes)) split(p, d);
    if (p.writer[d] == GlobalPage::kSplit) return read_bytes(p, d, bytes, address);
    meet(p.writer[d], p.writer_meta[d], address, "read here and written by");
    if (atomic) return;
    u32 before = 0;
    if (p.reader[d] == tag) {
      before = p.reader_meta[d] & kAllBytes;
    } else {
      p.reader2[d] = p.reader[d], p.reader2_meta[d] = p.reader_meta[d];
    }
    p.reader[d] = tag;
    p.reader_meta[d] = (meta & ~kAllBytes) | before | bytes << kBytesShift;
  }

  void write(GlobalPage& p, u32 d, u32 bytes, u64 address) {
    if (partial(p.writer[d], p.writer_meta[d], bytes) || partial(p.reader[d], p.reader_meta[d], bytes)) split(p, d);
    if (p.writer[d] == GlobalPage::kSplit) return write_bytes(p, d, bytes, address);
    meet(p.writer[d], p.writer_meta[d], address, "written here and by");
    meet(p.reader[d], p.reader_meta[d], address, "written here and read by");
    meet(p.reader2[d], p.reader2_meta[d], address, "written here and read by");
    u32 before = p.writer[d] == tag ? p.writer_meta[d] & kAllBytes : 0;
    p.writer[d] = tag;
    p.writer_meta[d] = (meta & ~kAllBytes) | before | bytes << kBytesShift;
  }

  /// Whole dwords [first, first + n) of one page.
  void read_span(GlobalPage& p, u32 first, u32 n, u64 address);
  void write_span(GlobalPage& p, u32 first, u32 n, u64 address);

  void range(u64 address, u32 bytes, bool writes) {
    u64 end = address + bytes;
    for (u64 d = address / 4; d * 4 < end; ++d) {
      u64 from = std::max(address, d * 4) - d * 4, to = std::min(end, d * 4 + 4) - d * 4;
      u32 mask = ((1u << to) - 1) & ~((1u << from) - 1);
      GlobalPage& p = races.page(d / GlobalPage::kDwords);
      u32 at = static_cast<u32>(d % GlobalPage::kDwords);
      writes ? write(p, at, mask, d * 4) : read(p, at, mask, d * 4);
    }
  }
  void span(u64 address, u64 bytes, bool writes) {
    for (u64 d = address / 4, left = bytes / 4; left;) {
      u32 at = static_cast<u32>(d % GlobalPage::kDwords);
      u32 n = static_cast<u32>(std::min<u64>(left, GlobalPage::kDwords - at));
      GlobalPage& p = races.page(d / GlobalPage::kDwords);
      writes ? write_span(p, at, n, d * 4) : read_span(p, at, n, d * 4);
      d += n;
      left -= n;
    }
  }
};

void Access::read_span(GlobalPage& p, u32 first, u32 n, u64 address) {
  u32 state = inspect_read_dwords(p.writer + first, p.reader + first, p.reader_meta + first, n, base, tag);
  if (state == 0) return;
  if (state == 2)
    return add_reader_dwords(p.reader + first, p.reader_meta + first, p.reader2 + first, p.reader2_meta + first, n, tag,
                             meta);
  for (u32 k = 0; k < n; ++k) read(p, first + k, 15, address + k * 4);
}

void Access::write_span(GlobalPage& p, u32 first, u32 n, u64 address) {
  if (inspect_write_dwords(p.writer + first, p.reader + first, p.reader2 + first, n, base, tag)) {
    for (u32 k = 0; k < n; ++k) write(p, first + k, 15, address + k * 4);
    return;
  }
  std::fill_n(p.writer + first, n, tag);
  std::fill_n(p.writer_meta + first, n, meta);
}

bool is_coherent(const LaunchCheck& launch, const Instruction& i) {
  return i.cache & (launch.cdna ? kCacheSc1 : kCacheSc0);
}

/// Ends the segment: what came before is visible to whoever synchronises later.
void release(WorkgroupCheck& g) {
  GlobalOrder& order = g.launch->order;
  if (!g.dirty) return;
  GlobalOrder::Segment& s = order[g.segment << 5];
  s.released = ++order.time;
  s.owner = nullptr;
  g.segment = order.open(g.workgroup->linear, g.workgroup->barriers, &g);
  g.dirty = false;
}

/// The writer may have used a store that does not look like a synchronisation: its segment ends now.
void acquire(WorkgroupCheck& g, u32 writer) {
  GlobalOrder& order = g.launch->order;
  if (writer >= order.base_tag() && writer != GlobalPage::kSplit)
    if (WorkgroupCheck* owner = order[writer].owner; owner && owner != &g) {
      owner->dirty = true;
      release(*owner);
    }
  g.acquired = ++order.time;
}

bool is_contiguous(const MemoryAccess& m, u32 lanes) {
  u64 first = m.address[0][0], differ = first & 3;
  for (u32 l = 0; l < lanes; ++l) differ |= m.address[0][l] ^ (first + l * u64(m.bytes));
  return differ == 0 && m.bytes % 4 == 0;
}

template <class Body>
void for_lanes(u64 mask, Body&& body) {
  for (; mask; mask &= mask - 1) body(std::countr_zero(mask));
}

/// Synchronising accesses: one lane at a time.
void synchronise(Access& a, const MemoryAccess& m, bool reads, bool writes) {
  a.atomic = true;
  a.meta |= kAtomic;
  for_lanes(m.lanes & ~m.lds_lanes & ~m.scratch_lanes, [&](int l) {
    u64 address = m.address[0][l];
    GlobalPage& p = a.races.page(address / 4 / GlobalPage::kDwords);
    u32 writer = p.writer[address / 4 % GlobalPage::kDwords];
    bool other =
        writer >= a.base && writer != GlobalPage::kSplit && a.order[writer].workgroup != a.wave.workgroup->linear;
    if (reads && other) acquire(a.g, writer);
  });
  if (writes) {
    release(a.g);
    a.tag = a.g.segment << 5 | a.wave.index;
  }
  for_lanes(m.lanes & ~m.lds_lanes & ~m.scratch_lanes, [&](int l) {
    a.lane = l;
    a.range(m.address[0][l], m.bytes, writes);
  });
}

void check_races(Wave& wave, const Instruction& i, const MemoryAccess& m) {
  Access a(wave, i);
  bool store = m.kind == AccessKind::kStore;
  if (m.kind == AccessKind::kAtomic) return synchronise(a, m, true, true);
  if (is_coherent(*a.g.launch, i) && m.space == MemorySpace::kGlobal && m.kind != AccessKind::kLoadToLds)
    return synchronise(a, m, !store, store);
  a.g.dirty = true;
  u64 lanes = m.lanes & ~m.lds_lanes & ~m.scratch_lanes;
  if (m.space == MemorySpace::kConstant) {
    if (lanes) a.range(m.address[0][0], m.bytes, store);
    return;
  }
  if (lanes == wave.full_exec && is_contiguous(m, wave.lanes)) {
    a.lane = 0;
    return a.span(m.address[0][0], u64(m.bytes) * wave.lanes, store);
  }
  bool whole = m.bytes % 4 == 0;
  for_lanes(lanes, [&](int l) {
    a.lane = l;
    u64 address = m.address[0][l];
    if (whole && !(address & 3))
      a.span(address, m.bytes, store);
    else
      a.range(address, m.bytes, store);
  });
}

/// Loads of bytes that nobody wrote make undefined registers, stores make bytes defined.
void check_defined(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& m) {
  LaunchCheck& launch = *check_of(*wave.workgroup).launch;
  WaveCheck& c = check_of(wave);
  bool follow = launch.memory->any();
  u64 lanes = m.lanes & ~m.lds_lanes & ~m.scratch_lanes;
  bool constant = m.space == MemorySpace::kConstant;
  if (m.kind != AccessKind::kLoad && follow)
    for_lanes(lanes, [&](int l) { launch.memory->mark_initialised(m.address[0][l], m.bytes); });
  if (!plan.writes || m.kind == AccessKind::kLoadToLds) return;
  const RegisterRange& d = plan.write[0];
  u32 bytes = m.bytes < 4 ? m.bytes : 4;
  if (constant) {
    for (u32 k = 0; k < d.count; ++k) {
      bool u = follow && lanes && launch.memory->is_uninitialised(m.address[0][0] + k * 4, 4);
      if (d.first + k >= kScalarFirst) set_undefined_bits(c, d.first + k - kScalarFirst, u ? ~0u : 0);
    }
    return;
  }
  for (u32 k = 0; k < d.count; ++k) {
    u64 undefined = 0;
    if (follow)
      for_lanes(lanes, [&](int l) {
        if (launch.memory->is_uninitialised(m.address[0][l] + k * 4, bytes)) undefined |= u64(1) << l;
      });
    set_undefined(c, d.first + k, m.lanes | m.clipped, undefined);
  }
  static_cast<void>(i);
}

void report_clipped(Wave& wave, const Instruction& i, const MemoryAccess& m) {
  LaunchCheck& launch = *check_of(*wave.workgroup).launch;
  if (!launch.is_new(CheckKind::kBufferBounds, i, nullptr)) return;
  bool scalar = m.space == MemorySpace::kConstant;
  int lane = scalar ? -1 : std::countr_zero(m.clipped);
  u64 address = scalar ? 0 : m.address[0][lane];
  launch.report(wave,
                {CheckKind::kBufferBounds, &i, lane, address,
                 scalar ? std::string("scalar buffer load reaches beyond num_records: the rest reads as 0")
                        : fmt::format("buffer access of {} bytes at {:#x} lies outside the descriptor's range and is "
                                      "dropped ({} lanes)",
                                      m.bytes, address, std::popcount(m.clipped))});
}

}  // namespace

void check_global(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& m) {
  LaunchCheck& launch = *check_of(*wave.workgroup).launch;
  if (m.clipped && launch.options[CheckKind::kBufferBounds]) report_clipped(wave, i, m);
  if (launch.options[CheckKind::kUninitialised]) check_defined(wave, i, plan, m);
  if (!launch.options[CheckKind::kGlobalRace] || !m.lanes) return;
  u64 kernarg = launch.context.kernarg_base;
  if (m.space == MemorySpace::kConstant && m.address[0][0] - kernarg < launch.context.kernarg_bytes + 64) return;
  check_races(wave, i, m);
}

}  // namespace crest_sim
