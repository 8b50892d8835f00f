#include "ops/kv_cache/kv_cache.h"

#include "ops/support.h"
#include "tensor/half.h"

namespace crest::ops::testing {
namespace {

using tensor::DType;

struct TestPool {
  Guarded<uint8_t> data;
  Guarded<float> scales;
  KvPool pool;
  TestPool(DType dtype, int64_t pages, int64_t page_size, int64_t heads, int64_t dim)
      : data(pages * page_size * heads * dim * tensor::info(dtype).block_bytes),
        scales(dtype == DType::kI8 ? pages * page_size * heads : 0) {
    pool = {.dtype = dtype,
            .pages = pages,
            .page_size = page_size,
            .kv_heads = heads,
            .head_dim = dim,
            .data = reinterpret_cast<std::byte*>(data.data()),
            .scales = dtype == DType::kI8 ? scales.data() : nullptr};
  }
};

float stored(DType dtype, float value, float largest) {
  switch (dtype) {
    case DType::kF16:
      return tensor::f16_to_f32(tensor::f32_to_f16(std::min(65504.0f, std::max(-65504.0f, value))));
    case DType::kBF16:
      return tensor::bf16_to_f32(tensor::f32_to_bf16(value));
    case DType::kI8: {
      const float scale = largest / 127.0f;
      return scale == 0 ? 0 : std::nearbyint(value / scale) * scale;
    }
    default:
      return value;
  }
}

class KvCacheOfType : public ::testing::TestWithParam<DType> {};

TEST_P(KvCacheOfType, ReadsWhatItWroteAndTouchesNothingElse) {
  const DType dtype = GetParam();
  CaseRandom random(1);
  for (const auto& [tokens, heads, dim] : {std::array<int64_t, 3>{1, 1, 1}, {7, 3, 63}, {33, 2, 64}, {20, 5, 256}}) {
    TestPool p(dtype, 5, 16, heads, dim);
    const auto src = random_normal(random, tokens * (heads * dim + 3), 10.0f);
    std::vector<int64_t> slots;
    for (int64_t i = 0; i < tokens; ++i) slots.push_back((i * 29 + 3) % 80);
    if (tokens > 2) slots[1] = -1;
    const auto untouched = p.data.values();
    TestContext test(3);
    const KvWriteProblem problem{.tokens = tokens, .kv_heads = heads, .head_dim = dim, .dtype = dtype};
    const HeadsView view{src.data(), heads * dim + 3, dim};
    EXPECT_OK(kv_write(problem, {.src = view, .pool = &p.pool, .slot_mapping = slots.data()}, test.context));
    EXPECT_TRUE(p.data.intact() && p.scales.intact());

    Guarded<float> back(tokens * heads * dim);
    EXPECT_OK(kv_read(problem, {.pool = &p.pool, .slot_mapping = slots.data(), .dst = {back.data()}}, test.context));
    EXPECT_TRUE(back.intact());
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        const float* x = src.data() + t * view.token_stride + h * dim;
        float largest = 0;
        for (int64_t i = 0; i < dim; ++i) largest = std::max(largest, std::fabs(x[i]));
        for (int64_t i = 0; i < dim; ++i) {
          const float expected = slots[static_cast<size_t>(t)] < 0 ? 0 : stored(dtype, x[i], largest);
          ASSERT_EQ(back[(t * heads + h) * dim + i], expected)
              << tensor::name(dtype) << " " << t << " " << h << " " << i;
        }
      }
    }
    // Slots that were not named keep their bytes.
    const int64_t vector_bytes = dim * p.pool.element_bytes();
    for (int64_t slot = 0; slot < 80; ++slot) {
      if (std::find(slots.begin(), slots.end(), slot) != slots.end()) continue;
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t begin = p.pool.vector_index(slot / 16, h, slot % 16) * vector_bytes;
        ASSERT_EQ(std::memcmp(p.data.data() + begin, untouched.data() + begin, static_cast<size_t>(vector_bytes)), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KvCacheOfType, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kI8),
                         [](const auto& info) { return std::string(tensor::name(info.param)); });

TEST(KvWrite, HandlesExtremes) {
  const int64_t slot = 0;
  TestContext test;
  const std::vector<float> large = {1e6f, -1e6f, 65504.0f, 1e-8f};
  TestPool half(DType::kF16, 1, 16, 1, 4);
  const KvWriteProblem f16{.tokens = 1, .kv_heads = 1, .head_dim = 4, .dtype = DType::kF16};
  EXPECT_OK(kv_write(f16, {.src = {large.data()}, .pool = &half.pool, .slot_mapping = &slot}, test.context));
  float back[4];
  EXPECT_OK(kv_read(f16, {.pool = &half.pool, .slot_mapping = &slot, .dst = {back}}, test.context));
  EXPECT_EQ(back[0], 65504.0f);
  EXPECT_EQ(back[1], -65504.0f);

  TestPool bytes(DType::kI8, 1, 16, 1, 4);
  const KvWriteProblem i8{.tokens = 1, .kv_heads = 1, .head_dim = 4, .dtype = DType::kI8};
  for (const std::vector<float>& x : {std::vector<float>{0, 0, 0, 0},
                                      {1e-40f, 0, 0, 0},
                                      {3e38f, -3e38f, 1, 0},
                                      {NAN, 1, 2, 3},
                                      {INFINITY, 1, 2, 3}}) {
    EXPECT_OK(kv_write(i8, {.src = {x.data()}, .pool = &bytes.pool, .slot_mapping = &slot}, test.context));
    EXPECT_OK(kv_read(i8, {.pool = &bytes.pool, .slot_mapping = &slot, .dst = {back}}, test.context));
    for (size_t i = 0; i < 4; ++i) {
      if (std::isfinite(x[0])) {
        EXPECT_NEAR(back[i], x[i], std::fabs(x[0]) / 127) << x[0];
      } else {
        EXPECT_TRUE(std::isnan(back[i])) << "a broken vector must stay visible";
      }
    }
  }
}

TEST(KvWrite, NamesWhatIsWrong) {
  TestContext test;
  TestPool p(DType::kF32, 2, 16, 1, 4);
  const std::vector<float> src(8);
  const int64_t slots[] = {3, 32};
  const KvWriteProblem problem{.tokens = 2, .kv_heads = 1, .head_dim = 4};
  const KvWriteArgs args{.src = {src.data()}, .pool = &p.pool, .slot_mapping = slots};
  expect_error(kv_write(problem, args, test.context), "slot_mapping[1] is 32, allowed: -1 to 31");
  KvPool other = p.pool;
  other.page_size = 24;
  expect_error(kv_write(problem, {.src = {src.data()}, .pool = &other, .slot_mapping = slots}, test.context),
               "page_size is 24, allowed: multiples of 16");
  other = p.pool;
  other.dtype = DType::kQ8_0;
  expect_error(kv_write(problem, {.src = {src.data()}, .pool = &other, .slot_mapping = slots}, test.context),
               "type is Q8_0, allowed: F32, F16, BF16, I8");
  other = p.pool;
  other.pages = int64_t{1} << 31;
  other.page_size = 1 << 20;
  other.head_dim = 1 << 20;
  expect_error(check(other), "do not fit in memory");
  expect_error(kv_write({.tokens = 2, .kv_heads = 2, .head_dim = 4}, args, test.context),
               "kv_heads is 2, allowed: 1 to 1");
}

}  // namespace
}  // namespace crest::ops::testing
