#include "tensor/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace crest::tensor {
namespace {

using enum DType;

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {kF32, "F32", 1, 4, 0},
    {kF16, "F16", 1, 2, 1},
    {kBF16, "BF16", 1, 2, 30},
    {kF64, "F64", 1, 8, 28},
    {kI8, "I8", 1, 1, 24},
    {kI16, "I16", 1, 2, 25},
    {kI32, "I32", 1, 4, 26},
    {kI64, "I64", 1, 8, 27},
    {kQ4_0, "Q4_0", 32, 18, 2},
    {kQ4_1, "Q4_1", 32, 20, 3},
    {kQ5_0, "Q5_0", 32, 22, 6},
    {kQ5_1, "Q5_1", 32, 24, 7},
    {kQ8_0, "Q8_0", 32, 34, 8},
    {kQ2_K, "Q2_K", 256, 84, 10},
    {kQ3_K, "Q3_K", 256, 110, 11},
    {kQ4_K, "Q4_K", 256, 144, 12},
    {kQ5_K, "Q5_K", 256, 176, 13},
    {kQ6_K, "Q6_K", 256, 210, 14},
    {kIQ2_XXS, "IQ2_XXS", 256, 66, 16},
    {kIQ2_XS, "IQ2_XS", 256, 74, 17},
    {kIQ2_S, "IQ2_S", 256, 82, 22},
    {kIQ3_XXS, "IQ3_XXS", 256, 98, 18},
    {kIQ3_S, "IQ3_S", 256, 110, 21},
    {kIQ4_NL, "IQ4_NL", 32, 18, 20},
    {kIQ4_XS, "IQ4_XS", 256, 136, 23},
    {kMXFP4, "MXFP4", 32, 17, 39},
    {kF8_E4M3FN, "f8_e4m3fn", 1, 1, -1},
    {kF8_E4M3FNUZ, "f8_e4m3fnuz", 1, 1, -1},
    {kParoW4, "PARO_W4", 128, 0, -1},
}};

constexpr bool in_order() {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (static_cast<int>(kInfo[static_cast<size_t>(i)].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order());

struct Unsupported {
  int64_t ggml_type;
  std::string_view name;
};
constexpr Unsupported kUnsupported[] = {{9, "Q8_1"},   {15, "Q8_K"},  {19, "IQ1_S"}, {29, "IQ1_M"}, {34, "TQ1_0"},
                                        {35, "TQ2_0"}, {40, "NVFP4"}, {41, "Q1_0"},  {42, "Q2_0"}};

}  // namespace

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<size_t>(dtype)]; }

int64_t row_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& i = info(dtype);
  CREST_CHECK(elements % i.block_size == 0, "{} elements of {}", elements, i.name);
  return elements / i.block_size * i.block_bytes;
}

std::optional<DType> dtype_from_ggml(int64_t ggml_type) {
  if (ggml_type < 0) return std::nullopt;
  for (const DTypeInfo& i : kInfo) {
    if (i.ggml_type == ggml_type) return i.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& i : kInfo) {
    if (std::ranges::equal(i.name, name, [](char a, char b) {
          return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
        })) {
      return i.dtype;
    }
  }
  return std::nullopt;
}

std::string_view unsupported_ggml_name(int64_t ggml_type) {
  for (const Unsupported& u : kUnsupported) {
    if (u.ggml_type == ggml_type) return u.name;
  }
  return {};
}

}  // namespace crest::tensor
