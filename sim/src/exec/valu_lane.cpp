// Operations that move values between lanes, or between lanes and scalars.
#include <utility>

#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

void readfirstlane(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  u32 lane = exec ? static_cast<u32>(std::countr_zero(exec)) : 0;
  w.s[i.dst[0].reg] = i.src[0].is_vector() ? row(w, i.src[0])[lane] : scalar(w, i.src[0]);
}

void readlane(Wave& w, const Instruction& i) {
  u32 lane = scalar(w, i.src[1]) & (w.lanes - 1);
  w.s[i.dst[0].reg] = i.src[0].is_vector() ? row(w, i.src[0])[lane] : scalar(w, i.src[0]);
}

void writelane(Wave& w, const Instruction& i) {
  row(w, i.dst[0])[scalar(w, i.src[1]) & (w.lanes - 1)] = scalar(w, i.src[0]);
}

/// Rows of 16 lanes; the selectors give four bits per lane. op_sel of src0 fetches inactive lanes, of src1 gives 0 for
/// them.
template <bool Across>
void permlane16(Wave& w, const Instruction& i) {
  u64 select = static_cast<u64>(scalar(w, i.src[2])) << 32 | scalar(w, i.src[1]);
  u64 exec = w.exec();
  const u32* a = row(w, i.src[0]);
  u32* d = row(w, i.dst[0]);
  bool fetch_inactive = i.src[0].mods & kHigh, bound = i.src[1].mods & kHigh;
  Row result;
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 from = ((l & ~15u) ^ (Across ? 16 : 0)) + static_cast<u32>((select >> ((l & 15) * 4)) & 15);
    bool good = fetch_inactive || ((exec >> from) & 1);
    result.lane[l] = good ? a[from] : bound ? 0 : d[l];
  }
  merge_row(w, d, result.lane, exec);
}

/// Swaps the halves of a wave64; nothing in wave32.
void permlane64(Wave& w, const Instruction& i) {
  if (w.lanes == 32) return;
  const u32* a = row(w, i.src[0]);
  Row result;
  u64 exec = w.exec();
  for (u32 l = 0; l < w.lanes; ++l) result.lane[l] = a[l ^ 32];
  merge_row(w, row(w, i.dst[0]), result.lane, exec);
}

/// gfx950: odd rows of the first register change places with even rows of the second (rows of 16 or 32 lanes).
template <u32 RowLanes>
void permlane_swap(Wave& w, const Instruction& i) {
  u32 *a = row(w, i.dst[0]), *b = row(w, i.dst[1]);
  u64 exec = w.exec();
  bool fetch_inactive = i.dst[0].mods & kHigh || i.fetch_inactive;
  for (u32 base = 0; base < w.lanes; base += 2 * RowLanes)
    for (u32 l = 0; l < RowLanes; ++l) {
      u32 odd = base + RowLanes + l, even = base + l;
      bool x = (exec >> odd) & 1, y = (exec >> even) & 1;
      u32 from_a = a[odd], from_b = b[even];
      if (x && (y || fetch_inactive || i.bound_ctrl)) a[odd] = y || fetch_inactive ? from_b : 0;
      if (y && (x || fetch_inactive || i.bound_ctrl)) b[even] = x || fetch_inactive ? from_a : 0;
    }
}

template <bool High>
void mbcnt(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  Row b0, b1, result;
  const u32* a = stage(w, i, 0, Type::kU32, b0, exec);
  const u32* b = stage(w, i, 1, Type::kU32, b1, exec);
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 below = High ? (l > 32 ? (1u << (l - 32)) - 1 : 0) : (l >= 32 ? ~0u : (1u << l) - 1);
    result.lane[l] = static_cast<u32>(__builtin_popcount(a[l] & below)) + b[l];
  }
  finish(w, i, Type::kU32, result, exec);
}

void swap(Wave& w, const Instruction& i) {
  u32 *a = row(w, i.dst[0]), *b = row(w, i.dst[1]);
  Row x, y;
  u64 exec = w.exec();
  std::memcpy(x.lane, a, w.lanes * 4);
  std::memcpy(y.lane, b, w.lanes * 4);
  merge_row(w, a, y.lane, exec);
  merge_row(w, b, x.lane, exec);
}

void swap16(Wave& w, const Instruction& i) {
  u32 *a = row(w, i.dst[0]), *b = row(w, i.dst[1]);
  u32 sa = i.dst[0].mods & kHigh ? 16 : 0, sb = i.dst[1].mods & kHigh ? 16 : 0;
  for_active(w.exec(), [&](int l) {
    u32 x = (a[l] >> sa) & 0xffff, y = (b[l] >> sb) & 0xffff;
    a[l] = (a[l] & ~(0xffffu << sa)) | y << sa;
    b[l] = (b[l] & ~(0xffffu << sb)) | x << sb;
  });
}

/// VGPR `reg` + offset, checked against the kernel's allocation.
u32* relative_row(Wave& w, const Instruction& i, const Operand& o, u32 offset) {
  u64 reg = u64(o.reg) + offset;
  if (reg >= w.vgpr_limit)
    raise_fault(w, i, FaultKind::kRegisterRange, -1, reg,
                "register index of a relative move lies beyond the kernel's VGPRs");
  return w.v + reg * w.lanes;
}

/// Offsets from M0: 0 none, 1 M0[31:0], 2 the bytes of v_movrelsd_2 (source M0[7:0], destination M0[23:16]).
template <bool Source, bool Destination, bool Split>
void move_relative(Wave& w, const Instruction& i) {
  u32 m0 = w.s[cell::kM0];
  u32 source = Split ? m0 & 255 : m0, destination = Split ? (m0 >> 16) & 255 : m0;
  u64 exec = w.exec();
  Row buffer;
  const u32* a =
      Source && i.src[0].is_vector() ? relative_row(w, i, i.src[0], source) : stage(w, i, 0, Type::kU32, buffer, exec);
  u32* d = Destination ? relative_row(w, i, i.dst[0], destination) : row(w, i.dst[0]);
  Row copy;
  std::memcpy(copy.lane, a, w.lanes * 4);
  merge_row(w, d, copy.lane, exec);
}

/// Exchange of two registers, moved by the parts of M0 as for v_movrelsd_2.
void swap_relative(Wave& w, const Instruction& i) {
  u32 m0 = w.s[cell::kM0];
  u32 *a = relative_row(w, i, i.dst[0], (m0 >> 16) & 255), *b = relative_row(w, i, i.dst[1], m0 & 255);
  for_active(w.exec(), [&](int l) { std::swap(a[l], b[l]); });
}

}  // namespace

void register_valu_lane(Registry& r) {
  r.add<readfirstlane>("v_readfirstlane_b32");
  r.add<readlane>("v_readlane_b32");
  r.add<writelane>("v_writelane_b32");
  r.add<permlane16<false>>("v_permlane16_b32");
  r.add<permlane16<true>>("v_permlanex16_b32");
  r.add<permlane64>("v_permlane64_b32");
  r.add<permlane_swap<16>>("v_permlane16_swap_b32");
  r.add<permlane_swap<32>>("v_permlane32_swap_b32");
  r.add<mbcnt<false>>("v_mbcnt_lo_u32_b32");
  r.add<mbcnt<true>>("v_mbcnt_hi_u32_b32");
  r.add<swap>("v_swap_b32");
  r.add<swap16>("v_swap_b16");
  r.add<swap_relative>("v_swaprel_b32");
  r.add<move_relative<false, true, false>>("v_movreld_b32");
  r.add<move_relative<true, false, false>>("v_movrels_b32");
  r.add<move_relative<true, true, false>>("v_movrelsd_b32");
  r.add<move_relative<true, true, true>>("v_movrelsd_2_b32");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
