#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "testing/model_data.h"

// Seven models with random weights, one for each architecture, against what transformers computes in fp32 from the same
// weights. Random weights leave no error hidden: every norm, bias and gate differs from one or zero.
namespace crest::engine {
namespace {

using testing::row;

// Share of the logits' standard deviation; two fp32 implementations that sum in different orders differ by 3e-5.
constexpr double kTolerance = 1e-4;
constexpr int64_t kGreedyPrompt = 70;

class MicroOracle : public ::testing::TestWithParam<const char*> {
 protected:
  MicroOracle() : folder_(testing::test_data(std::string("micro/") + GetParam())), oracle_(folder_ / "oracle") {}

  std::unique_ptr<Engine> load(EngineOptions options = {}) {
    options.kv_type = KvType::kF32;
    options.context_length = 512;
    options.mtp_cache = oracle_.has("mtp_logits");
    auto engine = Engine::load(folder_, options);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return engine.ok() ? std::move(*engine) : nullptr;
  }

  void expect_rows_close(std::span<const float> found, std::span<const float> wanted, int64_t width,
                         const std::string& what) {
    ASSERT_EQ(found.size(), wanted.size()) << what;
    double worst = 0;
    int64_t worst_row = 0;
    for (int64_t i = 0; i * width < std::ssize(wanted); ++i) {
      const auto expected = row(wanted, i, width);
      const double share =
          testing::largest_difference(row(found, i, width), expected) / testing::standard_deviation(expected);
      if (!(share <= worst)) {
        worst = share;
        worst_row = i;
      }
    }
    EXPECT_LE(worst, kTolerance) << what << ", row " << worst_row;
    std::printf("%s %s: largest difference %.2g of the standard deviation\n", GetParam(), what.c_str(), worst);
  }

  std::filesystem::path folder_;
  testing::OracleFolder oracle_;
};

TEST_P(MicroOracle, LogitsHiddenStatesAndMtpHead) {
  const auto engine = load();
  ASSERT_TRUE(engine);
  const auto ids = oracle_.ids("ids");
  const bool mtp = oracle_.has("mtp_logits");
  EXPECT_EQ(engine->model().has_mtp(), mtp);
  const auto result = evaluate(*engine, ids, {.hidden = true, .mtp = mtp});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const int64_t vocab = engine->model().vocab_size();
  expect_rows_close(result->logits, oracle_.floats("logits"), vocab, "logits");
  if (mtp) expect_rows_close(result->mtp_logits, oracle_.floats("mtp_logits"), vocab, "mtp logits");

  const auto hidden = oracle_.floats("hidden");
  const auto shape = oracle_.shape("hidden");
  ASSERT_EQ(shape[0], std::ssize(engine->model().config().layers) + 1);
  for (int64_t layer = 0; layer < shape[0]; ++layer) {
    const std::span<const float> found(result->hidden.data() + layer * std::ssize(ids) * shape[2],
                                       static_cast<size_t>(shape[1] * shape[2]));
    const std::span<const float> wanted(hidden.data() + layer * shape[1] * shape[2], found.size());
    expect_rows_close(found, wanted, shape[2], "hidden " + std::to_string(layer));
  }
}

TEST_P(MicroOracle, GreedyContinuation) {
  const auto engine = load();
  ASSERT_TRUE(engine);
  auto ids = oracle_.ids("ids");
  ids.resize(kGreedyPrompt);
  const auto sequence = engine->create_sequence();
  ASSERT_TRUE(sequence.ok());
  std::vector<float> logits(static_cast<size_t>(engine->model().vocab_size()));
  std::vector<int32_t> found, next = ids;
  const auto wanted = oracle_.ids("greedy");
  while (found.size() < wanted.size()) {
    const StepItem item{.sequence = sequence->get(), .tokens = next, .logits = logits.data()};
    const auto status = engine->step({&item, 1});
    ASSERT_TRUE(status.ok()) << status.error().message;
    next = {static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin())};
    found.push_back(next.front());
  }
  EXPECT_EQ(found, wanted);
}

// Kind of fault (llama.cpp #27237, #17578, #28211): results depend on how a prompt is cut into chunks.
TEST_P(MicroOracle, AnyChunkSizeGivesTheSame) {
  const auto engine = load();
  ASSERT_TRUE(engine);
  const auto ids = oracle_.ids("ids");
  const bool mtp = engine->model().has_mtp();
  const int64_t vocab = engine->model().vocab_size();
  const auto whole = evaluate(*engine, ids, {.chunk_size = 150, .mtp = mtp});
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  for (const int64_t chunk : {1, 7, 64, 65}) {
    const auto parts = evaluate(*engine, ids, {.chunk_size = chunk, .mtp = mtp});
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    expect_rows_close(parts->logits, whole->logits, vocab, "chunks of " + std::to_string(chunk));
    if (mtp) expect_rows_close(parts->mtp_logits, whole->mtp_logits, vocab, "mtp, chunks of " + std::to_string(chunk));
  }
}

// Kind of fault (llama.cpp PR#27537, transformers #46093): sequences packed into one batch see each other's state or
// keys. What each gets must be what it gets alone, bit for bit.
TEST_P(MicroOracle, PackedSequencesEqualSeparateRuns) {
  const auto engine = load({.sequences = 4});
  ASSERT_TRUE(engine);
  const auto ids = oracle_.ids("ids");
  const auto vocab = static_cast<size_t>(engine->model().vocab_size());
  // Rounds: prompts of different lengths; one token each; pieces of other lengths in another order.
  constexpr size_t kSequences = 3;
  constexpr size_t kCounts[kSequences][3] = {{65, 1, 5}, {1, 1, 70}, {33, 1, 1}};
  const auto piece = [&](size_t s, const Sequence& sequence, size_t round) {
    return std::span(ids).subspan(s * 13 + static_cast<size_t>(sequence.length()), kCounts[s][round]);
  };
  std::vector<float> alone[kSequences][3];
  for (size_t s = 0; s < kSequences; ++s) {
    const auto sequence = engine->create_sequence();
    for (size_t round = 0; round < 3; ++round) {
      auto& logits = alone[s][round];
      logits.resize(kCounts[s][round] * vocab);
      const StepItem item{.sequence = sequence->get(),
                          .tokens = piece(s, **sequence, round),
                          .all_logits = true,
                          .logits = logits.data()};
      ASSERT_TRUE(engine->step({&item, 1}).ok());
    }
  }
  // A sequence that is there but takes no part: the active ones are not the first slots and pages.
  const auto idle = engine->create_sequence();
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (size_t s = 0; s < kSequences; ++s) sequences.push_back(std::move(*engine->create_sequence()));
  for (size_t round = 0; round < 3; ++round) {
    std::vector<StepItem> items;
    std::vector<std::vector<float>> logits(kSequences);
    for (size_t i = 0; i < kSequences; ++i) {
      const size_t s = round == 2 ? kSequences - 1 - i : i;
      logits[s].resize(kCounts[s][round] * vocab);
      items.push_back({.sequence = sequences[s].get(),
                       .tokens = piece(s, *sequences[s], round),
                       .all_logits = true,
                       .logits = logits[s].data()});
    }
    const auto status = engine->step(items);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (size_t s = 0; s < kSequences; ++s)
      EXPECT_EQ(logits[s], alone[s][round]) << "sequence " << s << ", round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MicroOracle,
                         ::testing::Values("llama", "qwen2", "qwen3", "qwen3_moe", "gemma3", "qwen3_5", "qwen3_5_moe"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace crest::engine
