#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/evaluate.h"
#include "engine/session.h"
#include "testing/model_data.h"
#include "testing/temporary_folder.h"

// The two trained models against transformers. Their weights are not in the repository: CREST_MODELS_DIR.
namespace crest::engine {
namespace {

using testing::row;

constexpr double kTolerance = 1e-4;     // of the logits' standard deviation
constexpr double kNllTolerance = 1e-4;  // absolute

std::unique_ptr<Engine> load_engine(const std::filesystem::path& path, EngineOptions options = {}) {
  if (options.context_length == 0) options.context_length = 1100;
  auto engine = Engine::load(path, options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  return engine.ok() ? std::move(*engine) : nullptr;
}

GenerateOptions greedy(int64_t tokens) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = tokens;
  return options;
}

class TinyOracle : public ::testing::TestWithParam<const char*> {
 protected:
  TinyOracle() : oracle_(testing::test_data(GetParam())) {}
  void SetUp() override {
    CREST_SKIP_WITHOUT_MODELS();
    folder_ = *testing::large_model(GetParam());
  }
  std::filesystem::path folder_;
  testing::OracleFolder oracle_;
};
INSTANTIATE_TEST_SUITE_P(Models, TinyOracle, ::testing::Values("tiny-moe", "tiny-dense"),
                         [](const auto& info) { return std::string(info.param) == "tiny-moe" ? "moe" : "dense"; });

TEST_P(TinyOracle, LogitsOfShortPrompts) {
  const auto engine = load_engine(folder_, {.kv_type = KvType::kF32});
  ASSERT_TRUE(engine);
  const int64_t vocab = engine->model().vocab_size();
  for (const std::string prompt : {"one", "seven", "sixtyfive"}) {
    const auto result = evaluate(*engine, oracle_.ids(prompt + ".ids"), {});
    ASSERT_TRUE(result.ok()) << result.error().message;
    const auto rows = oracle_.ids(prompt + ".rows");
    const auto logits = oracle_.floats(prompt + ".logits");
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto wanted = row(logits, static_cast<int64_t>(i), vocab);
      EXPECT_LE(testing::largest_difference(row(result->logits, rows[i], vocab), wanted),
                kTolerance * testing::standard_deviation(wanted))
          << prompt << ", row " << rows[i];
    }
  }
}

TEST_P(TinyOracle, BestLogitsOfLongPromptsAndTheMtpHead) {
  const auto engine = load_engine(folder_, {.kv_type = KvType::kF32, .mtp_cache = true});
  ASSERT_TRUE(engine);
  const int64_t vocab = engine->model().vocab_size();
  const auto expect_best = [&](const std::vector<float>& logits, const std::string& name) {
    const auto best = oracle_.floats(name + ".top_logits");
    const auto ids = oracle_.ids(name + ".top_ids");
    const int64_t rows = oracle_.shape(name + ".top_ids")[0];
    const int64_t top = oracle_.shape(name + ".top_ids")[1];
    double worst = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const auto found = row(logits, r, vocab);
      const double deviation = testing::standard_deviation(found);
      for (int64_t i = r * top; i < (r + 1) * top; ++i) {
        const double difference =
            std::abs(found[static_cast<size_t>(ids[static_cast<size_t>(i)])] - best[static_cast<size_t>(i)]);
        worst = std::max(worst, difference / deviation);
      }
    }
    EXPECT_LE(worst, kTolerance) << name;
    std::printf("%s %s: largest difference %.2g of the standard deviation\n", GetParam(), name.c_str(), worst);
  };
  for (const std::string prompt : {"twohundred", "thousand"}) {
    const auto ids = oracle_.ids(prompt + ".ids");
    const auto result = evaluate(*engine, ids, {.mtp = prompt == "twohundred"});
    ASSERT_TRUE(result.ok()) << result.error().message;
    expect_best(result->logits, prompt);
    const auto lse = oracle_.floats(prompt + ".lse");
    for (size_t t = 0; t < lse.size(); ++t) {
      EXPECT_NEAR(ops::log_sum_exp(row(result->logits, static_cast<int64_t>(t), vocab)), lse[t], 2e-4);
    }
    if (!result->mtp_logits.empty()) expect_best(result->mtp_logits, "mtp");
  }
}

// Table rows 11 and 12: a thousand tokens, whatever the chunks.
TEST_P(TinyOracle, ChunksOfAThousandTokens) {
  const auto engine = load_engine(folder_, {.kv_type = KvType::kF32});
  ASSERT_TRUE(engine);
  const auto ids = oracle_.ids("thousand.ids");
  const int64_t vocab = engine->model().vocab_size();
  const auto whole = evaluate(*engine, ids, {.chunk_size = 1000});
  ASSERT_TRUE(whole.ok());
  for (const int64_t chunk : {65, 512}) {
    const auto parts = evaluate(*engine, ids, {.chunk_size = chunk});
    ASSERT_TRUE(parts.ok());
    for (int64_t t = 0; t < 1000; t += 37) {
      const auto wanted = row(whole->logits, t, vocab);
      EXPECT_LE(testing::largest_difference(row(parts->logits, t, vocab), wanted),
                kTolerance * testing::standard_deviation(wanted));
    }
  }
}

TEST_P(TinyOracle, HeldOutLikelihood) {
  const auto engine = load_engine(folder_, {.kv_type = KvType::kF32});
  ASSERT_TRUE(engine);
  for (const std::string text : {"docs", "qa"}) {
    const auto ids = oracle_.ids("ppl." + text + ".ids");
    const auto rows = split_rows(ids, oracle_.shape("ppl." + text + ".ids")[1]);
    ASSERT_EQ(rows.size(), 16u);
    const auto result = likelihood(*engine, rows, {});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->tokens, 16 * 1023);
    EXPECT_NEAR(result->nll, oracle_.floats("ppl." + text + ".nll")[0], kNllTolerance);
    std::printf("%s %s: NLL %.6f, oracle %.6f\n", GetParam(), text.c_str(), result->nll,
                oracle_.floats("ppl." + text + ".nll")[0]);
  }
}

TEST_P(TinyOracle, GreedyAnswers) {
  const auto engine = load_engine(folder_, {.kv_type = KvType::kF32});
  ASSERT_TRUE(engine);
  const auto session = std::move(*Session::create(*engine));
  std::ifstream file(oracle_.path() / "greedy.json");
  const auto entries = nlohmann::json::parse(file);
  ASSERT_EQ(entries.size(), 6u);
  for (const auto& entry : entries) {
    const auto ids = engine->tokenizer().encode(entry["prompt"].get<std::string>(), {.parse_special = true});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, entry["prompt_ids"].get<std::vector<int32_t>>());
    const auto answer = session->generate(*ids, greedy(64));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->ids, entry["output_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(answer->stop_reason, answer->ids.size() < 64 ? StopReason::kEos : answer->stop_reason);
  }
}

// Kind of fault: log-probabilities after temperature or filters (0 or -3.4e38), or of the wrong tokens.
TEST(TinyCases, LogprobsAreRaw) {
  CREST_SKIP_WITHOUT_MODELS();
  const auto engine = load_engine(*testing::large_model("tiny-dense"));
  ASSERT_TRUE(engine);
  const auto session = std::move(*Session::create(*engine));
  const auto ids = engine->tokenizer().encode("The CREATE TABLE command");
  const std::pair<int32_t, double> wanted[] = {
      {311, -1.80888}, {535, -2.53003}, {11, -3.00719}, {437, -3.03794}, {462, -3.11589}};
  for (const auto& sampling :
       {ops::SamplingParams{.temperature = 0}, {.temperature = 2, .seed = 1}, {.top_k = 2, .seed = 4}}) {
    GenerateOptions options;
    options.sampling = sampling;
    options.max_tokens = 1;
    options.logprobs = 5;
    const auto answer = session->generate(*ids, options);
    ASSERT_TRUE(answer.ok());
    const auto& first = answer->logprobs.at(0);
    ASSERT_EQ(first.top.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(first.top[i].token, wanted[i].first);
      EXPECT_NEAR(first.top[i].logprob, wanted[i].second, 2e-3);  // the default cache is f16
    }
    EXPECT_EQ(first.id, answer->ids[0]);
    EXPECT_LE(first.logprob, first.top[0].logprob);
  }
}

/// A copy of tiny-moe whose files may be replaced; the weights are links.
class ModelCopy {
 public:
  ModelCopy() {
    for (const auto& entry : std::filesystem::directory_iterator(*testing::large_model("tiny-moe"))) {
      const auto name = entry.path().filename();
      if (name.string().starts_with("oracle")) continue;
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), folder_.path() / name);
    }
  }
  void write(const std::string& name, const std::string& content) {
    std::filesystem::remove(folder_.path() / name);
    folder_.write(name, content);
  }
  void change_config(const std::string& key, const nlohmann::json& value) {
    std::ifstream file(folder_.path() / "config.json");
    auto config = nlohmann::json::parse(file);
    config[key] = value;
    write("config.json", config.dump());
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

// Kind of fault: the set of tokens that end an answer is taken from one file alone.
TEST(TinyCases, EndOfGenerationIsTheUnionOfAllSources) {
  CREST_SKIP_WITHOUT_MODELS();
  const std::string end = R"({"eos_token": "<|im_end|>"})", text_end = R"({"eos_token": "<|endoftext|>"})";
  struct Case {
    std::string generation, tokenizer;
    int config;
  };
  for (const auto& [generation, tokenizer, config] :
       {Case{R"({"eos_token_id": 8183})", end, 8183}, Case{R"({"eos_token_id": 8185})", text_end, 8183},
        Case{R"({"eos_token_id": [8185, 8183]})", text_end, 8183}, Case{R"({"eos_token_id": 8183})", text_end, 8185}}) {
    ModelCopy copy;
    copy.write("generation_config.json", generation);
    copy.write("tokenizer_config.json", tokenizer);
    copy.change_config("eos_token_id", config);
    const auto engine = load_engine(copy.path());
    ASSERT_TRUE(engine);
    const auto& tokens = engine->tokenizer();
    EXPECT_TRUE(tokens.is_end_of_generation(8183) && tokens.is_end_of_generation(8185)) << generation << tokenizer;
    EXPECT_FALSE(tokens.is_end_of_generation(8184));
    const auto session = std::move(*Session::create(*engine));
    const auto ids =
        tokens.encode("<|im_start|>user\nWhat is a volcano?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
                      {.parse_special = true});
    const auto answer = session->generate(*ids, greedy(64));
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->stop_reason, StopReason::kEos);
    EXPECT_EQ(answer->ids.size(), 32u);
    EXPECT_EQ(answer->ids.back(), 8185);
    EXPECT_TRUE(answer->text.ends_with("Major.")) << answer->text;
  }
}

// Kind of fault: a character that is spread over tokens is replaced or cut.
TEST(TinyCases, CharactersSpreadOverTokens) {
  CREST_SKIP_WITHOUT_MODELS();
  const auto engine = load_engine(*testing::large_model("tiny-dense"));
  ASSERT_TRUE(engine);
  const auto session = std::move(*Session::create(*engine));
  const auto prompt = engine->tokenizer().encode("A drink");
  const auto forced = [&](std::vector<int32_t> ids) {
    auto options = greedy(static_cast<int64_t>(ids.size()));
    std::vector<std::string> pieces;
    options.on_token = [&](const TokenEvent& event) { pieces.emplace_back(event.text); };
    // The first token is forced by its bias, the others by the hook.
    options.sampling.logit_bias = {{ids.front(), 1e6f}};
    bool started = false;
    options.force_after = [&](int32_t) {
      if (started) return std::vector<int32_t>{};
      started = true;
      return std::vector<int32_t>(ids.begin() + 1, ids.end());
    };
    const auto answer = session->generate(*prompt, options);
    EXPECT_TRUE(answer.ok());
    EXPECT_EQ(answer->ids, ids);
    std::string joined;
    for (const auto& piece : pieces) {
      EXPECT_EQ(text::to_valid_utf8(piece), piece);
      joined += piece;
    }
    EXPECT_EQ(joined, answer->text);
    return answer->text;
  };
  EXPECT_EQ(forced({865, 69, 127, 102}), "café");
  EXPECT_EQ(forced({865, 69, 127}), "caf\xef\xbf\xbd");
  EXPECT_EQ(forced({172, 253, 99, 247}), "🦙");
  EXPECT_EQ(forced({172, 253}), "\xef\xbf\xbd");
  // A control token behind half a character is not swallowed, and ends it.
  EXPECT_EQ(forced({865, 69, 127, 8185}), "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace crest::engine
