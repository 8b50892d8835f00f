// buffer_load_format_*, buffer_store_format_* and their tbuffer forms: values in memory have a format, given by the
// resource or by the instruction.
#include <cmath>
#include <iterator>

#include "exec/buffer_address.h"
#include "exec/half.h"
#include "exec/interpreter.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

enum class Number : uint8_t { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kReserved, kFloat };

struct TexelFormat {
  uint8_t bits[4];  ///< of x, y, z, w; 0: not there
  Number number;
  u32 bytes() const { return (bits[0] + bits[1] + bits[2] + bits[3] + 7u) / 8; }
};

/// Data formats of gfx9; the names list the components from the top bits down, memory begins with the last.
constexpr uint8_t kDataFormats[][4] = {{0, 0, 0, 0},     {8, 0, 0, 0},    {16, 0, 0, 0},   {8, 8, 0, 0},
                                       {32, 0, 0, 0},    {16, 16, 0, 0},  {11, 11, 10, 0}, {10, 11, 11, 0},
                                       {2, 10, 10, 10},  {10, 10, 10, 2}, {8, 8, 8, 8},    {32, 32, 0, 0},
                                       {16, 16, 16, 16}, {32, 32, 32, 0}, {32, 32, 32, 32}};

/// The joint formats of RDNA3: for each data format, the numbers it comes with, in the order of the encoding.
struct Run {
  uint8_t data;
  const char* numbers;  ///< u, s: normalised; U, S: scaled; i, j: integers (unsigned, signed); f: float
};
constexpr Run kRuns[] = {{1, "usUSij"}, {2, "usUSijf"},  {3, "usUSij"}, {4, "ijf"},    {5, "usUSijf"},
                         {6, "f"},      {7, "f"},        {8, "usij"},   {9, "usUSij"}, {10, "usUSij"},
                         {11, "ijf"},   {12, "usUSijf"}, {13, "ijf"},   {14, "ijf"}};

Number number_of(char c) {
  switch (c) {
    case 'u':
      return Number::kUnorm;
    case 's':
      return Number::kSnorm;
    case 'U':
      return Number::kUscaled;
    case 'S':
      return Number::kSscaled;
    case 'i':
      return Number::kUint;
    case 'j':
      return Number::kSint;
    default:
      return Number::kFloat;
  }
}

TexelFormat make_format(u32 data, Number number) {
  TexelFormat f{{}, number};
  if (data < std::size(kDataFormats)) std::memcpy(f.bits, kDataFormats[data], 4);
  return f;
}

TexelFormat joint_format(u32 code) {
  u32 at = 1;
  for (const Run& run : kRuns)
    for (const char* n = run.numbers; *n; ++n, ++at)
      if (at == code) return make_format(run.data, number_of(*n));
  return make_format(0, Number::kUint);
}

/// 10- and 11-bit floats: no sign, 5 bits of exponent like f16.
float small_float(u32 value, u32 bits) { return half_to_float(value << (15 - bits)); }
u32 to_small_float(float x, u32 bits) {
  return x > 0 || x != x ? float_to_half(x) >> (15 - bits) & ((1u << bits) - 1) : 0;
}

/// One component as the 32 bits that a register gets.
u32 decode(u32 raw, u32 bits, Number number) {
  u32 top = bits == 32 ? ~0u : (1u << bits) - 1;
  auto as_signed = static_cast<int32_t>(raw << (32 - bits)) >> (32 - bits);
  switch (number) {
    case Number::kUnorm:
      return as_bits(static_cast<float>(raw) / static_cast<float>(top));
    case Number::kSnorm: {
      float x = static_cast<float>(as_signed) / static_cast<float>(top >> 1);
      return as_bits(x < -1 ? -1.0f : x);
    }
    case Number::kUscaled:
      return as_bits(static_cast<float>(raw));
    case Number::kSscaled:
      return as_bits(static_cast<float>(as_signed));
    case Number::kSint:
      return static_cast<u32>(as_signed);
    case Number::kFloat:
      return bits == 32 ? raw : as_bits(bits == 16 ? half_to_float(raw) : small_float(raw, bits));
    default:
      return raw;
  }
}

u32 encode(u32 value, u32 bits, Number number) {
  u32 top = bits == 32 ? ~0u : (1u << bits) - 1;
  float x = as_float(value);
  auto round = [&](float low, float scale) {
    float bounded = x != x ? 0 : x < low ? low : x > 1 ? 1.0f : x;
    return static_cast<u32>(static_cast<int64_t>(__builtin_roundevenf(bounded * scale))) & top;
  };
  auto bounded = [&](double low, double high) {
    double y = x != x ? 0 : std::trunc(static_cast<double>(x));
    return static_cast<u32>(static_cast<int64_t>(y < low ? low : y > high ? high : y)) & top;
  };
  switch (number) {
    case Number::kUnorm:
      return round(0, static_cast<float>(top));
    case Number::kSnorm:
      return round(-1, static_cast<float>(top >> 1));
    case Number::kUscaled:
      return bounded(0, top);
    case Number::kSscaled:
      return bounded(-static_cast<double>(top >> 1) - 1, top >> 1);
    case Number::kUint:
      return value > top ? top : value;
    case Number::kSint: {
      auto v = static_cast<int32_t>(value), high = static_cast<int32_t>(top >> 1), low = -high - 1;
      return static_cast<u32>(v < low ? low : v > high ? high : v) & top;
    }
    default:
      return bits == 32 ? value : bits == 16 ? float_to_half(x) : to_small_float(x, bits);
  }
}

/// Component `k` of a texel at `p`.
u32 extract(const uint8_t* p, const TexelFormat& f, u32 k) {
  u32 bit = 0;
  for (u32 j = 0; j < k; ++j) bit += f.bits[j];
  u64 word = 0;
  std::memcpy(&word, p + bit / 8, std::min<u32>(8, f.bytes() - bit / 8));
  return static_cast<u32>(word >> bit % 8) & (f.bits[k] == 32 ? ~0u : (1u << f.bits[k]) - 1);
}

TexelFormat format_of(const Wave& w, const Instruction& i) {
  u32 word = w.s[i.src[2].reg + 3];
  bool cdna = w.workgroup->launch->target->cdna;
  if (i.offset2)
    return cdna ? make_format(i.offset2 & 15, static_cast<Number>(i.offset2 >> 4 & 7))
                : joint_format(static_cast<u32>(i.offset2));
  return cdna ? make_format(word >> 15 & 15, static_cast<Number>(word >> 12 & 7)) : joint_format(word >> 12 & 63);
}

/// What the resource says register k shows: 0, 1, or a component of the texel.
u32 selected(const Wave& w, const Instruction& i, const TexelFormat& f, const uint8_t* texel, u32 k, bool half) {
  u32 select = w.s[i.src[2].reg + 3] >> 3 * k & 7;
  bool integer = f.number == Number::kUint || f.number == Number::kSint;
  u32 one = integer ? 1u : as_bits(1.0f), value = 0;
  if (select == 1) value = one;
  if (select >= 4) {
    u32 component = select - 4;
    value = f.bits[component] ? decode(extract(texel, f, component), f.bits[component], f.number)
            : component == 3  ? one
                              : 0;
  }
  return !half ? value : integer ? value & 0xffff : float_to_half(as_float(value));
}

enum class Packing { kWhole, kHalves, kHighHalf };

template <u32 Count, Packing P>
struct Load {
  static void run(Wave& w, const Instruction& i) {
    TexelFormat f = format_of(w, i);
    u32 bytes = f.bytes();
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kLoad, bytes, 0);
    u64 lanes = buffer_addresses(w, i, bytes, a);
    check_global(w, i, a.address[0], bytes, lanes);
    u32* d = row(w, i.dst[0]);
    alignas(64) static const uint8_t kNothing[16] = {};
    for_active(a.lanes | a.clipped, [&](int l) {
      const uint8_t* texel = (lanes >> l) & 1 ? at_host(a.address[0][l]) : kNothing;
      u32 values[4];
      for (u32 k = 0; k < Count; ++k) {
        bool clipped = !((lanes >> l) & 1);
        values[k] = clipped ? 0 : selected(w, i, f, texel, k, P != Packing::kWhole);
      }
      for (u32 k = 0; k < Count; ++k) {
        u32& to = d[(P == Packing::kWhole ? k : k / 2) * w.lanes + static_cast<u32>(l)];
        if (P == Packing::kWhole)
          to = values[k];
        else if (P == Packing::kHighHalf || k % 2)
          to = (to & 0xffff) | values[k] << 16;
        else
          to = Count == 1 ? (to & 0xffff0000) | values[k] : values[k];
      }
    });
  }
};

template <u32 Count, Packing P>
struct Store {
  static void run(Wave& w, const Instruction& i) {
    TexelFormat f = format_of(w, i);
    u32 bytes = f.bytes();
    MemoryAccess& a = begin_access(w, MemorySpace::kGlobal, AccessKind::kStore, bytes, 0);
    u64 lanes = buffer_addresses(w, i, bytes, a);
    check_global(w, i, a.address[0], bytes, lanes);
    const u32* s = row(w, i.src[1]);
    bool integer = f.number == Number::kUint || f.number == Number::kSint;
    for_active(lanes, [&](int l) {
      uint8_t texel[16] = {};
      u32 bit = 0;
      for (u32 k = 0; k < 4 && f.bits[k]; bit += f.bits[k++]) {
        u32 value = 0;
        if (k < Count) {
          value = s[(P == Packing::kWhole ? k : k / 2) * w.lanes + static_cast<u32>(l)];
          if (P != Packing::kWhole) {
            u32 half = P == Packing::kHighHalf || k % 2 ? value >> 16 : value & 0xffff;
            value = !integer                    ? as_bits(half_to_float(half))
                    : f.number == Number::kSint ? static_cast<u32>(static_cast<int32_t>(static_cast<int16_t>(half)))
                                                : half;
          }
        }
        u64 shifted = u64(encode(value, f.bits[k], f.number)) << bit % 8, word = 0;
        size_t room = std::min<size_t>(8, sizeof(texel) - bit / 8);
        std::memcpy(&word, texel + bit / 8, room);
        word |= shifted;
        std::memcpy(texel + bit / 8, &word, room);
      }
      std::memcpy(at_host(a.address[0][l]), texel, bytes);
    });
  }
};

template <template <u32, Packing> class Handler, Packing P>
void add_counts(Registry& r, const std::string& name) {
  r.add<Handler<1, P>::run>(name + "_x", Fidelity::kModelled);
  r.add<Handler<2, P>::run>(name + "_xy", Fidelity::kModelled);
  r.add<Handler<3, P>::run>(name + "_xyz", Fidelity::kModelled);
  r.add<Handler<4, P>::run>(name + "_xyzw", Fidelity::kModelled);
}

}  // namespace

void register_buffer_format(Registry& r) {
  for (std::string prefix : {"buffer_", "tbuffer_"}) {
    add_counts<Load, Packing::kWhole>(r, prefix + "load_format");
    add_counts<Store, Packing::kWhole>(r, prefix + "store_format");
    for (std::string half : {"format_d16", "d16_format"}) {  // gfx9 and RDNA3 spelling
      add_counts<Load, Packing::kHalves>(r, prefix + "load_" + half);
      add_counts<Store, Packing::kHalves>(r, prefix + "store_" + half);
    }
  }
  for (const char* name : {"buffer_load_format_d16_hi_x", "buffer_load_d16_hi_format_x"})
    r.add<Load<1, Packing::kHighHalf>::run>(name, Fidelity::kModelled);
  for (const char* name : {"buffer_store_format_d16_hi_x", "buffer_store_d16_hi_format_x"})
    r.add<Store<1, Packing::kHighHalf>::run>(name, Fidelity::kModelled);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
