// Matrix products of small integers: exact in every format, so that each element of D shows where its operands came
// from.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "matrix_names.h"

namespace crest_sim_test {

using crest_sim::kNeg;

using Matrix = std::vector<int>;  // [block][row][column]

/// The code of a small integer in an operand type.
inline uint64_t code_of(const Instruction& in, const std::string& type, int value) {
  if (type == "f64") return std::bit_cast<uint64_t>(double(value));
  if (type == "f32" || type == "xf32") return std::bit_cast<uint32_t>(float(value));
  if (type == "i8" || type == "iu8" || type == "iu4") return uint64_t(value);
  return encode_exact(format_of(type, in.arch == crest_sim::Arch::kGfx942), value);
}

struct Case {
  const Instruction& in;
  Matrix a, b, c;
  std::mt19937& random;

  Case(const Instruction& instruction, std::mt19937& rng, int low, int high)
      : in(instruction),
        a(size_t(in.blocks * in.m * in.k)),
        b(a.size()),
        c(size_t(in.blocks * in.m * in.m)),
        random(rng) {
    std::uniform_int_distribution<int> value(low, high), wide(low < 0 ? -9 : 0, 9);
    for (int& x : a) x = value(rng);
    for (int& x : b) x = value(rng);
    for (int& x : c) x = wide(rng);
  }
  int& at_a(int block, int i, int k) { return a[size_t((block * in.m + i) * in.k + k)]; }
  int& at_b(int block, int k, int j) { return b[size_t((block * in.k + k) * in.m + j)]; }
  int& at_c(int block, int i, int j) { return c[size_t((block * in.m + i) * in.m + j)]; }

  int expected(int block, int i, int j) {
    int sum = at_c(block, i, j);
    for (int k = 0; k < in.k; ++k) sum += at_a(block, i, k) * at_b(block, k, j);
    return sum;
  }

  /// Keeps two of every four values of a row of A and stores them with their indices.
  void place_sparse(Operands& o) {
    o.index.assign(64, 0);
    std::uniform_int_distribution<int> pick(0, 3);
    const int per_lane = in.per_lane();
    for (int i = 0; i < in.m; ++i) {
      for (int k = 0; k < in.k; k += 4) {
        int first = pick(random), second = pick(random);
        while (second == first) second = pick(random);
        if (second < first) std::swap(first, second);
        for (int r = 0; r < 4; ++r) {
          if (r != first && r != second) at_a(0, i, k + r) = 0;
        }
        const InputPlace dense = input_place(in, 0, i, k, in.b_bits());
        const int quad = dense.element / 4;
        put_bits(o.a, 64, dense.lane, quad * 2, in.a_bits(), code_of(in, in.a, at_a(0, i, k + first)));
        put_bits(o.a, 64, dense.lane, quad * 2 + 1, in.a_bits(), code_of(in, in.a, at_a(0, i, k + second)));
        o.index[size_t(dense.lane)] |= uint32_t(first | second << 2) << quad * 4;
      }
    }
    // Index sets that the instruction does not read hold rubbish.
    if (per_lane < 32) {
      const uint32_t used = (1u << per_lane) - 1;
      for (auto& word : o.index) word |= 0xa5a5a5a5u & ~used;
    }
  }

  Operands place() {
    Operands o(in);
    if (in.kind == MatrixKind::kSparse) {
      place_sparse(o);
    } else {
      for (int block = 0; block < in.blocks; ++block) {
        for (int i = 0; i < in.m; ++i) {
          for (int k = 0; k < in.k; ++k) o.set_a(in, block, i, k, code_of(in, in.a, at_a(block, i, k)));
        }
      }
    }
    for (int block = 0; block < in.blocks; ++block) {
      for (int j = 0; j < in.m; ++j) {
        for (int k = 0; k < in.k; ++k) o.set_b(in, block, k, j, code_of(in, in.b, at_b(block, k, j)));
      }
    }
    for (int block = 0; block < in.blocks; ++block) {
      for (int i = 0; i < in.m; ++i) {
        for (int j = 0; j < in.m; ++j) place_c(o, block, i, j, at_c(block, i, j));
      }
    }
    if (in.a == "fp8" || in.a == "bf8" || in.b_bits() < 8 || in.a_bits() < 8) {
      if (in.mnemonic.ends_with("f8f6f4")) {
        o.instruction.cbsz = uint8_t(format_selector(in.a));
        o.instruction.blgp = uint8_t(format_selector(in.b));
      }
    }
    if (in.kind == MatrixKind::kScaled) {
      o.scale_a.assign(64, 0x7f7f7f7f);
      o.scale_b.assign(64, 0x7f7f7f7f);
    }
    if (in.mnemonic.starts_with("v_wmma_i32")) o.instruction.src[0].mods = o.instruction.src[1].mods = kNeg;
    return o;
  }
  void place_c(Operands& o, int block, int i, int j, int value) {
    if (in.d == "f64") {
      const OutputPlace p = output_place(in, block, i, j);
      const auto word = std::bit_cast<uint64_t>(double(value));
      o.c[size_t(p.reg * 2 * 64 + p.lane)] = uint32_t(word);
      o.c[size_t((p.reg * 2 + 1) * 64 + p.lane)] = uint32_t(word >> 32);
    } else if (in.integer()) {
      o.set_c(in, block, i, j, uint32_t(value));
    } else {
      o.set_c(in, block, i, j, uint32_t(code_of(in, in.d, value)));
    }
  }
  double result(const Operands& o, int block, int i, int j) {
    if (in.d == "f64") {
      const OutputPlace p = output_place(in, block, i, j);
      const uint64_t low = o.d[size_t(p.reg * 2 * 64 + p.lane)], high = o.d[size_t((p.reg * 2 + 1) * 64 + p.lane)];
      return std::bit_cast<double>(low | high << 32);
    }
    const uint32_t word = o.get_d(in, block, i, j);
    if (in.integer()) return int32_t(word);
    if (in.d == "f32") return std::bit_cast<float>(word);
    return decode(format_of(in.d, false), word & 0xffff).value();
  }
};

/// Runs a case in one mode and compares every element.
inline void check(Case& test, Operands& o, crest_sim::MatrixFn fn, const std::string& what,
                  const std::function<double(int, int, int)>& expected) {
  o.run(test.in, fn);
  int wrong = 0;
  for (int block = 0; block < test.in.blocks; ++block) {
    for (int i = 0; i < test.in.m; ++i) {
      for (int j = 0; j < test.in.m; ++j) wrong += test.result(o, block, i, j) != expected(block, i, j);
    }
  }
  EXPECT_EQ(wrong, 0) << what << ": elements of D that are not the integer product";
  // Registers behind D are nobody's.
  const size_t used = size_t(test.in.d_values() * (test.in.d == "f64" ? 2 : 1) * test.in.lanes);
  if (test.in.kind != MatrixKind::kSparse) {
    for (size_t at = used; at < o.d.size(); ++at) ASSERT_EQ(o.d[at], 0xdeadbeefu) << what << ": wrote behind D";
  }
}

}  // namespace crest_sim_test
