// `fast` against double precision and against `strict`, within bounds that follow from the arithmetic; special values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codes.h"
#include "matrix_names.h"

namespace crest_sim_test {
namespace {

/// A chain of n roundings of partial sums that stay below `largest`: n half ulps of it.
double chain_bound(int n, double largest) { return n * 0x1p-24 * largest + n * 0x1p-149; }

/// Sums of absolute values of the terms of every element, and the exact results.
struct Exact {
  double value, magnitude;
};

Exact exact(const Instruction& in, const std::vector<double>& a, const std::vector<double>& b, double c, int block,
            int i, int j) {
  Exact e{c, std::fabs(c)};
  for (int k = 0; k < in.k; ++k) {
    const double p = a[size_t((block * in.m + i) * in.k + k)] * b[size_t((block * in.k + k) * in.m + j)];
    e.value += p;
    e.magnitude += std::fabs(p);
  }
  return e;
}

bool plain_float(const Instruction& in) {
  return (in.kind == MatrixKind::kMfma || in.kind == MatrixKind::kWmma) && in.d == "f32" && !in.integer() &&
         in.a != "f8f6f4";
}

TEST(MatrixFast, StaysWithinTheRoundingOfItsChainAndNearStrict) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const Level& level : levels()) {
    for (const Instruction& in : all_instructions()) {
      if (!plain_float(in) || in.mnemonic.ends_with("f8f6f4")) continue;
      const bool fnuz = in.arch == crest_sim::Arch::kGfx942;
      const Format fa = format_of(in.a, fnuz), fb = format_of(in.b, fnuz);
      Operands o(in);
      std::vector<double> a(size_t(in.blocks * in.m * in.k)), b(a.size()), c(size_t(in.blocks * in.m * in.m));
      const auto sample = [&](const Format& f) {  // a random code of moderate size
        for (;;) {
          const uint32_t code = random() & f.mask();
          const Decoded d = decode(f, code);
          if (d.kind == Kind::kFinite && std::fabs(d.value()) < 8 &&
              (std::fabs(d.value()) > 0x1p-6 || random() % 64 == 0))
            return code;
        }
      };
      const auto raw = [&](const std::string& type, uint32_t code) {
        return type == "xf32" ? uint64_t(code) << 13 : uint64_t(code);
      };
      for (int block = 0; block < in.blocks; ++block) {
        for (int i = 0; i < in.m; ++i) {
          for (int k = 0; k < in.k; ++k) {
            const uint32_t x = in.a == "f32" ? std::bit_cast<uint32_t>(normal(random)) : sample(fa);
            const uint32_t y = in.b == "f32" ? std::bit_cast<uint32_t>(normal(random)) : sample(fb);
            o.set_a(in, block, i, k, raw(in.a, x));
            o.set_b(in, block, k, i, raw(in.b, y));
            a[size_t((block * in.m + i) * in.k + k)] = decode(fa, x).value();
            b[size_t((block * in.k + k) * in.m + i)] = decode(fb, y).value();
          }
          for (int j = 0; j < in.m; ++j) {
            const float x = normal(random);
            c[size_t((block * in.m + i) * in.m + j)] = x;
            o.set_c(in, block, i, j, std::bit_cast<uint32_t>(x));
          }
        }
      }
      o.run(in, find(in, level)->fast);
      Operands strict = o;
      strict.run(in, find(in, level)->strict);
      for (int block = 0; block < in.blocks; ++block) {
        for (int i = 0; i < in.m; ++i) {
          for (int j = 0; j < in.m; ++j) {
            const Exact e = exact(in, a, b, c[size_t((block * in.m + i) * in.m + j)], block, i, j);
            const double fast = std::bit_cast<float>(o.get_d(in, block, i, j)),
                         hard = std::bit_cast<float>(strict.get_d(in, block, i, j));
            ASSERT_LE(std::fabs(fast - e.value), chain_bound(in.k, e.magnitude)) << label(in, level);
            // A group cuts up to 17 terms by 2^-24 of a bound on the largest one (4 × its power of two), then rounds.
            ASSERT_LE(std::fabs(hard - e.value), in.k * 2 * 4 * 0x1p-24 * e.magnitude) << label(in, level);
          }
        }
      }
    }
  }
}

TEST(MatrixFast, EveryCodeOfEveryFormatIsDecoded) {
  for (const Level& level : levels()) {
    for (const Instruction& in : all_instructions()) {
      if (in.kind == MatrixKind::kSparse || in.integer() || in.d != "f32" || in.b != in.a || in.a == "f32" ||
          in.kind == MatrixKind::kScaled)
        continue;
      if (in.a == "xf32" || in.a_bits() == 64) continue;
      const Format f = format_of(in.a, in.arch == crest_sim::Arch::kGfx942);
      // Codes in k = 0 of A, ones in B: D is the decoded value.
      for (uint32_t base = 0; base < f.codes(); base += uint32_t(in.m * in.blocks)) {
        Operands o(in);
        if (in.mnemonic.ends_with("f8f6f4")) o.instruction.cbsz = o.instruction.blgp = uint8_t(format_selector(in.a));
        for (int block = 0; block < in.blocks; ++block) {
          for (int i = 0; i < in.m; ++i) {
            o.set_a(in, block, i, 0, (base + uint32_t(block * in.m + i)) % f.codes());
            o.set_b(in, block, 0, i, encode_exact(f, 1));
          }
        }
        o.run(in, find(in, level)->fast);
        for (int block = 0; block < in.blocks; ++block) {
          for (int i = 0; i < in.m; ++i) {
            const double want = decode(f, (base + uint32_t(block * in.m + i)) % f.codes()).value();
            const float got = std::bit_cast<float>(o.get_d(in, block, i, i % in.m));
            if (std::isnan(want)) {
              ASSERT_TRUE(std::isnan(got)) << label(in, level) << " code " << base + uint32_t(i);
            } else {
              ASSERT_EQ(double(got), want) << label(in, level) << " code " << base + uint32_t(i);
            }
          }
        }
      }
    }
  }
}

TEST(MatrixFast, IntegersWrap) {
  std::mt19937 random(3);
  for (const Level& level : levels()) {
    for (const Instruction& in : all_instructions()) {
      if (!in.integer() || in.kind != MatrixKind::kMfma) continue;
      Operands o(in);
      std::vector<int> a(size_t(in.blocks * in.m * in.k)), b(a.size());
      for (int block = 0; block < in.blocks; ++block) {
        for (int i = 0; i < in.m; ++i) {
          for (int k = 0; k < in.k; ++k) {
            const auto extreme = [&] { return random() % 3 ? int(int8_t(random())) : random() % 2 ? -128 : 127; };
            o.set_a(in, block, i, k, uint8_t(a[size_t((block * in.m + i) * in.k + k)] = extreme()));
            o.set_b(in, block, k, i, uint8_t(b[size_t((block * in.k + k) * in.m + i)] = extreme()));
          }
          for (int j = 0; j < in.m; ++j) o.set_c(in, block, i, j, random() % 2 ? random() : 0x7fffff00u);
        }
      }
      o.run(in, find(in, level)->fast);
      for (int block = 0; block < in.blocks; ++block) {
        for (int i = 0; i < in.m; ++i) {
          for (int j = 0; j < in.m; ++j) {
            const OutputPlace p = output_place(in, block, i, j);
            uint32_t want = o.c[size_t(p.reg * 64 + p.lane)];
            for (int k = 0; k < in.k; ++k) {
              want += uint32_t(a[size_t((block * in.m + i) * in.k + k)] * b[size_t((block * in.k + k) * in.m + j)]);
            }
            ASSERT_EQ(o.get_d(in, block, i, j), want) << label(in, level);
          }
        }
      }
    }
  }
}

/// A zero times a value of B that the sparse index does not select must not make a NaN.
TEST(MatrixFast, SparseProductsIgnoreUnselectedInfinities) {
  for (const Level& level : levels()) {
    const Instruction in = parse("v_smfmac_f32_16x16x32_f16", crest_sim::Arch::kGfx942, 64);
    for (const bool strict : {false, true}) {
      Operands o(in);
      o.index.assign(64, 0x44444444u);  // places 0 and 1 of every four
      for (int k = 0; k < 32; ++k) {
        for (int j = 0; j < 16; ++j) o.set_b(in, 0, k, j, k % 4 < 2 ? 0x3c00 : 0x7c00);
      }
      for (int lane = 0; lane < 64; ++lane) {
        for (int e = 0; e < 4; ++e) put_bits(o.a, 64, lane, e, 16, 0x3c00);
      }
      o.run(in, strict ? find(in, level)->strict : find(in, level)->fast);
      for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(std::bit_cast<float>(o.d[size_t(lane)]), 16.0f);
    }
  }
}

}  // namespace
}  // namespace crest_sim_test
