#include "ops/attention/attention.h"

#include <algorithm>
#include <limits>

#include "ops/attention/cpu_attention.h"
#include "ops/attention/internal.h"

namespace crest::ops {
namespace {

constexpr auto kOp = "attention";

Status check_paged(const AttentionProblem& p, const AttentionArgs& a) {
  CREST_RETURN_IF_ERROR(
      check_pointers(kOp, 1, {{"k_pool", a.k_pool}, {"v_pool", a.v_pool}, {"page_table", a.page_table}}));
  const struct {
    std::string_view name;
    const KvPool& pool;
    int64_t dim;
  } pools[] = {{"k_pool", *a.k_pool, p.head_dim}, {"v_pool", *a.v_pool, p.value_dim}};
  for (const auto& [name, pool, dim] : pools) {
    CREST_RETURN_IF_ERROR(check(pool));
    if (pool.kv_heads != p.kv_heads || pool.head_dim != dim || pool.dtype != p.kv_dtype) {
      return make_error(
          ErrorCode::kInvalidArgument, "{}: {} is {} [.., {} heads, .., {}], allowed: {} [.., {}, .., {}]", kOp, name,
          tensor::name(pool.dtype), pool.kv_heads, pool.head_dim, tensor::name(p.kv_dtype), p.kv_heads, dim);
    }
  }
  if (a.k_pool->page_size != a.v_pool->page_size) {
    return make_error(ErrorCode::kInvalidArgument, "{}: page sizes of K ({}) and V ({}) differ", kOp,
                      a.k_pool->page_size, a.v_pool->page_size);
  }
  const int64_t page_size = a.k_pool->page_size;
  const int64_t pages = std::min(a.k_pool->pages, a.v_pool->pages);
  for (int64_t s = 0; s < p.sequences; ++s) {
    const int64_t used = (a.kv_lens[s] + page_size - 1) / page_size;
    if (used > a.page_table_stride) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: sequence {} has {} keys, but its page table only {} pages of {}", kOp, s, a.kv_lens[s],
                        a.page_table_stride, page_size);
    }
    for (int64_t i = 0; i < used; ++i) {
      const int32_t page = a.page_table[s * a.page_table_stride + i];
      if (page < 0 || page >= pages) {
        return make_error(ErrorCode::kInvalidArgument, "{}: page {} of sequence {} is {}, allowed: 0 to {}", kOp, i, s,
                          page, pages - 1);
      }
    }
  }
  return {};
}

Status check_packed(const AttentionProblem& p, const AttentionArgs& a) {
  if (p.kv_dtype != tensor::DType::kF32) {
    return make_error(ErrorCode::kUnsupported, "{}: packed keys are {}, allowed: F32", kOp, tensor::name(p.kv_dtype));
  }
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{"cu_seqlens_k", a.cu_seqlens_k}}));
  const int64_t keys = a.cu_seqlens_k[p.sequences];
  CREST_RETURN_IF_ERROR(check_cu_seqlens(kOp, "cu_seqlens_k", a.cu_seqlens_k, p.sequences, keys));
  for (int64_t s = 0; s < p.sequences; ++s) {
    const int64_t length = a.cu_seqlens_k[s + 1] - a.cu_seqlens_k[s];
    if (a.kv_lens[s] > length) {
      return make_error(ErrorCode::kInvalidArgument, "{}: kv_lens[{}] is {}, but only {} keys were given", kOp, s,
                        a.kv_lens[s], length);
    }
  }
  CREST_RETURN_IF_ERROR(check_view(kOp, "k", a.k, keys, p.kv_heads, p.head_dim));
  return check_view(kOp, "v", a.v, keys, p.kv_heads, p.value_dim);
}

}  // namespace

Status check(const AttentionProblem& p, const AttentionArgs& a) {
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "sequences", p.sequences, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "kv_heads", p.kv_heads, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "q_heads", p.q_heads, 1, 1 << 20));
  if (p.q_heads % p.kv_heads != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: q_heads is {}, allowed: multiples of the {} kv_heads", kOp,
                      p.q_heads, p.kv_heads);
  }
  CREST_RETURN_IF_ERROR(check_range(kOp, "head_dim", p.head_dim, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "value_dim", p.value_dim, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "window", p.window, 0, kMaxExtent));
  constexpr double kLargest = std::numeric_limits<float>::max();
  CREST_RETURN_IF_ERROR(check_finite(kOp, "scale", p.scale, -kLargest, kLargest));
  CREST_RETURN_IF_ERROR(check_finite(kOp, "soft_cap", p.soft_cap, 0, kLargest));
  CREST_RETURN_IF_ERROR(check_cu_seqlens(kOp, "cu_seqlens", a.cu_seqlens, p.sequences, p.tokens));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, p.sequences, {{"kv_lens", a.kv_lens}}));
  for (int64_t s = 0; s < p.sequences; ++s) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "kv_lens", a.kv_lens[s], 0, p.max_kv_len));
    CREST_RETURN_IF_ERROR(check_range(kOp, "query length", a.cu_seqlens[s + 1] - a.cu_seqlens[s], 0, p.max_q_len));
  }
  CREST_RETURN_IF_ERROR(check_view(kOp, "q", a.q, p.tokens, p.q_heads, p.head_dim));
  CREST_RETURN_IF_ERROR(check_view(kOp, "out", a.out, p.tokens, p.q_heads, p.value_dim));
  if (p.sequences == 0) return {};
  return p.paged ? check_paged(p, a) : check_packed(p, a);
}

KeyRange visible_keys(const AttentionProblem& p, int64_t kv_len, int64_t position) {
  KeyRange range{0, kv_len};
  if (p.window > 0) range.begin = std::max<int64_t>(0, position - p.window + 1);
  if (p.causal) {
    range.end = std::clamp<int64_t>(position + 1, 0, kv_len);
  } else if (p.window > 0) {
    range.end = std::clamp<int64_t>(position + p.window, 0, kv_len);
  }
  range.begin = std::min(range.begin, range.end);
  return range;
}

int64_t sequence_of(const int32_t* cu_seqlens, int64_t sequences, int64_t token) {
  return std::upper_bound(cu_seqlens, cu_seqlens + sequences + 1, static_cast<int32_t>(token)) - cu_seqlens - 1;
}

KvReader::KvReader(const AttentionProblem& problem, const AttentionArgs& args, const KvPool* pool,
                   const HeadsView& packed, int64_t dim, int64_t sequence, int64_t head)
    : head_(head) {
  if (problem.paged) {
    pool_ = pool;
    pages_ = args.page_table + sequence * args.page_table_stride;
    return;
  }
  const HeadsView view = resolve(packed, problem.kv_heads, dim);
  stride_ = view.token_stride;
  packed_ = view.data + args.cu_seqlens_k[sequence] * stride_ + head * view.head_stride;
}

const float* KvReader::row(int64_t j, float* buffer) const {
  if (pool_ == nullptr) return packed_ + j * stride_;
  return read_vector(*pool_, pool_->vector_index(pages_[j / pool_->page_size], head_, j % pool_->page_size), buffer);
}

const Operator<AttentionProblem, AttentionArgs>& attention_operator() {
  static const Operator<AttentionProblem, AttentionArgs> op(
      "attention", {attention_reference(), kAttentionAvx2, kAttentionAvx512}, [](const AttentionProblem& p) {
        return TuningKey{tensor::name(p.kv_dtype),
                         {tuned_exact("q_heads", p.q_heads), tuned_exact("kv_heads", p.kv_heads),
                          tuned_exact("head_dim", p.head_dim), tuned_power("q_len", p.max_q_len),
                          tuned_power("kv_len", p.max_kv_len)}};
      });
  return op;
}

Status attention(const AttentionProblem& problem, const AttentionArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return attention_operator().run(problem, args, context, tensor::name(problem.kv_dtype));
}

Status check(const OutputGateProblem& p, const OutputGateArgs& a) {
  constexpr auto kGate = "attention_output_gate";
  CREST_RETURN_IF_ERROR(check_range(kGate, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kGate, "heads", p.heads, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kGate, "head_dim", p.head_dim, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_view(kGate, "gate", a.gate, p.tokens, p.heads, p.head_dim));
  return check_view(kGate, "x", a.x, p.tokens, p.heads, p.head_dim);
}

const Operator<OutputGateProblem, OutputGateArgs>& attention_output_gate_operator() {
  static const Operator<OutputGateProblem, OutputGateArgs> op("attention_output_gate",
                                                              {output_gate_reference(), kOutputGateAvx2});
  return op;
}

Status attention_output_gate(const OutputGateProblem& problem, const OutputGateArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return attention_output_gate_operator().run(problem, args, context);
}

}  // namespace crest::ops
