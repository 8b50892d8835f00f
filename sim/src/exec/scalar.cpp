// SALU. SCC lives in its own cell of the scalar file; a 64-bit register is two neighbouring cells.
#include "exec/common.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

inline u32& scc(Wave& w) { return w.s[cell::kScc]; }
inline i32 s(u32 x) { return static_cast<i32>(x); }

/// F(a, b) → result; SCC = result != 0 if asked for.
template <class F, bool SetScc>
void op32(Wave& w, const Instruction& i) {
  u32 r = F{}(scalar(w, i.src[0]), scalar(w, i.src[1]));
  if constexpr (SetScc) scc(w) = r != 0;
  w.s[i.dst[0].reg] = r;
}
template <class F, bool SetScc>
void op64(Wave& w, const Instruction& i) {
  u64 r = F{}(scalar64(w, i.src[0]), scalar64(w, i.src[1]));
  if constexpr (SetScc) scc(w) = r != 0;
  w.write64(i.dst[0].reg, r);
}
/// 64-bit value, 32-bit second operand (shifts, bit fields).
template <class F, bool SetScc>
void op64_32(Wave& w, const Instruction& i) {
  u64 r = F{}(scalar64(w, i.src[0]), scalar(w, i.src[1]));
  if constexpr (SetScc) scc(w) = r != 0;
  w.write64(i.dst[0].reg, r);
}
template <class F, bool SetScc>
void un32(Wave& w, const Instruction& i) {
  u32 r = F{}(scalar(w, i.src[0]));
  if constexpr (SetScc) scc(w) = r != 0;
  w.s[i.dst[0].reg] = r;
}
template <class F, bool SetScc>
void un64(Wave& w, const Instruction& i) {
  u64 r = F{}(scalar64(w, i.src[0]));
  if constexpr (SetScc) scc(w) = r != 0;
  w.write64(i.dst[0].reg, r);
}
template <class F, bool SetScc>
void un64_to_32(Wave& w, const Instruction& i) {
  u32 r = F{}(scalar64(w, i.src[0]));
  if constexpr (SetScc) scc(w) = r != 0;
  w.s[i.dst[0].reg] = r;
}
/// F(a, b, scc_in) → {result, scc_out}.
struct Pair {
  u32 value;
  u32 scc;
};
template <class F>
void carry(Wave& w, const Instruction& i) {
  Pair r = F{}(scalar(w, i.src[0]), scalar(w, i.src[1]), w.s[cell::kScc]);
  scc(w) = r.scc;
  w.s[i.dst[0].reg] = r.value;
}
template <class F>
void compare32(Wave& w, const Instruction& i) {
  scc(w) = F{}(scalar(w, i.src[0]), scalar(w, i.src[1]));
}
template <class F>
void compare64(Wave& w, const Instruction& i) {
  scc(w) = F{}(scalar64(w, i.src[0]), scalar64(w, i.src[1]));
}
template <class F, bool Signed>
void compare_k(Wave& w, const Instruction& i) {
  u32 k = Signed ? static_cast<u32>(i.offset) : static_cast<u32>(i.offset) & 0xffff;
  scc(w) = F{}(scalar(w, i.src[0]), k);
}

template <bool SetScc, class F>
void add32(Registry& r, const char* name, F) {
  r.add<op32<F, SetScc>>(name);
}
template <bool SetScc, class F>
void add64(Registry& r, const char* name, F) {
  r.add<op64<F, SetScc>>(name);
}
template <bool SetScc, class F>
void add64_32(Registry& r, const char* name, F) {
  r.add<op64_32<F, SetScc>>(name);
}
template <bool SetScc, class F>
void add_un32(Registry& r, const char* name, F) {
  r.add<un32<F, SetScc>>(name);
}
template <bool SetScc, class F>
void add_un64(Registry& r, const char* name, F) {
  r.add<un64<F, SetScc>>(name);
}
template <bool SetScc, class F>
void add_un64_to_32(Registry& r, const char* name, F) {
  r.add<un64_to_32<F, SetScc>>(name);
}
template <class F>
void add_carry(Registry& r, const char* name, F) {
  r.add<carry<F>>(name);
}

void register_logic(Registry& r) {
  auto both = [&]<class F>(const std::string& op, F) {
    r.add<op32<F, true>>("s_" + op + "_b32");
    r.add<op64<F, true>>("s_" + op + "_b64");
  };
  both("and", [](auto a, auto b) { return a & b; });
  both("or", [](auto a, auto b) { return a | b; });
  both("xor", [](auto a, auto b) { return a ^ b; });
  both("andn2", [](auto a, auto b) { return a & ~b; });
  both("orn2", [](auto a, auto b) { return a | ~b; });
  both("nand", [](auto a, auto b) { return ~(a & b); });
  both("nor", [](auto a, auto b) { return ~(a | b); });
  both("xnor", [](auto a, auto b) { return ~(a ^ b); });
  add_un32<true>(r, "s_not_b32", [](u32 a) { return ~a; });
  add_un64<true>(r, "s_not_b64", [](u64 a) { return ~a; });
  for (auto width : {"_b32", "_b64"}) {
    r.alias(std::string("s_and_not1") + width, std::string("s_andn2") + width);
    r.alias(std::string("s_or_not1") + width, std::string("s_orn2") + width);
  }
}

void register_shifts(Registry& r) {
  add32<true>(r, "s_lshl_b32", [](u32 a, u32 b) { return a << (b & 31); });
  add32<true>(r, "s_lshr_b32", [](u32 a, u32 b) { return a >> (b & 31); });
  add32<true>(r, "s_ashr_i32", [](u32 a, u32 b) { return static_cast<u32>(s(a) >> (b & 31)); });
  add64_32<true>(r, "s_lshl_b64", [](u64 a, u32 b) { return a << (b & 63); });
  add64_32<true>(r, "s_lshr_b64", [](u64 a, u32 b) { return a >> (b & 63); });
  add64_32<true>(r, "s_ashr_i64", [](u64 a, u32 b) { return static_cast<u64>(static_cast<i64>(a) >> (b & 63)); });
  add32<false>(r, "s_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); });
  r.add<[](Wave& w, const Instruction& i) {
    w.write64(i.dst[0].reg, ((u64(1) << (scalar(w, i.src[0]) & 63)) - 1) << (scalar(w, i.src[1]) & 63));
  }>("s_bfm_b64");
  add32<true>(r, "s_bfe_u32", [](u32 a, u32 b) {
    u32 width = (b >> 16) & 127, x = a >> (b & 31);
    return width >= 32 ? x : x & ((1u << width) - 1);
  });
  add32<true>(r, "s_bfe_i32", [](u32 a, u32 b) {
    u32 width = (b >> 16) & 127;
    i32 x = s(a) >> (b & 31);
    return width == 0    ? 0
           : width >= 32 ? static_cast<u32>(x)
                         : static_cast<u32>(s(static_cast<u32>(x) << (32 - width)) >> (32 - width));
  });
  add64_32<true>(r, "s_bfe_u64", [](u64 a, u32 b) {
    u32 width = (b >> 16) & 127;
    u64 x = a >> (b & 63);
    return width >= 64 ? x : x & ((u64(1) << width) - 1);
  });
  add64_32<true>(r, "s_bfe_i64", [](u64 a, u32 b) {
    u32 width = (b >> 16) & 127;
    i64 x = static_cast<i64>(a) >> (b & 63);
    return width == 0    ? u64(0)
           : width >= 64 ? static_cast<u64>(x)
                         : static_cast<u64>(static_cast<i64>(static_cast<u64>(x) << (64 - width)) >> (64 - width));
  });
}

Pair add_signed(u32 a, u32 b) {
  i32 r;
  bool over = __builtin_add_overflow(s(a), s(b), &r);
  return {static_cast<u32>(r), over};
}
Pair sub_signed(u32 a, u32 b) {
  i32 r;
  bool over = __builtin_sub_overflow(s(a), s(b), &r);
  return {static_cast<u32>(r), over};
}

void register_arithmetic(Registry& r) {
  add_carry(r, "s_add_u32", [](u32 a, u32 b, u32) { return Pair{a + b, a + b < a}; });
  add_carry(r, "s_addc_u32", [](u32 a, u32 b, u32 c) {
    u64 x = u64(a) + b + c;
    return Pair{static_cast<u32>(x), static_cast<u32>(x >> 32)};
  });
  add_carry(r, "s_sub_u32", [](u32 a, u32 b, u32) { return Pair{a - b, b > a}; });
  add_carry(r, "s_subb_u32", [](u32 a, u32 b, u32 c) { return Pair{a - b - c, u64(b) + c > a}; });
  add_carry(r, "s_add_i32", [](u32 a, u32 b, u32) { return add_signed(a, b); });
  add_carry(r, "s_sub_i32", [](u32 a, u32 b, u32) { return sub_signed(a, b); });
  auto shifted = [&]<int N>(std::integral_constant<int, N>) {
    add_carry(r, ("s_lshl" + std::to_string(N) + "_add_u32").c_str(), [](u32 a, u32 b, u32) {
      u64 x = (u64(a) << N) + b;
      return Pair{static_cast<u32>(x), x > UINT32_MAX};
    });
  };
  shifted(std::integral_constant<int, 1>{});
  shifted(std::integral_constant<int, 2>{});
  shifted(std::integral_constant<int, 3>{});
  shifted(std::integral_constant<int, 4>{});
  auto choose = [&]<class F>(const char* name, F) {
    add_carry(r, name, [](u32 a, u32 b, u32) { return Pair{F{}(a, b) ? a : b, F{}(a, b)}; });
  };
  choose("s_min_u32", [](u32 a, u32 b) { return a < b; });
  choose("s_max_u32", [](u32 a, u32 b) { return a > b; });
  choose("s_min_i32", [](u32 a, u32 b) { return s(a) < s(b); });
  choose("s_max_i32", [](u32 a, u32 b) { return s(a) > s(b); });
  add32<true>(r, "s_absdiff_i32", [](u32 a, u32 b) { return s(a) > s(b) ? a - b : b - a; });
  add_un32<true>(r, "s_abs_i32", [](u32 a) { return s(a) < 0 ? 0u - a : a; });
  add32<false>(r, "s_mul_i32", [](u32 a, u32 b) { return a * b; });
  add32<false>(r, "s_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(u64(a) * b >> 32); });
  add32<false>(r, "s_mul_hi_i32", [](u32 a, u32 b) { return static_cast<u32>(i64(s(a)) * s(b) >> 32); });
  add32<false>(r, "s_pack_ll_b32_b16", [](u32 a, u32 b) { return (a & 0xffff) | b << 16; });
  add32<false>(r, "s_pack_lh_b32_b16", [](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); });
  add32<false>(r, "s_pack_hh_b32_b16", [](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); });
  add32<false>(r, "s_pack_hl_b32_b16", [](u32 a, u32 b) { return a >> 16 | b << 16; });
  // SOPK: the destination is also a source.
  r.add<[](Wave& w, const Instruction& i) { w.s[i.dst[0].reg] = static_cast<u32>(i.offset); }>("s_movk_i32");
  r.add<[](Wave& w, const Instruction& i) {
    if (scc(w)) w.s[i.dst[0].reg] = static_cast<u32>(i.offset);
  }>("s_cmovk_i32");
  r.add<[](Wave& w, const Instruction& i) {
    Pair p = add_signed(w.s[i.dst[0].reg], static_cast<u32>(i.offset));
    scc(w) = p.scc;
    w.s[i.dst[0].reg] = p.value;
  }>("s_addk_i32");
  r.add<[](Wave& w, const Instruction& i) { w.s[i.dst[0].reg] *= static_cast<u32>(i.offset); }>("s_mulk_i32");
}

void register_moves(Registry& r) {
  add_un32<false>(r, "s_mov_b32", [](u32 a) { return a; });
  add_un64<false>(r, "s_mov_b64", [](u64 a) { return a; });
  r.add<[](Wave& w, const Instruction& i) {
    if (scc(w)) w.s[i.dst[0].reg] = scalar(w, i.src[0]);
  }>("s_cmov_b32");
  r.add<[](Wave& w, const Instruction& i) {
    if (scc(w)) w.write64(i.dst[0].reg, scalar64(w, i.src[0]));
  }>("s_cmov_b64");
  r.add<[](Wave& w, const Instruction& i) { w.s[i.dst[0].reg] = scc(w) ? scalar(w, i.src[0]) : scalar(w, i.src[1]); }>(
      "s_cselect_b32");
  r.add<[](Wave& w, const Instruction& i) {
    w.write64(i.dst[0].reg, scc(w) ? scalar64(w, i.src[0]) : scalar64(w, i.src[1]));
  }>("s_cselect_b64");
  auto relative = [](Wave& w, const Instruction& i, const Operand& o, u32 width) -> u32 {
    u64 reg = u64(o.reg) + w.s[cell::kM0];
    if (reg + width > cell::kFlatScratch)
      raise_fault(w, i, FaultKind::kRegisterRange, -1, reg, "index of a relative scalar move is out of range");
    return static_cast<u32>(reg);
  };
  using Relative = decltype(relative);
  r.add<[](Wave& w, const Instruction& i) { w.s[i.dst[0].reg] = w.s[Relative{}(w, i, i.src[0], 1)]; }>("s_movrels_b32");
  r.add<[](Wave& w, const Instruction& i) { w.write64(i.dst[0].reg, w.read64(Relative{}(w, i, i.src[0], 2))); }>(
      "s_movrels_b64");
  r.add<[](Wave& w, const Instruction& i) { w.s[Relative{}(w, i, i.dst[0], 1)] = scalar(w, i.src[0]); }>(
      "s_movreld_b32");
  r.add<[](Wave& w, const Instruction& i) { w.write64(Relative{}(w, i, i.dst[0], 2), scalar64(w, i.src[0])); }>(
      "s_movreld_b64");
}

void register_bits(Registry& r) {
  add_un32<false>(r, "s_brev_b32", [](u32 a) { return __builtin_bitreverse32(a); });
  add_un64<false>(r, "s_brev_b64", [](u64 a) { return __builtin_bitreverse64(a); });
  add_un32<false>(r, "s_ff1_i32_b32", [](u32 a) { return a ? static_cast<u32>(__builtin_ctz(a)) : ~0u; });
  add_un64_to_32<false>(r, "s_ff1_i32_b64", [](u64 a) { return a ? static_cast<u32>(__builtin_ctzll(a)) : ~0u; });
  add_un32<false>(r, "s_ff0_i32_b32", [](u32 a) { return ~a ? static_cast<u32>(__builtin_ctz(~a)) : ~0u; });
  add_un64_to_32<false>(r, "s_ff0_i32_b64", [](u64 a) { return ~a ? static_cast<u32>(__builtin_ctzll(~a)) : ~0u; });
  add_un32<false>(r, "s_flbit_i32_b32", [](u32 a) { return a ? static_cast<u32>(__builtin_clz(a)) : ~0u; });
  add_un64_to_32<false>(r, "s_flbit_i32_b64", [](u64 a) { return a ? static_cast<u32>(__builtin_clzll(a)) : ~0u; });
  add_un32<false>(r, "s_flbit_i32", [](u32 a) {
    u32 x = s(a) < 0 ? ~a : a;
    return x ? static_cast<u32>(__builtin_clz(x)) : ~0u;
  });
  add_un64_to_32<false>(r, "s_flbit_i32_i64", [](u64 a) {
    u64 x = static_cast<i64>(a) < 0 ? ~a : a;
    return x ? static_cast<u32>(__builtin_clzll(x)) : ~0u;
  });
  add_un32<true>(r, "s_bcnt1_i32_b32", [](u32 a) { return static_cast<u32>(__builtin_popcount(a)); });
  add_un64_to_32<true>(r, "s_bcnt1_i32_b64", [](u64 a) { return static_cast<u32>(__builtin_popcountll(a)); });
  add_un32<true>(r, "s_bcnt0_i32_b32", [](u32 a) { return static_cast<u32>(__builtin_popcount(~a)); });
  add_un64_to_32<true>(r, "s_bcnt0_i32_b64", [](u64 a) { return static_cast<u32>(__builtin_popcountll(~a)); });
  add_un32<false>(r, "s_sext_i32_i8", [](u32 a) { return static_cast<u32>(static_cast<i32>(static_cast<int8_t>(a))); });
  add_un32<false>(r, "s_sext_i32_i16",
                  [](u32 a) { return static_cast<u32>(static_cast<i32>(static_cast<int16_t>(a))); });
  for (auto [name, same] : {std::pair{"s_ctz_i32_b32", "s_ff1_i32_b32"},
                            {"s_ctz_i32_b64", "s_ff1_i32_b64"},
                            {"s_clz_i32_u32", "s_flbit_i32_b32"},
                            {"s_clz_i32_u64", "s_flbit_i32_b64"},
                            {"s_cls_i32", "s_flbit_i32"},
                            {"s_cls_i32_i64", "s_flbit_i32_i64"}})
    r.alias(name, same);
  r.add<[](Wave& w, const Instruction& i) { w.s[i.dst[0].reg] &= ~(1u << (scalar(w, i.src[0]) & 31)); }>(
      "s_bitset0_b32");
  r.add<[](Wave& w, const Instruction& i) { w.s[i.dst[0].reg] |= 1u << (scalar(w, i.src[0]) & 31); }>("s_bitset1_b32");
  r.add<[](Wave& w, const Instruction& i) {
    w.write64(i.dst[0].reg, w.read64(i.dst[0].reg) & ~(u64(1) << (scalar(w, i.src[0]) & 63)));
  }>("s_bitset0_b64");
  r.add<[](Wave& w, const Instruction& i) {
    w.write64(i.dst[0].reg, w.read64(i.dst[0].reg) | u64(1) << (scalar(w, i.src[0]) & 63));
  }>("s_bitset1_b64");
  r.add<[](Wave& w, const Instruction& i) {
    u32 a = scalar(w, i.src[0]);
    u64 out = 0;
    for (int b = 0; b < 32; ++b) out |= u64((a >> b) & 1) * 3 << (2 * b);
    w.write64(i.dst[0].reg, out);
  }>("s_bitreplicate_b64_b32");
  // Whole-quad mode: a group of four lanes is on if any of its lanes is.
  add_un32<true>(r, "s_wqm_b32", [](u32 a) {
    u32 any = (a | a >> 1 | a >> 2 | a >> 3) & 0x11111111u;
    return any * 15;
  });
  add_un64<true>(r, "s_wqm_b64", [](u64 a) {
    u64 any = (a | a >> 1 | a >> 2 | a >> 3) & 0x1111111111111111ull;
    return any * 15;
  });
  add_un32<true>(r, "s_quadmask_b32", [](u32 a) {
    u32 out = 0;
    for (int q = 0; q < 8; ++q) out |= static_cast<u32>(((a >> 4 * q) & 15) != 0) << q;
    return out;
  });
  add_un64<true>(r, "s_quadmask_b64", [](u64 a) {
    u64 out = 0;
    for (int q = 0; q < 16; ++q) out |= static_cast<u64>(((a >> 4 * q) & 15) != 0) << q;
    return out;
  });
}

template <class F>
void add_compare(Registry& r, const std::string& op, F) {
  using Signed = decltype([](u32 a, u32 b) { return F{}(s(a), s(b)); });
  r.add<compare32<Signed>>("s_cmp_" + op + "_i32");
  r.add<compare32<F>>("s_cmp_" + op + "_u32");
  r.add<compare_k<Signed, true>>("s_cmpk_" + op + "_i32");
  r.add<compare_k<F, false>>("s_cmpk_" + op + "_u32");
}

void register_compares(Registry& r) {
  add_compare(r, "eq", [](auto a, auto b) { return a == b; });
  add_compare(r, "lg", [](auto a, auto b) { return a != b; });
  add_compare(r, "gt", [](auto a, auto b) { return a > b; });
  add_compare(r, "ge", [](auto a, auto b) { return a >= b; });
  add_compare(r, "lt", [](auto a, auto b) { return a < b; });
  add_compare(r, "le", [](auto a, auto b) { return a <= b; });
  r.add<compare64<decltype([](u64 a, u64 b) { return a == b; })>>("s_cmp_eq_u64");
  r.add<compare64<decltype([](u64 a, u64 b) { return a != b; })>>("s_cmp_lg_u64");
  r.add<compare32<decltype([](u32 a, u32 b) { return !((a >> (b & 31)) & 1); })>>("s_bitcmp0_b32");
  r.add<compare32<decltype([](u32 a, u32 b) { return (a >> (b & 31)) & 1; })>>("s_bitcmp1_b32");
  r.add<[](Wave& w, const Instruction& i) { scc(w) = !((scalar64(w, i.src[0]) >> (scalar(w, i.src[1]) & 63)) & 1); }>(
      "s_bitcmp0_b64");
  r.add<[](Wave& w, const Instruction& i) { scc(w) = (scalar64(w, i.src[0]) >> (scalar(w, i.src[1]) & 63)) & 1; }>(
      "s_bitcmp1_b64");
}

/// Saves EXEC in the destination, combines it with the source; SCC = EXEC is not zero.
template <class F, bool Wide, bool ResultToDestination>
void save_exec(Wave& w, const Instruction& i) {
  u64 old = Wide ? w.read64(cell::kExec) : w.s[cell::kExec];
  u64 source = Wide ? scalar64(w, i.src[0]) : scalar(w, i.src[0]);
  u64 next = F{}(source, old);
  if (!Wide) next &= 0xffffffff;
  u64 kept = ResultToDestination ? next : old;
  if (Wide) {
    w.write64(i.dst[0].reg, kept);
    w.write64(cell::kExec, next);
  } else {
    w.s[i.dst[0].reg] = static_cast<u32>(kept);
    w.s[cell::kExec] = static_cast<u32>(next);
  }
  scc(w) = next != 0;
}

template <bool Result, class F>
void add_exec(Registry& r, const std::string& name, F) {
  r.add<save_exec<F, true, Result>>(name + "_b64");
  r.add<save_exec<F, false, Result>>(name + "_b32");
}

void register_exec(Registry& r) {
  add_exec<false>(r, "s_and_saveexec", [](u64 a, u64 e) { return a & e; });
  add_exec<false>(r, "s_or_saveexec", [](u64 a, u64 e) { return a | e; });
  add_exec<false>(r, "s_xor_saveexec", [](u64 a, u64 e) { return a ^ e; });
  add_exec<false>(r, "s_andn2_saveexec", [](u64 a, u64 e) { return a & ~e; });
  add_exec<false>(r, "s_orn2_saveexec", [](u64 a, u64 e) { return a | ~e; });
  add_exec<false>(r, "s_andn1_saveexec", [](u64 a, u64 e) { return ~a & e; });
  add_exec<false>(r, "s_orn1_saveexec", [](u64 a, u64 e) { return ~a | e; });
  add_exec<false>(r, "s_nand_saveexec", [](u64 a, u64 e) { return ~(a & e); });
  add_exec<false>(r, "s_nor_saveexec", [](u64 a, u64 e) { return ~(a | e); });
  add_exec<false>(r, "s_xnor_saveexec", [](u64 a, u64 e) { return ~(a ^ e); });
  add_exec<true>(r, "s_andn1_wrexec", [](u64 a, u64 e) { return ~a & e; });
  add_exec<true>(r, "s_andn2_wrexec", [](u64 a, u64 e) { return a & ~e; });
  for (std::string width : {"_b64", "_b32"}) {
    r.alias("s_and_not1_saveexec" + width, "s_andn2_saveexec" + width);
    r.alias("s_or_not1_saveexec" + width, "s_orn2_saveexec" + width);
    r.alias("s_and_not0_saveexec" + width, "s_andn1_saveexec" + width);
    r.alias("s_or_not0_saveexec" + width, "s_orn1_saveexec" + width);
    r.alias("s_and_not0_wrexec" + width, "s_andn1_wrexec" + width);
    r.alias("s_and_not1_wrexec" + width, "s_andn2_wrexec" + width);
  }
}

}  // namespace

void register_scalar(Registry& r) {
  register_logic(r);
  register_shifts(r);
  register_arithmetic(r);
  register_moves(r);
  register_bits(r);
  register_compares(r);
  register_exec(r);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
