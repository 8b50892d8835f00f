#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/result.h"
#include "ops/views.h"

namespace crest::ops {

/// Largest extent of a dimension. Products of two stay below 2^62, so that indices cannot overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

/// "op: argument is value, allowed: min to max".
Status check_range(std::string_view op, std::string_view argument, int64_t value, int64_t min, int64_t max);
Status check_finite(std::string_view op, std::string_view argument, double value, double min, double max);
/// Refuses null pointers, by name. Not asked when there is nothing to read (count 0).
Status check_pointers(std::string_view op, int64_t count,
                      std::initializer_list<std::pair<std::string_view, const void*>> pointers);

/// Strides with zeros replaced by those of a packed [tokens, heads, dim] array.
HeadsView resolve(const HeadsView& view, int64_t heads, int64_t dim);
MutableHeadsView resolve(const MutableHeadsView& view, int64_t heads, int64_t dim);
/// A view whose vectors do not overlap: required of everything that is written.
Status check_view(std::string_view op, std::string_view argument, const HeadsView& view, int64_t tokens, int64_t heads,
                  int64_t dim);
Status check_view(std::string_view op, std::string_view argument, const MutableHeadsView& view, int64_t tokens,
                  int64_t heads, int64_t dim);

/// cu_seqlens[0] = 0, not decreasing, cu_seqlens[sequences] = total.
Status check_cu_seqlens(std::string_view op, std::string_view argument, const int32_t* cu_seqlens, int64_t sequences,
                        int64_t total);
/// Each of state_slots in [0, slots), no two the same.
Status check_state_slots(std::string_view op, const int32_t* state_slots, int64_t sequences, int64_t slots);

}  // namespace crest::ops
