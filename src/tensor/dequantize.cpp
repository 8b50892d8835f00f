#include "tensor/dequantize.h"

#include <array>
#include <cstring>

#include "tensor/fp8.h"
#include "tensor/half.h"
#include "tensor/quant.h"

namespace crest::tensor {
namespace {

// Plain elements may lie at any address (safetensors promises no alignment), hence the copy.
template <typename Element, typename Convert>
void each(const void* src, float* dst, int64_t n, Convert convert) {
  const auto* bytes = static_cast<const char*>(src);
  for (int64_t i = 0; i < n; ++i) {
    Element element;
    std::memcpy(&element, bytes + i * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
    dst[i] = convert(element);
  }
}

template <typename Element>
void cast_each(const void* src, float* dst, int64_t n) {
  each<Element>(src, dst, n, [](Element x) { return static_cast<float>(x); });
}

template <typename Decode>
constexpr std::array<float, 256> byte_table(Decode decode) {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) table[static_cast<size_t>(code)] = decode(static_cast<uint8_t>(code));
  return table;
}
constexpr auto kE4m3fn = byte_table(e4m3fn_to_f32);
constexpr auto kE4m3fnuz = byte_table(e4m3fnuz_to_f32);

}  // namespace

void dequantize_row(DType dtype, const void* src, float* dst, int64_t n) {
  if (n == 0) return;
  CREST_CHECK(n % info(dtype).block_size == 0, "{} values of {}", n, name(dtype));
  using enum DType;
  switch (dtype) {
    case kF32:
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
      return;
    case kF16:
      return each<uint16_t>(src, dst, n, f16_to_f32);
    case kBF16:
      return each<uint16_t>(src, dst, n, bf16_to_f32);
    case kF64:
      return cast_each<double>(src, dst, n);
    case kI8:
      return cast_each<int8_t>(src, dst, n);
    case kI16:
      return cast_each<int16_t>(src, dst, n);
    case kI32:
      return cast_each<int32_t>(src, dst, n);
    case kI64:
      return cast_each<int64_t>(src, dst, n);
    case kQ4_0:
      return detail::dequantize_q4_0(src, dst, n);
    case kQ4_1:
      return detail::dequantize_q4_1(src, dst, n);
    case kQ5_0:
      return detail::dequantize_q5_0(src, dst, n);
    case kQ5_1:
      return detail::dequantize_q5_1(src, dst, n);
    case kQ8_0:
      return detail::dequantize_q8_0(src, dst, n);
    case kQ2_K:
      return detail::dequantize_q2_k(src, dst, n);
    case kQ3_K:
      return detail::dequantize_q3_k(src, dst, n);
    case kQ4_K:
      return detail::dequantize_q4_k(src, dst, n);
    case kQ5_K:
      return detail::dequantize_q5_k(src, dst, n);
    case kQ6_K:
      return detail::dequantize_q6_k(src, dst, n);
    case kIQ2_XXS:
      return detail::dequantize_iq2_xxs(src, dst, n);
    case kIQ2_XS:
      return detail::dequantize_iq2_xs(src, dst, n);
    case kIQ2_S:
      return detail::dequantize_iq2_s(src, dst, n);
    case kIQ3_XXS:
      return detail::dequantize_iq3_xxs(src, dst, n);
    case kIQ3_S:
      return detail::dequantize_iq3_s(src, dst, n);
    case kIQ4_NL:
      return detail::dequantize_iq4_nl(src, dst, n);
    case kIQ4_XS:
      return detail::dequantize_iq4_xs(src, dst, n);
    case kMXFP4:
      return detail::dequantize_mxfp4(src, dst, n);
    case kF8_E4M3FN:
      return each<uint8_t>(src, dst, n, [](uint8_t code) { return kE4m3fn[code]; });
    case kF8_E4M3FNUZ:
      return each<uint8_t>(src, dst, n, [](uint8_t code) { return kE4m3fnuz[code]; });
    case kParoW4:
      break;
  }
  CREST_CHECK(false, "{} has no rows of its own", name(dtype));
}

}  // namespace crest::tensor
