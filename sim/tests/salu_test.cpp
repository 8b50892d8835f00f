// Scalar operations on random operands against bit-level references, with SCC.
#include <fmt/format.h>

#include <functional>
#include <map>

#include "assemble.h"
#include "machine.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

struct Outcome {
  u64 value;
  int scc = -1;  ///< -1: SCC stays
};
/// a, b: source values; old: destination before; scc before.
using Reference = std::function<Outcome(u64 a, u64 b, u64 old, int scc)>;

/// types: result and sources, '4' 32-bit, '8' 64-bit, '-' none, 'k' 16-bit immediate in place of a source.
struct Op {
  std::vector<const char*> names;
  std::string types;
  Reference reference;
};

i64 sx(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }
int nonzero(u64 x) { return x != 0; }
u64 low(u64 x) { return x & 0xffffffff; }

std::vector<Op> operations() {
  std::vector<Op> ops;
  auto logic = [&](const char* name, const char* other, std::function<u64(u64, u64)> f) {
    for (auto [width, type] : {std::pair{"_b32", '4'}, {"_b64", '8'}}) {
      static std::vector<std::string> keep;
      keep.reserve(256);
      std::vector<const char*> names;
      for (const char* n : {name, other})
        if (n) keep.push_back(std::string(n) + width), names.push_back(keep.back().c_str());
      bool narrow = type == '4';
      ops.push_back({names, std::string(3, type), [f, narrow](u64 a, u64 b, u64, int) {
                       u64 r = f(a, b);
                       if (narrow) r = low(r);
                       return Outcome{r, nonzero(r)};
                     }});
    }
  };
  logic("s_and", nullptr, [](u64 a, u64 b) { return a & b; });
  logic("s_or", nullptr, [](u64 a, u64 b) { return a | b; });
  logic("s_xor", nullptr, [](u64 a, u64 b) { return a ^ b; });
  logic("s_andn2", "s_and_not1", [](u64 a, u64 b) { return a & ~b; });
  logic("s_orn2", "s_or_not1", [](u64 a, u64 b) { return a | ~b; });
  logic("s_nand", nullptr, [](u64 a, u64 b) { return ~(a & b); });
  logic("s_nor", nullptr, [](u64 a, u64 b) { return ~(a | b); });
  logic("s_xnor", nullptr, [](u64 a, u64 b) { return ~(a ^ b); });
  auto set = [&](std::vector<const char*> n, const char* t, std::function<u64(u64, u64)> f) {
    bool narrow = t[0] == '4';
    ops.push_back({n, t, [f, narrow](u64 a, u64 b, u64, int) {
                     u64 r = f(a, b);
                     if (narrow) r = low(r);
                     return Outcome{r, nonzero(r)};
                   }});
  };
  auto keep = [&](std::vector<const char*> n, const char* t, std::function<u64(u64, u64)> f) {
    ops.push_back({n, t, [f](u64 a, u64 b, u64, int) { return Outcome{f(a, b)}; }});
  };
  set({"s_not_b32"}, "44", [](u64 a, u64) { return ~a; });
  set({"s_not_b64"}, "88", [](u64 a, u64) { return ~a; });
  set({"s_lshl_b32"}, "444", [](u64 a, u64 b) { return a << b % 32; });
  set({"s_lshr_b32"}, "444", [](u64 a, u64 b) { return a >> b % 32; });
  set({"s_ashr_i32"}, "444", [](u64 a, u64 b) { return static_cast<u64>(sx(a, 32) >> b % 32); });
  set({"s_lshl_b64"}, "884", [](u64 a, u64 b) { return a << b % 64; });
  set({"s_lshr_b64"}, "884", [](u64 a, u64 b) { return a >> b % 64; });
  set({"s_ashr_i64"}, "884", [](u64 a, u64 b) { return static_cast<u64>(static_cast<i64>(a) >> b % 64); });
  set({"s_bfe_u32"}, "444", [](u64 a, u64 b) {
    u64 r = 0;
    for (u64 k = 0; k < (b >> 16 & 127) && k < 32; ++k) r |= (b % 32 + k < 32 ? a >> (b % 32 + k) & 1 : 0) << k;
    return r;
  });
  set({"s_bfe_i32"}, "444", [](u64 a, u64 b) -> u64 {
    u64 w = b >> 16 & 127;
    if (!w) return 0;
    i64 x = sx(a, 32) >> b % 32;
    return w >= 32 ? static_cast<u64>(x) : static_cast<u64>(sx(static_cast<u64>(x), int(w)));
  });
  set({"s_bfe_u64"}, "884", [](u64 a, u64 b) {
    u64 r = 0;
    for (u64 k = 0; k < (b >> 16 & 127) && k < 64; ++k) r |= (b % 64 + k < 64 ? a >> (b % 64 + k) & 1 : 0) << k;
    return r;
  });
  keep({"s_bfm_b32"}, "444", [](u64 a, u64 b) {
    u64 r = 0;
    for (u64 k = 0; k < a % 32; ++k) r |= u64(1) << (b % 32 + k);
    return r;
  });
  keep({"s_bfm_b64"}, "844", [](u64 a, u64 b) {
    u64 r = 0;
    for (u64 k = 0; k < a % 64 && b % 64 + k < 64; ++k) r |= u64(1) << (b % 64 + k);
    return r;
  });
  ops.push_back({{"s_add_u32"}, "444", [](u64 a, u64 b, u64, int) { return Outcome{a + b, (a + b) >> 32 != 0}; }});
  ops.push_back({{"s_addc_u32"}, "444", [](u64 a, u64 b, u64, int c) {
                   u64 r = a + b + u64(c);
                   return Outcome{r, r >> 32 != 0};
                 }});
  ops.push_back({{"s_sub_u32"}, "444", [](u64 a, u64 b, u64, int) { return Outcome{a - b, b > a}; }});
  ops.push_back(
      {{"s_subb_u32"}, "444", [](u64 a, u64 b, u64, int c) { return Outcome{a - b - u64(c), b + u64(c) > a}; }});
  auto overflow = [](i64 x) { return x > INT32_MAX || x < INT32_MIN; };
  ops.push_back({{"s_add_i32"}, "444", [=](u64 a, u64 b, u64, int) {
                   i64 r = sx(a, 32) + sx(b, 32);
                   return Outcome{static_cast<u64>(r), overflow(r)};
                 }});
  ops.push_back({{"s_sub_i32"}, "444", [=](u64 a, u64 b, u64, int) {
                   i64 r = sx(a, 32) - sx(b, 32);
                   return Outcome{static_cast<u64>(r), overflow(r)};
                 }});
  ops.push_back({{"s_addk_i32"}, "4k", [=](u64 k, u64, u64 old, int) {
                   i64 r = sx(old, 32) + sx(k, 16);
                   return Outcome{static_cast<u64>(r), overflow(r)};
                 }});
  ops.push_back(
      {{"s_mulk_i32"}, "4k", [](u64 k, u64, u64 old, int) { return Outcome{old * static_cast<u64>(sx(k, 16))}; }});
  ops.push_back({{"s_movk_i32"}, "4k", [](u64 k, u64, u64, int) { return Outcome{static_cast<u64>(sx(k, 16))}; }});
  ops.push_back({{"s_cmovk_i32"}, "4k", [](u64 k, u64, u64 old, int c) {
                   return Outcome{c ? static_cast<u64>(sx(k, 16)) : old};
                 }});
  for (int n = 1; n <= 4; ++n) {
    static std::vector<std::string> names(8);
    names[n] = fmt::format("s_lshl{}_add_u32", n);
    ops.push_back({{names[n].c_str()}, "444", [n](u64 a, u64 b, u64, int) {
                     u64 r = (a << n) + b;
                     return Outcome{r, r >> 32 != 0};
                   }});
  }
  auto choose = [&](const char* name, std::function<bool(u64, u64)> first) {
    ops.push_back(
        {{name}, "444", [first](u64 a, u64 b, u64, int) { return Outcome{first(a, b) ? a : b, first(a, b)}; }});
  };
  choose("s_min_u32", [](u64 a, u64 b) { return a < b; });
  choose("s_max_u32", [](u64 a, u64 b) { return a > b; });
  choose("s_min_i32", [](u64 a, u64 b) { return sx(a, 32) < sx(b, 32); });
  choose("s_max_i32", [](u64 a, u64 b) { return sx(a, 32) > sx(b, 32); });
  set({"s_absdiff_i32"}, "444", [](u64 a, u64 b) {
    i64 d = sx(a, 32) - sx(b, 32);
    return static_cast<u64>(d < 0 ? -d : d);
  });
  set({"s_abs_i32"}, "44", [](u64 a, u64) {
    i64 x = sx(a, 32);
    return static_cast<u64>(x < 0 ? -x : x);
  });
  keep({"s_mul_i32"}, "444", [](u64 a, u64 b) { return a * b; });
  keep({"s_mul_hi_u32"}, "444", [](u64 a, u64 b) { return a * b >> 32; });
  keep({"s_mul_hi_i32"}, "444", [](u64 a, u64 b) { return static_cast<u64>(sx(a, 32) * sx(b, 32) >> 32); });
  keep({"s_pack_ll_b32_b16"}, "444", [](u64 a, u64 b) { return a % 65536 + b % 65536 * 65536; });
  keep({"s_pack_lh_b32_b16"}, "444", [](u64 a, u64 b) { return a % 65536 + b / 65536 * 65536; });
  keep({"s_pack_hh_b32_b16"}, "444", [](u64 a, u64 b) { return a / 65536 + b / 65536 * 65536; });
  keep({"s_mov_b32"}, "44", [](u64 a, u64) { return a; });
  keep({"s_mov_b64"}, "88", [](u64 a, u64) { return a; });
  ops.push_back({{"s_cmov_b32"}, "44", [](u64 a, u64, u64 old, int c) { return Outcome{c ? a : old}; }});
  ops.push_back({{"s_cmov_b64"}, "88", [](u64 a, u64, u64 old, int c) { return Outcome{c ? a : old}; }});
  ops.push_back({{"s_cselect_b32"}, "444", [](u64 a, u64 b, u64, int c) { return Outcome{c ? a : b}; }});
  ops.push_back({{"s_cselect_b64"}, "888", [](u64 a, u64 b, u64, int c) { return Outcome{c ? a : b}; }});
  auto first_one = [](u64 x, int width, bool from_top, u64 want) -> u64 {
    for (int k = 0; k < width; ++k)
      if ((x >> (from_top ? width - 1 - k : k) & 1) == want) return u64(k);
    return 0xffffffff;
  };
  keep({"s_brev_b32"}, "44", [](u64 a, u64) {
    u64 r = 0;
    for (int b = 0; b < 32; ++b) r |= (a >> b & 1) << (31 - b);
    return r;
  });
  keep({"s_brev_b64"}, "88", [](u64 a, u64) {
    u64 r = 0;
    for (int b = 0; b < 64; ++b) r |= (a >> b & 1) << (63 - b);
    return r;
  });
  keep({"s_ff1_i32_b32", "s_ctz_i32_b32"}, "44", [=](u64 a, u64) { return first_one(a, 32, false, 1); });
  keep({"s_ff1_i32_b64", "s_ctz_i32_b64"}, "48", [=](u64 a, u64) { return first_one(a, 64, false, 1); });
  keep({"s_ff0_i32_b32"}, "44", [=](u64 a, u64) { return first_one(a, 32, false, 0); });
  keep({"s_ff0_i32_b64"}, "48", [=](u64 a, u64) { return first_one(a, 64, false, 0); });
  keep({"s_flbit_i32_b32", "s_clz_i32_u32"}, "44", [=](u64 a, u64) { return first_one(a, 32, true, 1); });
  keep({"s_flbit_i32_b64", "s_clz_i32_u64"}, "48", [=](u64 a, u64) { return first_one(a, 64, true, 1); });
  keep({"s_flbit_i32", "s_cls_i32"}, "44", [=](u64 a, u64) { return first_one(a, 32, true, 1 - (a >> 31)); });
  keep({"s_flbit_i32_i64", "s_cls_i32_i64"}, "48", [=](u64 a, u64) { return first_one(a, 64, true, 1 - (a >> 63)); });
  auto count = [](u64 a, int width, u64 want) {
    u64 n = 0;
    for (int b = 0; b < width; ++b) n += (a >> b & 1) == want;
    return n;
  };
  set({"s_bcnt1_i32_b32"}, "44", [=](u64 a, u64) { return count(a, 32, 1); });
  set({"s_bcnt1_i32_b64"}, "48", [=](u64 a, u64) { return count(a, 64, 1); });
  set({"s_bcnt0_i32_b32"}, "44", [=](u64 a, u64) { return count(a, 32, 0); });
  set({"s_bcnt0_i32_b64"}, "48", [=](u64 a, u64) { return count(a, 64, 0); });
  keep({"s_sext_i32_i8"}, "44", [](u64 a, u64) { return static_cast<u64>(sx(a, 8)); });
  keep({"s_sext_i32_i16"}, "44", [](u64 a, u64) { return static_cast<u64>(sx(a, 16)); });
  keep({"s_bitreplicate_b64_b32"}, "84", [](u64 a, u64) {
    u64 r = 0;
    for (int b = 0; b < 64; ++b) r |= (a >> b / 2 & 1) << b;
    return r;
  });
  ops.push_back({{"s_bitset0_b32"}, "44", [](u64 a, u64, u64 old, int) { return Outcome{old & ~(u64(1) << a % 32)}; }});
  ops.push_back({{"s_bitset1_b32"}, "44", [](u64 a, u64, u64 old, int) { return Outcome{old | u64(1) << a % 32}; }});
  ops.push_back({{"s_bitset0_b64"}, "84", [](u64 a, u64, u64 old, int) { return Outcome{old & ~(u64(1) << a % 64)}; }});
  ops.push_back({{"s_bitset1_b64"}, "84", [](u64 a, u64, u64 old, int) { return Outcome{old | u64(1) << a % 64}; }});
  set({"s_wqm_b64"}, "88", [](u64 a, u64) {
    u64 r = 0;
    for (int q = 0; q < 64; q += 4)
      if (a >> q & 15) r |= u64(15) << q;
    return r;
  });
  set({"s_quadmask_b64"}, "88", [](u64 a, u64) {
    u64 r = 0;
    for (int q = 0; q < 16; ++q)
      if (a >> 4 * q & 15) r |= u64(1) << q;
    return r;
  });
  struct Relation {
    const char* name;
    bool (*holds)(i64, i64);
  };
  static const Relation relations[] = {
      {"eq", [](i64 a, i64 b) { return a == b; }}, {"lg", [](i64 a, i64 b) { return a != b; }},
      {"gt", [](i64 a, i64 b) { return a > b; }},  {"ge", [](i64 a, i64 b) { return a >= b; }},
      {"lt", [](i64 a, i64 b) { return a < b; }},  {"le", [](i64 a, i64 b) { return a <= b; }}};
  static std::vector<std::string> names;
  names.reserve(64);
  for (const Relation& r : relations) {
    auto name = [&](const char* pattern) {
      names.push_back(fmt::format(fmt::runtime(pattern), r.name));
      return std::vector<const char*>{names.back().c_str()};
    };
    auto holds = r.holds;
    ops.push_back(
        {name("s_cmp_{}_i32"), "-44", [=](u64 a, u64 b, u64, int) { return Outcome{0, holds(sx(a, 32), sx(b, 32))}; }});
    ops.push_back(
        {name("s_cmp_{}_u32"), "-44", [=](u64 a, u64 b, u64, int) { return Outcome{0, holds(i64(a), i64(b))}; }});
    ops.push_back({name("s_cmpk_{}_i32"), "-4k",
                   [=](u64 a, u64 k, u64, int) { return Outcome{0, holds(sx(a, 32), sx(k, 16))}; }});
    ops.push_back(
        {name("s_cmpk_{}_u32"), "-4k", [=](u64 a, u64 k, u64, int) { return Outcome{0, holds(i64(a), i64(k))}; }});
  }
  ops.push_back({{"s_cmp_eq_u64"}, "-88", [](u64 a, u64 b, u64, int) { return Outcome{0, a == b}; }});
  ops.push_back({{"s_cmp_lg_u64"}, "-88", [](u64 a, u64 b, u64, int) { return Outcome{0, a != b}; }});
  ops.push_back({{"s_bitcmp0_b32"}, "-44", [](u64 a, u64 b, u64, int) { return Outcome{0, !(a >> b % 32 & 1)}; }});
  ops.push_back({{"s_bitcmp1_b32"}, "-44", [](u64 a, u64 b, u64, int) { return Outcome{0, int(a >> b % 32 & 1)}; }});
  ops.push_back({{"s_bitcmp1_b64"}, "-84", [](u64 a, u64 b, u64, int) { return Outcome{0, int(a >> b % 64 & 1)}; }});
  return ops;
}

class Salu : public ::testing::TestWithParam<Arch> {};

TEST_P(Salu, MatchesReference) {
  const TargetInfo& target = target_info(GetParam());
  auto ops = operations();
  std::vector<std::string> lines;
  std::vector<std::pair<const Op*, int>> origin;  // operation, form
  auto reg = [](char t, int n) { return t == '8' ? fmt::format("s[{}:{}]", n, n + 1) : fmt::format("s{}", n); };
  for (const Op& op : ops)
    for (const char* name : op.names)
      for (int form = 0; form < 5; ++form) {
        std::string text = std::string(name) + " ";
        if (op.types[0] != '-') text += reg(op.types[0], 4) + (op.types.size() > 1 ? ", " : "");
        for (size_t k = 1; k < op.types.size(); ++k) {
          if (k > 1) text += ", ";
          if (op.types[k] == 'k')
            text += form % 2 ? "0xff80" : "0x1234";
          else if (form == int(k))
            text += "-5";
          else if (form == int(k) + 2)
            text += "0x87654321";
          else
            text += reg(op.types[k], k == 1 ? 8 : 12);
        }
        lines.push_back(text);
        origin.emplace_back(&op, form);
      }
  auto assembled = assemble(std::string(target.name), target.default_wave_size, lines);
  Machine m(GetParam(), target.default_wave_size);
  std::mt19937_64 random(3);
  std::map<const Op*, int> forms;
  for (size_t n = 0; n < lines.size(); ++n) forms[origin[n].first] += !assembled[n].bytes.empty();
  for (size_t n = 0; n < lines.size(); ++n) {
    if (assembled[n].bytes.empty()) continue;
    const Op& op = *origin[n].first;
    int form = origin[n].second;
    Decoded d = decode_one(target, target.default_wave_size, assembled[n].bytes);
    ASSERT_TRUE(d.ok) << lines[n] << ": " << d.problem;
    for (int round = 0; round < 10240 / forms[&op] + 1; ++round) {
      auto value = [&](char t) {
        u64 x = random() % 4 == 0 ? random() % 70 : random() % 4 == 1 ? ~(random() % 70) : random();
        return t == '8' ? x : low(x);
      };
      u64 source[3] = {};
      for (size_t k = 1; k < op.types.size(); ++k) {
        char t = op.types[k];
        if (t == 'k')
          source[k] = form % 2 ? 0xff80 : 0x1234;
        else if (form == int(k))
          source[k] = t == '8' ? static_cast<u64>(-5) : 0xfffffffb;
        else if (form == int(k) + 2)
          source[k] = 0x87654321;  // zero-extended for 64-bit operands
        else
          source[k] = value(t), m.wave.write64(k == 1 ? 8 : 12, source[k]);
      }
      u64 old = random();
      int scc = int(random() & 1);
      m.wave.write64(4, old);
      m.wave.s[cell::kScc] = u32(scc);
      m.run(d);
      Outcome want = op.reference(source[1], source[2], op.types[0] == '8' ? old : low(old), scc);
      if (want.scc < 0) want.scc = scc;
      u64 expected = op.types[0] == '-'   ? old
                     : op.types[0] == '8' ? want.value
                                          : low(want.value) | (old & ~u64(0xffffffff));
      ASSERT_EQ(m.wave.read64(4), expected)
          << lines[n] << fmt::format(" a {:#x} b {:#x} old {:#x} scc {}", source[1], source[2], old, scc);
      ASSERT_EQ(m.wave.s[cell::kScc], u32(want.scc))
          << lines[n] << fmt::format(" a {:#x} b {:#x} scc before {}", source[1], source[2], scc);
    }
  }
}

TEST_P(Salu, SaveExec) {
  const TargetInfo& target = target_info(GetParam());
  bool wide = target.default_wave_size == 64;
  struct Case {
    const char* name;
    u64 (*f)(u64, u64);
    bool writes_result;
  };
  const Case cases[] = {{"s_and_saveexec", [](u64 a, u64 e) { return a & e; }, false},
                        {"s_or_saveexec", [](u64 a, u64 e) { return a | e; }, false},
                        {"s_xor_saveexec", [](u64 a, u64 e) { return a ^ e; }, false},
                        {"s_nand_saveexec", [](u64 a, u64 e) { return ~(a & e); }, false},
                        {"s_nor_saveexec", [](u64 a, u64 e) { return ~(a | e); }, false},
                        {"s_xnor_saveexec", [](u64 a, u64 e) { return ~(a ^ e); }, false},
                        {wide ? "s_andn2_saveexec" : "s_and_not1_saveexec", [](u64 a, u64 e) { return a & ~e; }, false},
                        {wide ? "s_orn2_saveexec" : "s_or_not1_saveexec", [](u64 a, u64 e) { return a | ~e; }, false},
                        {wide ? "s_andn1_saveexec" : "s_and_not0_saveexec", [](u64 a, u64 e) { return ~a & e; }, false},
                        {wide ? "s_orn1_saveexec" : "s_or_not0_saveexec", [](u64 a, u64 e) { return ~a | e; }, false},
                        {wide ? "s_andn1_wrexec" : "s_and_not0_wrexec", [](u64 a, u64 e) { return ~a & e; }, true},
                        {wide ? "s_andn2_wrexec" : "s_and_not1_wrexec", [](u64 a, u64 e) { return a & ~e; }, true}};
  std::vector<std::string> lines;
  for (const Case& c : cases) lines.push_back(std::string(c.name) + (wide ? "_b64 s[4:5], s[8:9]" : "_b32 s4, s8"));
  auto assembled = assemble(std::string(target.name), target.default_wave_size, lines);
  Machine m(GetParam(), target.default_wave_size);
  std::mt19937_64 random(5);
  u64 mask = wide ? ~u64(0) : 0xffffffff;
  for (size_t n = 0; n < lines.size(); ++n) {
    ASSERT_FALSE(assembled[n].bytes.empty()) << lines[n];
    Decoded d = decode_one(target, target.default_wave_size, assembled[n].bytes);
    ASSERT_TRUE(d.ok) << d.problem;
    for (int round = 0; round < 10240; ++round) {
      u64 a = random() & mask, e = (round % 5 ? random() : round % 2 ? 0 : ~u64(0)) & mask;
      m.wave.write64(8, a);
      m.set_exec(e);
      m.run(d);
      u64 r = cases[n].f(a, e) & mask;
      ASSERT_EQ(m.wave.exec(), r) << lines[n];
      ASSERT_EQ(m.wave.read64(4) & mask, cases[n].writes_result ? r : e) << lines[n];
      ASSERT_EQ(m.wave.s[cell::kScc], u32(r != 0)) << lines[n];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Salu, ::testing::Values(Arch::kGfx942, Arch::kGfx950, Arch::kGfx1100, Arch::kGfx1151),
                         [](const auto& info) { return std::string(target_info(info.param).name); });

}  // namespace
}  // namespace crest_sim::test
