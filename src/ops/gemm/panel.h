#pragma once

#include <cstdint>

#include "core/result.h"
#include "core/thread_pool.h"
#include "ops/weight.h"
#include "tensor/dtype.h"

namespace crest::ops::panel {

/// Layout kPanels: rows in panels of 16, columns in chunks; a chunk holds its quants in the order in which vector
/// kernels read them, then its scales. One panel is a row of chunks. Rows missing in the last panel are zero.
///
/// Quants are kept unsigned. A step is 4 columns: 64 bytes, byte 4 * row + i is column 4 * step + i. A sub-block of 32
/// columns is 8 steps, packed into planes of fewer bits:
///   nibbles   4 vectors of 64 bytes: vector v has step v in its low and step v + 4 in its high nibbles
///   pairs     2 vectors: bits 2j, 2j+1 of vector v are those of step 4 v + j
///   bits      1 vector: bit s is that of step s
/// Plain types (F32, F16, BF16) have chunks of one column: 16 values.
inline constexpr int64_t kRows = 16;
inline constexpr int64_t kStepBytes = 64;
inline constexpr int64_t kSubBlock = 32;

struct Format {
  tensor::DType dtype;
  int64_t chunk_cols;   // columns of a chunk
  int64_t chunk_bytes;  // of the 16 rows together
  /// rows[r]: the blocks of row r that the chunk is made of, or null for a row that does not exist.
  void (*pack)(const uint8_t* const* rows, uint8_t* chunk);
  /// fp32 values of one row of a chunk, equal bit for bit to dequantising the row's blocks.
  void (*decode)(const uint8_t* chunk, int64_t row, float* out);
};

/// Null for types that have no panel layout.
const Format* find_format(tensor::DType dtype);

/// The same weight in layout kPanels, in memory of its own. Threads share the rows.
Result<Weight> pack(const Weight& weight, core::ThreadPool& pool);

/// fp32 values of one row of a weight in layout kPanels.
void decode_row(const Weight& weight, int64_t expert, int64_t row, float* out);

/// Byte offsets of the parts of a chunk.
namespace parts {
// Formats of 32 columns.
inline constexpr int64_t kNibbles32 = 256, kBits32 = 64, kHalves = 32;
inline constexpr int64_t kQ4_0_Scale = 256, kQ4_0_Bytes = 288;
inline constexpr int64_t kQ4_1_Scale = 256, kQ4_1_Min = 288, kQ4_1_Bytes = 320;
inline constexpr int64_t kQ5_0_Bits = 256, kQ5_0_Scale = 320, kQ5_0_Bytes = 352;
inline constexpr int64_t kQ5_1_Bits = 256, kQ5_1_Scale = 320, kQ5_1_Min = 352, kQ5_1_Bytes = 384;
inline constexpr int64_t kQ8_0_Scale = 512, kQ8_0_Bytes = 544;
inline constexpr int64_t kMxfp4_Scale = 256, kMxfp4_Bytes = 272;
// ParoQuant: 128 columns.
inline constexpr int64_t kParo_Scale = 1024, kParo_Zero = 1056, kParo_Bytes = 1072;
// Formats of 256 columns; scales are [sub-block][row].
inline constexpr int64_t kQ4_K_Scales = 2048, kQ4_K_Mins = 2176, kQ4_K_Scale = 2304, kQ4_K_Min = 2336,
                         kQ4_K_Bytes = 2368;
inline constexpr int64_t kQ5_K_Bits = 2048, kQ5_K_Scales = 2560, kQ5_K_Mins = 2688, kQ5_K_Scale = 2816,
                         kQ5_K_Min = 2848, kQ5_K_Bytes = 2880;
inline constexpr int64_t kQ6_K_Pairs = 2048, kQ6_K_Scales = 3072, kQ6_K_Scale = 3328, kQ6_K_Bytes = 3360;
inline constexpr int64_t kQ3_K_Bits = 1024, kQ3_K_Scales = 1536, kQ3_K_Scale = 1792, kQ3_K_Bytes = 1824;
inline constexpr int64_t kQ2_K_Scales = 1024, kQ2_K_Scale = 1280, kQ2_K_Min = 1312, kQ2_K_Bytes = 1344;
inline constexpr int64_t kIQ4_XS_Scales = 2048, kIQ4_XS_Scale = 2176, kIQ4_XS_Bytes = 2208;
}  // namespace parts

}  // namespace crest::ops::panel
