#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace crest::core {

/// What the processor and the operating system allow, found at run time.
struct CpuFeatures {
  bool avx2 = false;  // AVX2, FMA, F16C and BMI2 together: the least that the fast kernels need
  bool avx_vnni = false;
  bool avx512 = false;  // F, BW, VL and DQ together
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
  std::string model_name;
};

/// The processor's features, lowered to what CREST_CPU allows (generic, avx2, avx_vnni, avx512, avx512_vnni). An
/// unknown or impossible value is reported by cpu_override_status() and then ignored.
const CpuFeatures& cpu_features();
/// What the processor has, whatever CREST_CPU says.
const CpuFeatures& detected_cpu_features();
Status cpu_override_status();

/// Names of the features present, for `crest devices`.
std::vector<std::string> feature_names(const CpuFeatures& features);

}  // namespace crest::core
