// Matrix instructions seen from outside: operands as matrices of codes, placed by the index formulas of AMD's published
// register mappings (written down here a second time, on purpose).
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "crest_sim/target.h"
#include "exec/matrix_call.h"
#include "number_formats.h"

namespace crest_sim {
#ifdef CREST_SIM_HAVE_V2
namespace level_v2 {
const MatrixOp* find_matrix_op(std::string_view mnemonic, const TargetInfo& target, uint32_t wave_size);
}
#endif
#ifdef CREST_SIM_HAVE_V3
namespace level_v3 {
const MatrixOp* find_matrix_op(std::string_view mnemonic, const TargetInfo& target, uint32_t wave_size);
}
#endif
#ifdef CREST_SIM_HAVE_V4
namespace level_v4 {
const MatrixOp* find_matrix_op(std::string_view mnemonic, const TargetInfo& target, uint32_t wave_size);
}
#endif
}  // namespace crest_sim

namespace crest_sim_test {

using FindMatrixOp = const crest_sim::MatrixOp* (*)(std::string_view, const crest_sim::TargetInfo&, uint32_t);

struct Level {
  const char* name;
  FindMatrixOp find;
};

/// The builds of the matrix room that this machine can run.
inline std::vector<Level> levels() {
  std::vector<Level> result;
#ifdef CREST_SIM_HAVE_V2
  if (__builtin_cpu_supports("x86-64-v2")) result.push_back({"v2", crest_sim::level_v2::find_matrix_op});
#endif
#ifdef CREST_SIM_HAVE_V3
  if (__builtin_cpu_supports("x86-64-v3")) result.push_back({"v3", crest_sim::level_v3::find_matrix_op});
#endif
#ifdef CREST_SIM_HAVE_V4
  if (__builtin_cpu_supports("x86-64-v4")) result.push_back({"v4", crest_sim::level_v4::find_matrix_op});
#endif
  return result;
}

enum class MatrixKind { kMfma, kScaled, kSparse, kWmma };

/// What a mnemonic says, parsed from its text.
struct Instruction {
  std::string mnemonic;
  MatrixKind kind = MatrixKind::kMfma;
  crest_sim::Arch arch = crest_sim::Arch::kGfx942;
  int lanes = 64;
  int m = 0, k = 0, blocks = 1;
  std::string a, b, d;  ///< "f16", "bf8", "i8", …

  bool integer() const { return d == "i32"; }
  int a_bits() const { return bits_of(a); }
  int b_bits() const { return bits_of(b); }
  /// Values of k per lane, of the dense matrices.
  int per_lane() const { return kind == MatrixKind::kWmma ? k : k * m * blocks / 64; }
  int d_values() const { return m * m * blocks / lanes; }

  static int bits_of(const std::string& type) {
    if (type == "f64") return 64;
    if (type == "f32" || type == "xf32") return 32;
    if (type == "f16" || type == "bf16") return 16;
    if (type == "fp6" || type == "bf6") return 6;
    if (type == "fp4" || type == "iu4") return 4;
    return 8;
  }
};

inline Format format_of(const std::string& type, bool fnuz) {
  if (type == "f32") return kF32;
  if (type == "xf32") return kTf32;
  if (type == "f16") return kF16;
  if (type == "bf16") return kBf16;
  if (type == "fp8") return fnuz ? kE4M3Fnuz : kE4M3;
  if (type == "bf8") return fnuz ? kE5M2Fnuz : kE5M2;
  if (type == "fp6") return kE2M3;
  if (type == "bf6") return kE3M2;
  return kE2M1;
}

/// "v_mfma_f32_16x16x4_4b_bf16" and the like.
inline Instruction parse(const std::string& mnemonic, crest_sim::Arch arch, int lanes) {
  Instruction in;
  in.mnemonic = mnemonic;
  in.arch = arch;
  in.lanes = lanes;
  std::vector<std::string> parts;
  for (size_t at = 0; at <= mnemonic.size();) {
    const size_t end = std::min(mnemonic.find('_', at), mnemonic.size());
    parts.push_back(mnemonic.substr(at, end - at));
    at = end + 1;
  }
  size_t p = 1;
  in.kind = parts[p] == "smfmac" ? MatrixKind::kSparse : parts[p] == "wmma" ? MatrixKind::kWmma : MatrixKind::kMfma;
  ++p;
  if (parts[p] == "scale") {
    in.kind = MatrixKind::kScaled;
    ++p;
  }
  in.d = parts[p++];
  std::sscanf(parts[p++].c_str(), "%dx%*dx%d", &in.m, &in.k);
  if (parts[p].back() == 'b' && std::isdigit(parts[p][0])) in.blocks = std::stoi(parts[p++]);
  in.a = parts[p];
  in.b = p + 1 < parts.size() ? parts[p + 1] : parts[p];
  return in;
}

/// Lane and element (in units of the type's width, from bit 0 of the first register) of A[i][k] or B[k][i].
struct InputPlace {
  int lane, element;
};
inline InputPlace input_place(const Instruction& in, int block, int i, int k, int bits) {
  if (in.kind == MatrixKind::kWmma) return {i, k};
  const int per_lane = in.per_lane();
  if (in.m == 4 && in.d == "f64") return {4 * block + 16 * k + i, 0};
  if (in.blocks > 1) return {in.m * block + i, k};
  if (per_lane == 32 && bits == 8) {  // two runs of 16 values
    const int groups = 64 / in.m;
    return {k / 16 % groups * in.m + i, k / 16 / groups * 16 + k % 16};
  }
  return {k / per_lane * in.m + i, k % per_lane};
}

struct OutputPlace {
  int reg, lane;
};
inline OutputPlace output_place(const Instruction& in, int block, int i, int j) {
  if (in.kind == MatrixKind::kWmma)
    return in.lanes == 32 ? OutputPlace{i / 2, 16 * i % 32 + j} : OutputPlace{i / 4, 16 * i % 64 + j};
  if (in.d == "f64")
    return in.m == 4 ? OutputPlace{0, 16 * (i % 4) + 4 * block + j} : OutputPlace{i / 4, 16 * (i % 4) + j};
  if (in.m == 4) return {i % 4, 4 * block + j};
  if (in.m == 16) return {4 * block + i % 4, 16 * (i / 4) + j};
  return {16 * block + 4 * (i / 8) + i % 4, 32 * (i / 4) % 64 + j};
}

using Rows = std::vector<uint32_t>;

inline void put_bits(Rows& rows, int lanes, int lane, int element, int bits, uint64_t code) {
  for (int bit = 0; bit < bits; ++bit) {
    const int at = element * bits + bit;
    uint32_t& word = rows[size_t(at / 32 * lanes + lane)];
    word = (word & ~(1u << at % 32)) | uint32_t(code >> bit & 1) << at % 32;
  }
}

/// Operands of one execution, in register rows.
struct Operands {
  Rows a, b, c, d, scale_a, scale_b, index;
  crest_sim::Instruction instruction;

  explicit Operands(const Instruction& in)
      : a(size_t(16 * in.lanes)),
        b(size_t(16 * in.lanes)),
        c(size_t(32 * in.lanes)),
        d(size_t(32 * in.lanes), 0xdeadbeefu) {}

  void set_a(const Instruction& in, int block, int i, int k, uint64_t code) {
    const InputPlace place = input_place(in, block, i, k, in.a_bits());
    for (int copy = 0; copy < (in.kind == MatrixKind::kWmma ? in.lanes / 16 : 1); ++copy) {
      put_bits(a, in.lanes, place.lane + copy * 16, place.element, in.a_bits(), code);
    }
  }
  void set_b(const Instruction& in, int block, int k, int j, uint64_t code) {
    const InputPlace place = input_place(in, block, j, k, in.b_bits());
    for (int copy = 0; copy < (in.kind == MatrixKind::kWmma ? in.lanes / 16 : 1); ++copy) {
      put_bits(b, in.lanes, place.lane + copy * 16, place.element, in.b_bits(), code);
    }
  }
  void set_c(const Instruction& in, int block, int i, int j, uint32_t word) {
    const OutputPlace place = output_place(in, block, i, j);
    c[size_t(place.reg * in.lanes + place.lane)] = word;
  }
  uint32_t get_d(const Instruction& in, int block, int i, int j) const {
    const OutputPlace place = output_place(in, block, i, j);
    return d[size_t(place.reg * in.lanes + place.lane)];
  }
  crest_sim::MatrixCall call(const Instruction& in) {
    crest_sim::MatrixCall call{};
    call.d = d.data();
    call.a = a.data();
    call.b = b.data();
    call.c = c.data();
    call.lanes = uint32_t(in.lanes);
    call.instruction = &instruction;
    call.scale_a = scale_a.empty() ? nullptr : scale_a.data();
    call.scale_b = scale_b.empty() ? nullptr : scale_b.data();
    call.index = index.empty() ? nullptr : index.data();
    return call;
  }
  void run(const Instruction& in, crest_sim::MatrixFn fn) {
    if (in.kind == MatrixKind::kSparse) d = c;
    fn(call(in));
  }
};

}  // namespace crest_sim_test
