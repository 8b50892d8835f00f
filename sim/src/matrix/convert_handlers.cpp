// Conversions between fp32 and fp8, bf8, bf16 and fp16 that are not ordinary VALU operations. The rule is in narrow.h.
#include "exec/valu.h"
#include "matrix/lane_handlers.h"
#include "matrix/narrow.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

template <Element E, bool Fnuz>
void pack_two(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  Row buffers[2], result;
  const uint32_t* a = stage(w, i, 0, Type::kF32, buffers[0], exec);
  const uint32_t* b = stage(w, i, 1, Type::kF32, buffers[1], exec);
  const bool saturate = w.mode & kFp16Overflow;
  const WideU no_seed = 0;
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    const WideU low = narrow<E, Fnuz, Rounding::kNearestEven>(load<WideU>(a + l), no_seed, splat(0), saturate);
    const WideU high = narrow<E, Fnuz, Rounding::kNearestEven>(load<WideU>(b + l), no_seed, splat(0), saturate);
    store(result.lane + l, low | (high << 8));
  }
  write_part(w, i, result.lane, i.dst[0].mods & kHigh ? 16 : 0, 0xffff, exec);
}

template <Element E, bool Fnuz>
void round_stochastically(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  Row buffers[2], result;
  const uint32_t* a = stage(w, i, 0, Type::kF32, buffers[0], exec);
  const uint32_t* seed = stage(w, i, 1, Type::kU32, buffers[1], exec);
  const bool saturate = w.mode & kFp16Overflow;
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    store(result.lane + l,
          narrow<E, Fnuz, Rounding::kStochastic>(load<WideU>(a + l), load<WideU>(seed + l), splat(0), saturate));
  }
  write_part(w, i, result.lane, destination_byte(i) * 8, 0xff, exec);
}

template <Element E, bool Fnuz>
void widen_one(Wave& w, const Instruction& i) {
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffer, result;
  const uint32_t* a = stage(w, i, 0, Type::kU32, buffer, exec);  // SDWA has put the byte into the low bits
  for (uint32_t l = 0; l < w.lanes; l += kWide) store(result.lane + l, decode<E, Fnuz>(load<WideU>(a + l) & 0xffu));
  finish(w, i, Type::kF32, result, exec);
}

template <Element E, bool Fnuz>
void widen_two(Wave& w, const Instruction& i) {
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffer, result[2];
  const uint32_t* a = stage(w, i, 0, Type::kU32, buffer, exec);
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    const WideU word = load<WideU>(a + l);
    store(result[0].lane + l, decode<E, Fnuz>(word & 0xffu));
    store(result[1].lane + l, decode<E, Fnuz>((word >> 8) & 0xffu));
  }
  uint32_t* d = row(w, i.dst[0]);
  merge_row(w, d, result[0].lane, exec);
  merge_row(w, d + w.lanes, result[1].lane, exec);
}

void pack_bf16(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  Row buffers[2], result;
  const uint32_t* a = stage(w, i, 0, Type::kF32, buffers[0], exec);
  const uint32_t* b = stage(w, i, 1, Type::kF32, buffers[1], exec);
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    store(result.lane + l, narrow_bf16(load<WideU>(a + l)) | (narrow_bf16(load<WideU>(b + l)) << 16));
  }
  merge_row(w, row(w, i.dst[0]), result.lane, exec);
}

void widen_bf16(Wave& w, const Instruction& i) {
  NearestMode mode(w);
  uint64_t exec = w.exec();
  Row buffer, result;
  const uint32_t* a = stage(w, i, 0, Type::kB16, buffer, exec);
  for (uint32_t l = 0; l < w.lanes; l += kWide) store(result.lane + l, load<WideU>(a + l) << 16);
  finish(w, i, Type::kF32, result, exec);
}

template <bool Bf16>
void round_half_stochastically(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  Row buffers[2], result;
  const uint32_t* a = stage(w, i, 0, Type::kF32, buffers[0], exec);
  const uint32_t* seed = stage(w, i, 1, Type::kU32, buffers[1], exec);
  const bool saturate = w.mode & kFp16Overflow;
  for (uint32_t l = 0; l < w.lanes; l += kWide) {
    const WideU x = load<WideU>(a + l), s = load<WideU>(seed + l);
    store(result.lane + l, Bf16 ? narrow_bf16_stochastic(x, s) : narrow_f16_stochastic(x, s, saturate));
  }
  write_part(w, i, result.lane, i.dst[0].mods & kHigh ? 16 : 0, 0xffff, exec);
}

template <template <bool> class Family>
ExecuteFn bind_by_format(Instruction& i, const BindContext& c) {
  if (i.src_count < 1 || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  return c.target.fnuz_fp8 ? Family<true>::kHandler : Family<false>::kHandler;
}

template <Element E>
struct Handlers {
  template <bool Fnuz>
  struct Pack {
    static constexpr ExecuteFn kHandler = pack_two<E, Fnuz>;
  };
  template <bool Fnuz>
  struct Stochastic {
    static constexpr ExecuteFn kHandler = round_stochastically<E, Fnuz>;
  };
  template <bool Fnuz>
  struct One {
    static constexpr ExecuteFn kHandler = widen_one<E, Fnuz>;
  };
  template <bool Fnuz>
  struct Two {
    static constexpr ExecuteFn kHandler = widen_two<E, Fnuz>;
  };
};

template <Element E>
void register_format(Registry& r, const std::string& name) {
  using H = Handlers<E>;
  r.add("v_cvt_pk_" + name + "_f32", bind_by_format<H::template Pack>, Fidelity::kModelled);
  r.add("v_cvt_sr_" + name + "_f32", bind_by_format<H::template Stochastic>, Fidelity::kModelled);
  r.add("v_cvt_f32_" + name, bind_by_format<H::template One>);
  r.add("v_cvt_pk_f32_" + name, bind_by_format<H::template Two>);
}

}  // namespace

void write_part(Wave& w, const Instruction& i, uint32_t* values, int bit, uint32_t mask, uint64_t exec) {
  uint32_t* d = row(w, i.dst[0]);
  for_lanes(w.lanes, [&](uint32_t l) { values[l] = (d[l] & ~(mask << bit)) | (values[l] & mask) << bit; });
  merge_row(w, d, values, exec);
}

void register_small_float_conversions(Registry& r) {
  register_format<Element::kFp8>(r, "fp8");
  register_format<Element::kBf8>(r, "bf8");
  r.add<pack_bf16>("v_cvt_pk_bf16_f32");
  r.add<widen_bf16>("v_cvt_f32_bf16");
  r.add<round_half_stochastically<true>>("v_cvt_sr_bf16_f32", Fidelity::kModelled);
  r.add<round_half_stochastically<false>>("v_cvt_sr_f16_f32", Fidelity::kModelled);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
