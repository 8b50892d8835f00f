#include "ops/checks.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crest::ops {

Status check_range(std::string_view op, std::string_view argument, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return make_error(ErrorCode::kInvalidArgument, "{}: {} is {}, allowed: {} to {}", op, argument, value, min, max);
}

Status check_finite(std::string_view op, std::string_view argument, double value, double min, double max) {
  if (std::isfinite(value) && value >= min && value <= max) return {};
  return make_error(ErrorCode::kInvalidArgument, "{}: {} is {}, allowed: {} to {}", op, argument, value, min, max);
}

Status check_pointers(std::string_view op, int64_t count,
                      std::initializer_list<std::pair<std::string_view, const void*>> pointers) {
  if (count == 0) return {};
  for (const auto& [argument, pointer] : pointers) {
    if (pointer == nullptr) return make_error(ErrorCode::kInvalidArgument, "{}: {} is missing", op, argument);
  }
  return {};
}

HeadsView resolve(const HeadsView& view, int64_t heads, int64_t dim) {
  return {view.data, view.token_stride ? view.token_stride : heads * dim, view.head_stride ? view.head_stride : dim};
}

MutableHeadsView resolve(const MutableHeadsView& view, int64_t heads, int64_t dim) {
  return {view.data, view.token_stride ? view.token_stride : heads * dim, view.head_stride ? view.head_stride : dim};
}

Status check_view(std::string_view op, std::string_view argument, const HeadsView& view, int64_t tokens, int64_t heads,
                  int64_t dim) {
  if (tokens == 0) return {};
  if (view.data == nullptr) return make_error(ErrorCode::kInvalidArgument, "{}: {} is missing", op, argument);
  const HeadsView full = resolve(view, heads, dim);
  const bool heads_fit = heads == 1 || (full.head_stride >= dim && full.head_stride <= kMaxExtent);
  const int64_t token_extent = heads == 1 ? dim : (heads - 1) * full.head_stride + dim;
  const bool tokens_fit = tokens == 1 || (full.token_stride >= token_extent && full.token_stride <= kMaxExtent);
  // Heads may also lie outside tokens: [heads, tokens, dim].
  const bool swapped = full.token_stride >= dim && full.token_stride <= kMaxExtent &&
                       (heads == 1 || full.head_stride >= (tokens - 1) * full.token_stride + dim);
  if ((heads_fit && tokens_fit) || swapped) return {};
  return make_error(ErrorCode::kInvalidArgument,
                    "{}: strides of {} (token {}, head {}) make vectors of [{}, {}, {}] overlap", op, argument,
                    full.token_stride, full.head_stride, tokens, heads, dim);
}

Status check_view(std::string_view op, std::string_view argument, const MutableHeadsView& view, int64_t tokens,
                  int64_t heads, int64_t dim) {
  return check_view(op, argument, HeadsView{view.data, view.token_stride, view.head_stride}, tokens, heads, dim);
}

Status check_cu_seqlens(std::string_view op, std::string_view argument, const int32_t* cu_seqlens, int64_t sequences,
                        int64_t total) {
  CREST_RETURN_IF_ERROR(check_pointers(op, 1, {{argument, cu_seqlens}}));
  if (cu_seqlens[0] != 0)
    return make_error(ErrorCode::kInvalidArgument, "{}: {}[0] is {}, allowed: 0", op, argument, cu_seqlens[0]);
  for (int64_t s = 0; s < sequences; ++s) {
    if (cu_seqlens[s + 1] < cu_seqlens[s]) {
      return make_error(ErrorCode::kInvalidArgument, "{}: {}[{}] is {}, less than the {} before it", op, argument,
                        s + 1, cu_seqlens[s + 1], cu_seqlens[s]);
    }
  }
  if (cu_seqlens[sequences] != total) {
    return make_error(ErrorCode::kInvalidArgument, "{}: {}[{}] is {}, but there are {} tokens", op, argument, sequences,
                      cu_seqlens[sequences], total);
  }
  return {};
}

Status check_state_slots(std::string_view op, const int32_t* state_slots, int64_t sequences, int64_t slots) {
  CREST_RETURN_IF_ERROR(check_pointers(op, sequences, {{"state_slots", state_slots}}));
  for (int64_t s = 0; s < sequences; ++s) {
    if (state_slots[s] < 0 || state_slots[s] >= slots) {
      return make_error(ErrorCode::kInvalidArgument, "{}: state_slots[{}] is {}, allowed: 0 to {}", op, s,
                        state_slots[s], slots - 1);
    }
  }
  if (sequences < 2) return {};
  std::vector<int32_t> sorted(state_slots, state_slots + sequences);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return {};
  return make_error(ErrorCode::kInvalidArgument, "{}: two sequences of the batch share state slot {}", op, *twice);
}

}  // namespace crest::ops
