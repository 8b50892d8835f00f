// v_dot2_f32_f16, v_dot2_f32_bf16, v_dot2_f16_f16, v_dot2_bf16_bf16 and their accumulating forms.
//
// RDNA3 follows rdna3_dot.h. For CDNA no measured rule is published: the ISA text's order of operations (c + a0·b0,
// then
// + a1·b1) with fused multiply-adds rounded to nearest even; fp32 subnormals of c and of the result count as zero
// whatever MODE says (LLVM: SITargetLowering::performFMACombine), those of 16-bit factors are kept.
#include "exec/valu.h"
#include "matrix/decode_small.h"
#include "matrix/lane_handlers.h"
#include "matrix/rdna3_dot.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

/// The two factors of a lane that a packed source provides.
struct PairSource {
  const uint32_t* rows;
  uint32_t shift0, shift1, flip0, flip1, keep;

  WideU first(uint32_t lane) const { return (((load<WideU>(rows + lane) >> shift0) & 0xffffu) & keep) ^ flip0; }
  WideU second(uint32_t lane) const { return (((load<WideU>(rows + lane) >> shift1) & 0xffffu) & keep) ^ flip1; }
};

/// `packed`: op_sel, op_sel_hi, neg_lo and neg_hi (VOP3P). Otherwise -x and |x| act on both halves (VOP3).
PairSource stage_pair(Wave& w, const Instruction& i, int index, bool packed, Row& buffer, uint64_t& exec) {
  const uint8_t mods = i.src[index].mods;
  PairSource s{stage_part(w, i, index, 0, buffer, exec), 0, 16, 0, 0, 0xffff};
  if (packed) {
    s.shift0 = mods & kHigh ? 16 : 0;
    s.shift1 = mods & kHighHi ? 16 : 0;
    s.flip0 = mods & kNeg ? 0x8000 : 0;
    s.flip1 = mods & kNegHi ? 0x8000 : 0;
  } else {
    s.flip0 = s.flip1 = mods & kNeg ? 0x8000 : 0;
    s.keep = mods & kAbs ? 0x7fff : 0xffff;
  }
  return s;
}

/// fp32 accumulator with its sign modifier.
struct AccumulatorSource {
  const uint32_t* rows;
  uint32_t flip;
  WideU at(uint32_t lane) const { return load<WideU>(rows + lane) ^ flip; }
};
AccumulatorSource stage_accumulator(Wave& w, const Instruction& i, Row& buffer, uint64_t& exec) {
  return {stage_part(w, i, 2, 0, buffer, exec), i.src[2].mods & kNeg ? 0x80000000u : 0};
}

template <bool Bf16>
void dot2_rdna3(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  Row buffers[3], result;
  const PairSource a = stage_pair(w, i, 0, true, buffers[0], exec), b = stage_pair(w, i, 1, true, buffers[1], exec);
  const AccumulatorSource c = stage_accumulator(w, i, buffers[2], exec);
  {
    NearestMode mode(w);
    for (uint32_t l = 0; l < w.lanes; l += kWide) {
      store(result.lane + l,
            dot2<Bf16, DotOutput::kF32>(a.first(l), b.first(l), a.second(l), b.second(l), c.at(l), false));
    }
  }
  finish(w, i, Type::kF32, result, exec);
}

template <bool Bf16>
void dot2_half_rdna3(Wave& w, const Instruction& i) {
  constexpr DotOutput kOutput = Bf16 ? DotOutput::kBf16 : DotOutput::kF16;
  uint64_t exec = w.exec();
  Row buffers[3], result;
  const PairSource a = stage_pair(w, i, 0, false, buffers[0], exec), b = stage_pair(w, i, 1, false, buffers[1], exec);
  const uint32_t* c = stage(w, i, 2, Type::kB16, buffers[2], exec);
  const bool saturate = w.mode & kFp16Overflow;
  {
    NearestMode mode(w);
    for (uint32_t l = 0; l < w.lanes; l += kWide) {
      const WideU old = load<WideU>(c + l) & 0xffffu;
      store(result.lane + l, dot2<Bf16, kOutput>(a.first(l), b.first(l), a.second(l), b.second(l), old, saturate));
    }
  }
  if (i.clamp && Bf16) {  // finish() clamps fp16 only
    for (uint32_t l = 0; l < w.lanes; ++l) {
      const float x = as_float(result.lane[l] << 16);
      result.lane[l] = x > 1.0f                        ? 0x3f80
                       : x > 0.0f                      ? result.lane[l]
                       : x != x && !mode_dx10_clamp(w) ? result.lane[l]
                                                       : 0;
    }
  }
  Instruction finished = i;
  finished.clamp = i.clamp && !Bf16;
  finish(w, finished, Type::kB16, result, exec);
}

CREST_SIM_INLINE WideF flush(WideF x) {
  const WideU word = bits<WideU>(x);
  const WideI subnormal = (word & 0x7f800000u) == 0u;
  return bits<WideF>(select(subnormal, word & 0x80000000u, word));
}

template <bool Bf16>
void dot2_cdna(Wave& w, const Instruction& i) {
  constexpr Element kElement = Bf16 ? Element::kBf16 : Element::kF16;
  uint64_t exec = w.exec();
  Row buffers[3], result;
  const PairSource a = stage_pair(w, i, 0, true, buffers[0], exec), b = stage_pair(w, i, 1, true, buffers[1], exec);
  const AccumulatorSource c = stage_accumulator(w, i, buffers[2], exec);
  {
    NearestMode mode(w);
    for (uint32_t l = 0; l < w.lanes; l += kWide) {
      WideF sum = flush(bits<WideF>(c.at(l)));
      sum = fused(decode<kElement, false>(a.first(l)), decode<kElement, false>(b.first(l)), sum);
      sum = fused(decode<kElement, false>(a.second(l)), decode<kElement, false>(b.second(l)), sum);
      store(result.lane + l, flush(sum));
    }
  }
  finish(w, i, Type::kF32, result, exec);
}

template <bool Bf16>
ExecuteFn bind_dot2(Instruction& i, const BindContext& c) {
  if (i.src_count < 3 || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  return c.target.cdna ? dot2_cdna<Bf16> : dot2_rdna3<Bf16>;
}

/// The destination is the accumulator; factors are whole pairs.
template <bool Bf16>
ExecuteFn bind_accumulating_dot2(Instruction& i, const BindContext& c) {
  if (i.src_count < 2 || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  i.src[2] = i.dst[0];
  i.src_count = 3;
  for (int k = 0; k < 2; ++k) i.src[k].mods |= kHighHi;
  return bind_dot2<Bf16>(i, c);
}

template <bool Bf16>
ExecuteFn bind_half_dot2(Instruction& i, const BindContext& c) {
  if (i.src_count < 3 || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  choose_half(i, c, true);
  return dot2_half_rdna3<Bf16>;
}

}  // namespace

void register_float_dots(Registry& r) {
  r.add("v_dot2_f32_f16", bind_dot2<false>, Fidelity::kModelled);
  r.add("v_dot2_f32_bf16", bind_dot2<true>, Fidelity::kModelled);
  for (const char* name : {"v_dot2acc_f32_f16", "v_dot2c_f32_f16"})
    r.add(name, bind_accumulating_dot2<false>, Fidelity::kModelled);
  for (const char* name : {"v_dot2acc_f32_bf16", "v_dot2c_f32_bf16"})
    r.add(name, bind_accumulating_dot2<true>, Fidelity::kModelled);
  r.add("v_dot2_f16_f16", bind_half_dot2<false>, Fidelity::kModelled);
  r.add("v_dot2_bf16_bf16", bind_half_dot2<true>, Fidelity::kModelled);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
