// gfx950's conversions with a scale. The scale's exponent counts, nothing else of it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codes.h"
#include "lane_check.h"
#include "narrow_oracle.h"

namespace crest_sim_test {
namespace {

using crest_sim::Arch;
constexpr uint32_t kSaturate = 1u << 23;

Format small(const std::string& name) {
  return name == "fp8" ? kE4M3 : name == "bf8" ? kE5M2 : name == "fp6" ? kE2M3 : name == "bf6" ? kE3M2 : kE2M1;
}
const Format& wide(const std::string& name) { return name == "f32" ? kF32 : name == "f16" ? kF16 : kBf16; }

struct ScaleCode {
  int exponent;
  bool nan;
};
ScaleCode scale_of(uint32_t word) { return {int(word >> 23 & 255) - 127, (word >> 23 & 255) == 255}; }

uint32_t narrow_one(const Format& f, const Format& source, uint32_t code, uint32_t scale_word, bool saturate,
                    const uint32_t* seed) {
  const ScaleCode scale = scale_of(scale_word);
  if (scale.nan) return end_codes(f).nan;
  const double x = std::ldexp(decode(source, code).value(), -scale.exponent);
  const Decoded d = decode(source, code);
  const double value = d.kind == Kind::kNan ? std::copysign(NAN, d.negative ? -1.0 : 1.0) : x;
  return seed ? narrow_stochastic(f, value, *seed, saturate) : narrow_nearest(f, value, saturate);
}

uint32_t widen_one(const Format& f, const Format& target, uint32_t code, uint32_t scale_word) {
  const ScaleCode scale = scale_of(scale_word);
  const Decoded d = decode(f, code);
  const uint32_t sign = d.negative ? 1u << (target.width() - 1) : 0;
  const uint32_t infinity = ((1u << target.exponent_bits) - 1) << target.mantissa_bits,
                 quiet = infinity | 1u << (target.mantissa_bits - 1);
  if (scale.nan) return quiet;
  if (d.kind == Kind::kNan) return quiet | sign;
  if (d.kind == Kind::kInfinite) return infinity | sign;
  const Rounded r = round_to_nearest_even(BigInteger(d.significand), d.exponent - d.mantissa_bits + scale.exponent,
                                          target.mantissa_bits + 1, 1 - target.bias);
  if (r.exponent > target.bias) return infinity | sign;
  const int64_t hidden = int64_t(1) << target.mantissa_bits;
  return sign | (r.significand < hidden
                     ? uint32_t(r.significand)
                     : uint32_t(r.exponent + target.bias) << target.mantissa_bits | uint32_t(r.significand - hidden));
}

/// Wide values near what the format can hold after scaling, scales near one (mostly), seeds.
uint32_t contents(std::mt19937& random, const Format& source, bool is_scale) {
  if (is_scale)
    return random() % 8 ? (120 + random() % 16) << 23 | (random() & 0x807fffff) : random() % 4 ? random() : 0x7f800000u;
  if (source.width() == 32) {
    if (random() % 8 == 0) return random();
    return (random() & 0x807fffff) | (116 + random() % 22) << 23;
  }
  Codes codes(random, int(random() % 5));
  const uint32_t low = codes(source);
  return low | codes(source) << 16;
}

uint32_t put(uint32_t old, uint32_t value, int bit, int width) {
  const uint32_t mask = ((1u << width) - 1) << bit;
  return (old & ~mask) | (value << bit & mask);
}

/// op_sel of four: the last two name a byte of the destination; of three: the last one a half.
std::string byte_text(int byte) {
  return byte ? std::string(" op_sel:[0,0,") + (byte & 1 ? "1," : "0,") + (byte & 2 ? "1]" : "0]") : "";
}

TEST(ScaledConvert, NarrowPairs) {
  for (const std::string name : {"fp8", "bf8", "fp4"}) {
    for (const std::string from : {"f32", "f16", "bf16"}) {
      for (int part = 0; part < (name == "fp4" ? 4 : 2); ++part) {
        for (const uint32_t mode : {0x3f0u, 0x3f0u | kSaturate}) {
          const bool pair = from != "f32";
          LaneCheck check{.arch = Arch::kGfx950,
                          .text = "v_cvt_scalef32_pk_" + name + "_" + from + (pair ? " v0, v1, v3" : " v0, v1, v2, v3"),
                          .mode = mode};
          if (name == "fp4")
            check.text += byte_text(part);
          else if (part)
            check.text += pair ? " op_sel:[0,0,1]" : " op_sel:[0,0,0,1]";
          const Format f = small(name), source = wide(from);
          check.fill = [=](std::mt19937& random, int reg) { return contents(random, source, reg == 3); };
          check.expected = [=](const LaneView& r) -> Writes {
            const uint32_t low =
                narrow_one(f, source, pair ? r.v(1) & 0xffff : r.v(1), r.v(3), mode & kSaturate, nullptr);
            const uint32_t high =
                narrow_one(f, source, pair ? r.v(1) >> 16 : r.v(2), r.v(3), mode & kSaturate, nullptr);
            const int width = f.width();
            return {{0, put(r.v(0), low | high << width, part * 2 * width, 2 * width)}};
          };
          run_check(check);
        }
      }
    }
  }
}

TEST(ScaledConvert, NarrowStochastically) {
  for (const std::string from : {"f32", "f16", "bf16"}) {
    const Format source = wide(from);
    for (int byte = 0; byte < 4; ++byte) {
      for (const std::string name : {"fp8", "bf8"}) {
        LaneCheck check{.arch = Arch::kGfx950,
                        .text = "v_cvt_scalef32_sr_" + name + "_" + from + " v0, v1, v2, v3" + byte_text(byte)};
        const Format f = small(name);
        check.fill = [=](std::mt19937& random, int reg) {
          return reg == 2 ? uint32_t(random()) : contents(random, source, reg == 3);
        };
        check.expected = [=](const LaneView& r) -> Writes {
          const uint32_t seed = r.v(2);
          return {{0, put(r.v(0), narrow_one(f, source, from == "f32" ? r.v(1) : r.v(1) & 0xffff, r.v(3), false, &seed),
                          8 * byte, 8)}};
        };
        run_check(check);
      }
      LaneCheck check{.arch = Arch::kGfx950,
                      .text = "v_cvt_scalef32_sr_pk_fp4_" + from +
                              (from == "f32" ? " v0, v[4:5], v2, v3" : " v0, v4, v2, v3") + byte_text(byte)};
      check.fill = [=](std::mt19937& random, int reg) {
        return reg == 2 ? uint32_t(random()) : contents(random, source, reg == 3);
      };
      check.expected = [=](const LaneView& r) -> Writes {
        const uint32_t seed = r.v(2);
        const uint32_t low = narrow_one(kE2M1, source, from == "f32" ? r.v(4) : r.v(4) & 0xffff, r.v(3), false, &seed);
        const uint32_t high = narrow_one(kE2M1, source, from == "f32" ? r.v(5) : r.v(4) >> 16, r.v(3), false, &seed);
        return {{0, put(r.v(0), low | high << 4, 8 * byte, 8)}};
      };
      run_check(check);
    }
  }
}

TEST(ScaledConvert, WidenPairsAndSingles) {
  for (const std::string name : {"fp8", "bf8", "fp4"}) {
    const Format f = small(name);
    for (const std::string to : {"f32", "f16", "bf16"}) {
      const Format target = wide(to);
      for (int part = 0; part < (name == "fp4" ? 4 : 2); ++part) {
        LaneCheck check{
            .arch = Arch::kGfx950,
            .text = "v_cvt_scalef32_pk_" + to + "_" + name + (to == "f32" ? " v[6:7]" : " v6") + ", v1, v3"};
        if (part) check.text += std::string(" op_sel:[") + (part & 1 ? "1," : "0,") + (part & 2 ? "1,0]" : "0,0]");
        check.fill = [](std::mt19937& random, int reg) { return contents(random, kF32, reg == 3); };
        check.expected = [=](const LaneView& r) -> Writes {
          const uint32_t codes = r.v(1) >> part * 2 * f.width();
          const uint32_t low = widen_one(f, target, codes & f.mask(), r.v(3)),
                         high = widen_one(f, target, codes >> f.width() & f.mask(), r.v(3));
          if (to == "f32") return {{6, low}, {7, high}};
          return {{6, low | high << 16}};
        };
        run_check(check);
      }
      if (name == "fp4" || to == "bf16") continue;
      for (int byte = 0; byte < 4; ++byte) {
        for (const int half : {0, 1}) {
          if (to == "f32" && half) continue;
          LaneCheck check{.arch = Arch::kGfx950, .text = "v_cvt_scalef32_" + to + "_" + name + " v6, v1, v3"};
          if (byte || half)
            check.text +=
                std::string(" op_sel:[") + (byte & 1 ? "1," : "0,") + (byte & 2 ? "1," : "0,") + (half ? "1]" : "0]");
          check.fill = [](std::mt19937& random, int reg) { return contents(random, kF32, reg == 3); };
          check.expected = [=](const LaneView& r) -> Writes {
            const uint32_t x = widen_one(f, target, r.v(1) >> 8 * byte & 255, r.v(3));
            return {{6, to == "f32" ? x : put(r.v(6), x, 16 * half, 16)}};
          };
          run_check(check);
        }
      }
    }
  }
}

uint32_t six_bits(const std::vector<uint32_t>& words, int at) {
  uint32_t code = 0;
  for (int bit = 0; bit < 6; ++bit) code |= (words[size_t(at * 6 + bit) / 32] >> (at * 6 + bit) % 32 & 1) << bit;
  return code;
}
Writes pack_six_bits(int reg, const std::vector<uint32_t>& codes) {
  std::vector<uint32_t> words(6, 0);
  for (size_t at = 0; at < 32; ++at) {
    for (size_t bit = 0; bit < 6; ++bit) words[(at * 6 + bit) / 32] |= (codes[at] >> bit & 1) << (at * 6 + bit) % 32;
  }
  Writes writes;
  for (int w = 0; w < 6; ++w) writes.push_back({reg + w, words[size_t(w)]});
  return writes;
}

TEST(ScaledConvert, ThirtyTwoSixBitValues) {
  for (const std::string name : {"fp6", "bf6"}) {
    const Format f = small(name);
    for (const std::string from : {"f32", "f16", "bf16"}) {
      const Format source = wide(from);
      for (const bool random_rounding : {false, true}) {
        LaneCheck check{.arch = Arch::kGfx950};
        const bool two = from == "f32" && !random_rounding;
        check.text = std::string("v_cvt_scalef32_") +
                     (random_rounding ? "sr_pk32_"
                      : two           ? "2xpk16_"
                                      : "pk32_") +
                     name + "_" + from + " v[0:5], " +
                     (two             ? "v[8:23], v[24:39]"
                      : from == "f32" ? "v[8:39]"
                                      : "v[8:23]") +
                     (random_rounding ? ", v41" : "") + ", v40";
        check.registers = 42;
        check.cases = 1280;  // lanes; each converts 32 values
        check.fill = [=](std::mt19937& random, int reg) {
          return reg == 41 ? uint32_t(random()) : contents(random, source, reg == 40);
        };
        check.expected = [=](const LaneView& r) -> Writes {
          std::vector<uint32_t> codes;
          const uint32_t seed = r.v(41);
          for (int at = 0; at < 32; ++at) {
            const uint32_t x = two             ? r.v((at % 2 ? 24 : 8) + at / 2)
                               : from == "f32" ? r.v(8 + at)
                                               : r.v(8 + at / 2) >> 16 * (at % 2) & 0xffff;
            codes.push_back(narrow_one(f, source, x, r.v(40), true, random_rounding ? &seed : nullptr));
          }
          return pack_six_bits(0, codes);
        };
        run_check(check);
      }
      LaneCheck check{.arch = Arch::kGfx950,
                      .text = "v_cvt_scalef32_pk32_" + from + "_" + name + (from == "f32" ? " v[8:39]" : " v[8:23]") +
                              ", v[0:5], v40"};
      check.registers = 42;
      check.cases = 1280;
      check.fill = [](std::mt19937& random, int reg) { return contents(random, kF32, reg == 40); };
      check.expected = [=](const LaneView& r) -> Writes {
        std::vector<uint32_t> words;
        for (int w = 0; w < 6; ++w) words.push_back(r.v(w));
        Writes writes;
        for (int at = 0; at < 32; ++at) {
          const uint32_t x = widen_one(f, source, six_bits(words, at), r.v(40));
          if (from == "f32") {
            writes.push_back({8 + at, x});
          } else if (at % 2) {
            writes.back().second |= x << 16;
          } else {
            writes.push_back({8 + at / 2, x});
          }
        }
        return writes;
      };
      run_check(check);
    }
  }
}

}  // namespace
}  // namespace crest_sim_test
