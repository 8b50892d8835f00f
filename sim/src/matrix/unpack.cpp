#include "matrix/unpack_rows.h"

namespace crest_sim::CREST_SIM_LEVEL {

void unpack(Element element, bool fnuz, const uint32_t* rows, const UnpackLayout& layout, float* table) {
  switch (element) {
    case Element::kF32:
      return unpack_as<Element::kF32, false>(rows, layout, table);
    case Element::kXf32:
      return unpack_as<Element::kXf32, false>(rows, layout, table);
    case Element::kF16:
      return unpack_pairs<Element::kF16>(rows, layout, table);
    case Element::kBf16:
      return unpack_pairs<Element::kBf16>(rows, layout, table);
    case Element::kI8:
      return unpack_as<Element::kI8, false>(rows, layout, table);
    case Element::kU8:
      return unpack_as<Element::kU8, false>(rows, layout, table);
    case Element::kI4:
      return unpack_as<Element::kI4, false>(rows, layout, table);
    case Element::kU4:
      return unpack_as<Element::kU4, false>(rows, layout, table);
    case Element::kFp6:
      return unpack_as<Element::kFp6, false>(rows, layout, table);
    case Element::kBf6:
      return unpack_as<Element::kBf6, false>(rows, layout, table);
    case Element::kFp4:
      return unpack_as<Element::kFp4, false>(rows, layout, table);
    case Element::kFp8:
      return fnuz ? unpack_as<Element::kFp8, true>(rows, layout, table)
                  : unpack_as<Element::kFp8, false>(rows, layout, table);
    case Element::kBf8:
      return fnuz ? unpack_as<Element::kBf8, true>(rows, layout, table)
                  : unpack_as<Element::kBf8, false>(rows, layout, table);
    case Element::kF64:
      break;  // has no fp32 table; see f64.cpp
  }
}

}  // namespace crest_sim::CREST_SIM_LEVEL
