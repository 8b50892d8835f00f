// LDS atomics of all kinds and floating-point atomics in memory, with lanes that meet at one place: lanes take effect
// in ascending order.
#include <algorithm>

#include "register_check.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

/// old, first and second operand → new value.
using Apply = std::function<u64(u64 old, u64 x, u64 y)>;

struct AtomicOp {
  std::string name;
  int bits;
  Apply apply;
  bool two_operands = false;
  enum Fill { kInteger, kFloat, kDouble, kHalves, kBrainHalves } fill = kInteger;
};

i64 sx(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }

/// Adds by parts; NaNs become one pattern, which `matches` accepts for any other.
u64 add_halves(u64 a, u64 b) {
  u64 r = 0;
  for (int at : {0, 16}) {
    double x = half_value(a >> at & 0xffff), y = half_value(b >> at & 0xffff), s = x + y;
    u64 h = std::isnan(s) ? 0x7e00 : std::isinf(s) ? (s < 0 ? 0xfc00 : 0x7c00) : nearest_half(s);
    if (s == 0) h = std::signbit(s) ? 0x8000 : 0;
    r |= h << at;
  }
  return r;
}
u64 add_brain_halves(u64 a, u64 b) {
  u64 r = 0;
  for (int at : {0, 16}) {
    double s = double(f32((a >> at & 0xffff) << 16)) + double(f32((b >> at & 0xffff) << 16));
    // Nearest bf16 of an exact sum: round the f64 to 8 significant bits.
    u32 word;
    if (std::isnan(s)) {
      word = 0x7fc0;
    } else if (s == 0 || std::isinf(s)) {
      word = u32(bits(float(s))) >> 16;
    } else {
      int e;
      double m = std::frexp(std::fabs(s), &e);
      int precision = std::min(8, 8 + (e + 125));  // fewer bits for denormals
      double unit = std::ldexp(1.0, e - precision), rounded = std::nearbyint(std::ldexp(m, precision)) * unit;
      word = u32(bits(float(std::copysign(rounded, s)))) >> 16;
    }
    r |= u64(word) << at;
  }
  return r;
}

double real(u64 x, int bits) { return bits == 64 ? f64(x) : double(f32(x)); }
u64 from_real(double x, int width) { return width == 64 ? bits(x) : bits(float(x)); }

u64 pick(u64 a, u64 b, int width, bool max) {
  double x = real(a, width), y = real(b, width);
  u64 sign = u64(1) << (width - 1), quiet = u64(1) << (width == 64 ? 51 : 22);
  if (std::isnan(x) && !(a & quiet)) return a | quiet;
  if (std::isnan(y) && !(b & quiet)) return b | quiet;
  if (std::isnan(x)) return std::isnan(y) ? a : b;
  if (std::isnan(y)) return a;
  if (x == 0 && y == 0) return ((a & sign) != 0) == max ? b : a;
  return (x < y) == max ? b : a;
}

class Atomics : public ::testing::TestWithParam<MachineKind> {
 protected:
  static constexpr u32 kBytes = 4096;
  Atomics() : target_(target_info(GetParam().arch)), lanes_(GetParam().lanes), m_(GetParam().arch, lanes_, kBytes) {
    memory_ = *Memory::create();
    base_ = *memory_->allocate(kBytes);
    m_.use_memory(memory_);
  }
  std::string vector(int reg, int dwords) {
    return dwords == 1 ? fmt::format("v{}", reg) : fmt::format("v[{}:{}]", reg, reg + dwords - 1);
  }
  u64 value(AtomicOp::Fill fill) {
    u64 x = random_();
    switch (fill) {
      case AtomicOp::kFloat:
        return random_word(random_);
      case AtomicOp::kDouble:
        return random_value(random_, 'd');
      case AtomicOp::kHalves:
        return random_value(random_, 'h') | random_value(random_, 'h') << 16;
      case AtomicOp::kBrainHalves:
        return (random_word(random_) >> 16) | (random_word(random_) & 0xffff0000);
      default:
        return x % 8 == 0 ? (x >> 8 & 1 ? ~u64(0) : 0) : x % 8 == 1 ? x >> 60 : x;
    }
  }
  /// NaN results may differ in their payload.
  static bool matches(u64 got, u64 want, const AtomicOp& op) {
    if (got == want) return true;
    if (op.fill == AtomicOp::kFloat) return std::isnan(f32(got)) && std::isnan(f32(want));
    if (op.fill == AtomicOp::kDouble) return std::isnan(f64(got)) && std::isnan(f64(want));
    if (op.fill == AtomicOp::kHalves) return is_same(u32(got), u32(want), Same::kHalfPair);
    if (op.fill != AtomicOp::kBrainHalves) return false;
    for (int at : {0, 16})
      if ((got >> at & 0xffff) != (want >> at & 0xffff) &&
          !(std::isnan(f32((got >> at & 0xffff) << 16)) && std::isnan(f32((want >> at & 0xffff) << 16))))
        return false;
    return true;
  }

  /// Address in v2 (LDS) or v[2:3] (memory), operands in v[4:5] and v[6:7], old value in v[8:9].
  void check(const AtomicOp& op, const std::string& line, bool lds, bool returns) {
    auto assembled = assemble(std::string(target_.name), lanes_, {line});
    if (assembled[0].bytes.empty()) return;
    ++ran_;
    Decoded d = decode_one(target_, lanes_, assembled[0].bytes);
    ASSERT_TRUE(d.ok) << line << ": " << d.problem;
    int n = op.bits / 32;
    u64 full = op.bits == 64 ? ~u64(0) : 0xffffffff;
    for (int compared = 0, round = 0; compared < 10240; ++round) {
      uint8_t* place = lds ? m_.lds.data() : reinterpret_cast<uint8_t*>(base_);
      u32 range = round % 2 ? 64 : kBytes - 64;
      std::vector<u64> memory(kBytes / 8);  // by dword pairs
      std::vector<bool> touched(memory.size());
      std::vector<u64> at(lanes_);
      for (int r = 4; r < 10; r += 2)
        for (u32 l = 0; l < lanes_; ++l) m_.set_v64(r, int(l), value(op.fill));
      for (u32 l = 0; l < lanes_; ++l) {
        at[l] = random_() % range / 8 * 8;
        m_.set_v64(2, int(l), lds ? at[l] : base_ + at[l]);
        u64 first = value(op.fill) & full;
        std::memcpy(place + at[l], &first, size_t(n) * 4);
        memory[at[l] / 8] = first;
        touched[at[l] / 8] = true;
      }
      m_.set_exec(round % 3 ? random_() : ~u64(0));
      auto before = m_.snapshot();
      m_.run(d);
      for (u32 l = 0; l < lanes_; ++l) {
        bool active = m_.wave.exec() >> l & 1;
        auto operand = [&](int reg) {
          return (u64(before[size_t(reg + 1) * lanes_ + l]) << 32 | before[size_t(reg) * lanes_ + l]) & full;
        };
        u64 old = memory[at[l] / 8];
        if (active) memory[at[l] / 8] = op.apply(old, operand(4), operand(6)) & full, ++compared;
        u64 want = active && returns ? old : operand(8), got = m_.v64(8, int(l)) & full;
        ASSERT_TRUE(active && returns ? matches(got, want, op) : got == want)
            << line << " lane " << l << ": returned " << std::hex << got << " for " << want;
      }
      for (size_t slot = 0; slot < memory.size(); ++slot) {
        if (!touched[slot]) continue;
        u64 got = 0;
        std::memcpy(&got, place + slot * 8, size_t(n) * 4);
        ASSERT_TRUE(matches(got, memory[slot], op))
            << line << ": memory holds " << std::hex << got << ", not " << memory[slot];
      }
    }
  }

  const TargetInfo& target_;
  u32 lanes_;
  Machine m_;
  std::shared_ptr<Memory> memory_;
  u64 base_ = 0;
  int ran_ = 0;
  std::mt19937_64 random_{3};
};

/// The same operation in 32 and 64 bits.
void add_both(std::vector<AtomicOp>& ops, const std::string& name, const std::string& type,
              std::function<u64(u64, u64, u64, int)> f, bool two = false, AtomicOp::Fill fill32 = AtomicOp::kInteger,
              AtomicOp::Fill fill64 = AtomicOp::kInteger) {
  for (int bits : {32, 64})
    ops.push_back({name + type + std::to_string(bits), bits, [=](u64 o, u64 x, u64 y) { return f(o, x, y, bits); }, two,
                   bits == 32 ? fill32 : fill64});
}

TEST_P(Atomics, Lds) {
  std::vector<AtomicOp> ops;
  add_both(ops, "add", "_u", [](u64 o, u64 x, u64, int) { return o + x; });
  add_both(ops, "sub", "_u", [](u64 o, u64 x, u64, int) { return o - x; });
  add_both(ops, "rsub", "_u", [](u64 o, u64 x, u64, int) { return x - o; });
  add_both(ops, "inc", "_u", [](u64 o, u64 x, u64, int) { return o >= x ? 0 : o + 1; });
  add_both(ops, "dec", "_u", [](u64 o, u64 x, u64, int) { return o == 0 || o > x ? x : o - 1; });
  add_both(ops, "min", "_i", [](u64 o, u64 x, u64, int b) { return sx(o, b) < sx(x, b) ? o : x; });
  add_both(ops, "max", "_i", [](u64 o, u64 x, u64, int b) { return sx(o, b) > sx(x, b) ? o : x; });
  add_both(ops, "min", "_u", [](u64 o, u64 x, u64, int) { return std::min(o, x); });
  add_both(ops, "max", "_u", [](u64 o, u64 x, u64, int) { return std::max(o, x); });
  add_both(ops, "and", "_b", [](u64 o, u64 x, u64, int) { return o & x; });
  add_both(ops, "or", "_b", [](u64 o, u64 x, u64, int) { return o | x; });
  add_both(ops, "xor", "_b", [](u64 o, u64 x, u64, int) { return o ^ x; });
  add_both(ops, "mskor", "_b", [](u64 o, u64 x, u64 y, int) { return (o & ~x) | y; }, true);
  add_both(
      ops, "add", "_f",
      [](u64 o, u64 x, u64, int b) { return from_real(b == 32 ? f32(o) + f32(x) : f64(o) + f64(x), b); }, false,
      AtomicOp::kFloat, AtomicOp::kDouble);
  ops.push_back({"pk_add_f16", 32, [](u64 o, u64 x, u64) { return add_halves(o, x); }, false, AtomicOp::kHalves});
  ops.push_back(
      {"pk_add_bf16", 32, [](u64 o, u64 x, u64) { return add_brain_halves(o, x); }, false, AtomicOp::kBrainHalves});
  for (const AtomicOp& op : ops) {
    int n = op.bits / 32;
    size_t type = op.name.rfind('_');
    std::string with_return = "ds_" + op.name.substr(0, type) + "_rtn" + op.name.substr(type);
    std::string operands = vector(4, n) + (op.two_operands ? ", " + vector(6, n) : "");
    check(op, fmt::format("ds_{} v2, {}", op.name, operands), true, false);
    check(op, fmt::format("{} {}, v2, {}", with_return, vector(8, n), operands), true, true);
  }
  // The comparand comes first on gfx9, the new value on RDNA3.
  for (int bits : {32, 64}) {
    bool comparand_first = target_.cdna;
    AtomicOp swap{"", bits, [=](u64 o, u64 x, u64 y) { return comparand_first ? (o == x ? y : o)
                                                              : o == y        ? x
                                                                              : o; },
                  true};
    std::string name = target_.cdna ? "ds_cmpst_rtn_b" : "ds_cmpstore_rtn_b";
    check(swap,
          fmt::format("{}{} {}, v2, {}, {}", name, bits, vector(8, bits / 32), vector(4, bits / 32),
                      vector(6, bits / 32)),
          true, true);
  }
  AtomicOp wrap{"", 32, [](u64 o, u64 x, u64 y) { return o >= x ? o - x : o + y; }, true};
  check(wrap, "ds_wrap_rtn_b32 v8, v2, v4, v6", true, true);
  AtomicOp conditional{"", 64, [](u64 o, u64 x, u64) {
                         u64 low = x & 0x80000000 ? x & 0x7fffffff : o & 0xffffffff;
                         return low | (x >> 63 ? (x >> 32 & 0x7fffffff) : o >> 32) << 32;
                       }};
  check(conditional, "ds_condxchg32_rtn_b64 v[8:9], v2, v[4:5]", true, true);
  EXPECT_GE(ran_, target_.cdna ? 60 : 50);
}

TEST_P(Atomics, FloatingPointInMemory) {
  std::vector<AtomicOp> ops;
  ops.push_back({"add_f32", 32, [](u64 o, u64 x, u64) { return bits(f32(o) + f32(x)); }, false, AtomicOp::kFloat});
  ops.push_back({"min_f32", 32, [](u64 o, u64 x, u64) { return pick(o, x, 32, false); }, false, AtomicOp::kFloat});
  ops.push_back({"max_f32", 32, [](u64 o, u64 x, u64) { return pick(o, x, 32, true); }, false, AtomicOp::kFloat});
  ops.push_back({"add_f64", 64, [](u64 o, u64 x, u64) { return bits(f64(o) + f64(x)); }, false, AtomicOp::kDouble});
  ops.push_back({"min_f64", 64, [](u64 o, u64 x, u64) { return pick(o, x, 64, false); }, false, AtomicOp::kDouble});
  ops.push_back({"max_f64", 64, [](u64 o, u64 x, u64) { return pick(o, x, 64, true); }, false, AtomicOp::kDouble});
  ops.push_back({"pk_add_f16", 32, [](u64 o, u64 x, u64) { return add_halves(o, x); }, false, AtomicOp::kHalves});
  ops.push_back(
      {"pk_add_bf16", 32, [](u64 o, u64 x, u64) { return add_brain_halves(o, x); }, false, AtomicOp::kBrainHalves});
  for (const AtomicOp& op : ops) {
    int n = op.bits / 32;
    std::string name = "global_atomic_" + op.name;
    check(op, fmt::format("{} v[2:3], {}, off", name, vector(4, n)), false, false);
    check(op, fmt::format("{} {}, v[2:3], {}, off {}", name, vector(8, n), vector(4, n), target_.cdna ? "sc0" : "glc"),
          false, true);
  }
  EXPECT_EQ(ran_, target_.cdna ? 12 : 6);
}

INSTANTIATE_TEST_SUITE_P(Machines, Atomics, ::testing::ValuesIn(kMachines), machine_name);

}  // namespace
}  // namespace crest_sim::test
