// LDS: alignment, definedness, races between barriers, data that had not arrived.
#include <fmt/format.h>

#include <bit>

#include "check/state.h"

namespace crest_sim {

void LdsShadow::split(uint32_t dword) {
  if (byte_writer.tag.empty()) {
    byte_writer.assign(writer.tag.size() * 4);
    byte_reader.assign(writer.tag.size() * 4);
  }
  auto spread = [&](Table& from, Table& to) {
    uint32_t tag = from.tag[dword], meta = from.meta[dword];
    for (uint32_t b = 0; b < 4; ++b) {
      bool used = tag >= floor && (meta >> kBytesShift & (1u << b));
      to.tag[dword * 4 + b] = used ? tag : 0;
      to.meta[dword * 4 + b] = meta;
    }
    from.tag[dword] = floor | kSplit;
  };
  spread(writer, byte_writer);
  spread(reader, byte_reader);
}

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using Class = InstructionClass;
using Shadow = LdsShadow;

struct Access {
  Wave& wave;
  const Instruction& i;
  WorkgroupCheck& g;
  LaunchCheck& launch;
  Shadow& s;
  u32 tag;
  u32 meta;
  bool races, defined, waits;
  int lane = 0;

  Access(Wave& w, const Instruction& instruction, bool dma)
      : wave(w), i(instruction), g(check_of(*w.workgroup)), launch(*g.launch), s(g.lds) {
    tag = s.floor | w.index | (dma ? Shadow::kDma : 0);
    u32 number = dma ? check_of(w).memory_number : index_of(launch, instruction);
    meta = (number & Shadow::kInstruction) | Shadow::kAllBytes;
    races = launch.options[CheckKind::kLdsRace];
    defined = launch.options[CheckKind::kUninitialised];
    waits = launch.options[CheckKind::kMissingWait];
  }

  const Instruction* instruction_of(u32 other_tag, u32 other_meta) const {
    u32 n = other_meta & Shadow::kInstruction;
    if (!(other_tag & Shadow::kDma) || (other_tag & 63) >= Shadow::kSplit) return launch.code + n;
    WaveCheck& c = g.waves[other_tag & Shadow::kWave];
    for (u32 k = 0; k < c.queue[0].count; ++k)
      if ((c.queue[0][k].number & Shadow::kInstruction) == n) return c.queue[0][k].plan->instruction;
    return nullptr;
  }

  void race(u32 other_tag, u32 other_meta, u32 offset, const char* what) {
    if (!races) return;
    bool both_atomic = (meta & Shadow::kAtomic) && (other_meta & Shadow::kAtomic);
    if (both_atomic) return;
    const Instruction* other = instruction_of(other_tag, other_meta);
    if (!launch.is_new(CheckKind::kLdsRace, i, other)) return;
    bool known = (other_tag & 63) < Shadow::kSplit;
    launch.report(wave, {CheckKind::kLdsRace, &i, lane, offset,
                         fmt::format("LDS offset {:#x} is {} without a barrier in between", offset, what), other,
                         ~u64(0), known ? static_cast<int>(other_tag & Shadow::kWave) : -1});
  }

  void missing_wait(const Instruction* other, u32 other_wave, u32 offset, std::string_view what) {
    if (!waits || !launch.is_new(CheckKind::kMissingWait, i, other)) return;
    launch.report(wave, {CheckKind::kMissingWait, &i, lane, offset, fmt::format("LDS offset {:#x} {}", offset, what),
                         other, ~u64(0), static_cast<int>(other_wave)});
  }

  /// The last write was by this tag: did it arrive, and was there a barrier?
  void meet_writer(u32 t, u32 m, u32 offset, bool write) {
    if (t >= s.floor) {
      bool same_wave = (t & Shadow::kWave) == wave.index;
      if (same_wave && (t & Shadow::kDma) && !write && is_outstanding(check_of(wave), m & Shadow::kInstruction))
        missing_wait(instruction_of(t, m), wave.index, offset,
                     "is read before s_waitcnt vmcnt proves that the load to LDS arrived");
      if (!same_wave) race(t, m, offset, write ? "written by two waves" : "read here and written by another wave");
      return;
    }
    for (const LateWrite& late : g.late) {
      bool dma = t & Shadow::kDma;
      if (late.tag != t || (m & Shadow::kInstruction) != (dma ? late.number & Shadow::kInstruction : late.instruction))
        continue;
      u32 owner = t & Shadow::kWave;
      if (write || (owner == wave.index && !(dma && is_outstanding(check_of(wave), late.number)))) continue;
      return missing_wait(launch.code + late.instruction, owner, offset,
                          "is read although the writing wave passed the barrier without waiting for its write");
    }
  }
  void meet_reader(u32 t, u32 m, u32 offset) {
    if (t < s.floor) return;
    bool many = (t & 63) == Shadow::kMany;
    if (many || (t & Shadow::kWave) != wave.index) race(t, m, offset, "written here and read by another wave");
  }

  /// The common cases: whole dwords that only this wave, or nobody in this epoch, touched in a way that matters.
  bool quiet_read(u32 d) {
    u32 t = s.writer.tag[d], r = s.reader.tag[d];
    if (t != tag && t - 1 >= s.low_floor - 1) return false;
    if (r == tag || r == (s.floor | Shadow::kMany)) return true;
    if (r >= s.floor) return false;
    s.reader.tag[d] = tag;
    s.reader.meta[d] = meta;
    return true;
  }
  bool quiet_write(u32 d) {
    u32 t = s.writer.tag[d], r = s.reader.tag[d];
    if ((t != tag && t >= s.low_floor) || (r != tag && r >= s.floor)) return false;
    s.writer.tag[d] = tag;
    s.writer.meta[d] = meta;
    return true;
  }

  /// False if the dword was never written.
  bool read_slow(u32 d, u32 bytes) {
    u32 t = s.writer.tag[d];
    if ((t & 63) == Shadow::kSplit && t >= s.floor) {
      bool known = false;
      for (u32 b = 0; b < 4; ++b) {
        if (!(bytes >> b & 1)) continue;
        u32 at = d * 4 + b;
        if (u32 w = s.byte_writer.tag[at]; w >= s.floor && w != tag) meet_writer(w, s.byte_writer.meta[at], at, false);
        u32& r = s.byte_reader.tag[at];
        if (r != tag && r != (s.floor | Shadow::kMany)) {
          r = r >= s.floor ? s.floor | Shadow::kMany : tag;
          s.byte_reader.meta[at] = meta;
        }
        known = true;
      }
      return known;
    }
    if (t == 0) return false;
    if (!(s.writer.meta[d] >> Shadow::kBytesShift & bytes) && t >= s.floor) {
      s.split(d);
      return read_slow(d, bytes);
    }
    meet_writer(t, s.writer.meta[d], d * 4, false);
    return true;
  }

  bool needs_bytes(u32 t, u32 m, u32 bytes) const {
    return t >= s.floor && ((t & 63) >= Shadow::kSplit || t != tag) && (m >> Shadow::kBytesShift & 15) != bytes;
  }

  bool read(u32 d, u32 bytes) {
    u32 t = s.writer.tag[d];
    bool known = true;
    if (t - 1 >= s.low_floor - 1 && t != tag) [[unlikely]]
      known = read_slow(d, bytes);
    u32& r = s.reader.tag[d];
    if (r == tag) {
      s.reader.meta[d] |= bytes << Shadow::kBytesShift;
      return known;
    }
    if ((r & 63) == Shadow::kSplit && r >= s.floor) return known;
    if (needs_bytes(r, s.reader.meta[d], bytes)) {
      s.split(d);
      return read_slow(d, bytes) && known;
    }
    bool live = r >= s.floor;
    if (r == (s.floor | Shadow::kMany)) return known;
    r = live ? s.floor | Shadow::kMany : tag & ~Shadow::kDma;
    s.reader.meta[d] = (meta & ~Shadow::kAllBytes) | bytes << Shadow::kBytesShift;
    return known;
  }

  void write(u32 d, u32 bytes) {
    u32 t = s.writer.tag[d], r = s.reader.tag[d];
    bool split = (t & 63) == Shadow::kSplit && t >= s.floor;
    if (!split && (needs_bytes(t, s.writer.meta[d], bytes) || needs_bytes(r, s.reader.meta[d], bytes))) {
      s.split(d);
      split = true;
    }
    if (split) {
      for (u32 b = 0; b < 4; ++b) {
        if (!(bytes >> b & 1)) continue;
        u32 at = d * 4 + b;
        if (u32 w = s.byte_writer.tag[at]; w != tag && w >= s.floor) meet_writer(w, s.byte_writer.meta[at], at, true);
        if (u32 x = s.byte_reader.tag[at]; x != tag && x >= s.floor) meet_reader(x, s.byte_reader.meta[at], at);
        s.byte_writer.tag[at] = tag;
        s.byte_writer.meta[at] = meta;
      }
      return;
    }
    if (t >= s.low_floor && t != tag) [[unlikely]]
      meet_writer(t, s.writer.meta[d], d * 4, true);
    if (r >= s.floor && r != tag) [[unlikely]]
      meet_reader(r, s.reader.meta[d], d * 4);
    u32 before = t == tag ? s.writer.meta[d] & Shadow::kAllBytes : 0;
    s.writer.tag[d] = tag;
    s.writer.meta[d] = (meta & ~Shadow::kAllBytes) | before | bytes << Shadow::kBytesShift;
  }
};

/// Calls body(dword, byte mask, index of the dword in the value) for what [offset, offset + bytes) touches.
template <class Body>
inline void for_dwords(u32 offset, u32 bytes, Body&& body) {
  if (((offset | bytes) & 3) == 0) {
    for (u32 k = 0; k < bytes / 4; ++k) body(offset / 4 + k, 15u, k);
    return;
  }
  u32 end = offset + bytes;
  for (u32 d = offset / 4; d * 4 < end; ++d) {
    u32 from = std::max(offset, d * 4) - d * 4, to = std::min(end, d * 4 + 4) - d * 4;
    body(d, ((1u << to) - 1) & ~((1u << from) - 1), d - offset / 4);
  }
}

template <class Body>
inline void for_lanes(u64 mask, Body&& body) {
  for (; mask; mask &= mask - 1) body(std::countr_zero(mask));
}

void check_alignment(Access& a, const MemoryAccess& m, u32 part) {
  u32 need = m.bytes == 8 ? 8 : m.bytes > 8 ? 16 : 0;
  if (!need) return;
  u64 low = 0;
  for_lanes(m.lanes, [&](int l) { low |= m.address[part][l]; });
  if (!(low & (need - 1)) || !a.launch.is_new(CheckKind::kMisalignedLds, a.i, nullptr)) return;
  for_lanes(m.lanes, [&](int l) {
    if (low == ~u64(0) || !(m.address[part][l] & (need - 1))) return;
    a.launch.report(a.wave, {CheckKind::kMisalignedLds, &a.i, l, m.address[part][l],
                             fmt::format("LDS offset {:#x} is not aligned to {} bytes", m.address[part][l], need)});
    low = ~u64(0);
  });
}

bool whole_dwords(const MemoryAccess& m) {
  u64 low = m.bytes;
  for (u32 part = 0; part < m.parts; ++part) for_lanes(m.lanes, [&](int l) { low |= m.address[part][l]; });
  return (low & 3) == 0;
}

/// Which lanes of the registers that a load writes are undefined; `lanes` is null if none.
void loaded(Access& a, const MemoryAccess& m, const CheckPlan& plan, const u64* lanes) {
  if (!plan.writes || !a.defined) return;
  bool transposed = lanes && mnemonic_info(a.i.mnemonic).name.find("_tr_") != std::string_view::npos;
  for (u32 k = 0; k < plan.write[0].count && k < 8; ++k)
    set_undefined(check_of(a.wave), plan.write[0].first + k, m.lanes, lanes && !transposed ? lanes[k] : 0);
}

void load(Access& a, const MemoryAccess& m, const CheckPlan& plan) {
  u32 dwords = (m.bytes + 3u) / 4;
  u64 undefined[8] = {};
  bool any = false;
  if (whole_dwords(m) && !a.s.undefined_stored) {
    for (u32 part = 0; part < m.parts; ++part)
      for_lanes(m.lanes, [&](int l) {
        a.lane = l;
        for (u32 k = 0, d = static_cast<u32>(m.address[part][l]) / 4; k < dwords; ++k) {
          if (a.quiet_read(d + k) || a.read(d + k, 15)) continue;
          any = true;
          undefined[std::min(part * dwords + k, 7u)] |= u64(1) << l;
        }
      });
    return loaded(a, m, plan, any ? undefined : nullptr);
  }
  for (u32 part = 0; part < m.parts; ++part) {
    for_lanes(m.lanes, [&](int l) {
      a.lane = l;
      for_dwords(static_cast<u32>(m.address[part][l]), m.bytes, [&](u32 d, u32 bytes, u32 k) {
        bool known = a.read(d, bytes);
        if (known && a.s.undefined_stored && (a.s.writer.meta[d] & Shadow::kUndefined)) known = false;
        if (known) return;
        any = true;
        undefined[std::min(part * dwords + std::min(k, dwords - 1), 7u)] |= u64(1) << l;
      });
    });
  }
  loaded(a, m, plan, any ? undefined : nullptr);
}

void store(Access& a, const MemoryAccess& m, bool data_undefined) {
  if (whole_dwords(m) && !data_undefined) {
    for (u32 part = 0; part < m.parts; ++part)
      for_lanes(m.lanes, [&](int l) {
        a.lane = l;
        for (u32 k = 0, d = static_cast<u32>(m.address[part][l]) / 4; k < m.bytes / 4u; ++k)
          if (!a.quiet_write(d + k)) a.write(d + k, 15);
      });
    return;
  }
  for (u32 part = 0; part < m.parts; ++part) {
    const Operand& data = a.i.src[a.i.src_count > 1 ? 1 + part : 0];
    for_lanes(m.lanes, [&](int l) {
      a.lane = l;
      for_dwords(static_cast<u32>(m.address[part][l]), m.bytes, [&](u32 d, u32 bytes, u32 k) {
        u32 meta = a.meta;
        if (data_undefined && data.is_vector() && ((check_of(a.wave).undefined[data.reg + k] >> l) & 1))
          a.meta |= Shadow::kUndefined, a.s.undefined_stored = true;
        a.write(d, bytes);
        a.meta = meta;
      });
    });
  }
}

}  // namespace

void check_lds(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& m) {
  if (m.kind == AccessKind::kLoadToLds) {
    Access a(wave, i, true);
    u32 bytes = std::max<u32>(m.bytes, 4);
    for_lanes(m.lanes, [&](int l) {
      a.lane = l;
      for_dwords(static_cast<u32>(m.address[1][l]), bytes, [&](u32 d, u32 mask, u32) { a.write(d, mask); });
    });
    return;
  }
  Access a(wave, i, false);
  if (a.launch.options[CheckKind::kMisalignedLds])
    for (u32 part = 0; part < m.parts; ++part) check_alignment(a, m, part);
  if (m.kind == AccessKind::kLoad) return load(a, m, plan);
  if (m.kind == AccessKind::kAtomic) {
    a.meta |= Shadow::kAtomic;
    if (plan.writes) load(a, m, plan);
    return store(a, m, false);
  }
  bool data_undefined = false;
  for (u32 k = 1; k < i.src_count; ++k)
    for (u32 r = 0; i.src[k].is_vector() && r < i.src[k].dwords; ++r)
      data_undefined = data_undefined || (check_of(wave).undefined[i.src[k].reg + r] & m.lanes);
  store(a, m, data_undefined);
}

}  // namespace crest_sim
