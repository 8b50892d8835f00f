#include "ops/quant/activations.h"

namespace crest::ops {

std::string_view name(ActivationFormat format) {
  switch (format) {
    case ActivationFormat::kF32:
      return "f32";
    case ActivationFormat::kQ8_0:
      return "q8_0";
    case ActivationFormat::kQ8_K:
      return "q8_k";
  }
  return "?";
}

}  // namespace crest::ops
