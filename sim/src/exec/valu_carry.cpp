// Additions with carry lanes and selections by lane mask.
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

enum class Carry { kAdd, kSub, kSubRev };

template <Carry Op, bool In>
void carry(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  Row b0, b1, result, out, in;
  const u32* a = stage(w, i, 0, Type::kU32, b0, exec);
  const u32* b = stage(w, i, 1, Type::kU32, b1, exec);
  if constexpr (In) expand_mask(lane_mask(w, i.src[2]), in.lane, w.lanes);
  for_lanes(w.lanes, [&](u32 l) {
    u32 c = In ? in.lane[l] & 1 : 0;
    u32 x = Op == Carry::kSubRev ? b[l] : a[l], y = Op == Carry::kSubRev ? a[l] : b[l];
    u32 r = Op == Carry::kAdd ? x + y + c : x - y - c;
    bool over = Op == Carry::kAdd ? (r < x) | ((r == x) & (c != 0) & (y == ~0u)) : (x < y) | ((x == y) & (c != 0));
    out.lane[l] = over ? ~0u : 0u;
    result.lane[l] = r;
  });
  u64 carries = collect_signs(out.lane, w.lanes) & exec;
  finish(w, i, Type::kU32, result, exec);
  if (i.dst_count > 1) set_lane_mask(w, i.dst[1].reg, carries);
}

/// All lanes, whole registers or scalars: straight from the sources to the destination.
template <Carry Op, bool In, bool RowA, bool RowB>
void carry_plain(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return carry<Op, In>(w, i);
  Row out, in;
  const u32* a = RowA ? row(w, i.src[0]) : nullptr;
  const u32* b = RowB ? row(w, i.src[1]) : nullptr;
  u32 ua = RowA ? 0 : scalar(w, i.src[0]), ub = RowB ? 0 : scalar(w, i.src[1]), *d = row(w, i.dst[0]);
  if constexpr (In) expand_mask(lane_mask(w, i.src[2]), in.lane, w.lanes);
  for_lanes(w.lanes, [&](u32 l) {
    u32 first = RowA ? a[l] : ua, second = RowB ? b[l] : ub;
    u32 x = Op == Carry::kSubRev ? second : first, y = Op == Carry::kSubRev ? first : second;
    u32 c = In ? in.lane[l] : 0;  // 0 or all ones, that is -1
    u32 r = Op == Carry::kAdd ? x + y - c : x - y + c;
    u32 over = Op == Carry::kAdd ? (r < x ? ~0u : 0u) | (r == x ? c : 0u) : (x < y ? ~0u : 0u) | (x == y ? c : 0u);
    out.lane[l] = over;
    d[l] = r;
  });
  if (i.dst_count > 1) set_lane_mask(w, i.dst[1].reg, collect_signs(out.lane, w.lanes));
}

template <Carry Op, bool In>
void add_carry(Registry& r, const char* name) {
  r.add(name, [](Instruction& i, const BindContext&) -> ExecuteFn {
    if (!is_unmodified(i, 2)) return carry<Op, In>;
    if (i.src[0].is_vector())
      return i.src[1].is_vector() ? carry_plain<Op, In, true, true> : carry_plain<Op, In, true, false>;
    return i.src[1].is_vector() ? carry_plain<Op, In, false, true> : carry<Op, In>;
  });
}

template <Type T>
void cndmask(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  Row b0, b1, mask, result;
  const u32* a = stage(w, i, 0, T, b0, exec);
  const u32* b = stage(w, i, 1, T, b1, exec);
  expand_mask(lane_mask(w, i.src[2]), mask.lane, w.lanes);
  for_lanes(w.lanes, [&](u32 l) { result.lane[l] = (b[l] & mask.lane[l]) | (a[l] & ~mask.lane[l]); });
  finish(w, i, T, result, exec);
}

template <unsigned Shape>
void cndmask_plain(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return cndmask<Type::kB32>(w, i);
  Row mask;
  expand_mask(lane_mask(w, i.src[2]), mask.lane, w.lanes);
  u32* d = row(w, i.dst[0]);
  const u32* a = Shape & 1 ? row(w, i.src[0]) : nullptr;
  const u32* b = Shape & 2 ? row(w, i.src[1]) : nullptr;
  u32 ua = Shape & 1 ? 0 : scalar(w, i.src[0]), ub = Shape & 2 ? 0 : scalar(w, i.src[1]);
  for_lanes(w.lanes, [&](u32 l) {
    d[l] = ((Shape & 2 ? b[l] : ub) & mask.lane[l]) | ((Shape & 1 ? a[l] : ua) & ~mask.lane[l]);
  });
}

ExecuteFn bind_cndmask(Instruction& i, const BindContext&) {
  if (i.src_count < 3) return nullptr;
  if (!is_unmodified(i, 2)) return cndmask<Type::kB32>;
  switch (static_cast<unsigned>(i.src[0].is_vector()) | static_cast<unsigned>(i.src[1].is_vector()) << 1) {
    case 0:
      return cndmask_plain<0>;
    case 1:
      return cndmask_plain<1>;
    case 2:
      return cndmask_plain<2>;
    default:
      return cndmask_plain<3>;
  }
}

ExecuteFn bind_cndmask16(Instruction& i, const BindContext& c) {
  if (i.src_count < 3) return nullptr;
  choose_half(i, c, true);
  return cndmask<Type::kB16>;
}

}  // namespace

void register_valu_carry(Registry& r) {
  add_carry<Carry::kAdd, false>(r, "v_add_co_u32");
  add_carry<Carry::kSub, false>(r, "v_sub_co_u32");
  add_carry<Carry::kSubRev, false>(r, "v_subrev_co_u32");
  add_carry<Carry::kAdd, true>(r, "v_addc_co_u32");
  add_carry<Carry::kSub, true>(r, "v_subb_co_u32");
  add_carry<Carry::kSubRev, true>(r, "v_subbrev_co_u32");
  r.alias("v_add_co_ci_u32", "v_addc_co_u32");
  r.alias("v_sub_co_ci_u32", "v_subb_co_u32");
  r.alias("v_subrev_co_ci_u32", "v_subbrev_co_u32");
  r.add("v_cndmask_b32", bind_cndmask);
  r.add("v_cndmask_b16", bind_cndmask16);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
