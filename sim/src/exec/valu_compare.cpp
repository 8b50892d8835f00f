// v_cmp and v_cmpx. Inactive lanes give 0. v_cmpx also writes EXEC; on gfx9 it writes its SGPR (or VCC) too.
#include "exec/float_rules.h"
#include "exec/valu_wide.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

void write_mask(Wave& w, const Instruction& i, u64 mask) {
  if (i.dst_count) set_lane_mask(w, i.dst[0].reg, mask);
  if (i.implicit & kWritesExec) set_lane_mask(w, cell::kExec, mask);
}

template <class F, Type T0, Type T1>
void compare(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  Row b0, b1, result;
  const u32* a = stage(w, i, 0, T0, b0, exec);
  const u32* b = stage(w, i, 1, T1, b1, exec);
  for_lanes(w.lanes, [&](u32 l) { result.lane[l] = F{}(unpack<T0>(a[l]), unpack<T1>(b[l])) ? ~0u : 0u; });
  write_mask(w, i, collect_signs(result.lane, w.lanes) & exec);
}

/// No modifiers; bit k of Shape: source k is a register.
template <unsigned Shape, class F, Type T>
void compare_plain(Wave& w, const Instruction& i) {
  const u32* a = Shape & 1 ? row(w, i.src[0]) : nullptr;
  const u32* b = Shape & 2 ? row(w, i.src[1]) : nullptr;
  u32 ua = Shape & 1 ? 0 : scalar(w, i.src[0]), ub = Shape & 2 ? 0 : scalar(w, i.src[1]);
  Row result;
  for_lanes(w.lanes, [&](u32 l) {
    result.lane[l] = F{}(unpack<T>(Shape & 1 ? a[l] : ua), unpack<T>(Shape & 2 ? b[l] : ub)) ? ~0u : 0u;
  });
  write_mask(w, i, collect_signs(result.lane, w.lanes) & w.exec());
}

template <class F, Wide T0, Wide T1>
void compare_wide(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  WideSource a, b;
  stage_wide(w, i, 0, T0, a, exec);
  stage_wide(w, i, 1, T1, b, exec);
  Row result;
  {
    WideMode mode(w);
    for_lanes(w.lanes, [&](u32 l) { result.lane[l] = F{}(load_wide<T0>(a, l), load_wide<T1>(b, l)) ? ~0u : 0u; });
  }
  write_mask(w, i, collect_signs(result.lane, w.lanes) & exec);
}

bool is_compare(Instruction& i, const BindContext& c) {
  // gfx11's v_cmpx has no destination but EXEC; gfx9's e32 forms name VCC in the text.
  static_cast<void>(c);
  return i.src_count >= 2;
}

template <class F, Type T>
ExecuteFn bind_compare(Instruction& i, const BindContext& c) {
  if (!is_compare(i, c)) return nullptr;
  bool unmodified = i.dpp == Dpp::kNone && !i.sdwa && !i.src[0].mods && !i.src[1].mods && !i.clamp;
  unsigned shape = static_cast<unsigned>(i.src[0].is_vector()) | static_cast<unsigned>(i.src[1].is_vector()) << 1;
  if (is_16(T) || !unmodified || shape == 0) return compare<F, T, T>;
  return shape == 3 ? compare_plain<3, F, T> : shape == 2 ? compare_plain<2, F, T> : compare_plain<1, F, T>;
}

template <class F, Wide T0, Wide T1>
ExecuteFn bind_compare_wide(Instruction& i, const BindContext& c) {
  return is_compare(i, c) ? compare_wide<F, T0, T1> : nullptr;
}

struct Lt {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Ge {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Eq {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  bool operator()(T a, T b) const {
    return !(a == b);
  }
};
struct Lg {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b || a > b;
  }
};
struct Never {
  template <class T>
  bool operator()(T, T) const {
    return false;
  }
};
struct Always {
  template <class T>
  bool operator()(T, T) const {
    return true;
  }
};
struct Ordered {
  template <class T>
  bool operator()(T a, T b) const {
    return a == a && b == b;
  }
};
template <class F>
struct Not {
  template <class T>
  bool operator()(T a, T b) const {
    return !F{}(a, b);
  }
};
template <class F>
struct Signed32 {
  bool operator()(u32 a, u32 b) const { return F{}(static_cast<int32_t>(a), static_cast<int32_t>(b)); }
};
template <class F>
struct Signed16 {
  bool operator()(u32 a, u32 b) const { return F{}(static_cast<int16_t>(a), static_cast<int16_t>(b)); }
};
template <class F>
struct Signed64 {
  bool operator()(u64 a, u64 b) const { return F{}(static_cast<int64_t>(a), static_cast<int64_t>(b)); }
};

void add_both(Registry& r, const std::string& name, Binder bind) {
  r.add("v_cmp_" + name, bind);
  r.add("v_cmpx_" + name, bind);
}

template <class F>
void add_integer(Registry& r, const std::string& op) {
  add_both(r, op + "_u32", bind_compare<F, Type::kU32>);
  add_both(r, op + "_i32", bind_compare<Signed32<F>, Type::kU32>);
  add_both(r, op + "_u16", bind_compare<F, Type::kU16>);
  add_both(r, op + "_i16", bind_compare<Signed16<F>, Type::kU16>);
  add_both(r, op + "_u64", bind_compare_wide<F, Wide::kU64, Wide::kU64>);
  add_both(r, op + "_i64", bind_compare_wide<Signed64<F>, Wide::kU64, Wide::kU64>);
}

template <class F>
void add_float(Registry& r, const std::string& op) {
  add_both(r, op + "_f32", bind_compare<F, Type::kF32>);
  add_both(r, op + "_f16", bind_compare<F, Type::kF16>);
  add_both(r, op + "_f64", bind_compare_wide<F, Wide::kF64, Wide::kF64>);
}

struct Class32 {
  bool operator()(u32 x, u32 mask) const {
    u32 e = (x >> 23) & 255, m = x & 0x7fffff;
    return (mask >> float_class(x >> 31, e == 0, e == 255, m == 0, m >> 22)) & 1;
  }
};
struct Class16 {
  bool operator()(u32 x, u32 mask) const {
    u32 e = (x >> 10) & 31, m = x & 0x3ff;
    return (mask >> float_class((x >> 15) & 1, e == 0, e == 31, m == 0, m >> 9)) & 1;
  }
};
struct Class64 {
  bool operator()(double value, u32 mask) const {
    u64 x = as_bits(value);
    u64 e = (x >> 52) & 0x7ff, m = x & 0xfffffffffffffull;
    return (mask >> float_class(x >> 63, e == 0, e == 0x7ff, m == 0, m >> 51)) & 1;
  }
};

ExecuteFn bind_class32(Instruction& i, const BindContext& c) {
  return is_compare(i, c) ? compare<Class32, Type::kB32, Type::kU32> : nullptr;
}
ExecuteFn bind_class16(Instruction& i, const BindContext& c) {
  return is_compare(i, c) ? compare<Class16, Type::kB16, Type::kU16> : nullptr;
}

}  // namespace

void register_valu_compare(Registry& r) {
  add_integer<Lt>(r, "lt");
  add_integer<Le>(r, "le");
  add_integer<Gt>(r, "gt");
  add_integer<Ge>(r, "ge");
  add_integer<Eq>(r, "eq");
  add_integer<Ne>(r, "ne");
  add_integer<Never>(r, "f");
  add_integer<Always>(r, "t");
  add_float<Lt>(r, "lt");
  add_float<Le>(r, "le");
  add_float<Gt>(r, "gt");
  add_float<Ge>(r, "ge");
  add_float<Eq>(r, "eq");
  add_float<Ne>(r, "neq");
  add_float<Lg>(r, "lg");
  add_float<Not<Lg>>(r, "nlg");
  add_float<Not<Lt>>(r, "nlt");
  add_float<Not<Le>>(r, "nle");
  add_float<Not<Gt>>(r, "ngt");
  add_float<Not<Ge>>(r, "nge");
  add_float<Ordered>(r, "o");
  add_float<Not<Ordered>>(r, "u");
  add_float<Never>(r, "f");
  add_float<Always>(r, "tru");
  add_float<Always>(r, "t");
  add_both(r, "class_f32", bind_class32);
  add_both(r, "class_f16", bind_class16);
  add_both(r, "class_f64", bind_compare_wide<Class64, Wide::kF64, Wide::kU32>);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
