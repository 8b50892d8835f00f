#include "ops/kv_cache/kv_cache.h"

#include "core/checked.h"
#include "ops/checks.h"
#include "ops/kv_cache/internal.h"

namespace crest::ops {

using tensor::DType;

int64_t KvPool::element_bytes() const { return tensor::info(dtype).block_bytes; }

Status check(const KvPool& pool) {
  constexpr auto kOp = "KV pool";
  const DType d = pool.dtype;
  if (d != DType::kF32 && d != DType::kF16 && d != DType::kBF16 && d != DType::kI8) {
    return make_error(ErrorCode::kUnsupported, "{}: type is {}, allowed: F32, F16, BF16, I8", kOp, tensor::name(d));
  }
  CREST_RETURN_IF_ERROR(check_range(kOp, "pages", pool.pages, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "page_size", pool.page_size, 16, 1 << 20));
  if (pool.page_size % 16 != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: page_size is {}, allowed: multiples of 16", kOp,
                      pool.page_size);
  }
  CREST_RETURN_IF_ERROR(check_range(kOp, "kv_heads", pool.kv_heads, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "head_dim", pool.head_dim, 1, 1 << 20));
  uint64_t bytes = static_cast<uint64_t>(pool.element_bytes());
  for (const int64_t extent : {pool.pages, pool.page_size, pool.kv_heads, pool.head_dim}) {
    const auto product = core::checked_mul(bytes, static_cast<uint64_t>(extent));
    if (!product || *product >= uint64_t{1} << 62) {
      return make_error(ErrorCode::kInvalidArgument, "{}: {} pages x {} heads x {} tokens x {} do not fit in memory",
                        kOp, pool.pages, pool.kv_heads, pool.page_size, pool.head_dim);
    }
    bytes = *product;
  }
  CREST_RETURN_IF_ERROR(check_pointers(kOp, pool.pages, {{"data", pool.data}}));
  return d == DType::kI8 ? check_pointers(kOp, pool.pages, {{"scales", pool.scales}}) : Status{};
}

namespace {

Status check_shape(std::string_view op, const KvWriteProblem& p, const KvPool* pool, const int64_t* slot_mapping) {
  CREST_RETURN_IF_ERROR(check_range(op, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_pointers(op, 1, {{"pool", pool}}));
  CREST_RETURN_IF_ERROR(check(*pool));
  CREST_RETURN_IF_ERROR(check_range(op, "kv_heads", p.kv_heads, pool->kv_heads, pool->kv_heads));
  CREST_RETURN_IF_ERROR(check_range(op, "head_dim", p.head_dim, pool->head_dim, pool->head_dim));
  if (p.dtype != pool->dtype) {
    return make_error(ErrorCode::kInvalidArgument, "{}: type is {}, but the pool holds {}", op, tensor::name(p.dtype),
                      tensor::name(pool->dtype));
  }
  CREST_RETURN_IF_ERROR(check_pointers(op, p.tokens, {{"slot_mapping", slot_mapping}}));
  for (int64_t t = 0; t < p.tokens; ++t) {
    if (slot_mapping[t] < -1 || slot_mapping[t] >= pool->pages * pool->page_size) {
      return make_error(ErrorCode::kInvalidArgument, "{}: slot_mapping[{}] is {}, allowed: -1 to {}", op, t,
                        slot_mapping[t], pool->pages * pool->page_size - 1);
    }
  }
  return {};
}

}  // namespace

Status check(const KvWriteProblem& p, const KvWriteArgs& a) {
  CREST_RETURN_IF_ERROR(check_shape("kv_write", p, a.pool, a.slot_mapping));
  return check_view("kv_write", "src", a.src, p.tokens, p.kv_heads, p.head_dim);
}

Status check(const KvWriteProblem& p, const KvReadArgs& a) {
  CREST_RETURN_IF_ERROR(check_shape("kv_read", p, a.pool, a.slot_mapping));
  return check_view("kv_read", "dst", a.dst, p.tokens, p.kv_heads, p.head_dim);
}

const Operator<KvWriteProblem, KvWriteArgs>& kv_write_operator() {
  static const Operator<KvWriteProblem, KvWriteArgs> op("kv_write", {kv_write_reference(), kKvWriteAvx2});
  return op;
}

const Operator<KvWriteProblem, KvReadArgs>& kv_read_operator() {
  static const Operator<KvWriteProblem, KvReadArgs> op("kv_read", {kv_read_reference()});
  return op;
}

Status kv_write(const KvWriteProblem& problem, const KvWriteArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return kv_write_operator().run(problem, args, context, tensor::name(problem.dtype));
}

Status kv_read(const KvWriteProblem& problem, const KvReadArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return kv_read_operator().run(problem, args, context, tensor::name(problem.dtype));
}

}  // namespace crest::ops
