#include "engine/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/collect_imatrix.h"
#include "testing/model_data.h"

namespace crest::engine {
namespace {

std::unique_ptr<Engine> load(const std::string& name, EngineOptions options = {}) {
  options.context_length = 256;
  options.kv_type = KvType::kF32;
  auto engine = Engine::load(testing::test_data("micro/" + name), options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  return std::move(*engine);
}

std::vector<int32_t> oracle_ids() { return testing::OracleFolder(testing::test_data("micro/llama/oracle")).ids("ids"); }

double log_probability(std::span<const float> logits, int32_t id) {
  double max = -INFINITY, sum = 0;
  for (const float logit : logits) max = std::max<double>(max, logit);
  for (const float logit : logits) sum += std::exp(logit - max);
  return logits[static_cast<size_t>(id)] - max - std::log(sum);
}

TEST(Evaluate, LikelihoodAndComparisonByDefinition) {
  const auto first = load("qwen3_5", {.chunk_size = 16});
  const auto second = load("qwen3", {.chunk_size = 64});
  const auto ids = oracle_ids();
  const TokenRows rows = {{ids.begin(), ids.begin() + 50}, {ids.begin() + 50, ids.begin() + 90}};
  for (const int64_t skip : {0, 1, 20}) {
    double nll = 0, divergence = 0, largest = 0;
    int64_t count = 0, agree = 0;
    std::vector<double> row_nll;
    for (const auto& row : rows) {
      const auto p = evaluate(*first, row, {}), q = evaluate(*second, row, {});
      double in_row = 0;
      int64_t row_count = 0;
      for (int64_t t = std::max<int64_t>(skip, 1); t < std::ssize(row); ++t) {
        const auto a = testing::row(p->logits, t - 1, 512), b = testing::row(q->logits, t - 1, 512);
        in_row -= log_probability(a, row[static_cast<size_t>(t)]);
        double kl = 0;
        for (int32_t id = 0; id < 512; ++id) {
          const double log_p = log_probability(a, id);
          kl += std::exp(log_p) * (log_p - log_probability(b, id));
        }
        divergence += kl;
        largest = std::max(largest, kl);
        agree += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
        ++row_count;
      }
      nll += in_row;
      count += row_count;
      row_nll.push_back(in_row / static_cast<double>(row_count));
    }
    const auto likely = likelihood(*first, rows, {.skip = skip});
    ASSERT_TRUE(likely.ok());
    EXPECT_EQ(likely->tokens, count);
    EXPECT_NEAR(likely->nll, nll / static_cast<double>(count), 1e-4);
    EXPECT_NEAR(likely->perplexity(), std::exp(likely->nll), 1e-9);
    ASSERT_EQ(likely->row_nll.size(), 2u);
    EXPECT_NEAR(likely->row_nll[1], row_nll[1], 1e-4);
    const auto compared = compare(*first, *second, rows, {.skip = skip});
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    EXPECT_NEAR(compared->first.nll, likely->nll, 1e-6);
    EXPECT_NEAR(compared->mean_kl, divergence / static_cast<double>(count), 1e-3);
    EXPECT_NEAR(compared->max_kl, largest, 1e-3);
    EXPECT_LE(compared->median_kl, compared->max_kl);
    EXPECT_NEAR(compared->top1_agreement, static_cast<double>(agree) / static_cast<double>(count), 1e-9);
  }
}

TEST(Evaluate, AModelAgreesWithItself) {
  const auto a = load("qwen3_5_moe"), b = load("qwen3_5_moe", {.chunk_size = 512});
  const auto ids = oracle_ids();
  const auto compared = compare(*a, *b, {{ids.begin(), ids.end()}}, {});
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared->mean_kl, 0);
  EXPECT_EQ(compared->top1_agreement, 1);
}

TEST(Evaluate, BadInputIsNamed) {
  const auto engine = load("qwen3");
  EXPECT_NE(evaluate(*engine, {}, {}).error().message.find("no token ids"), std::string::npos);
  EXPECT_NE(evaluate(*engine, std::vector<int32_t>{5, 600}, {}).error().message.find("600"), std::string::npos);
  EXPECT_NE(evaluate(*engine, std::vector<int32_t>(257, 1), {}).error().message.find("256"), std::string::npos);
  EXPECT_NE(likelihood(*engine, {}, {}).error().message.find("too short"), std::string::npos);
  EXPECT_NE(likelihood(*engine, {{1}}, {}).error().message.find("too short"), std::string::npos);
  CancelToken cancel;
  cancel.cancel();
  EXPECT_EQ(evaluate(*engine, std::vector<int32_t>{1, 2}, {.cancel = &cancel}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(likelihood(*engine, {{1, 2}}, {.cancel = &cancel}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(collect_imatrix(*engine, {{1, 2}}, {.cancel = &cancel}).error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(evaluate(*engine, std::vector<int32_t>{1, 2}, {}).ok());
}

TEST(Evaluate, SplitRows) {
  const std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(split_rows(ids, 3), (TokenRows{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_TRUE(split_rows(ids, 8).empty());
}

/// Every input as it is, to compare sums with.
class Recorder final : public model::ActivationObserver {
 public:
  void linear_input(std::string_view name, int64_t, int64_t expert, const float* x, int64_t rows,
                    int64_t cols) override {
    auto& sums = seen[{std::string(name), expert}];
    sums.resize(static_cast<size_t>(cols));
    for (int64_t i = 0; i < rows * cols; ++i) sums[static_cast<size_t>(i % cols)] += double{x[i]} * x[i];
    counts[{std::string(name), expert}] += rows;
  }
  std::map<std::pair<std::string, int64_t>, std::vector<double>> seen;
  std::map<std::pair<std::string, int64_t>, int64_t> counts;
};

TEST(CollectImatrix, SumsOfEveryWeightAndExpert) {
  const auto engine = load("qwen3_5_moe", {.chunk_size = 32, .mtp_cache = true});
  const auto ids = oracle_ids();
  const TokenRows rows = {{ids.begin(), ids.begin() + 70}, {ids.begin() + 70, ids.begin() + 120}};
  const auto imatrix = collect_imatrix(*engine, rows, {});
  ASSERT_TRUE(imatrix.ok()) << imatrix.error().message;
  EXPECT_EQ(imatrix->chunks(), 2);
  Recorder recorder;
  engine->set_observer(&recorder);
  for (const auto& row : rows) ASSERT_TRUE(evaluate(*engine, row, {.mtp = true}).ok());
  engine->set_observer(nullptr);
  // Every matrix of the four layers and of the head (table row 25: no entries for the head's block).
  for (const std::string name :
       {"blk.0.attn_qkv", "blk.1.attn_gate", "blk.2.ssm_out", "blk.0.ssm_alpha", "blk.3.attn_q", "blk.3.attn_output",
        "blk.2.ffn_gate_inp", "blk.1.ffn_up_shexp", "blk.1.ffn_down_shexp", "blk.4.attn_v", "blk.4.nextn.eh_proj"}) {
    const auto* entry = imatrix->find(name + ".weight");
    ASSERT_NE(entry, nullptr) << name;
    const auto& wanted = recorder.seen.at({name + ".weight", 0});
    ASSERT_EQ(entry->in_sum2.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(entry->in_sum2[i], wanted[i], 1e-3 * wanted[i] + 1e-6) << name;
    EXPECT_EQ(entry->counts[0], name.starts_with("blk.4.") ? 118 : 120) << name;
  }
  for (const std::string name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    const auto* entry = imatrix->find("blk.2." + name + ".weight");
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->experts, 8);
    double pairs = 0;
    for (const float count : entry->counts) pairs += count;
    EXPECT_EQ(pairs, 120 * 3);
    const std::string source = name == "ffn_down_exps" ? name : "ffn_gate_up_exps";
    for (int64_t e = 0; e < 8; ++e) {
      const auto found = recorder.seen.find({"blk.2." + source + ".weight", e});
      if (found == recorder.seen.end()) continue;
      for (size_t i = 0; i < found->second.size(); ++i) {
        const float sum = entry->in_sum2[static_cast<size_t>(e * entry->columns) + i];
        EXPECT_NEAR(sum, found->second[i], 1e-3 * found->second[i] + 1e-6);
      }
    }
  }
  EXPECT_EQ(imatrix->find("output.weight"), nullptr);
  EXPECT_EQ(imatrix->find("blk.2.ffn_gate_up_exps.weight"), nullptr);
}

// The observed path computes what experts read a second time; the answer must not change by being watched.
TEST(CollectImatrix, WatchingChangesNothing) {
  const auto engine = load("qwen3_moe");
  const auto ids = oracle_ids();
  const auto plain = evaluate(*engine, ids, {});
  Recorder recorder;
  engine->set_observer(&recorder);
  const auto watched = evaluate(*engine, ids, {});
  engine->set_observer(nullptr);
  EXPECT_EQ(plain->logits, watched->logits);
}

}  // namespace
}  // namespace crest::engine
