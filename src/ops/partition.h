#pragma once

#include <algorithm>
#include <cstdint>

namespace crest::ops {

/// Rows that one thread should take at least, so that handing them out costs less than computing them; work is the
/// number of elementary operations of a row.
inline int64_t row_grain(int64_t work) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, work)); }

}  // namespace crest::ops
