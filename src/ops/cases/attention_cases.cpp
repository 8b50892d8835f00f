#include "ops/cases/internal.h"
#include "ops/ops.h"

namespace crest::ops {
namespace {

using tensor::DType;

struct AttentionShape {
  std::vector<std::pair<int64_t, int64_t>> lengths;  // queries and keys of each sequence
  int64_t q_heads, kv_heads, head_dim;
  int64_t window = 0;
  float soft_cap = 0;
};

/// Everything that a paged attention call points to.
struct PagedBatch {
  std::vector<int32_t> cu_seqlens{0}, kv_lens, table;
  std::vector<int64_t> slots;
  std::vector<float> k_data, v_data, k_scales, v_scales;
  KvPool k_pool, v_pool;
  int64_t stride = 0, keys = 0, max_q = 0, max_kv = 0;

  PagedBatch(const AttentionShape& shape, DType dtype, int64_t page_size) {
    for (const auto& [q_len, kv_len] : shape.lengths) {
      cu_seqlens.push_back(static_cast<int32_t>(cu_seqlens.back() + q_len));
      kv_lens.push_back(static_cast<int32_t>(kv_len));
      max_q = std::max(max_q, q_len);
      max_kv = std::max(max_kv, kv_len);
      keys += kv_len;
    }
    stride = max_kv / page_size + 1;
    const auto sequences = static_cast<int64_t>(kv_lens.size());
    const int64_t pages = stride * sequences;
    // Pages of neighbouring sequences alternate and run backwards.
    for (int64_t i = 0; i < sequences * stride; ++i) {
      table.push_back(static_cast<int32_t>(pages - 1 - (i % stride * sequences + i / stride)));
    }
    for (int64_t s = 0; s < sequences; ++s) {
      for (int64_t j = 0; j < kv_lens[static_cast<size_t>(s)]; ++j) {
        slots.push_back(table[static_cast<size_t>(s * stride + j / page_size)] * page_size + j % page_size);
      }
    }
    KvPool pool{
        .dtype = dtype, .pages = pages, .page_size = page_size, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim};
    const auto floats = static_cast<size_t>(pool.data_bytes() / kFloatBytes + 1);
    k_data.resize(floats);
    v_data.resize(floats);
    k_scales.resize(static_cast<size_t>(pages * shape.kv_heads * page_size));
    v_scales = k_scales;
    k_pool = v_pool = pool;
    k_pool.data = reinterpret_cast<std::byte*>(k_data.data());
    v_pool.data = reinterpret_cast<std::byte*>(v_data.data());
    k_pool.scales = k_scales.data();
    v_pool.scales = v_scales.data();
  }
};

std::string describe(const AttentionShape& shape, DType dtype) {
  std::string lengths;
  for (const auto& [q_len, kv_len] : shape.lengths)
    lengths += fmt::format("{}{}/{}", lengths.empty() ? "" : "+", q_len, kv_len);
  return fmt::format("{} q/kv={} heads={}/{} dim={}{}{}", tensor::name(dtype), lengths, shape.q_heads, shape.kv_heads,
                     shape.head_dim, shape.window ? fmt::format(" window={}", shape.window) : "",
                     shape.soft_cap > 0 ? " soft-cap" : "");
}

/// A kernel may keep probabilities and products in fp32 and sum in another order; what the cache's type rounds is the
/// same for all kernels.
void attention_case(Cases& cases, const AttentionShape& shape, DType dtype, int64_t page_size) {
  int64_t tokens = 0, keys = 0, pairs = 0;
  for (const auto& [q_len, kv_len] : shape.lengths) {
    tokens += q_len;
    keys += kv_len;
    pairs += q_len * kv_len;
  }
  const int64_t q_count = tokens * shape.q_heads * shape.head_dim;
  const int64_t bytes =
      2 * q_count * kFloatBytes + 2 * keys * shape.kv_heads * shape.head_dim * tensor::info(dtype).block_bytes;
  add_case(
      cases, "attention", describe(shape, dtype), 1e-5, bytes, 4 * pairs * shape.q_heads * shape.head_dim,
      [=](CaseData& data) {
        auto* batch = data.keep(PagedBatch(shape, dtype, page_size));
        const int64_t kv_count = batch->keys * shape.kv_heads * shape.head_dim;
        const float* k = data.input(kv_count);
        const float* v = data.input(kv_count);
        const AttentionArgs args{.q = {data.input(q_count)},
                                 .cu_seqlens = batch->cu_seqlens.data(),
                                 .kv_lens = batch->kv_lens.data(),
                                 .k_pool = &batch->k_pool,
                                 .v_pool = &batch->v_pool,
                                 .page_table = batch->table.data(),
                                 .page_table_stride = batch->stride,
                                 .out = {data.output(q_count)},
                                 .lse = data.output(tokens * shape.q_heads)};
        const AttentionProblem problem{.tokens = tokens,
                                       .sequences = static_cast<int64_t>(shape.lengths.size()),
                                       .q_heads = shape.q_heads,
                                       .kv_heads = shape.kv_heads,
                                       .head_dim = shape.head_dim,
                                       .value_dim = shape.head_dim,
                                       .max_q_len = batch->max_q,
                                       .max_kv_len = batch->max_kv,
                                       .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim))),
                                       .window = shape.window,
                                       .soft_cap = shape.soft_cap,
                                       .kv_dtype = dtype};
        data.on_run([=, written = std::make_shared<bool>(false)](Context& context) -> Status {
          if (!*written) {
            const KvWriteProblem write{
                .tokens = batch->keys, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim, .dtype = dtype};
            CREST_RETURN_IF_ERROR(
                kv_write(write, {.src = {k}, .pool = &batch->k_pool, .slot_mapping = batch->slots.data()}, context));
            CREST_RETURN_IF_ERROR(
                kv_write(write, {.src = {v}, .pool = &batch->v_pool, .slot_mapping = batch->slots.data()}, context));
            *written = true;
          }
          return attention(problem, args, context);
        });
      });
}

void kv_write_case(Cases& cases, DType dtype, int64_t tokens, int64_t heads, int64_t dim) {
  const int64_t count = tokens * heads * dim;
  add_case(cases, "kv_write", fmt::format("{} tokens={} heads={} dim={}", tensor::name(dtype), tokens, heads, dim),
           1e-7, count * (kFloatBytes + tensor::info(dtype).block_bytes), count, [=](CaseData& data) {
             auto* batch = data.keep(PagedBatch({{{tokens, tokens}}, heads, heads, dim}, dtype, 16));
             const float* src = data.input(count, 3.0f);
             float* back = data.output(count);
             data.on_run([=](Context& context) -> Status {
               const KvWriteProblem problem{.tokens = tokens, .kv_heads = heads, .head_dim = dim, .dtype = dtype};
               CREST_RETURN_IF_ERROR(kv_write(
                   problem, {.src = {src}, .pool = &batch->k_pool, .slot_mapping = batch->slots.data()}, context));
               return kv_read(problem, {.pool = &batch->k_pool, .slot_mapping = batch->slots.data(), .dst = {back}},
                              context);
             });
           });
}

}  // namespace

void add_attention_cases(Cases& cases, bool benchmark) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8}) {
    if (benchmark) {
      attention_case(cases, {{{1, 4096}}, 16, 8, 128}, dtype, 64);
      attention_case(cases, {{{1, 4096}}, 8, 2, 256}, dtype, 64);
      attention_case(cases, {{{512, 512}}, 16, 8, 128}, dtype, 64);
      kv_write_case(cases, dtype, 512, 8, 128);
      continue;
    }
    for (const AttentionShape& shape :
         {AttentionShape{{{1, 1}}, 1, 1, 64}, AttentionShape{{{1, 63}, {1, 64}, {1, 65}, {1, 1021}}, 4, 2, 64},
          AttentionShape{{{7, 7}, {1, 131}, {64, 70}}, 6, 2, 80}, AttentionShape{{{65, 65}}, 8, 2, 256},
          AttentionShape{{{130, 130}}, 2, 1, 128}, AttentionShape{{{17, 16}, {5, 0}}, 2, 2, 80},
          AttentionShape{{{65, 100}, {1, 300}}, 3, 3, 64, 33}, AttentionShape{{{9, 40}, {1, 77}}, 4, 1, 96, 0, 3.0f},
          AttentionShape{{{1, 2053}}, 16, 2, 72}, AttentionShape{{{3, 600}}, 2, 1, 7}}) {
      attention_case(cases, shape, dtype, shape.head_dim == 80 ? 64 : 16);
    }
    kv_write_case(cases, dtype, 1, 1, 1);
    kv_write_case(cases, dtype, 7, 3, 63);
    kv_write_case(cases, dtype, 65, 2, 128);
  }
}

}  // namespace crest::ops
