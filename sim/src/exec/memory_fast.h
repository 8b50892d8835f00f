// Memory accesses of whole waves whose addresses are base + a 32-bit offset per lane: the usual case. Nothing is
// recorded, so these ways are taken only while nobody observes the workgroup.
#pragma once

#include "exec/memory_format.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// All lanes access, and no observer wants the addresses.
inline bool may_go_fast(const Wave& w) { return w.exec() == w.full_exec && !w.workgroup->observer; }

struct OffsetRange {
  uint32_t low, high;
};
inline OffsetRange range_of(const uint32_t* offset, uint32_t lanes) {
  uint32_t low = ~0u, high = 0;
  for (uint32_t base = 0; base < lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
    for (uint32_t l = 0; l < 32; ++l) {
      uint32_t x = offset[base + l];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
  }
  return {low, high};
}

inline bool is_uniform(const uint32_t* row, uint32_t lanes) {
  uint32_t first = row[0], differ = 0;
  for (uint32_t base = 0; base < lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
    for (uint32_t l = 0; l < 32; ++l) differ |= row[base + l] ^ first;
  }
  return differ == 0;
}

inline bool is_contiguous(const uint32_t* offset, uint32_t lanes, uint32_t step) {
  uint32_t first = offset[0], differ = 0;
  if (offset[1] - first != step) return false;
  for (uint32_t base = 0; base < lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
    for (uint32_t l = 0; l < 32; ++l) differ |= offset[base + l] ^ (first + (base + l) * step);
  }
  return differ == 0;
}

#if defined(__AVX2__)

inline const float* float_at(uint64_t address) { return reinterpret_cast<const float*>(address); }

/// 16 bytes of lane a in the lower half, of lane b in the upper one.
inline __m256 two_lanes(uint64_t a, uint64_t b) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(float_at(a))), _mm_loadu_ps(float_at(b)), 1);
}

struct FourRows {
  __m256 a, b, c, d;
  /// In each half a 4 × 4 transposition.
  void transpose() {
    __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    __m256 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    a = _mm256_shuffle_ps(ab_low, cd_low, 0x44);
    b = _mm256_shuffle_ps(ab_low, cd_low, 0xee);
    c = _mm256_shuffle_ps(ab_high, cd_high, 0x44);
    d = _mm256_shuffle_ps(ab_high, cd_high, 0xee);
  }
};

inline float* float_row(uint32_t* p) { return reinterpret_cast<float*>(p); }
inline const float* float_row(const uint32_t* p) { return reinterpret_cast<const float*>(p); }

/// Eight lanes of four dwords each.
inline void load_octet4(uint32_t* d, uint32_t stride, uint64_t base, const uint32_t* o) {
  FourRows r{two_lanes(base + o[0], base + o[4]), two_lanes(base + o[1], base + o[5]),
             two_lanes(base + o[2], base + o[6]), two_lanes(base + o[3], base + o[7])};
  r.transpose();
  _mm256_store_ps(float_row(d), r.a);
  _mm256_store_ps(float_row(d + stride), r.b);
  _mm256_store_ps(float_row(d + 2 * stride), r.c);
  _mm256_store_ps(float_row(d + 3 * stride), r.d);
}
inline void store_octet4(const uint32_t* s, uint32_t stride, uint64_t base, const uint32_t* o) {
  FourRows r{_mm256_load_ps(float_row(s)), _mm256_load_ps(float_row(s + stride)),
             _mm256_load_ps(float_row(s + 2 * stride)), _mm256_load_ps(float_row(s + 3 * stride))};
  r.transpose();
  // In the order of lanes: the last of several stores to one place wins.
  auto put = [&](int lane, __m128 v) { _mm_storeu_ps(reinterpret_cast<float*>(base + o[lane]), v); };
  put(0, _mm256_castps256_ps128(r.a)), put(1, _mm256_castps256_ps128(r.b));
  put(2, _mm256_castps256_ps128(r.c)), put(3, _mm256_castps256_ps128(r.d));
  put(4, _mm256_extractf128_ps(r.a, 1)), put(5, _mm256_extractf128_ps(r.b, 1));
  put(6, _mm256_extractf128_ps(r.c, 1)), put(7, _mm256_extractf128_ps(r.d, 1));
}

/// Two lanes of two dwords each.
inline __m128 two_pairs(uint64_t a, uint64_t b) {
  return _mm_castpd_ps(
      _mm_loadh_pd(_mm_load_sd(reinterpret_cast<const double*>(a)), reinterpret_cast<const double*>(b)));
}
inline __m256 join(__m128 low, __m128 high) { return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1); }

inline void load_octet2(uint32_t* d, uint32_t stride, uint64_t base, const uint32_t* o) {
  __m256 x = join(two_pairs(base + o[0], base + o[1]), two_pairs(base + o[4], base + o[5]));
  __m256 y = join(two_pairs(base + o[2], base + o[3]), two_pairs(base + o[6], base + o[7]));
  _mm256_store_ps(float_row(d), _mm256_shuffle_ps(x, y, 0x88));
  _mm256_store_ps(float_row(d + stride), _mm256_shuffle_ps(x, y, 0xdd));
}
inline void put_pairs(uint64_t a, uint64_t b, __m128 v) {
  _mm_storel_pd(reinterpret_cast<double*>(a), _mm_castps_pd(v));
  _mm_storeh_pd(reinterpret_cast<double*>(b), _mm_castps_pd(v));
}
inline void store_octet2(const uint32_t* s, uint32_t stride, uint64_t base, const uint32_t* o) {
  __m256 a = _mm256_load_ps(float_row(s)), b = _mm256_load_ps(float_row(s + stride));
  __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  put_pairs(base + o[0], base + o[1], _mm256_castps256_ps128(low));
  put_pairs(base + o[2], base + o[3], _mm256_castps256_ps128(high));
  put_pairs(base + o[4], base + o[5], _mm256_extractf128_ps(low, 1));
  put_pairs(base + o[6], base + o[7], _mm256_extractf128_ps(high, 1));
}

#endif

template <class T>
inline T read_at(uint64_t address) {
  T value;
  std::memcpy(&value, at_host(address), sizeof(T));
  return value;
}

template <Format F>
inline void load_small_fast(uint32_t lanes, uint32_t* d, uint64_t base, const uint32_t* offset) {
  constexpr uint32_t bytes = format_bytes(F);
  using T = std::conditional_t<bytes == 1, uint8_t, uint16_t>;
  if (is_contiguous(offset, lanes, bytes)) {
    alignas(64) T raw[64];
    std::memcpy(raw, at_host(base + offset[0]), lanes * bytes);
    for_lanes(lanes, [&](uint32_t l) { d[l] = extend<F>(raw[l], d[l]); });
    return;
  }
  for (uint32_t l = 0; l < lanes; ++l) d[l] = extend<F>(read_at<T>(base + offset[l]), d[l]);
}

/// d[k][lane] = dword k at base + offset[lane] for all lanes; the addresses have been checked. `offset` may be one of
/// the rows that are written: every lane's offset is read before its results are.
template <Format F>
inline void load_fast(const Wave& w, uint32_t* d, uint64_t base, const uint32_t* offset) {
  constexpr uint32_t n = format_dwords(F);
  uint32_t lanes = w.lanes;
  if constexpr (is_small(F)) {
    load_small_fast<F>(lanes, d, base, offset);
  } else if constexpr (n == 1) {
    if (is_contiguous(offset, lanes, 4)) {
      std::memcpy(d, at_host(base + offset[0]), lanes * 4);
      return;
    }
    for (uint32_t l = 0; l < lanes; ++l) d[l] = read_at<uint32_t>(base + offset[l]);
#if defined(__AVX2__)
  } else if constexpr (n == 2) {
    for (uint32_t l = 0; l < lanes; l += 8) load_octet2(d + l, lanes, base, offset + l);
  } else if constexpr (n == 4) {
    for (uint32_t l = 0; l < lanes; l += 8) load_octet4(d + l, lanes, base, offset + l);
#endif
  } else {
    for (uint32_t l = 0; l < lanes; ++l) {
      uint32_t t[n];
      std::memcpy(t, at_host(base + offset[l]), n * 4);
      for (uint32_t k = 0; k < n; ++k) d[k * lanes + l] = t[k];
    }
  }
}

template <Format F>
inline void store_small_fast(uint32_t lanes, const uint32_t* s, uint64_t base, const uint32_t* offset) {
  constexpr uint32_t bytes = format_bytes(F);
  using T = std::conditional_t<bytes == 1, uint8_t, uint16_t>;
  if (is_contiguous(offset, lanes, bytes)) {
    alignas(64) T raw[64];
    for_lanes(lanes, [&](uint32_t l) { raw[l] = static_cast<T>(reduce<F>(s[l])); });
    std::memcpy(at_host(base + offset[0]), raw, lanes * bytes);
    return;
  }
  for (uint32_t l = 0; l < lanes; ++l) {
    T value = static_cast<T>(reduce<F>(s[l]));
    std::memcpy(at_host(base + offset[l]), &value, bytes);
  }
}

template <Format F>
inline void store_fast(const Wave& w, const uint32_t* s, uint64_t base, const uint32_t* offset) {
  constexpr uint32_t n = format_dwords(F);
  uint32_t lanes = w.lanes;
  if constexpr (is_small(F)) {
    store_small_fast<F>(lanes, s, base, offset);
  } else if constexpr (n == 1) {
    if (is_contiguous(offset, lanes, 4)) {
      std::memcpy(at_host(base + offset[0]), s, lanes * 4);
      return;
    }
    for (uint32_t l = 0; l < lanes; ++l) std::memcpy(at_host(base + offset[l]), s + l, 4);
#if defined(__AVX2__)
  } else if constexpr (n == 2) {
    for (uint32_t l = 0; l < lanes; l += 8) store_octet2(s + l, lanes, base, offset + l);
  } else if constexpr (n == 4) {
    for (uint32_t l = 0; l < lanes; l += 8) store_octet4(s + l, lanes, base, offset + l);
#endif
  } else {
    for (uint32_t l = 0; l < lanes; ++l) {
      uint32_t t[n];
      for (uint32_t k = 0; k < n; ++k) t[k] = s[k * lanes + l];
      std::memcpy(at_host(base + offset[l]), t, n * 4);
    }
  }
}

/// Where a fast access goes.
struct FastAddress {
  uint64_t base;
  const uint32_t* offset;
};

/// True if base + offset of all lanes lies in one allocation.
inline bool is_one_window(Wave& w, const Instruction& i, const FastAddress& a, uint32_t bytes) {
  OffsetRange range = range_of(a.offset, w.lanes);
  uint64_t low = a.base + range.low, high = a.base + range.high + bytes;
  return low < high && in_window(*w.workgroup, i, low, high);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
