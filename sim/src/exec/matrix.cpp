// Hands MFMA, SMFMAC and WMMA to the matrix operations.
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "exec/common.h"
#include "exec/interpreter.h"
#include "exec/matrix_call.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

/// What an instruction's `data` points to.
struct Bound {
  const MatrixOp* op;
  std::vector<uint32_t> literal_c;  ///< splatted rows if C is an inline constant

  const uint32_t* rows() const {
    auto address = reinterpret_cast<uintptr_t>(literal_c.data());
    return literal_c.data() + ((64 - address % 64) % 64) / 4;
  }
};

/// Inline float constants arrive as f16, bf16, f32 or f64 bits, whatever LLVM's operand type says; C wants its own
/// format. Integer constants (raw bits) stay.
uint64_t accumulator_bits(uint64_t literal, const std::string& name) {
  if (name.find("_i32_") != std::string::npos) return literal;
  for (double magnitude : {0.5, 1.0, 2.0, 4.0, 0.15915494309189532}) {
    for (double value : {magnitude, -magnitude}) {
      const float single = static_cast<float>(value);
      const uint32_t word = std::bit_cast<uint32_t>(single);
      const uint64_t half = std::bit_cast<uint16_t>(static_cast<_Float16>(value)), bfloat = (word + 0x8000) >> 16;
      const uint64_t wide = std::bit_cast<uint64_t>(value);
      if (literal != half && literal != bfloat && literal != word && literal != wide) continue;
      if (name.find("_f64") != std::string::npos) return wide;
      if (name.starts_with("v_wmma_f16")) return half;
      return name.starts_with("v_wmma_bf16") ? bfloat : word;
    }
  }
  return literal;
}

const Bound* intern(const MatrixOp* op, const std::string& name, const Operand& c, uint32_t lanes) {
  static std::mutex mutex;
  static std::map<std::tuple<const MatrixOp*, uint64_t, bool, uint32_t>, std::unique_ptr<Bound>> table;
  std::lock_guard lock(mutex);
  auto& entry = table[{op, c.is_literal() ? c.literal : 0, c.is_literal(), lanes}];
  if (entry) return entry.get();
  entry = std::make_unique<Bound>();
  entry->op = op;
  if (!c.is_literal()) return entry.get();
  bool wide = name.find("_f64") != std::string::npos;
  bool half = name.starts_with("v_wmma_f16") || name.starts_with("v_wmma_bf16");
  const uint64_t bits = accumulator_bits(c.literal, name);
  uint32_t low = static_cast<uint32_t>(bits), high = wide ? static_cast<uint32_t>(bits >> 32) : low;
  if (half) low = high = (low & 0xffff) | low << 16;
  size_t rows = std::max<size_t>(op->d_dwords, op->c_dwords);
  entry->literal_c.resize(rows * lanes + 16);
  auto* out = const_cast<uint32_t*>(entry->rows());
  for (size_t k = 0; k < rows; ++k)
    for (uint32_t l = 0; l < lanes; ++l) out[k * lanes + l] = k & 1 ? high : low;
  return entry.get();
}

void matrix(Wave& w, const Instruction& i) {
  const Bound& bound = *static_cast<const Bound*>(i.data);
  MatrixCall call{};
  call.d = row(w, i.dst[0]);
  call.a = row(w, i.src[0]);
  call.b = row(w, i.src[1]);
  call.lanes = w.lanes;
  call.instruction = &i;
  if (i.flags & kFlagSparse) {
    call.c = call.d;
    call.index = row(w, i.src[2]);
  } else {
    call.c = i.src[2].is_vector() ? row(w, i.src[2]) : bound.rows();
  }
  alignas(64) uint32_t scales[2][64];
  if (i.src_count == 5) {
    const uint32_t* rows[2];
    for (int k = 0; k < 2; ++k) {
      const Operand& o = i.src[3 + k];
      if (!o.is_vector()) broadcast(scales[k], scalar(w, o), w.lanes);
      rows[k] = o.is_vector() ? row(w, o) : scales[k];
    }
    call.scale_a = rows[0];
    call.scale_b = rows[1];
  }
  bool strict = w.workgroup->launch->strict_matrix && bound.op->strict;
  MatrixFn fn = strict || !bound.op->fast ? bound.op->strict : bound.op->fast;
  if (w.mxcsr == 0x1f80) [[likely]]
    return fn(call);
  _mm_setcsr(0x1f80);
  fn(call);
  _mm_setcsr(w.mxcsr);
}

}  // namespace

bool bind_matrix(Instruction& i, const std::string& name, const BindContext& c) {
  const MatrixOp* op = find_matrix_op(name, c.target, c.lanes);
  if (!op || i.src_count < 3 || !i.dst[0].is_vector() || !i.src[0].is_vector() || !i.src[1].is_vector()) return false;
  if (name.starts_with("v_smfmac")) i.flags |= kFlagSparse;
  if (!(i.flags & kFlagSparse) && !i.src[2].is_vector() && !i.src[2].is_literal()) return false;
  i.data = intern(op, name, i.src[2], c.lanes);
  i.execute = matrix;
  i.fidelity = op->fidelity;
  return true;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
