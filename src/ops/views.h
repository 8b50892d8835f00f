#pragma once

#include <cstdint>

namespace crest::ops {

/// A view of [tokens, heads, dim] fp32 values, dim contiguous. Strides are in elements; 0 stands for the packed value
/// (token_stride heads*dim, head_stride dim).
struct HeadsView {
  const float* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};
struct MutableHeadsView {
  float* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};

}  // namespace crest::ops
