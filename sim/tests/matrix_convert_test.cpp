// Conversions to and from fp8, bf8, fp6, bf6, fp4 and bf16.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codes.h"
#include "lane_check.h"
#include "narrow_oracle.h"

namespace crest_sim_test {
namespace {

using crest_sim::Arch;
constexpr uint32_t kSaturate = 1u << 23;  // MODE.FP16_OVFL
constexpr uint32_t kMode = 0x3f0;

Format format(const std::string& name, bool fnuz) {
  if (name == "fp8") return fnuz ? kE4M3Fnuz : kE4M3;
  if (name == "bf8") return fnuz ? kE5M2Fnuz : kE5M2;
  return name == "fp6" ? kE2M3 : name == "bf6" ? kE3M2 : kE2M1;
}

/// fp32 words around the values and midpoints of a format, and anything else.
uint32_t interesting(std::mt19937& random, const Format& f) {
  const uint32_t sign = random() & 0x80000000u;
  switch (random() % 8) {
    case 0:
      return random();
    case 1:
      return accumulator(random, 0);
    case 2:
    case 3: {  // a value or the middle between two, perhaps one fp32 step off
      const uint32_t code = random() % (end_codes(f).largest + 1);
      const double x =
          random() % 2 ? plain_magnitude(f, code) : (plain_magnitude(f, code) + plain_magnitude(f, code + 1)) / 2;
      return sign | (to_f32_bits(x) + random() % 3 - 1);
    }
    default: {
      const int exponent = int(random() % uint32_t((1 << f.exponent_bits) + 10)) - f.bias - 6;
      return sign | uint32_t(std::clamp(exponent, -126, 127) + 127) << 23 | (random() & 0x7fffff);
    }
  }
}

double f32(uint32_t word) { return std::bit_cast<float>(word); }

uint32_t put(uint32_t old, uint32_t value, int bit, int width) {
  const uint32_t mask = ((width == 32 ? 0 : 1u << width) - 1) << bit;
  return (old & ~mask) | (value << bit & mask);
}

TEST(Convert, Fp32ToPackedFp8) {
  for (const Arch arch : {Arch::kGfx942, Arch::kGfx950}) {
    for (const char* name : {"fp8", "bf8"}) {
      const Format f = format(name, arch == Arch::kGfx942);
      for (const bool high : {false, true}) {
        for (const uint32_t mode : {kMode, kMode | kSaturate, 0x30fu}) {
          LaneCheck check{
              .arch = arch,
              .text = std::string("v_cvt_pk_") + name + "_f32 v0, -|v1|, v2" + (high ? " op_sel:[0,0,1]" : ""),
              .mode = mode};
          check.fill = [=](std::mt19937& random, int) { return interesting(random, f); };
          check.expected = [=](const LaneView& r) -> Writes {
            const uint32_t low = narrow_nearest(f, f32(r.v(1) | 0x80000000u), mode & kSaturate),
                           top = narrow_nearest(f, f32(r.v(2)), mode & kSaturate);
            return {{0, put(r.v(0), low | top << 8, high ? 16 : 0, 16)}};
          };
          run_check(check);
        }
      }
    }
  }
}

/// KN-3: overflow, NaN, -0 and small values of E4M3 in both variants; saturating and not.
TEST(Convert, Fp8TableOfEdgeCases) {
  struct Row {
    Arch arch;
    uint32_t mode;
    std::vector<std::pair<float, uint32_t>> cases;
  };
  const float inf = INFINITY;
  const std::vector<Row> rows = {
      {Arch::kGfx950,
       kMode | kSaturate,
       {{448, 0x7e},
        {464, 0x7e},
        {465, 0x7e},
        {480, 0x7e},
        {inf, 0x7e},
        {NAN, 0x7f},
        {-0.0f, 0x80},
        {0x1p-9f, 0x01},
        {0x1p-10f, 0x00},
        {1.5f * 0x1p-10f, 0x01}}},
      {Arch::kGfx950,
       kMode,
       {{448, 0x7e}, {464, 0x7e}, {465, 0x7f}, {480, 0x7f}, {inf, 0x7f}, {NAN, 0x7f}, {-0.0f, 0x80}}},
      {Arch::kGfx942,
       kMode | kSaturate,
       {{240, 0x7f}, {247.9f, 0x7f}, {248, 0x7f}, {inf, 0x7f}, {-0.0f, 0x00}, {-0x1p-12f, 0x00}}},
      {Arch::kGfx942,
       kMode,
       {{240, 0x7f}, {247.9f, 0x7f}, {248, 0x80}, {inf, 0x80}, {-inf, 0x80}, {NAN, 0x80}, {-0.0f, 0x00}}}};
  for (const Row& row : rows) {
    for (const auto& [x, want] : row.cases) {
      LaneCheck check{.arch = row.arch, .text = "v_cvt_pk_fp8_f32 v0, v1, v2", .mode = row.mode, .cases = 64};
      check.fill = [x = x](std::mt19937&, int reg) { return reg == 1 ? std::bit_cast<uint32_t>(x) : 0u; };
      check.expected = [want = want](const LaneView&) -> Writes { return {{0, want}}; };
      run_check(check);
    }
  }
}

TEST(Convert, StochasticRounding) {
  for (const Arch arch : {Arch::kGfx942, Arch::kGfx950}) {
    for (const char* name : {"fp8", "bf8"}) {
      const Format f = format(name, arch == Arch::kGfx942);
      for (int byte = 0; byte < 4; ++byte) {
        const uint32_t mode = byte % 2 ? kMode : kMode | kSaturate;
        LaneCheck check{.arch = arch, .text = std::string("v_cvt_sr_") + name + "_f32 v0, v1, v2", .mode = mode};
        if (byte) check.text += std::string(" op_sel:[0,0,") + (byte & 1 ? "1," : "0,") + (byte & 2 ? "1]" : "0]");
        check.fill = [=](std::mt19937& random, int reg) {
          return reg == 2 ? uint32_t(random()) : interesting(random, f);
        };
        check.expected = [=](const LaneView& r) -> Writes {
          return {{0, put(r.v(0), narrow_stochastic(f, f32(r.v(1)), r.v(2), mode & kSaturate), byte * 8, 8)}};
        };
        run_check(check);
      }
    }
  }
  for (const bool high : {false, true}) {
    LaneCheck bf16{.arch = Arch::kGfx950,
                   .text = std::string("v_cvt_sr_bf16_f32 v0, v1, v2") + (high ? " op_sel:[0,0,1]" : "")};
    bf16.fill = [](std::mt19937& random, int reg) {
      return reg == 2 ? uint32_t(random()) : interesting(random, kE5M2);
    };
    bf16.expected = [=](const LaneView& r) -> Writes {
      const uint32_t x = r.v(1);
      uint32_t code = uint32_t((uint64_t(x & 0x7fffffff) + (r.v(2) >> 16)) >> 16) | (x >> 16 & 0x8000);
      if (decode(kF32, x).kind == Kind::kNan) code = x >> 16 | 0x40;
      if (decode(kF32, x).kind == Kind::kInfinite) code = x >> 16;
      return {{0, put(r.v(0), code, high ? 16 : 0, 16)}};
    };
    run_check(bf16);
    LaneCheck f16{.arch = Arch::kGfx950,
                  .text = std::string("v_cvt_sr_f16_f32 v0, v1, v2") + (high ? " op_sel:[0,0,1]" : "")};
    f16.fill = [](std::mt19937& random, int reg) { return reg == 2 ? uint32_t(random()) : interesting(random, kF16); };
    f16.expected = [=](const LaneView& r) -> Writes {
      const uint32_t x = r.v(1);
      uint32_t code = narrow_stochastic(kF16, f32(x), r.v(2), false);
      if (decode(kF32, x).kind == Kind::kNan) code = (x >> 16 & 0x8000) | 0x7e00 | (x >> 13 & 0x1ff);
      return {{0, put(r.v(0), code, high ? 16 : 0, 16)}};
    };
    run_check(f16);
  }
}

TEST(Convert, Fp8ToFp32) {
  static const char* bytes[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3"};
  for (const Arch arch : {Arch::kGfx942, Arch::kGfx950}) {
    for (const char* name : {"fp8", "bf8"}) {
      const Format f = format(name, arch == Arch::kGfx942);
      const auto value = [=](uint32_t code) {
        return std::isnan(decode(f, code).value()) ? 0x7fc00000u : to_f32_bits(decode(f, code).value());
      };
      const auto signed_value = [=](uint32_t code) {  // NaNs of OCP formats keep their sign
        return value(code) |
               (f.top != TopExponent::kFnuz && decode(f, code).kind == Kind::kNan ? (code & 0x80) << 24 : 0);
      };
      const auto any = [](std::mt19937& random, int) { return uint32_t(random()); };
      for (int byte = 0; byte < 4; ++byte) {
        for (const uint32_t mode : {kMode, 0x300u}) {  // with fp32 subnormals flushed, fp8 ones stay
          LaneCheck check{.arch = arch,
                          .text = std::string("v_cvt_f32_") + name + "_sdwa v0, v1 src0_sel:" + bytes[byte],
                          .fill = any,
                          .mode = mode};
          check.expected = [=](const LaneView& r) -> Writes {
            const uint32_t code = r.v(1) >> 8 * byte & 255;
            if (f.top == TopExponent::kIeee && decode(f, code).kind == Kind::kNan)
              return {{0, (code & 0x80) << 24 | 0x7f800000u | (code & 3) << 21}};
            return {{0, signed_value(code)}};
          };
          run_check(check);
        }
      }
      for (const int word : {0, 1}) {
        LaneCheck check{
            .arch = arch,
            .text = std::string("v_cvt_pk_f32_") + name + "_sdwa v[2:3], v1 src0_sel:WORD_" + std::to_string(word),
            .fill = any};
        check.expected = [=](const LaneView& r) -> Writes {
          Writes writes;
          for (int e = 0; e < 2; ++e) {
            const uint32_t code = r.v(1) >> (16 * word + 8 * e) & 255;
            const bool payload = f.top == TopExponent::kIeee && decode(f, code).kind == Kind::kNan;
            writes.push_back(
                {2 + e, payload ? (code & 0x80) << 24 | 0x7f800000u | (code & 3) << 21 : signed_value(code)});
          }
          return writes;
        };
        run_check(check);
      }
    }
  }
}

TEST(Convert, Bf16) {
  LaneCheck pack{.arch = Arch::kGfx950, .text = "v_cvt_pk_bf16_f32 v0, -v1, |v2|"};
  pack.fill = [](std::mt19937& random, int) {
    return random() % 4 ? random() : (random() & 0xffff0000u) + 0x7fff + random() % 3;
  };
  pack.expected = [](const LaneView& r) -> Writes {
    return {{0, bf16_nearest(r.v(1) ^ 0x80000000u) | bf16_nearest(r.v(2) & 0x7fffffffu) << 16}};
  };
  run_check(pack);
  LaneCheck widen{.arch = Arch::kGfx950, .text = "v_cvt_f32_bf16 v0, v1"};
  widen.fill = [](std::mt19937& random, int) { return uint32_t(random()); };
  widen.expected = [](const LaneView& r) -> Writes { return {{0, r.v(1) << 16}}; };
  run_check(widen);
  widen.text = "v_cvt_f32_bf16_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1";
  widen.expected = [](const LaneView& r) -> Writes { return {{0, r.v(1) & 0xffff0000u}}; };
  run_check(widen);
}

}  // namespace
}  // namespace crest_sim_test
