#pragma once

#include <array>

#include "ops/gemm/linear.h"

namespace crest::ops {

/// Kernels over layout kPanels, one table an instruction set. NOTE: tables of constants, because code of these files
/// must not run before the processor was looked at.
inline constexpr size_t kPanelTypes = 17;
using LinearTable = std::array<LinearKernel, kPanelTypes>;
extern const LinearTable kLinearAvx2;
extern const LinearTable kLinearAvxVnni;
extern const LinearTable kLinearAvx512;
extern const LinearTable kLinearAvx512Vnni;
extern const LinearTable kLinearAmx;

}  // namespace crest::ops
