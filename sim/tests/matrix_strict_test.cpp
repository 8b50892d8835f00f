// `strict` arithmetic, bit for bit, against an implementation in unbounded integers.
#include <gtest/gtest.h>

#include <bit>

#include "codes.h"
#include "matrix_names.h"
#include "strict_oracle.h"

namespace crest_sim_test {
namespace {

StrictRule rule_of(const Instruction& in) {
  const bool fnuz = in.arch == crest_sim::Arch::kGfx942;
  StrictRule rule{format_of(in.a, fnuz), format_of(in.b, fnuz)};
  rule.even_and_odd = in.a_bits() <= 8;
  rule.group = rule.even_and_odd ? 16 : in.a == "xf32" ? 4 : 8;
  return rule;
}

/// The codes that one instruction works on.
struct Tile {
  const Instruction& in;
  std::vector<uint32_t> a, b, c;  // [block][i][k], [block][k][j], [block][i][j]; A of SMFMAC: stored values
  std::vector<int> partner;       // SMFMAC: k of each stored value
  std::vector<int> scale_a, scale_b;
  int stored;

  explicit Tile(const Instruction& instruction)
      : in(instruction), stored(in.kind == MatrixKind::kSparse ? in.k / 2 : in.k) {}

  Operands fill(std::mt19937& random, int style) {
    const StrictRule rule = rule_of(in);
    Codes codes_a(random, style), codes_b(random, style);
    Operands o(in);
    a.resize(size_t(in.blocks * in.m * stored));
    b.resize(size_t(in.blocks * in.m * in.k));
    c.resize(size_t(in.blocks * in.m * in.m));
    for (auto& x : a) x = codes_a(rule.a);
    for (auto& x : b) x = codes_b(rule.b);
    for (auto& x : c) x = accumulator(random, style);
    const bool wide = in.a == "xf32";  // TF32 codes sit in the upper bits; the lower ones are cut
    for (int block = 0; block < in.blocks; ++block) {
      for (int i = 0; i < in.m; ++i) {
        for (int k = 0; k < in.k; ++k) {
          if (in.kind != MatrixKind::kSparse)
            o.set_a(in, block, i, k, cut_bits(at(a, stored, block, i, k), wide, random));
          o.set_b(in, block, k, i, cut_bits(at(b, in.m, block, k, i, in.k), wide, random));
        }
        for (int j = 0; j < in.m; ++j) o.set_c(in, block, i, j, at(c, in.m, block, i, j));
      }
    }
    if (in.kind == MatrixKind::kSparse) place_sparse(o, random);
    if (in.mnemonic.ends_with("f8f6f4")) {
      o.instruction.cbsz = uint8_t(format_selector(in.a));
      o.instruction.blgp = uint8_t(format_selector(in.b));
    }
    if (in.kind == MatrixKind::kScaled) place_scales(o, random, style);
    return o;
  }

  uint32_t expected(int block, int i, int j) {
    std::vector<uint32_t> left, right;
    for (int t = 0; t < stored; ++t) {
      left.push_back(at(a, stored, block, i, t));
      const int k = partner.empty() ? t : partner[size_t(i * stored + t)];
      right.push_back(at(b, in.m, block, k, j, in.k));
    }
    std::vector<int> scales;
    uint32_t start = at(c, in.m, block, i, j);
    for (int g = 0; g < in.k / 32 && !scale_a.empty(); ++g) {
      const int x = scale_a[size_t(g * in.m + i)], y = scale_b[size_t(g * in.m + j)];
      if (x == 255 || y == 255) return 0x7fc00000;
      scales.push_back(x + y - 254);
    }
    return strict_chain(rule_of(in), left, right, start, scales);
  }

 private:
  static uint64_t cut_bits(uint32_t code, bool wide, std::mt19937& random) {
    if (!wide) return code;
    return uint64_t(code) << 13 | (random() & 0x1fff);
  }
  uint32_t& at(std::vector<uint32_t>& v, int row_length, int block, int row, int column, int rows = 0) {
    return v[size_t((block * (rows ? rows : in.m) + row) * row_length + column)];
  }
  void place_sparse(Operands& o, std::mt19937& random) {
    o.index.assign(64, 0);
    partner.resize(size_t(in.m * stored));
    for (int i = 0; i < in.m; ++i) {
      // Stored values in the order of lanes, then of places in the lane.
      for (int t = 0; t < stored; ++t) {
        const int per_lane = in.per_lane() / 2, lane = t / per_lane * in.m + i, element = t % per_lane;
        const int place = int(random() % 4);
        put_bits(o.a, 64, lane, element, in.a_bits(), a[size_t(i * stored + t)]);
        o.index[size_t(lane)] |= uint32_t(place) << element * 2;
        for (int k = 0; k < in.k; ++k) {  // the value of B in the same lane group and place
          const InputPlace p = input_place(in, 0, i, k, in.b_bits());
          if (p.lane == lane && p.element == element / 2 * 4 + place) partner[size_t(i * stored + t)] = k;
        }
      }
    }
  }
  void place_scales(Operands& o, std::mt19937& random, int style) {
    o.scale_a.resize(64);
    o.scale_b.resize(64);
    const auto scale = [&] { return style == 0 ? int(random() % 256) : 110 + int(random() % 35); };
    for (int lane = 0; lane < 64; ++lane) {
      scale_a.push_back(scale());
      scale_b.push_back(scale());
      if (style != 0 && style != 4) continue;
      if (random() % 64 == 0) scale_a.back() = 255;
    }
    for (int lane = 0; lane < 64; ++lane) {
      o.scale_a[size_t(lane)] = uint32_t(scale_a[size_t(lane)]);
      o.scale_b[size_t(lane)] = uint32_t(scale_b[size_t(lane)]);
    }
  }
};

/// Compares up to `limit` elements of each tile until `cases` were compared.
void compare(const Instruction& in, const Level& level, int cases, int limit, uint32_t seed) {
  std::mt19937 random(seed);
  const crest_sim::MatrixOp* op = find(in, level);
  ASSERT_NE(op, nullptr);
  int compared = 0, nan = 0, finite = 0;
  for (int round = 0; compared < cases; ++round) {
    Tile tile(in);
    Operands o = tile.fill(random, round % 5);
    o.run(in, op->strict);
    const int elements = in.blocks * in.m * in.m;
    for (int e = 0; e < std::min(elements, limit); ++e) {
      const int pick = limit >= elements ? e : int(random() % uint32_t(elements));
      const int block = pick / (in.m * in.m), i = pick / in.m % in.m, j = pick % in.m;
      const uint32_t got = o.get_d(in, block, i, j), want = tile.expected(block, i, j);
      ASSERT_EQ(got, want) << label(in, level) << " style " << round % 5 << " element " << i << "," << j << ": "
                           << std::hex << got << " for " << want;
      nan += (want & 0x7fffffff) > 0x7f800000;
      finite += (want & 0x7fffffff) < 0x7f800000;
      ++compared;
    }
  }
  if (in.a != "fp4" && in.a != "fp6" && in.a != "bf6") EXPECT_GT(nan, 0) << "the specials were not reached";
  EXPECT_GT(finite, cases / 4);
}

bool narrow(const Instruction& in) {
  return in.kind != MatrixKind::kWmma && in.d == "f32" && in.a != "f32" && !in.integer();
}

TEST(MatrixStrict, TenThousandCasesOfEveryType) {
  for (const Level& level : levels()) {
    uint32_t seed = 100;
    for (const auto& [name, arch] : std::vector<std::pair<const char*, crest_sim::Arch>>{
             {"v_mfma_f32_32x32x8_f16", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_32x32x8_bf16", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_16x16x8_xf32", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_16x16x32_fp8_fp8", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_16x16x32_bf8_fp8", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_16x16x32_fp8_bf8", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_16x16x32_bf8_bf8", crest_sim::Arch::kGfx942},
             {"v_mfma_f32_16x16x32_fp8_fp8", crest_sim::Arch::kGfx950},
             {"v_mfma_f32_16x16x32_bf8_bf8", crest_sim::Arch::kGfx950}}) {
      compare(parse(name, arch, 64), level, 10000, 256, ++seed);
    }
  }
}

TEST(MatrixStrict, EveryShape) {
  for (const Level& level : levels()) {
    uint32_t seed = 200;
    for (const Instruction& in : all_instructions()) {
      if (narrow(in)) compare(in, level, 250, 50, ++seed);
    }
  }
}

/// SM-6: an emulator that multiplies and adds separately loses the low half of the product.
TEST(MatrixStrict, Fp32AndFp64AreChainsOfFusedMultiplyAdds) {
  std::mt19937 random(7);
  for (const Level& level : levels()) {
    const Instruction one = parse("v_mfma_f32_32x32x1_2b_f32", crest_sim::Arch::kGfx942, 64);
    Operands o(one);
    for (auto& word : o.a) word = std::bit_cast<uint32_t>(1.0f + 0x1p-12f);
    o.b = o.a;
    for (auto& word : o.c) word = std::bit_cast<uint32_t>(-(1.0f + 0x1p-11f));
    for (const auto fn : {find(one, level)->fast, find(one, level)->strict}) {
      o.run(one, fn);
      for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(std::bit_cast<float>(o.d[size_t(lane)]), 0x1p-24f) << level.name;
    }

    int compared = 0;
    for (const char* name : {"v_mfma_f32_32x32x2_f32", "v_mfma_f32_16x16x4_f32", "v_mfma_f32_4x4x1_16b_f32",
                             "v_mfma_f32_16x16x1_4b_f32"}) {
      const Instruction in = parse(name, crest_sim::Arch::kGfx942, 64);
      for (int round = 0; round < 12; ++round) {
        Tile tile(in);
        Operands random_tile(in);
        for (auto* rows : {&random_tile.a, &random_tile.b, &random_tile.c}) {
          for (auto& word : *rows)
            word = round % 3 ? (random() & 0x807fffffu) | (0x3c000000u + (random() % 8 << 23)) : random();
        }
        random_tile.run(in, find(in, level)->strict);
        for (int block = 0; block < in.blocks; ++block) {
          for (int i = 0; i < in.m; ++i) {
            for (int j = 0; j < in.m; ++j) {
              const OutputPlace p = output_place(in, block, i, j);
              float sum = std::bit_cast<float>(random_tile.c[size_t(p.reg * 64 + p.lane)]);
              for (int k = 0; k < in.k; ++k) {
                const auto value = [&](const Rows& rows, int index) {
                  const InputPlace q = input_place(in, block, index, k, 32);
                  return std::bit_cast<float>(rows[size_t(q.element * 64 + q.lane)]);
                };
                sum = std::fma(value(random_tile.a, i), value(random_tile.b, j), sum);
              }
              const float got = std::bit_cast<float>(random_tile.get_d(in, block, i, j));
              if (std::isnan(sum)) {
                ASSERT_TRUE(std::isnan(got)) << label(in, level);
              } else {
                ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(sum)) << label(in, level);
              }
              ++compared;
            }
          }
        }
      }
    }
    EXPECT_GE(compared, 10000);
  }
}

/// A worked example of the rule: a chain of fused multiply-adds gives another result.
TEST(MatrixStrict, SmallTermsAreCutBeforeTheyAreSummed) {
  const Instruction in = parse("v_mfma_f32_32x32x8_bf16", crest_sim::Arch::kGfx942, 64);
  Operands o(in);
  const auto code = [](float x) { return std::bit_cast<uint32_t>(x) >> 16; };
  for (int i = 0; i < 32; ++i) {
    for (int k = 0; k < 8; ++k) {
      o.set_a(in, 0, i, k, code(k == 0 ? 1.0f : 0x1p-13f));
      o.set_b(in, 0, k, i, code(k == 0 ? 1.0f : 0x1p-12f));
    }
  }
  for (const Level& level : levels()) {
    o.run(in, find(in, level)->strict);
    EXPECT_EQ(std::bit_cast<float>(o.get_d(in, 0, 3, 5)), 1.0f) << "seven terms of 2^-25 vanish below 2^-24";
    o.run(in, find(in, level)->fast);
    EXPECT_EQ(std::bit_cast<float>(o.get_d(in, 0, 3, 5)), 1.0f) << "each is half an ulp and ties to even";
  }
  // With c = -1 nothing hides them from a fused chain.
  for (auto& word : o.c) word = std::bit_cast<uint32_t>(-1.0f);
  for (const Level& level : levels()) {
    o.run(in, find(in, level)->strict);
    EXPECT_EQ(std::bit_cast<float>(o.get_d(in, 0, 3, 5)), 0.0f);
    o.run(in, find(in, level)->fast);
    EXPECT_EQ(std::bit_cast<float>(o.get_d(in, 0, 3, 5)), 7 * 0x1p-25f);
  }
}

}  // namespace
}  // namespace crest_sim_test
