#include "ops/linear_attention/causal_conv1d.h"
#include "ops/linear_attention/gated_delta.h"
#include "ops/support.h"

namespace crest::ops::testing {
namespace {

std::vector<int32_t> offsets_of(const std::vector<int64_t>& lengths) {
  std::vector<int32_t> cu = {0};
  for (const int64_t length : lengths) cu.push_back(static_cast<int32_t>(cu.back() + length));
  return cu;
}

// ---- causal convolution -------------------------------------------------------------------------------------------

struct Conv {
  int64_t channels, width;
  std::vector<int64_t> lengths;
  std::vector<int32_t> slots;
  std::vector<uint8_t> has_state;
  bool silu = true, bias = false;
};

void check_conv(const Conv& c) {
  CaseRandom random(static_cast<uint64_t>(c.channels + c.width));
  const auto cu = offsets_of(c.lengths);
  const int64_t tokens = cu.back(), stride = c.channels + 5, past = c.width - 1, pool_slots = 6;
  const auto x = random_normal(random, tokens * stride);
  const auto weight = random_normal(random, c.channels * c.width, 0.5f);
  const auto bias = random_normal(random, c.channels);
  const auto state = random_normal(random, pool_slots * past * c.channels);
  const auto run = [&](Context& context) {
    Guarded<float> out(tokens * c.channels), pool(pool_slots * past * c.channels);
    pool.fill(state);
    EXPECT_OK(causal_conv1d({.tokens = tokens,
                             .sequences = static_cast<int64_t>(c.lengths.size()),
                             .channels = c.channels,
                             .width = c.width,
                             .slots = pool_slots,
                             .silu = c.silu},
                            {.x = x.data(),
                             .x_stride = stride,
                             .weight = weight.data(),
                             .bias = c.bias ? bias.data() : nullptr,
                             .cu_seqlens = cu.data(),
                             .state_slots = c.slots.data(),
                             .has_state = c.has_state.empty() ? nullptr : c.has_state.data(),
                             .state = pool.data(),
                             .out = out.data()},
                            context));
    EXPECT_TRUE(out.intact() && pool.intact());
    auto values = out.values();
    const auto more = pool.values();
    values.insert(values.end(), more.begin(), more.end());
    return values;
  };
  TestContext test;
  const auto actual = run(test.context);
  std::vector<double> expected(actual.size());
  for (size_t i = 0; i < state.size(); ++i) expected[static_cast<size_t>(tokens * c.channels) + i] = state[i];
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    const bool fresh = !c.has_state.empty() && !c.has_state[s];
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      std::vector<double> column;  // state, then the tokens
      double* kept = expected.data() + tokens * c.channels + c.slots[s] * past * c.channels + ch;
      for (int64_t i = 0; i < past; ++i) column.push_back(fresh ? 0.0 : kept[i * c.channels]);
      for (int64_t t = cu[s]; t < cu[s + 1]; ++t) column.push_back(x[static_cast<size_t>(t * stride + ch)]);
      for (int64_t t = 0; t < c.lengths[s]; ++t) {
        double sum = c.bias ? bias[static_cast<size_t>(ch)] : 0;
        for (int64_t i = 0; i < c.width; ++i)
          sum += double{weight[static_cast<size_t>(ch * c.width + i)]} * column[static_cast<size_t>(t + i)];
        expected[static_cast<size_t>((cu[s] + t) * c.channels + ch)] = c.silu ? sum / (1 + std::exp(-sum)) : sum;
      }
      for (int64_t i = 0; i < past; ++i) kept[i * c.channels] = column[column.size() - static_cast<size_t>(past - i)];
    }
  }
  expect_close(actual.data(), expected, 1e-6, 2e-6, "causal_conv1d");
  expect_same_for_any_threads(run, "causal_conv1d");
}

TEST(CausalConv1d, FollowsTheDefinition) {
  check_conv({.channels = 1, .width = 4, .lengths = {1}, .slots = {0}, .has_state = {}});
  check_conv({.channels = 65, .width = 4, .lengths = {7, 1, 64}, .slots = {5, 0, 2}, .has_state = {}});
  check_conv({.channels = 131, .width = 4, .lengths = {2, 3, 0, 1}, .slots = {3, 1, 4, 0}, .has_state = {1, 0, 0, 1}});
  check_conv({.channels = 64,
              .width = 2,
              .lengths = {63, 65},
              .slots = {1, 0},
              .has_state = {0, 1},
              .silu = false,
              .bias = true});
  check_conv({.channels = 7, .width = 1, .lengths = {5}, .slots = {0}, .has_state = {}, .silu = false});
}

TEST(CausalConv1d, NamesWhatIsWrong) {
  const std::vector<float> x(40), w(16);
  std::vector<float> state(2 * 3 * 4), out(40);
  const int32_t cu[] = {0, 2, 4};
  const int32_t same[] = {1, 1};
  const int32_t outside[] = {0, 2};
  TestContext test;
  const CausalConv1dProblem problem{.tokens = 4, .sequences = 2, .channels = 4, .slots = 2};
  CausalConv1dArgs args{.x = x.data(),
                        .weight = w.data(),
                        .cu_seqlens = cu,
                        .state_slots = same,
                        .state = state.data(),
                        .out = out.data()};
  expect_error(causal_conv1d(problem, args, test.context), "two sequences of the batch share state slot 1");
  args.state_slots = outside;
  expect_error(causal_conv1d(problem, args, test.context), "state_slots[1] is 2, allowed: 0 to 1");
  args.out = const_cast<float*>(x.data());
  const int32_t good[] = {1, 0};
  args.state_slots = good;
  expect_error(causal_conv1d(problem, args, test.context), "out is x");
}

// ---- gates --------------------------------------------------------------------------------------------------------

TEST(DeltaGates, FollowsTheDefinition) {
  CaseRandom random(1);
  constexpr int64_t kTokens = 7, kHeads = 5;
  auto a = random_normal(random, kTokens * kHeads, 5.0f);
  auto b = random_normal(random, kTokens * kHeads, 5.0f);
  a[0] = 1e4f;
  a[1] = -1e4f;
  b[0] = 1e4f;
  b[1] = -1e4f;
  const std::vector<float> a_scale = {-1.0f, -0.01f, -16.0f, -0.5f, -3.0f};
  const std::vector<float> dt_bias = {0.0f, 1.0f, -4.0f, 0.3f, -1.0f};
  Guarded<float> g(kTokens * kHeads), beta(kTokens * kHeads);
  TestContext test;
  EXPECT_OK(delta_gates({.tokens = kTokens, .v_heads = kHeads},
                        {.a = a.data(),
                         .b = b.data(),
                         .a_scale = a_scale.data(),
                         .dt_bias = dt_bias.data(),
                         .g = g.data(),
                         .beta = beta.data()},
                        test.context));
  for (size_t i = 0; i < kTokens * kHeads; ++i) {
    const double x = double{a[i]} + dt_bias[i % kHeads];
    const double softplus = x > 40 ? x : std::log1p(std::exp(x));
    const auto index = static_cast<int64_t>(i);
    EXPECT_NEAR(g[index], a_scale[i % kHeads] * softplus, 1e-6 * std::fabs(a_scale[i % kHeads] * softplus) + 1e-30)
        << i;
    EXPECT_NEAR(beta[index], 1 / (1 + std::exp(-double{b[i]})), 2e-7);
  }
  EXPECT_TRUE(g.intact() && beta.intact());
}

// ---- gated delta rule ---------------------------------------------------------------------------------------------

struct Delta {
  int64_t k_heads = 1, v_heads = 1, k_dim = 16, v_dim = 16;
  std::vector<int64_t> lengths = {};
  std::vector<int32_t> slots = {};
  std::vector<uint8_t> has_state = {};
  HeadOrder order = HeadOrder::kGrouped;
  bool l2_norm = true;
  float decay = 1.0f;  // magnitude of g
};

class DeltaBatch {
 public:
  static constexpr int64_t kSlots = 5;

  explicit DeltaBatch(const Delta& d, uint64_t seed = 3) : delta(d), cu(offsets_of(d.lengths)) {
    CaseRandom random(seed);
    tokens = cu.back();
    width = 2 * d.k_heads * d.k_dim + d.v_heads * d.v_dim + 3;
    mixed = random_normal(random, tokens * width);
    if (!d.l2_norm) {
      for (auto& value : mixed) value *= 0.2f;
    }
    for (int64_t i = 0; i < tokens * d.v_heads; ++i) {
      g.push_back(-d.decay * random.uniform(0, 1));
      beta.push_back(random.uniform(0, 1));
    }
    state = random_normal(random, kSlots * d.v_heads * d.k_dim * d.v_dim);
  }

  GatedDeltaProblem problem() const {
    int64_t longest = 0;
    for (const int64_t length : delta.lengths) longest = std::max(longest, length);
    return {.tokens = tokens,
            .sequences = static_cast<int64_t>(delta.lengths.size()),
            .max_q_len = longest,
            .k_heads = delta.k_heads,
            .v_heads = delta.v_heads,
            .k_dim = delta.k_dim,
            .v_dim = delta.v_dim,
            .slots = kSlots,
            .order = delta.order,
            .l2_norm = delta.l2_norm};
  }
  GatedDeltaArgs args(float* pool, float* out) const {
    const int64_t q_width = delta.k_heads * delta.k_dim;
    return {.q = {mixed.data(), width, delta.k_dim},
            .k = {mixed.data() + q_width, width, delta.k_dim},
            .v = {mixed.data() + 2 * q_width, width, delta.v_dim},
            .g = g.data(),
            .beta = beta.data(),
            .cu_seqlens = cu.data(),
            .state_slots = delta.slots.data(),
            .has_state = delta.has_state.empty() ? nullptr : delta.has_state.data(),
            .state = pool,
            .out = {out}};
  }

  /// Output, then all state slots.
  std::vector<float> run(Context& context) const {
    Guarded<float> out(tokens * delta.v_heads * delta.v_dim), pool(static_cast<int64_t>(state.size()));
    pool.fill(state);
    EXPECT_OK(gated_delta(problem(), args(pool.data(), out.data()), context));
    EXPECT_TRUE(out.intact() && pool.intact());
    auto values = out.values();
    const auto more = pool.values();
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }

  /// The recurrence in double.
  std::vector<double> expected() const {
    const auto& d = delta;
    std::vector<double> out(static_cast<size_t>(tokens * d.v_heads * d.v_dim));
    std::vector<double> pool(state.begin(), state.end());
    const auto dk = static_cast<size_t>(d.k_dim), dv = static_cast<size_t>(d.v_dim);
    for (size_t s = 0; s < d.lengths.size(); ++s) {
      for (int64_t h = 0; h < d.v_heads; ++h) {
        const int64_t ratio = d.v_heads / d.k_heads;
        const int64_t k_head = d.order == HeadOrder::kGrouped ? h / ratio : h % d.k_heads;
        double* S = pool.data() + static_cast<size_t>(d.slots[s] * d.v_heads + h) * dk * dv;
        if (!d.has_state.empty() && !d.has_state[s]) std::fill(S, S + dk * dv, 0.0);
        for (int64_t t = cu[s]; t < cu[s + 1]; ++t) {
          const float* row = mixed.data() + t * width;
          std::vector<double> q(row + k_head * d.k_dim, row + (k_head + 1) * d.k_dim);
          std::vector<double> k(row + (d.k_heads + k_head) * d.k_dim, row + (d.k_heads + k_head + 1) * d.k_dim);
          const float* v = row + 2 * d.k_heads * d.k_dim + h * d.v_dim;
          if (d.l2_norm) {
            for (auto* x : {&q, &k}) {
              double squares = 0;
              for (const double value : *x) squares += value * value;
              for (double& value : *x) value /= std::sqrt(squares + double{1e-6f});
            }
          }
          const auto gate = static_cast<size_t>(t * d.v_heads + h);
          for (size_t i = 0; i < dk * dv; ++i) S[i] *= std::exp(double{g[gate]});
          for (size_t j = 0; j < dv; ++j) {
            double memory = 0;
            for (size_t i = 0; i < dk; ++i) memory += S[i * dv + j] * k[i];
            const double change = beta[gate] * (v[j] - memory);
            double sum = 0;
            for (size_t i = 0; i < dk; ++i) {
              S[i * dv + j] += k[i] * change;
              sum += S[i * dv + j] * q[i];
            }
            out[gate * dv + j] = sum / std::sqrt(static_cast<double>(d.k_dim));
          }
        }
      }
    }
    out.insert(out.end(), pool.begin(), pool.end());
    return out;
  }

  Delta delta;
  std::vector<int32_t> cu;
  int64_t tokens = 0, width = 0;
  std::vector<float> mixed, g, beta, state;
};

void check_delta(const Delta& delta) {
  const DeltaBatch batch(delta);
  const auto expected = batch.expected();
  for (const char* kernel : {"recurrent", "chunked"}) {
    TestContext test;
    test.overrides.force("gated_delta", {kernel});
    const auto actual = batch.run(test.context);
    ASSERT_NO_FATAL_FAILURE(expect_close(actual.data(), expected, 1e-5, 1e-5, kernel));
  }
}

TEST(GatedDelta, BothFormsFollowTheRecurrenceInDouble) {
  for (const int64_t length : {1, 7, 15, 16, 17, 63, 64, 65, 131, 257}) {
    check_delta({.lengths = {length}, .slots = {0}});
    check_delta({.k_dim = 7, .v_dim = 5, .lengths = {length}, .slots = {4}, .has_state = {0}, .l2_norm = false});
  }
  check_delta({.k_heads = 2, .v_heads = 6, .k_dim = 128, .v_dim = 128, .lengths = {70}, .slots = {1}});
}

TEST(GatedDelta, HeadOrders) {
  for (const HeadOrder order : {HeadOrder::kGrouped, HeadOrder::kTiled}) {
    check_delta({.k_heads = 2,
                 .v_heads = 6,
                 .k_dim = 8,
                 .v_dim = 12,
                 .lengths = {20, 1, 0, 65},
                 .slots = {3, 0, 1, 2},
                 .has_state = {1, 0, 0, 1},
                 .order = order});
  }
}

// A decay from differences of sums: exp(G_i) * exp(-G_j) would be 0 * infinity here, and long prompts would give NaN.
TEST(GatedDelta, StrongDecaysStayFinite) {
  for (const float decay : {1e-3f, 30.0f, 1e4f, 1e30f})
    check_delta({.k_heads = 1, .v_heads = 2, .lengths = {200}, .slots = {0}, .decay = decay});
  DeltaBatch batch({.lengths = {130}, .slots = {0}});
  for (auto& g : batch.g) g = -INFINITY;
  for (const char* kernel : {"recurrent", "chunked"}) {
    TestContext test;
    test.overrides.force("gated_delta", {kernel});
    for (const float value : batch.run(test.context)) ASSERT_TRUE(std::isfinite(value)) << kernel;
  }
}

TEST(GatedDelta, ZeroVectorsAreHarmless) {
  DeltaBatch batch({.lengths = {70}, .slots = {0}});
  std::fill(batch.mixed.begin(), batch.mixed.end(), 0.0f);
  const auto expected = batch.expected();
  for (const char* kernel : {"recurrent", "chunked"}) {
    TestContext test;
    test.overrides.force("gated_delta", {kernel});
    expect_close(batch.run(test.context).data(), expected, 1e-5, 1e-6, kernel);
  }
}

TEST(GatedDelta, SameBitsForAnyThreadsAndAnyPacking) {
  const Delta all{.k_heads = 2, .v_heads = 4, .lengths = {1, 70, 15, 64, 7}, .slots = {2, 0, 4, 1, 3}};
  const DeltaBatch batch(all);
  expect_same_for_any_threads([&](Context& context) { return batch.run(context); }, "gated_delta");
  TestContext test;
  const auto together = batch.run(test.context);
  const int64_t out_width = 4 * 16, state_size = 4 * 16 * 16;
  for (size_t s = 0; s < all.lengths.size(); ++s) {
    DeltaBatch alone({.k_heads = 2, .v_heads = 4, .lengths = {all.lengths[s]}, .slots = {all.slots[s]}});
    alone.state = batch.state;
    alone.mixed.assign(batch.mixed.begin() + batch.cu[s] * batch.width,
                       batch.mixed.begin() + batch.cu[s + 1] * batch.width);
    alone.g.assign(batch.g.begin() + batch.cu[s] * 4, batch.g.begin() + batch.cu[s + 1] * 4);
    alone.beta.assign(batch.beta.begin() + batch.cu[s] * 4, batch.beta.begin() + batch.cu[s + 1] * 4);
    const auto single = alone.run(test.context);
    EXPECT_EQ(std::memcmp(single.data(), together.data() + batch.cu[s] * out_width,
                          static_cast<size_t>(alone.tokens * out_width) * 4),
              0)
        << s;
    EXPECT_EQ(std::memcmp(single.data() + alone.tokens * out_width + all.slots[s] * state_size,
                          together.data() + batch.tokens * out_width + all.slots[s] * state_size, state_size * 4),
              0)
        << s;
  }
}

// A prompt in pieces: the state carries everything.
TEST(GatedDelta, PiecesEqualTheWhole) {
  const DeltaBatch whole({.k_heads = 1, .v_heads = 2, .lengths = {150}, .slots = {1}, .has_state = {0}});
  const auto expected = whole.expected();
  for (const int64_t piece : {1, 7, 64, 65, 150}) {
    Guarded<float> out(150 * 32), pool(static_cast<int64_t>(whole.state.size()));
    pool.fill(whole.state);
    TestContext test;
    for (int64_t begin = 0; begin < 150; begin += piece) {
      const int64_t count = std::min<int64_t>(piece, 150 - begin);
      auto problem = whole.problem();
      problem.tokens = problem.max_q_len = count;
      auto args = whole.args(pool.data(), out.data() + begin * 32);
      for (HeadsView* view : {&args.q, &args.k, &args.v}) view->data += begin * whole.width;
      args.g += begin * 2;
      args.beta += begin * 2;
      const int32_t cu[] = {0, static_cast<int32_t>(count)};
      const uint8_t has_state[] = {begin > 0};
      args.cu_seqlens = cu;
      args.has_state = has_state;
      EXPECT_OK(gated_delta(problem, args, test.context));
    }
    expect_close(out.data(), std::vector<double>(expected.begin(), expected.begin() + 150 * 32), 1e-5, 1e-5, "pieces");
  }
}

}  // namespace
}  // namespace crest::ops::testing
