// gfx950's conversions with a scale: v_cvt_scalef32_*.
//
// The scale is the exponent of an fp32 operand (its other bits do not matter), as in E8M0: narrowing divides by 2^(e -
// 127), widening multiplies by it; an exponent field of 255 is a NaN scale and makes the result NaN (the largest value
// in formats without NaN). Everything is rounded once, to nearest even or, for the sr forms, stochastically with the
// same seed for all values of a lane. 2xpk16 interleaves its sources: the first one has the even places.
#include "exec/valu.h"
#include "matrix/lane_handlers.h"
#include "matrix/narrow.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

enum class Wide : uint8_t { kF32, kF16, kBf16 };

/// fp32 bits of a 16-bit value.
template <Wide W>
CREST_SIM_INLINE WideU widen_source(WideU raw) {
  if constexpr (W == Wide::kF32) return raw;
  if constexpr (W == Wide::kBf16) return raw << 16;
  return bits<WideU>(decode<Element::kF16, false>(raw));
}
template <Wide W>
CREST_SIM_INLINE WideU narrow_result(WideF value) {
  if constexpr (W == Wide::kF32) return bits<WideU>(value);
  if constexpr (W == Wide::kBf16) return narrow_bf16(bits<WideU>(value));
  // Values of few significant bits: the one rounding happens here.
  const WideU none = 0;
  const WideU word = bits<WideU>(value);
  const WideI nan = (word & 0x7fffffffu) > 0x7f800000u;
  const WideU code = narrow<Element::kF16, false, Rounding::kNearestEven>(word, none, splat(0), false);
  return select(nan, (code & 0x8000u) | 0x7e00u, code);
}

struct Scale {
  WideI exponent, nan;
};
CREST_SIM_INLINE Scale scale_at(const uint32_t* rows, uint32_t lane) {
  const WideI field = bits<WideI>(load<WideU>(rows + lane) >> 23) & 255;
  return {field - 127, field == 255};
}

template <Element E, Rounding R>
CREST_SIM_INLINE WideU narrow_scaled(WideU x, WideU seed, Scale scale, bool saturate) {
  constexpr SmallFormat f = small_format(E, false);
  const WideU code = narrow<E, false, R>(x, seed, -scale.exponent, saturate);
  return select(scale.nan, WideU(uint32_t(nan_code(f))), code);
}
template <Element E, Wide W>
CREST_SIM_INLINE WideU widen_scaled(WideU raw, Scale scale) {
  const WideF value = scale_value(decode<E, false>(raw), scale.exponent);
  const WideI nan = value != value;  // with the sign of the code, without its payload
  const WideI quiet = (bits<WideI>(value) & int32_t(0x80000000)) | 0x7fc00000;
  const WideF clean = select(nan, bits<WideF>(quiet), value);
  return narrow_result<W>(select(scale.nan, bits<WideF>(splat(0x7fc00000)), clean));
}

/// -x and |x| of an operand with 16-bit values act on each of them.
struct HalfSigns {
  uint32_t keep, flip;
  explicit HalfSigns(const Operand& o) : keep(o.mods & kAbs ? 0x7fffu : 0xffffu), flip(o.mods & kNeg ? 0x8000u : 0) {}
  WideU apply(WideU raw) const { return (raw & keep) ^ flip; }
};

/// One or two values → one or two codes in a byte, half or nibble pair of the destination. Sources: fp32 in one or two
/// operands (or a register pair for sr_pk_fp4_f32), or a packed pair of 16-bit values.
template <Element E, Wide W, Rounding R, bool Two>
void narrow_part(Wave& w, const Instruction& i) {
  constexpr bool kTwoOperands = W == Wide::kF32 && Two && R == Rounding::kNearestEven;
  constexpr int kSeed = 1, kScale = kTwoOperands ? 2 : R == Rounding::kStochastic ? 2 : 1;
  constexpr int kBits = element_bits(E), kPart = Two ? 2 * kBits : kBits;
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffers[4], result;
  const uint32_t* first = stage(w, i, 0, W == Wide::kF32 ? Type::kF32 : Type::kU32, buffers[0], exec);
  const uint32_t* second = first;
  if constexpr (kTwoOperands) second = stage(w, i, 1, Type::kF32, buffers[1], exec);
  if constexpr (W == Wide::kF32 && Two && !kTwoOperands) second = stage_part(w, i, 0, 1, buffers[1], exec);
  const uint32_t* seeds = R == Rounding::kStochastic ? stage(w, i, kSeed, Type::kU32, buffers[2], exec) : first;
  const uint32_t* scales = stage(w, i, kScale, Type::kU32, buffers[3], exec);
  const HalfSigns signs(i.src[0]);
  const bool upper = !Two && (i.src[0].mods & kHigh);
  const bool saturate = w.mode & kFp16Overflow;
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    WideU x = load<WideU>(first + l), y = load<WideU>(second + l);
    if constexpr (W != Wide::kF32) {
      y = signs.apply(x >> 16);
      x = upper ? y : signs.apply(x);
    }
    const Scale scale = scale_at(scales, l);
    const WideU seed = load<WideU>(seeds + l);
    WideU code = narrow_scaled<E, R>(widen_source<W>(x), seed, scale, saturate);
    if constexpr (Two) code |= narrow_scaled<E, R>(widen_source<W>(y), seed, scale, saturate) << uint32_t(kBits);
    store(result.lane + l, code);
  }
  const int bit = kPart == 16 ? (i.dst[0].mods & kHigh ? 16 : 0) : destination_byte(i) * 8;
  write_part(w, i, result.lane, bit, (1u << kPart) - 1, exec);
}

/// One or two codes from a byte or half of the source (op_sel) → one value, a packed pair or a register pair.
template <Element E, Wide W, bool Two>
void widen_part(Wave& w, const Instruction& i) {
  constexpr int kBits = element_bits(E), kPart = Two ? 2 * kBits : kBits;
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffers[2], result[2];
  Instruction plain = i;
  plain.src[0].mods = 0;
  const uint32_t* codes = stage(w, plain, 0, Type::kU32, buffers[0], exec);
  const uint32_t* scales = stage(w, i, 1, Type::kU32, buffers[1], exec);
  const int low_bit = i.src[0].mods & kHigh ? 1 : 0, high_bit = i.src[1].mods & kHigh ? 1 : 0;
  const uint32_t shift = kPart == 16 ? uint32_t(low_bit) * 16 : uint32_t(low_bit + 2 * high_bit) * 8;
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    const WideU part = load<WideU>(codes + l) >> shift;
    const Scale scale = scale_at(scales, l);
    store(result[0].lane + l, widen_scaled<E, W>(part & ((1u << kBits) - 1), scale));
    if constexpr (Two)
      store(result[1].lane + l, widen_scaled<E, W>((part >> uint32_t(kBits)) & ((1u << kBits) - 1), scale));
  }
  uint32_t* d = row(w, i.dst[0]);
  if constexpr (W == Wide::kF32) {
    merge_row(w, d, result[0].lane, exec);
    if constexpr (Two) merge_row(w, d + w.lanes, result[1].lane, exec);
  } else if constexpr (Two) {
    for_lanes(w.lanes, [&](uint32_t l) { result[0].lane[l] |= result[1].lane[l] << 16; });
    merge_row(w, d, result[0].lane, exec);
  } else {
    write_part(w, i, result[0].lane, i.dst[0].mods & kHigh ? 16 : 0, 0xffff, exec);
  }
}

/// 32 values ↔ 32 six-bit codes in six registers.
struct SixBitStream {
  Row rows[6];
  void clear(uint32_t lanes) {
    for (Row& r : rows) broadcast(r.lane, 0, lanes);
  }
  void put(int at, uint32_t lane, WideU code) {
    const int bit = at * 6, word = bit / 32, shift = bit % 32;
    store(rows[word].lane + lane, load<WideU>(rows[word].lane + lane) | (code << uint32_t(shift)));
    if (shift > 26)
      store(rows[word + 1].lane + lane, load<WideU>(rows[word + 1].lane + lane) | (code >> uint32_t(32 - shift)));
  }
};

/// Value `at` of the 32: registers of the first operand, or of two operands with 16 values each that alternate.
template <Wide W, bool TwoSources>
CREST_SIM_INLINE WideU wide_value(Wave& w, const Instruction& i, int at, uint32_t lane) {
  if constexpr (TwoSources) return load<WideU>(row(w, i.src[at % 2]) + static_cast<size_t>(at / 2) * w.lanes + lane);
  if constexpr (W == Wide::kF32) return load<WideU>(row(w, i.src[0]) + static_cast<size_t>(at) * w.lanes + lane);
  const WideU word = load<WideU>(row(w, i.src[0]) + static_cast<size_t>(at / 2) * w.lanes + lane);
  return at % 2 ? word >> 16 : word & 0xffffu;
}

template <Element E, Wide W, Rounding R, bool TwoSources>
void narrow_32(Wave& w, const Instruction& i) {
  constexpr int kScale = TwoSources || R == Rounding::kStochastic ? 2 : 1;
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffers[2];
  const uint32_t* seeds = R == Rounding::kStochastic ? stage(w, i, 1, Type::kU32, buffers[0], exec) : nullptr;
  const uint32_t* scales = stage(w, i, kScale, Type::kU32, buffers[1], exec);
  SixBitStream stream;
  stream.clear(w.lanes);
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    const Scale scale = scale_at(scales, l);
    const WideU seed = R == Rounding::kStochastic ? load<WideU>(seeds + l) : WideU(0);
    for (int at = 0; at < 32; ++at) {
      const WideU value = widen_source<W>(wide_value<W, TwoSources>(w, i, at, l));
      stream.put(at, l, narrow_scaled<E, R>(value, seed, scale, true));
    }
  }
  uint32_t* d = row(w, i.dst[0]);
  for (int r = 0; r < 6; ++r) merge_row(w, d + static_cast<size_t>(r) * w.lanes, stream.rows[r].lane, exec);
}

template <Element E, Wide W>
void widen_32(Wave& w, const Instruction& i) {
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffer, results[W == Wide::kF32 ? 32 : 16];
  const uint32_t* scales = stage(w, i, 1, Type::kU32, buffer, exec);
  const uint32_t* codes = row(w, i.src[0]);
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    const Scale scale = scale_at(scales, l);
    for (int at = 0; at < 32; ++at) {
      const int bit = at * 6, word = bit / 32, shift = bit % 32;
      WideU code = load<WideU>(codes + static_cast<size_t>(word) * w.lanes + l) >> uint32_t(shift);
      if (shift > 26) code |= load<WideU>(codes + static_cast<size_t>(word + 1) * w.lanes + l) << uint32_t(32 - shift);
      const WideU value = widen_scaled<E, W>(code & 63u, scale);
      if constexpr (W == Wide::kF32) {
        store(results[at].lane + l, value);
      } else {
        uint32_t* to = results[at / 2].lane + l;
        store(to, at % 2 ? load<WideU>(to) | (value << 16) : value);
      }
    }
  }
  uint32_t* d = row(w, i.dst[0]);
  for (auto& result : results) {
    merge_row(w, d, result.lane, exec);
    d += w.lanes;
  }
}

/// Handlers of operands that are register tuples.
template <ExecuteFn F, int Tuples>
ExecuteFn bind_tuples(Instruction& i, const BindContext&) {
  if (i.src_count <= Tuples || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  for (int k = 0; k < Tuples; ++k) {
    if (!i.src[k].is_vector()) return nullptr;
  }
  return F;
}

constexpr auto kNearest = Rounding::kNearestEven;
constexpr auto kRandom = Rounding::kStochastic;

template <Element E>
void register_byte_format(Registry& r, const std::string& f) {
  const auto one = [&]<ExecuteFn F>(const std::string& name) {
    r.add("v_cvt_scalef32_" + name, bind_tuples<F, 0>, Fidelity::kModelled);
  };
  one.template operator()<narrow_part<E, Wide::kF32, kNearest, true>>("pk_" + f + "_f32");
  one.template operator()<narrow_part<E, Wide::kF16, kNearest, true>>("pk_" + f + "_f16");
  one.template operator()<narrow_part<E, Wide::kBf16, kNearest, true>>("pk_" + f + "_bf16");
  one.template operator()<widen_part<E, Wide::kF32, true>>("pk_f32_" + f);
  one.template operator()<widen_part<E, Wide::kF16, true>>("pk_f16_" + f);
  one.template operator()<widen_part<E, Wide::kBf16, true>>("pk_bf16_" + f);
  if constexpr (E == Element::kFp4) {
    one.template operator()<narrow_part<E, Wide::kF32, kRandom, true>>("sr_pk_" + f + "_f32");
    one.template operator()<narrow_part<E, Wide::kF16, kRandom, true>>("sr_pk_" + f + "_f16");
    one.template operator()<narrow_part<E, Wide::kBf16, kRandom, true>>("sr_pk_" + f + "_bf16");
  } else {
    one.template operator()<narrow_part<E, Wide::kF32, kRandom, false>>("sr_" + f + "_f32");
    one.template operator()<narrow_part<E, Wide::kF16, kRandom, false>>("sr_" + f + "_f16");
    one.template operator()<narrow_part<E, Wide::kBf16, kRandom, false>>("sr_" + f + "_bf16");
    one.template operator()<widen_part<E, Wide::kF32, false>>("f32_" + f);
    one.template operator()<widen_part<E, Wide::kF16, false>>("f16_" + f);
  }
}

template <Element E>
void register_six_bit_format(Registry& r, const std::string& f) {
  const auto add = [&]<ExecuteFn F, int Tuples>(const std::string& name) {
    r.add("v_cvt_scalef32_" + name, bind_tuples<F, Tuples>, Fidelity::kModelled);
  };
  add.template operator()<narrow_32<E, Wide::kF32, kNearest, true>, 2>("2xpk16_" + f + "_f32");
  add.template operator()<narrow_32<E, Wide::kF16, kNearest, false>, 1>("pk32_" + f + "_f16");
  add.template operator()<narrow_32<E, Wide::kBf16, kNearest, false>, 1>("pk32_" + f + "_bf16");
  add.template operator()<narrow_32<E, Wide::kF32, kRandom, false>, 1>("sr_pk32_" + f + "_f32");
  add.template operator()<narrow_32<E, Wide::kF16, kRandom, false>, 1>("sr_pk32_" + f + "_f16");
  add.template operator()<narrow_32<E, Wide::kBf16, kRandom, false>, 1>("sr_pk32_" + f + "_bf16");
  add.template operator()<widen_32<E, Wide::kF32>, 1>("pk32_f32_" + f);
  add.template operator()<widen_32<E, Wide::kF16>, 1>("pk32_f16_" + f);
  add.template operator()<widen_32<E, Wide::kBf16>, 1>("pk32_bf16_" + f);
}

}  // namespace

void register_scaled_conversions(Registry& r) {
  register_byte_format<Element::kFp8>(r, "fp8");
  register_byte_format<Element::kBf8>(r, "bf8");
  register_byte_format<Element::kFp4>(r, "fp4");
  register_six_bit_format<Element::kFp6>(r, "fp6");
  register_six_bit_format<Element::kBf6>(r, "bf6");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
