// Compares, carries, selections and lane exchanges against per-lane references.
#include <fmt/format.h>

#include <cmath>

#include "valu_support.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

struct Target {
  Arch arch;
  u32 lanes;
};

class Lanes : public ::testing::TestWithParam<Target> {
 protected:
  Lanes()
      : target_(target_info(GetParam().arch)), lanes_(GetParam().lanes), machine_(GetParam().arch, GetParam().lanes) {
    vcc_ = lanes_ == 64 ? "vcc" : "vcc_lo";
  }
  std::string mask_name(int reg) const {
    return lanes_ == 64 ? fmt::format("s[{}:{}]", reg, reg + 1) : fmt::format("s{}", reg);
  }
  u64 mask(int reg) { return lanes_ == 64 ? machine_.wave.read64(u32(reg)) : machine_.wave.s[reg]; }
  void set_mask(int reg, u64 value) {
    if (lanes_ == 64)
      machine_.wave.write64(u32(reg), value);
    else
      machine_.wave.s[reg] = u32(value);
  }
  std::vector<Assembled> assemble_all(const std::vector<std::string>& lines) {
    return assemble(std::string(target_.name), lanes_, lines);
  }
  Decoded decode(const Assembled& a) {
    Decoded d = decode_one(target_, lanes_, a.bytes);
    EXPECT_TRUE(d.ok) << a.text << ": " << d.problem;
    return d;
  }
  void random_exec() {
    u64 pick = random_();
    machine_.set_exec(pick % 3 == 0 ? ~u64(0) : pick % 3 == 1 ? random_() : random_() & random_() & random_());
  }
  void fill(int reg, char type) {
    for (u32 l = 0; l < lanes_; ++l) {
      u64 x = random_value(random_, type);
      if (type == 'q' || type == 'd')
        machine_.set_v64(reg, int(l), x);
      else
        machine_.v(reg, int(l)) = u32(type == 's' || type == 'h' ? x | random_() << 16 : x);
    }
  }

  const TargetInfo& target_;
  u32 lanes_;
  Machine machine_;
  std::string vcc_;
  std::mt19937_64 random_{11};
};

i64 sx(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }

double as_real(u64 x, char type) { return type == 'f' ? f32(x) : type == 'd' ? f64(x) : half_value(x); }

/// The relation that a compare's name spells out.
bool relation(const std::string& op, u64 a, u64 b, char type) {
  if (type == 'f' || type == 'd' || type == 'h') {
    double x = as_real(a, type), y = as_real(b, type);
    bool unordered = std::isnan(x) || std::isnan(y);
    if (op == "lt") return !unordered && x < y;
    if (op == "le") return !unordered && x <= y;
    if (op == "gt") return !unordered && x > y;
    if (op == "ge") return !unordered && x >= y;
    if (op == "eq") return !unordered && x == y;
    if (op == "lg") return !unordered && x != y;
    if (op == "o") return !unordered;
    if (op == "u") return unordered;
    if (op == "neq") return unordered || x != y;
    if (op == "nlt") return unordered || x >= y;
    if (op == "nle") return unordered || x > y;
    if (op == "ngt") return unordered || x <= y;
    if (op == "nge") return unordered || x < y;
    if (op == "nlg") return unordered || x == y;
    return op == "tru" || op == "t";
  }
  return false;
}

TEST_P(Lanes, Compare) {
  struct Kind {
    const char* suffix;
    char type;
    int bits;
    bool is_signed;
  };
  const Kind kinds[] = {{"u32", 'i', 32, false}, {"i32", 'i', 32, true},  {"u16", 's', 16, false},
                        {"i16", 's', 16, true},  {"u64", 'q', 64, false}, {"i64", 'q', 64, true},
                        {"f32", 'f', 32, false}, {"f16", 'h', 16, false}, {"f64", 'd', 64, false}};
  const char* integer[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  const char* real[] = {"lt", "le", "gt", "ge", "eq", "lg", "o", "u", "neq", "nlt", "nle", "ngt", "nge", "nlg"};
  struct Plan {
    std::string op;
    Kind kind;
    bool exec;
    bool explicit_mask;
  };
  std::vector<std::string> lines;
  std::vector<Plan> plans;
  for (const Kind& k : kinds) {
    bool floating = k.suffix[0] == 'f';
    std::vector<std::string> ops;
    if (floating)
      ops.assign(std::begin(real), std::end(real));
    else
      ops.assign(std::begin(integer), std::end(integer));
    bool wide = k.bits == 64, true16 = !target_.cdna && k.bits == 16;
    std::string a = wide ? "v[2:3]" : true16 ? "v2.l" : "v2", b = wide ? "v[4:5]" : true16 ? "v4.l" : "v4";
    for (const std::string& op : ops)
      for (bool exec : {false, true}) {
        std::string name = fmt::format("v_cmp{}_{}_{}", exec ? "x" : "", op, k.suffix);
        bool has_mask = target_.cdna || !exec;
        lines.push_back(name + "_e32 " + (has_mask ? vcc_ + ", " : "") + a + ", " + b);
        plans.push_back({op, k, exec, false});
        lines.push_back(name + "_e64 " + (has_mask ? mask_name(8) + ", " : "") + a + ", " + b);
        plans.push_back({op, k, exec, true});
      }
  }
  auto assembled = assemble_all(lines);
  for (size_t n = 0; n < lines.size(); ++n) {
    ASSERT_FALSE(assembled[n].bytes.empty()) << lines[n];
    Decoded d = decode(assembled[n]);
    ASSERT_TRUE(d.ok);
    const Plan& p = plans[n];
    for (u32 round = 0; round < 10240 / lanes_ / 2 + 1; ++round) {
      fill(2, p.kind.type);
      fill(4, p.kind.type);
      if (round % 4 == 0)  // equal operands
        for (u32 l = 0; l < lanes_; l += 2)
          machine_.v(4, int(l)) = machine_.v(2, int(l)), machine_.v(5, int(l)) = machine_.v(3, int(l));
      random_exec();
      u64 exec = machine_.wave.exec(), vcc_before = random_() & machine_.wave.full_exec,
          mask_before = random_() & machine_.wave.full_exec, want = 0;
      set_mask(cell::kVcc, vcc_before);
      set_mask(8, mask_before);
      for (u32 l = 0; l < lanes_; ++l) {
        u64 a = p.kind.bits == 64 ? machine_.v64(2, int(l)) : machine_.v(2, int(l)),
            b = p.kind.bits == 64 ? machine_.v64(4, int(l)) : machine_.v(4, int(l));
        if (p.kind.bits == 16) a &= 0xffff, b &= 0xffff;
        bool holds;
        if (p.kind.suffix[0] == 'f')
          holds = relation(p.op, a, b, p.kind.type);
        else {
          __int128 x = p.kind.is_signed ? __int128(sx(a, p.kind.bits)) : __int128(a),
                   y = p.kind.is_signed ? __int128(sx(b, p.kind.bits)) : __int128(b);
          holds = p.op == "lt"   ? x < y
                  : p.op == "le" ? x <= y
                  : p.op == "gt" ? x > y
                  : p.op == "ge" ? x >= y
                  : p.op == "eq" ? x == y
                                 : x != y;
        }
        want |= u64(holds && (exec >> l & 1)) << l;
      }
      machine_.run(d);
      bool writes_mask = !p.exec || target_.cdna;
      ASSERT_EQ(mask(cell::kVcc), writes_mask && !p.explicit_mask ? want : vcc_before) << lines[n];
      ASSERT_EQ(mask(8), writes_mask && p.explicit_mask ? want : mask_before) << lines[n];
      ASSERT_EQ(machine_.wave.exec(), p.exec ? want : exec) << lines[n];
    }
  }
}

TEST_P(Lanes, CompareClass) {
  for (auto [suffix, type] : {std::pair{"f32", 'f'}, {"f64", 'd'}, {"f16", 'h'}}) {
    bool wide = type == 'd', true16 = !target_.cdna && type == 'h';
    std::string line = fmt::format("v_cmp_class_{}_e32 {}, {}, {}", suffix, vcc_,
                                   wide     ? "v[2:3]"
                                   : true16 ? "v2.l"
                                            : "v2",
                                   true16 ? "v4.l" : "v4");
    auto a = assemble_all({line});
    ASSERT_FALSE(a[0].bytes.empty()) << line;
    Decoded d = decode(a[0]);
    for (u32 round = 0; round < 10240 / lanes_ + 1; ++round) {
      fill(2, type);
      for (u32 l = 0; l < lanes_; ++l) machine_.v(4, int(l)) = u32(random_() & 0x3ff);
      random_exec();
      machine_.run(d);
      for (u32 l = 0; l < lanes_; ++l) {
        u64 x = wide ? machine_.v64(2, int(l)) : machine_.v(2, int(l)) & (type == 'h' ? 0xffff : ~0u);
        double v = as_real(x, type);
        double smallest = type == 'f' ? 0x1p-126 : type == 'd' ? 0x1p-1022 : 0x1p-14;
        u64 quiet = type == 'f' ? 0x400000 : type == 'd' ? u64(1) << 51 : 0x200;
        bool negative = x >> (type == 'f' ? 31 : type == 'd' ? 63 : 15) & 1;
        int k = std::isnan(v)             ? (x & quiet ? 1 : 0)
                : std::isinf(v)           ? (negative ? 2 : 9)
                : v == 0                  ? (negative ? 5 : 6)
                : std::fabs(v) < smallest ? (negative ? 4 : 7)
                : negative                ? 3
                                          : 8;
        bool want = (machine_.v(4, int(l)) >> k & 1) && (machine_.wave.exec() >> l & 1);
        ASSERT_EQ(mask(cell::kVcc) >> l & 1, u64(want))
            << line << fmt::format(" {:#x} mask {:#x}", x, machine_.v(4, int(l)));
      }
    }
  }
}

TEST_P(Lanes, CarryAndSelect) {
  bool cdna = target_.cdna;
  struct Case {
    std::string name;
    int kind;
    bool in;
  };  // kind: 0 a+b, 1 a-b, 2 b-a, 3 select
  std::vector<Case> cases = {{"v_add_co_u32", 0, false},
                             {"v_sub_co_u32", 1, false},
                             {"v_subrev_co_u32", 2, false},
                             {cdna ? "v_addc_co_u32" : "v_add_co_ci_u32", 0, true},
                             {cdna ? "v_subb_co_u32" : "v_sub_co_ci_u32", 1, true},
                             {cdna ? "v_subbrev_co_u32" : "v_subrev_co_ci_u32", 2, true},
                             {"v_cndmask_b32", 3, true}};
  std::vector<std::string> lines;
  for (const Case& c : cases) {
    std::string out = c.kind == 3 ? "v6" : "v6, " + mask_name(8);
    lines.push_back(c.name + "_e64 " + out + ", v2, v4" + (c.in ? ", " + mask_name(12) : ""));
  }
  auto assembled = assemble_all(lines);
  for (size_t n = 0; n < cases.size(); ++n) {
    ASSERT_FALSE(assembled[n].bytes.empty()) << lines[n];
    Decoded d = decode(assembled[n]);
    for (u32 round = 0; round < 10240 / lanes_ + 1; ++round) {
      fill(2, 'i'), fill(4, 'i'), fill(6, 'i');
      random_exec();
      u64 in = random_() & machine_.wave.full_exec, exec = machine_.wave.exec(), carries = 0;
      set_mask(12, in);
      auto before = machine_.snapshot();
      machine_.run(d);
      for (u32 l = 0; l < lanes_; ++l) {
        i64 a = before[2 * lanes_ + l], b = before[4 * lanes_ + l], c = cases[n].in ? i64(in >> l & 1) : 0;
        i64 r = cases[n].kind == 0   ? a + b + c
                : cases[n].kind == 1 ? a - b - c
                : cases[n].kind == 2 ? b - a - c
                                     : (c ? b : a);
        bool active = exec >> l & 1;
        carries |= u64(active && (r < 0 || r >> 32)) << l;
        ASSERT_EQ(machine_.v(6, int(l)), active ? u32(r) : before[6 * lanes_ + l]) << lines[n] << " lane " << l;
      }
      if (cases[n].kind != 3) ASSERT_EQ(mask(8), carries) << lines[n];
    }
  }
}

/// One line, many rounds: `expect(before, lane)` gives the value of v6 in active lanes.
#define CREST_SIM_ROUNDS(line, setup, expected)                                                  \
  {                                                                                              \
    auto a = assemble_all({line});                                                               \
    ASSERT_FALSE(a[0].bytes.empty()) << line;                                                    \
    Decoded d = decode(a[0]);                                                                    \
    for (u32 round = 0; round < 10240 / lanes_ + 1; ++round) {                                   \
      fill(2, 'i'), fill(4, 'i'), fill(6, 'i');                                                  \
      random_exec();                                                                             \
      setup;                                                                                     \
      u64 exec = machine_.wave.exec();                                                           \
      auto before = machine_.snapshot();                                                         \
      machine_.run(d);                                                                           \
      for (u32 l = 0; l < lanes_; ++l) {                                                         \
        auto old = [&](int reg, u32 lane) { return before[size_t(reg) * lanes_ + lane]; };       \
        static_cast<void>(old);                                                                  \
        ASSERT_EQ(machine_.v(6, int(l)), exec >> l & 1 ? u32(expected) : before[6 * lanes_ + l]) \
            << line << " lane " << l;                                                            \
      }                                                                                          \
    }                                                                                            \
  }

TEST_P(Lanes, Permutations) {
  std::string read = "ds_bpermute_b32 v6, v2, v4 offset:8", write = "ds_permute_b32 v6, v2, v4";
  CREST_SIM_ROUNDS(read, {},
                   (exec >> (((old(2, l) + 8) / 4) % lanes_) & 1 ? old(4, ((old(2, l) + 8) / 4) % lanes_) : 0));
  CREST_SIM_ROUNDS(write, {}, ([&] {
                     u32 value = 0;
                     for (u32 k = 0; k < lanes_; ++k)
                       if ((exec >> k & 1) && old(2, k) / 4 % lanes_ == l) value = old(4, k);
                     return value;
                   }()));
  CREST_SIM_ROUNDS("ds_swizzle_b32 v6, v4 offset:swizzle(QUAD_PERM,3,0,2,1)", {}, ([&] {
                     const u32 p[] = {3, 0, 2, 1};
                     u32 from = l / 4 * 4 + p[l % 4];
                     return exec >> from & 1 ? old(4, from) : 0;
                   }()));
  CREST_SIM_ROUNDS("ds_swizzle_b32 v6, v4 offset:swizzle(SWAP,16)", {}, (exec >> (l ^ 16) & 1 ? old(4, l ^ 16) : 0));
  CREST_SIM_ROUNDS("ds_swizzle_b32 v6, v4 offset:swizzle(BROADCAST,8,3)", {},
                   (exec >> (l / 8 * 8 + 3) & 1 ? old(4, l / 8 * 8 + 3) : 0));
  CREST_SIM_ROUNDS("ds_swizzle_b32 v6, v4 offset:swizzle(REVERSE,32)", {}, (exec >> (l ^ 31) & 1 ? old(4, l ^ 31) : 0));
  CREST_SIM_ROUNDS("v_mbcnt_lo_u32_b32 v6, v2, v4", {}, ([&] {
                     u32 n = old(4, l);
                     for (u32 k = 0; k < std::min(l, 32u); ++k) n += old(2, l) >> k & 1;
                     return n;
                   }()));
  CREST_SIM_ROUNDS("v_mbcnt_hi_u32_b32 v6, v2, v4", {}, ([&] {
                     u32 n = old(4, l);
                     for (u32 k = 32; k < l; ++k) n += old(2, l) >> (k - 32) & 1;
                     return n;
                   }()));
  if (target_.cdna) return;
  auto selectors = [&] { machine_.wave.s[8] = u32(random_()), machine_.wave.s[9] = u32(random_()); };
  auto pick = [&](u32 l, u32 flip) { return ((l & ~15u) ^ flip) + u32(machine_.wave.read64(8) >> (l % 16 * 4) & 15); };
  CREST_SIM_ROUNDS("v_permlane16_b32 v6, v4, s8, s9", selectors(),
                   (exec >> pick(l, 0) & 1 ? old(4, pick(l, 0)) : old(6, l)));
  CREST_SIM_ROUNDS("v_permlanex16_b32 v6, v4, s8, s9 op_sel:[1,0]", selectors(), old(4, pick(l, 16)));
  CREST_SIM_ROUNDS("v_permlanex16_b32 v6, v4, s8, s9 op_sel:[0,1]", selectors(),
                   (exec >> pick(l, 16) & 1 ? old(4, pick(l, 16)) : 0));
  if (lanes_ == 64) CREST_SIM_ROUNDS("v_permlane64_b32 v6, v4", {}, old(4, l ^ 32));
}

TEST_P(Lanes, ScalarTransfers) {
  auto lines = assemble_all({"v_readfirstlane_b32 s4, v2", "v_readlane_b32 s4, v2, s8", "v_writelane_b32 v6, s8, 5"});
  Decoded first = decode(lines[0]), read = decode(lines[1]), write = decode(lines[2]);
  for (int round = 0; round < 10240; ++round) {
    fill(2, 'i');
    if (round % 7 == 0)
      machine_.set_exec(0);
    else
      random_exec();
    u64 exec = machine_.wave.exec();
    u32 lane = exec ? u32(std::countr_zero(exec)) : 0;
    machine_.wave.s[8] = u32(random_());
    machine_.run(first);
    ASSERT_EQ(machine_.wave.s[4], machine_.v(2, int(lane)));
    machine_.run(read);
    ASSERT_EQ(machine_.wave.s[4], machine_.v(2, int(machine_.wave.s[8] % lanes_)));
    auto before = machine_.snapshot();
    machine_.run(write);
    for (u32 l = 0; l < lanes_; ++l)
      ASSERT_EQ(machine_.v(6, int(l)), l == 5 ? machine_.wave.s[8] : before[6 * lanes_ + l]);
  }
}

// The three steps of division together give the correctly rounded quotient, as compilers use them.
TEST_P(Lanes, DivisionScaling) {
  auto lines =
      assemble_all({"v_div_scale_f32 v6, " + vcc_ + ", v4, v4, v2", "v_div_scale_f32 v7, " + vcc_ + ", v2, v4, v2",
                    "v_div_fmas_f32 v6, v8, v9, v10", "v_div_fixup_f32 v6, v6, v4, v2"});
  Decoded denominator = decode(lines[0]), numerator = decode(lines[1]), fmas = decode(lines[2]),
          fixup = decode(lines[3]);
  machine_.set_exec(~u64(0));
  for (u32 round = 0; round < 20480 / lanes_; ++round) {
    fill(2, 'f'), fill(4, 'f');
    machine_.run(denominator);
    machine_.run(numerator);
    for (u32 l = 0; l < lanes_; ++l) {
      // Newton steps as in LLVM's expansion, in f32.
      float d = f32(machine_.v(6, int(l))), n = f32(machine_.v(7, int(l))), r = 1 / d;
      r = std::fma(std::fma(-d, r, 1.0f), r, r);
      float q = n * r;
      q = std::fma(std::fma(-d, q, n), r, q);
      machine_.v(8, int(l)) = u32(bits(std::fma(-d, q, n)));
      machine_.v(9, int(l)) = u32(bits(r));
      machine_.v(10, int(l)) = u32(bits(q));
    }
    machine_.run(fmas);
    machine_.run(fixup);
    for (u32 l = 0; l < lanes_; ++l) {
      float n = f32(machine_.v(2, int(l))), d = f32(machine_.v(4, int(l))), got = f32(machine_.v(6, int(l))),
            want = n / d;
      ASSERT_TRUE((std::isnan(got) && std::isnan(want)) || bits(got) == bits(want))
          << n << " / " << d << " = " << got << ", expected " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Lanes,
                         ::testing::Values(Target{Arch::kGfx942, 64}, Target{Arch::kGfx950, 64},
                                           Target{Arch::kGfx1100, 32}, Target{Arch::kGfx1100, 64},
                                           Target{Arch::kGfx1151, 32}),
                         [](const auto& info) {
                           return std::string(target_info(info.param.arch).name) + "_w" +
                                  std::to_string(info.param.lanes);
                         });

}  // namespace
}  // namespace crest_sim::test
