#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/result.h"

namespace crest::tensor {

/// Element types. Quantised ones are blocks along a row; their layouts are those of GGUF.
/// fp8 is two types: the OCP e4m3fn (bias 7) and AMD's e4m3fnuz (bias 8, no negative zero).
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kF8_E4M3FN,
  kF8_E4M3FNUZ,
  kParoW4,  // ParoQuant: int4, group 128, with a rotation of the input; its parts are separate tensors
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kParoW4) + 1;

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as in GGUF tools: "Q4_K"; lower case for fp8
  int64_t block_size;     // elements a block, 1 for plain types
  int64_t block_bytes;    // 0 for kParoW4
  int32_t ggml_type;      // id in a GGUF file, -1 when GGUF has none
};

const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) { return info(dtype).name; }
inline bool is_quantised(DType dtype) { return info(dtype).block_size > 1; }
/// Bytes of `elements` values in a row; elements must be a multiple of the block size.
int64_t row_bytes(DType dtype, int64_t elements);

std::optional<DType> dtype_from_ggml(int64_t ggml_type);
/// Case-insensitive ("q4_k", "f16").
std::optional<DType> dtype_from_name(std::string_view name);
/// Name of a GGUF type id that Crest knows of but cannot read ("IQ1_S"), or empty.
std::string_view unsupported_ggml_name(int64_t ggml_type);

}  // namespace crest::tensor
