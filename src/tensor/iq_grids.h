#pragma once

#include <array>
#include <cstdint>

namespace crest::tensor {

/// Codebooks of the IQ formats: each entry holds 8 (IQ2) or 4 (IQ3) magnitudes, one a byte, first in the low byte.
extern const std::array<uint64_t, 256> kIQ2XXSGrid;
extern const std::array<uint64_t, 512> kIQ2XSGrid;
extern const std::array<uint64_t, 1024> kIQ2SGrid;
extern const std::array<uint32_t, 256> kIQ3XXSGrid;
extern const std::array<uint32_t, 512> kIQ3SGrid;

}  // namespace crest::tensor
