// How values travel between memory and registers, shared by all address spaces.
#pragma once

#include <array>

#include "exec/common.h"

namespace crest_sim::CREST_SIM_LEVEL {

enum class Format : uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kD16U8,
  kD16HiU8,
  kD16I8,
  kD16HiI8,
  kD16,
  kD16Hi,
  kB32,
  kB64,
  kB96,
  kB128
};

constexpr uint32_t format_bytes(Format f) {
  switch (f) {
    case Format::kU8:
    case Format::kI8:
    case Format::kD16U8:
    case Format::kD16HiU8:
    case Format::kD16I8:
    case Format::kD16HiI8:
      return 1;
    case Format::kU16:
    case Format::kI16:
    case Format::kD16:
    case Format::kD16Hi:
      return 2;
    case Format::kB32:
      return 4;
    case Format::kB64:
      return 8;
    case Format::kB96:
      return 12;
    default:
      return 16;
  }
}
constexpr uint32_t format_dwords(Format f) { return (format_bytes(f) + 3) / 4; }
constexpr bool is_small(Format f) { return format_bytes(f) < 4; }

/// What a small load leaves in its register: `raw` is the loaded value, zero-extended.
template <Format F>
inline uint32_t extend(uint32_t raw, uint32_t old) {
  switch (F) {
    case Format::kI8:
      return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(raw)));
    case Format::kI16:
      return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(raw)));
    case Format::kD16U8:
    case Format::kD16:
      return (old & 0xffff0000) | raw;
    case Format::kD16HiU8:
    case Format::kD16Hi:
      return (old & 0xffff) | raw << 16;
    case Format::kD16I8:
      return (old & 0xffff0000) | (static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(raw))) & 0xffff);
    case Format::kD16HiI8:
      return (old & 0xffff) | static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(raw))) << 16;
    default:
      return raw;
  }
}
/// What a small store takes from its register.
template <Format F>
inline uint32_t reduce(uint32_t value) {
  return F == Format::kD16HiU8 || F == Format::kD16Hi ? value >> 16 : value;
}

template <int Bytes>
inline uint32_t read_small(const uint8_t* p) {
  if constexpr (Bytes == 1) return *p;
  uint16_t v;
  std::memcpy(&v, p, 2);
  return v;
}

/// Addresses stay integers until they are used: the global base is 0, and arithmetic on a null pointer has no meaning
/// in C++.
inline uint8_t* at_host(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

inline bool is_contiguous(const uint64_t* offset, uint32_t lanes, uint64_t step) {
  uint64_t first = offset[0], differ = 0;
  for (uint32_t base = 0; base < lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
    for (uint32_t l = 0; l < 32; ++l) differ |= offset[base + l] ^ (first + (base + l) * step);
  }
  return differ == 0;
}

/// Four lanes at once: 4×4 transposition between lane order and register order.
inline void load_quad4(uint32_t* d, uint32_t stride, uint64_t base, const uint64_t* o) {
  __m128 a = _mm_loadu_ps(reinterpret_cast<const float*>(base + o[0])),
         b = _mm_loadu_ps(reinterpret_cast<const float*>(base + o[1]));
  __m128 c = _mm_loadu_ps(reinterpret_cast<const float*>(base + o[2])),
         e = _mm_loadu_ps(reinterpret_cast<const float*>(base + o[3]));
  _MM_TRANSPOSE4_PS(a, b, c, e);
  _mm_store_ps(reinterpret_cast<float*>(d), a);
  _mm_store_ps(reinterpret_cast<float*>(d + stride), b);
  _mm_store_ps(reinterpret_cast<float*>(d + 2 * stride), c);
  _mm_store_ps(reinterpret_cast<float*>(d + 3 * stride), e);
}
inline void load_quad2(uint32_t* d, uint32_t stride, uint64_t base, const uint64_t* o) {
  __m128d ab = _mm_loadh_pd(_mm_load_sd(reinterpret_cast<const double*>(base + o[0])),
                            reinterpret_cast<const double*>(base + o[1]));
  __m128d ce = _mm_loadh_pd(_mm_load_sd(reinterpret_cast<const double*>(base + o[2])),
                            reinterpret_cast<const double*>(base + o[3]));
  _mm_store_ps(reinterpret_cast<float*>(d), _mm_shuffle_ps(_mm_castpd_ps(ab), _mm_castpd_ps(ce), 0x88));
  _mm_store_ps(reinterpret_cast<float*>(d + stride), _mm_shuffle_ps(_mm_castpd_ps(ab), _mm_castpd_ps(ce), 0xdd));
}
inline void store_quad4(const uint32_t* s, uint32_t stride, uint64_t base, const uint64_t* o) {
  __m128 a = _mm_load_ps(reinterpret_cast<const float*>(s)),
         b = _mm_load_ps(reinterpret_cast<const float*>(s + stride));
  __m128 c = _mm_load_ps(reinterpret_cast<const float*>(s + 2 * stride)),
         e = _mm_load_ps(reinterpret_cast<const float*>(s + 3 * stride));
  _MM_TRANSPOSE4_PS(a, b, c, e);
  _mm_storeu_ps(reinterpret_cast<float*>(base + o[0]), a);
  _mm_storeu_ps(reinterpret_cast<float*>(base + o[1]), b);
  _mm_storeu_ps(reinterpret_cast<float*>(base + o[2]), c);
  _mm_storeu_ps(reinterpret_cast<float*>(base + o[3]), e);
}
inline void store_quad2(const uint32_t* s, uint32_t stride, uint64_t base, const uint64_t* o) {
  __m128 a = _mm_load_ps(reinterpret_cast<const float*>(s)),
         b = _mm_load_ps(reinterpret_cast<const float*>(s + stride));
  __m128d lo = _mm_castps_pd(_mm_unpacklo_ps(a, b)), hi = _mm_castps_pd(_mm_unpackhi_ps(a, b));
  _mm_storel_pd(reinterpret_cast<double*>(base + o[0]), lo);
  _mm_storeh_pd(reinterpret_cast<double*>(base + o[1]), lo);
  _mm_storel_pd(reinterpret_cast<double*>(base + o[2]), hi);
  _mm_storeh_pd(reinterpret_cast<double*>(base + o[3]), hi);
}

/// d[k][lane] = dword k at base + offset[lane], for the lanes of `mask`. All addresses have been checked. The
/// destination may be the register pair that held the addresses: `offset` is a copy. `base` is 0 for global memory.
template <Format F>
inline void load_rows(const Wave& w, uint32_t* d, uint64_t base, const uint64_t* offset, uint64_t mask) {
  constexpr uint32_t n = format_dwords(F), bytes = format_bytes(F);
  uint32_t lanes = w.lanes;
  if constexpr (is_small(F)) {
    for_active(mask, [&](int l) { d[l] = extend<F>(read_small<bytes>(at_host(base + offset[l])), d[l]); });
    return;
  }
  if (mask == w.full_exec) {
    if constexpr (n == 1) {
      if (is_contiguous(offset, lanes, 4)) {
        std::memcpy(d, at_host(base + offset[0]), lanes * 4);
        return;
      }
      for (uint32_t l = 0; l < lanes; ++l) std::memcpy(d + l, at_host(base + offset[l]), 4);
      return;
    }
    if constexpr (n == 4) {
      for (uint32_t l = 0; l < lanes; l += 4) load_quad4(d + l, lanes, base, offset + l);
      return;
    }
    if constexpr (n == 2) {
      for (uint32_t l = 0; l < lanes; l += 4) load_quad2(d + l, lanes, base, offset + l);
      return;
    }
  }
  for_active(mask, [&](int l) {
    uint32_t t[n];
    std::memcpy(t, at_host(base + offset[l]), bytes);
    for (uint32_t k = 0; k < n; ++k) d[k * lanes + static_cast<uint32_t>(l)] = t[k];
  });
}

template <Format F>
inline void store_rows(const Wave& w, const uint32_t* s, uint64_t base, const uint64_t* offset, uint64_t mask) {
  constexpr uint32_t n = format_dwords(F), bytes = format_bytes(F);
  uint32_t lanes = w.lanes;
  if constexpr (is_small(F)) {
    for_active(mask, [&](int l) {
      uint32_t v = reduce<F>(s[l]);
      std::memcpy(at_host(base + offset[l]), &v, bytes);
    });
    return;
  }
  if (mask == w.full_exec) {
    if constexpr (n == 1) {
      if (is_contiguous(offset, lanes, 4)) {
        std::memcpy(at_host(base + offset[0]), s, lanes * 4);
        return;
      }
      for (uint32_t l = 0; l < lanes; ++l) std::memcpy(at_host(base + offset[l]), s + l, 4);
      return;
    }
    if constexpr (n == 4) {
      for (uint32_t l = 0; l < lanes; l += 4) store_quad4(s + l, lanes, base, offset + l);
      return;
    }
    if constexpr (n == 2) {
      for (uint32_t l = 0; l < lanes; l += 4) store_quad2(s + l, lanes, base, offset + l);
      return;
    }
  }
  for_active(mask, [&](int l) {
    uint32_t t[n];
    for (uint32_t k = 0; k < n; ++k) t[k] = s[k * lanes + static_cast<uint32_t>(l)];
    std::memcpy(at_host(base + offset[l]), t, bytes);
  });
}

/// Rows a store reads: the register, or a splatted scalar (never needed by compilers, legal for AGPR-less LDS forms).
inline const uint32_t* data_row(Wave& w, const Operand& o) { return row(w, o); }

struct FormatName {
  const char* gfx9;
  const char* gfx11;
  Format format;
};
inline constexpr std::array<FormatName, 14> kLoadNames{{
    {"load_ubyte", "load_u8", Format::kU8},
    {"load_sbyte", "load_i8", Format::kI8},
    {"load_ushort", "load_u16", Format::kU16},
    {"load_sshort", "load_i16", Format::kI16},
    {"load_ubyte_d16", "load_d16_u8", Format::kD16U8},
    {"load_ubyte_d16_hi", "load_d16_hi_u8", Format::kD16HiU8},
    {"load_sbyte_d16", "load_d16_i8", Format::kD16I8},
    {"load_sbyte_d16_hi", "load_d16_hi_i8", Format::kD16HiI8},
    {"load_short_d16", "load_d16_b16", Format::kD16},
    {"load_short_d16_hi", "load_d16_hi_b16", Format::kD16Hi},
    {"load_dword", "load_b32", Format::kB32},
    {"load_dwordx2", "load_b64", Format::kB64},
    {"load_dwordx3", "load_b96", Format::kB96},
    {"load_dwordx4", "load_b128", Format::kB128},
}};
inline constexpr std::array<FormatName, 8> kStoreNames{{
    {"store_byte", "store_b8", Format::kU8},
    {"store_byte_d16_hi", "store_d16_hi_b8", Format::kD16HiU8},
    {"store_short", "store_b16", Format::kU16},
    {"store_short_d16_hi", "store_d16_hi_b16", Format::kD16Hi},
    {"store_dword", "store_b32", Format::kB32},
    {"store_dwordx2", "store_b64", Format::kB64},
    {"store_dwordx3", "store_b96", Format::kB96},
    {"store_dwordx4", "store_b128", Format::kB128},
}};

/// Registers Handler<F>::run for all formats under prefix + name, both spellings.
template <template <Format> class Handler, auto& Names>
inline void add_formats(Registry& r, const std::string& prefix) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    (r.add<Handler<Names[K].format>::run>(prefix + Names[K].gfx9), ...);
    (r.add<Handler<Names[K].format>::run>(prefix + Names[K].gfx11), ...);
  }(std::make_index_sequence<Names.size()>{});
}

/// Starts the record of a memory access.
inline MemoryAccess& begin_access(Wave& w, MemorySpace space, AccessKind kind, uint32_t bytes, uint64_t lanes) {
  MemoryAccess& a = *w.workgroup->access;
  a.space = space;
  a.kind = kind;
  a.bytes = static_cast<uint8_t>(bytes);
  a.parts = 1;
  a.lanes = lanes;
  a.clipped = a.lds_lanes = a.scratch_lanes = 0;
  return a;
}

/// Makes sure that [address, address + bytes) of every lane lies in an allocation.
inline void check_global(Wave& w, const Instruction& i, const uint64_t* address, uint32_t bytes, uint64_t mask) {
  Workgroup& g = *w.workgroup;
  const MemoryWindow& window = g.window_of(i);
  uint64_t size = window.end - window.begin, limit = size - bytes;
  if (mask == w.full_exec && window.end > window.begin && size >= bytes) {
    uint64_t bad = 0, begin = window.begin;
    for (uint32_t base = 0; base < w.lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
      for (uint32_t l = 0; l < 32; ++l) bad |= static_cast<uint64_t>(address[base + l] - begin > limit);
    }
    if (!bad) return;
  }
  for_active(mask, [&](int l) {
    if (!in_window(g, i, address[l], address[l] + bytes)) raise_global(w, i, l, address[l], bytes);
  });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
