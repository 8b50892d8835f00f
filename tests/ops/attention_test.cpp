#include "ops/attention/attention.h"

#include "ops/support.h"

namespace crest::ops::testing {
namespace {

using tensor::DType;

struct Sequence {
  int64_t q_len, kv_len;
};

struct Setting {
  std::vector<Sequence> sequences;
  int64_t q_heads = 1, kv_heads = 1, head_dim = 64, value_dim = 64;
  bool causal = true;
  int64_t window = 0;
  float soft_cap = 0;
};

/// Packed batch with random q, k, v; keys are given packed and, for the paged form, written into a shuffled pool.
class Batch {
 public:
  explicit Batch(const Setting& s, uint64_t seed = 1) : setting(s) {
    CaseRandom random(seed);
    cu_q.push_back(0);
    cu_k.push_back(0);
    for (const auto& [q_len, kv_len] : s.sequences) {
      cu_q.push_back(static_cast<int32_t>(cu_q.back() + q_len));
      cu_k.push_back(static_cast<int32_t>(cu_k.back() + kv_len));
      kv_lens.push_back(static_cast<int32_t>(kv_len));
      max_q = std::max(max_q, q_len);
      max_kv = std::max(max_kv, kv_len);
    }
    q = random_normal(random, cu_q.back() * s.q_heads * s.head_dim);
    k = random_normal(random, cu_k.back() * s.kv_heads * s.head_dim);
    v = random_normal(random, cu_k.back() * s.kv_heads * s.value_dim);
  }

  AttentionProblem problem(DType dtype, bool paged) const {
    return {.tokens = cu_q.back(),
            .sequences = static_cast<int64_t>(kv_lens.size()),
            .q_heads = setting.q_heads,
            .kv_heads = setting.kv_heads,
            .head_dim = setting.head_dim,
            .value_dim = setting.value_dim,
            .max_q_len = max_q,
            .max_kv_len = max_kv,
            .scale = scale(),
            .causal = setting.causal,
            .window = setting.window,
            .soft_cap = setting.soft_cap,
            .kv_dtype = dtype,
            .paged = paged};
  }
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(setting.head_dim))); }
  int64_t tokens() const { return cu_q.back(); }

  /// out, then lse.
  std::vector<float> run_packed(Context& context) const {
    return run(problem(DType::kF32, false), {.cu_seqlens_k = cu_k.data()}, context);
  }

  std::vector<float> run_paged(DType dtype, Context& context, std::vector<float>* stored_k = nullptr,
                               std::vector<float>* stored_v = nullptr) const {
    constexpr int64_t kPage = 16;
    const int64_t stride = max_kv / kPage + 2;
    const auto sequences = static_cast<int64_t>(kv_lens.size());
    const int64_t pages = stride * sequences + 1;
    Guarded<float> k_data(pages * kPage * setting.kv_heads * setting.head_dim),
        v_data(pages * kPage * setting.kv_heads * setting.value_dim);
    Guarded<float> k_scales(pages * kPage * setting.kv_heads), v_scales(pages * kPage * setting.kv_heads);
    const KvPool k_pool{.dtype = dtype,
                        .pages = pages,
                        .page_size = kPage,
                        .kv_heads = setting.kv_heads,
                        .head_dim = setting.head_dim,
                        .data = reinterpret_cast<std::byte*>(k_data.data()),
                        .scales = k_scales.data()};
    const KvPool v_pool{.dtype = dtype,
                        .pages = pages,
                        .page_size = kPage,
                        .kv_heads = setting.kv_heads,
                        .head_dim = setting.value_dim,
                        .data = reinterpret_cast<std::byte*>(v_data.data()),
                        .scales = v_scales.data()};
    // Pages lie scattered; entries behind a sequence's keys are garbage that must not be followed.
    std::vector<int32_t> table(static_cast<size_t>(sequences * stride), 123456789);
    std::vector<int64_t> slots;
    int32_t next = static_cast<int32_t>(pages - 1);
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t length = kv_lens[static_cast<size_t>(s)];
      for (int64_t p = 0; p * kPage < length; ++p) table[static_cast<size_t>(s * stride + p)] = next--;
      for (int64_t j = 0; j < length; ++j)
        slots.push_back(table[static_cast<size_t>(s * stride + j / kPage)] * kPage + j % kPage);
    }
    const int64_t keys = cu_k.back();
    const KvWriteProblem write_k{
        .tokens = keys, .kv_heads = setting.kv_heads, .head_dim = setting.head_dim, .dtype = dtype};
    const KvWriteProblem write_v{
        .tokens = keys, .kv_heads = setting.kv_heads, .head_dim = setting.value_dim, .dtype = dtype};
    EXPECT_OK(kv_write(write_k, {.src = {k.data()}, .pool = &k_pool, .slot_mapping = slots.data()}, context));
    EXPECT_OK(kv_write(write_v, {.src = {v.data()}, .pool = &v_pool, .slot_mapping = slots.data()}, context));
    if (stored_k != nullptr) {
      stored_k->resize(k.size());
      stored_v->resize(v.size());
      EXPECT_OK(kv_read(write_k, {.pool = &k_pool, .slot_mapping = slots.data(), .dst = {stored_k->data()}}, context));
      EXPECT_OK(kv_read(write_v, {.pool = &v_pool, .slot_mapping = slots.data(), .dst = {stored_v->data()}}, context));
    }
    AttentionArgs args{.k_pool = &k_pool, .v_pool = &v_pool, .page_table = table.data(), .page_table_stride = stride};
    return run(problem(dtype, true), args, context);
  }

  /// By definition, in double: out then lse.
  std::vector<double> expected(const std::vector<float>& keys, const std::vector<float>& values) const {
    const auto& s = setting;
    std::vector<double> out(static_cast<size_t>(tokens() * s.q_heads * s.value_dim), 0.0);
    std::vector<double> lse(static_cast<size_t>(tokens() * s.q_heads), -INFINITY);
    for (size_t seq = 0; seq < kv_lens.size(); ++seq) {
      const int64_t q_len = cu_q[seq + 1] - cu_q[seq];
      for (int64_t i = 0; i < q_len; ++i) {
        const int64_t position = kv_lens[seq] - q_len + i;
        for (int64_t h = 0; h < s.q_heads; ++h) {
          const int64_t kv_head = h / (s.q_heads / s.kv_heads);
          const int64_t row = (cu_q[seq] + i) * s.q_heads + h;
          std::vector<std::pair<int64_t, double>> scores;
          for (int64_t j = 0; j < kv_lens[seq]; ++j) {
            if (s.causal && j > position) continue;
            if (s.window > 0 && std::abs(position - j) >= s.window) continue;
            double score = 0;
            for (int64_t d = 0; d < s.head_dim; ++d) {
              score += double{q[static_cast<size_t>(row * s.head_dim + d)]} *
                       keys[static_cast<size_t>(((cu_k[seq] + j) * s.kv_heads + kv_head) * s.head_dim + d)];
            }
            score *= scale();
            if (s.soft_cap > 0) score = s.soft_cap * std::tanh(score / s.soft_cap);
            scores.emplace_back(j, score);
          }
          if (scores.empty()) continue;
          double sum = 0;
          for (const auto& [j, score] : scores) sum += std::exp(score);
          lse[static_cast<size_t>(row)] = std::log(sum);
          for (const auto& [j, score] : scores) {
            for (int64_t d = 0; d < s.value_dim; ++d) {
              out[static_cast<size_t>(row * s.value_dim + d)] +=
                  std::exp(score) / sum *
                  values[static_cast<size_t>(((cu_k[seq] + j) * s.kv_heads + kv_head) * s.value_dim + d)];
            }
          }
        }
      }
    }
    out.insert(out.end(), lse.begin(), lse.end());
    return out;
  }

  Setting setting;
  std::vector<int32_t> cu_q, cu_k, kv_lens;
  std::vector<float> q, k, v;
  int64_t max_q = 0, max_kv = 0;

 private:
  std::vector<float> run(const AttentionProblem& problem, AttentionArgs args, Context& context) const {
    Guarded<float> out(tokens() * setting.q_heads * setting.value_dim), lse(tokens() * setting.q_heads);
    args.q = {q.data()};
    args.cu_seqlens = cu_q.data();
    args.kv_lens = kv_lens.data();
    args.k = {k.data()};
    args.v = {v.data()};
    args.out = {out.data()};
    args.lse = lse.data();
    EXPECT_OK(attention(problem, args, context));
    EXPECT_TRUE(out.intact() && lse.intact());
    auto values = out.values();
    const auto more = lse.values();
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }
};

void expect_attention(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isinf(expected[i])) {
      ASSERT_EQ(actual[i], -INFINITY) << i;
    } else {
      ASSERT_NEAR(actual[i], expected[i], 4e-6) << i;  // values and scores of order 1
    }
  }
}

void check_setting(const Setting& setting) {
  const Batch batch(setting);
  TestContext test;
  const auto exact = batch.expected(batch.k, batch.v);
  expect_attention(batch.run_packed(test.context), exact);
  expect_attention(batch.run_paged(DType::kF32, test.context), exact);
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kI8}) {
    std::vector<float> k, v;
    const auto out = batch.run_paged(dtype, test.context, &k, &v);
    expect_attention(out, batch.expected(k, v));
  }
}

TEST(Attention, FollowsTheDefinition) {
  check_setting({.sequences = {{1, 1}}});
  check_setting({.sequences = {{7, 7}, {1, 63}, {64, 64}, {65, 131}}, .q_heads = 4, .kv_heads = 2});
  check_setting({.sequences = {{3, 65}}, .q_heads = 6, .kv_heads = 1, .head_dim = 80, .value_dim = 48});
  check_setting({.sequences = {{13, 40}, {1, 17}},
                 .q_heads = 3,
                 .kv_heads = 3,
                 .head_dim = 256,
                 .value_dim = 256,
                 .causal = false});
}

TEST(Attention, SlidingWindowAndSoftCap) {
  for (const int64_t window : {1, 7, 16, 1000}) {
    check_setting({.sequences = {{65, 65}, {1, 64}, {9, 70}}, .q_heads = 2, .kv_heads = 1, .window = window});
    check_setting({.sequences = {{10, 40}}, .causal = false, .window = window});
  }
  check_setting({.sequences = {{33, 50}}, .q_heads = 2, .kv_heads = 2, .soft_cap = 2.0f});
}

// More queries than keys, bottom-right aligned. Early rows see nothing: zeros and -infinity, never stale memory.
TEST(Attention, QueriesThatSeeNoKeyGiveZeros) {
  for (const Setting& setting :
       {Setting{.sequences = {{17, 16}}, .head_dim = 80, .value_dim = 80},
        Setting{.sequences = {{256, 32}}, .head_dim = 80, .value_dim = 80},
        Setting{.sequences = {{40, 20}, {5, 0}, {3, 3}}, .q_heads = 2, .kv_heads = 1, .window = 4}}) {
    check_setting(setting);
    const Batch batch(setting);
    TestContext test;
    const auto first = batch.run_packed(test.context);
    const auto [q_len, kv_len] = setting.sequences[0];
    const int64_t unseen = (q_len - kv_len) * setting.q_heads * setting.value_dim;
    for (int64_t i = 0; i < unseen; ++i) ASSERT_EQ(first[static_cast<size_t>(i)], 0.0f);
    for (int repeat = 0; repeat < 10; ++repeat) {
      const auto again = batch.run_packed(test.context);
      ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0);
    }
  }
}

TEST(Attention, SameBitsForAnyThreadsAndAnyPacking) {
  const Setting all{.sequences = {{7, 40}, {1, 64}, {33, 33}, {2, 5}}, .q_heads = 4, .kv_heads = 2, .window = 20};
  const Batch batch(all);
  expect_same_for_any_threads([&](Context& context) { return batch.run_packed(context); }, "attention");
  TestContext test;
  const auto together = batch.run_paged(DType::kI8, test.context);
  for (size_t s = 0; s < all.sequences.size(); ++s) {
    Batch alone({.sequences = {all.sequences[s]}, .q_heads = 4, .kv_heads = 2, .window = 20});
    const auto slice = [&](const std::vector<float>& from, int64_t begin, int64_t end, int64_t width) {
      return std::vector<float>(from.begin() + begin * width, from.begin() + end * width);
    };
    alone.q = slice(batch.q, batch.cu_q[s], batch.cu_q[s + 1], 4 * 64);
    alone.k = slice(batch.k, batch.cu_k[s], batch.cu_k[s + 1], 2 * 64);
    alone.v = slice(batch.v, batch.cu_k[s], batch.cu_k[s + 1], 2 * 64);
    const auto single = alone.run_paged(DType::kI8, test.context);
    const int64_t width = 4 * 64;
    EXPECT_EQ(std::memcmp(single.data(), together.data() + batch.cu_q[s] * width,
                          static_cast<size_t>(alone.tokens() * width) * sizeof(float)),
              0)
        << "sequence " << s;
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Batch batch({.sequences = {{1, 3}}, .head_dim = 4, .value_dim = 4});
  batch.q = {1e4f, 0, 0, 0};
  batch.k = {1e4f, 0, 0, 0, -1e4f, 0, 0, 0, 1e4f, 0, 0, 0};
  TestContext test;
  const auto out = batch.run_packed(test.context);
  for (size_t d = 0; d < 4; ++d) EXPECT_NEAR(out[d], (batch.v[d] + batch.v[8 + d]) / 2, 1e-6);
}

TEST(Attention, NamesWhatIsWrong) {
  const Batch batch({.sequences = {{2, 20}}, .q_heads = 2, .kv_heads = 2, .head_dim = 4, .value_dim = 4});
  TestContext test;
  std::vector<float> out(16);
  AttentionArgs args{.q = {batch.q.data()},
                     .cu_seqlens = batch.cu_q.data(),
                     .kv_lens = batch.kv_lens.data(),
                     .k = {batch.k.data()},
                     .v = {batch.v.data()},
                     .cu_seqlens_k = batch.cu_k.data(),
                     .out = {out.data()}};
  const auto good = batch.problem(DType::kF32, false);
  const auto error = [&](auto change) {
    auto problem = good;
    change(problem);
    return message_of(attention(problem, args, test.context));
  };
  EXPECT_EQ(error([](auto&) {}), "(no error)");
  EXPECT_NE(error([](auto& p) { p.q_heads = 3; }).find("q_heads is 3, allowed: multiples of the 2 kv_heads"),
            std::string::npos);
  EXPECT_NE(error([](auto& p) { p.max_kv_len = 19; }).find("kv_lens is 20, allowed: 0 to 19"), std::string::npos);
  EXPECT_NE(error([](auto& p) { p.scale = NAN; }).find("scale is nan"), std::string::npos);
  EXPECT_NE(error([](auto& p) { p.tokens = 3; }).find("cu_seqlens[1] is 2, but there are 3 tokens"), std::string::npos);
  EXPECT_NE(error([](auto& p) { p.kv_dtype = DType::kF16; }).find("packed keys are F16"), std::string::npos);

  std::vector<float> data(4 * 16 * 2 * 4);
  const KvPool pool{
      .pages = 4, .page_size = 16, .kv_heads = 2, .head_dim = 4, .data = reinterpret_cast<std::byte*>(data.data())};
  const int32_t table[] = {3, 4};
  args.k_pool = args.v_pool = &pool;
  args.page_table = table;
  args.page_table_stride = 2;
  EXPECT_NE(error([](auto& p) { p.paged = true; }).find("page 1 of sequence 0 is 4, allowed: 0 to 3"),
            std::string::npos);
  args.page_table_stride = 1;
  EXPECT_NE(error([](auto& p) { p.paged = true; }).find("has 20 keys, but its page table only 1 pages of 16"),
            std::string::npos);
}

}  // namespace
}  // namespace crest::ops::testing
