#include "engine/session.h"

#include <gtest/gtest.h>

#include <limits>

#include "testing/model_data.h"
#include "testing/temporary_folder.h"

// Sessions on the micro models: one with recurrent layers and experts, one with sliding windows.
namespace crest::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SessionTest : public ::testing::TestWithParam<const char*> {
 protected:
  SessionTest() : folder_(testing::test_data(std::string("micro/") + GetParam())) {
    ids_ = testing::OracleFolder(folder_ / "oracle").ids("ids");
  }
  std::unique_ptr<Engine> load(EngineOptions options = {}) const {
    if (options.context_length == 0) options.context_length = 512;
    auto engine = Engine::load(folder_, options);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  std::unique_ptr<Session> new_session(Engine& engine) const {
    auto session = Session::create(engine);
    EXPECT_TRUE(session.ok());
    return std::move(*session);
  }
  static GenerateOptions greedy(int64_t tokens) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = tokens;
    return options;
  }
  static Generation run(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options) {
    auto result = session.generate(prompt, options);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? std::move(*result) : Generation{};
  }
  std::span<const int32_t> prompt(size_t count) const { return std::span(ids_).first(count); }
  bool recurrent() const { return std::string(GetParam()).starts_with("qwen3_5"); }

  std::filesystem::path folder_;
  std::vector<int32_t> ids_;
};
INSTANTIATE_TEST_SUITE_P(Models, SessionTest, ::testing::Values("qwen3_5_moe", "gemma3"),
                         [](const auto& info) { return std::string(info.param); });

// Table rows 1 and 37: the same prompt again evaluates nothing and answers the same.
TEST_P(SessionTest, RepeatedPrompt) {
  const auto engine = load();
  const auto session = new_session(*engine);
  const auto first = run(*session, prompt(100), greedy(20));
  EXPECT_EQ(first.timings.cached_tokens, 0);
  EXPECT_EQ(first.timings.evaluated_tokens(), 100);
  const auto second = run(*session, prompt(100), greedy(20));
  EXPECT_EQ(second.timings.cached_tokens, 100);
  EXPECT_EQ(second.ids, first.ids);
  EXPECT_EQ(second.text, first.text);
}

// Table rows 1 to 3: a longer conversation, an edited end, and an edited middle answer as a fresh session does.
TEST_P(SessionTest, EditedPromptsAnswerAsAFreshSessionDoes) {
  const auto engine = load({.sequences = 2, .chunk_size = 16});
  const auto session = new_session(*engine);
  run(*session, prompt(70), greedy(5));
  std::vector<int32_t> text(ids_.begin(), ids_.begin() + 70);
  const auto expect_same = [&](int64_t at_least_cached) {
    const auto fresh = new_session(*engine);
    const auto wanted = run(*fresh, text, greedy(12));
    const auto found = run(*session, text, greedy(12));
    EXPECT_EQ(found.ids, wanted.ids);
    EXPECT_GE(found.timings.cached_tokens, at_least_cached);
    EXPECT_EQ(wanted.timings.cached_tokens, 0);
    return found;
  };
  const auto answer = expect_same(70);
  text.insert(text.end(), answer.ids.begin(), answer.ids.end());
  text.push_back(17);
  expect_same(70 + 11);
  text.back() = 18;
  expect_same(70);
  text[40] = (text[40] + 1) % 512;
  expect_same(32);
  text[0] = (text[0] + 1) % 512;
  expect_same(0);
  text.resize(33);
  expect_same(32);
}

// Table row 5: templates leave the thinking of earlier turns out, so the next prompt parts from the old one right after
// the end of the user's turn. That place has a snapshot of its own.
TEST_P(SessionTest, StateAfterTheLastTurnIsKept) {
  const auto engine = load();
  const auto session = new_session(*engine);
  std::vector<int32_t> turn;
  for (const int32_t id : prompt(50)) turn.push_back(id == 511 ? 7 : id);
  turn.push_back(511);
  auto asked = turn;
  asked.insert(asked.end(), {20, 21, 22});
  run(*session, asked, greedy(10));
  auto next = turn;
  next.insert(next.end(), {20, 30, 31, 32, 33});
  const auto answer = run(*session, next, greedy(10));
  EXPECT_EQ(answer.timings.cached_tokens, recurrent() ? 51 : 52);
  session->clear();
  EXPECT_EQ(run(*session, next, greedy(10)).ids, answer.ids);
}

// ik_llama #1762: what a session computes must not depend on who had its memory before.
TEST_P(SessionTest, MemoryOfAnEarlierSessionIsNotSeen) {
  const auto engine = load();
  Generation wanted;
  {
    const auto session = new_session(*engine);
    wanted = run(*session, prompt(60), greedy(10));
  }
  {
    const auto session = new_session(*engine);
    run(*session, std::span(ids_).subspan(50, 90), greedy(30));
  }
  const auto session = new_session(*engine);
  EXPECT_EQ(run(*session, prompt(60), greedy(10)).ids, wanted.ids);
  session->clear();
  EXPECT_EQ(run(*session, prompt(60), greedy(10)).ids, wanted.ids);
}

TEST_P(SessionTest, ChunkSizesThreadsAndPageSizesDoNotChangeTheAnswer) {
  Generation wanted;
  for (const auto& options :
       {EngineOptions{}, EngineOptions{.threads = 1}, EngineOptions{.threads = 5}, EngineOptions{.page_size = 16},
        EngineOptions{.page_size = 256}, EngineOptions{.chunk_size = 1}, EngineOptions{.chunk_size = 7},
        EngineOptions{.chunk_size = 65}, EngineOptions{.snapshot_bytes = 0}}) {
    const auto engine = load(options);
    const auto session = new_session(*engine);
    auto generate = greedy(16);
    generate.logprobs = 3;
    const auto found = run(*session, prompt(130), generate);
    if (wanted.ids.empty()) {
      wanted = found;
      continue;
    }
    EXPECT_EQ(found.ids, wanted.ids);
    for (size_t i = 0; i < found.logprobs.size(); ++i)
      EXPECT_NEAR(found.logprobs[i].logprob, wanted.logprobs[i].logprob, 1e-4);
  }
}

TEST_P(SessionTest, KvTypesStayClose) {
  std::vector<float> exact;
  for (const auto& [type, tolerance] :
       {std::pair{KvType::kF32, 0.0}, {KvType::kF16, 0.01}, {KvType::kBF16, 0.08}, {KvType::kQ8, 0.08}}) {
    const auto engine = load({.kv_type = type});
    const auto sequence = std::move(*engine->create_sequence());
    std::vector<float> logits(prompt(100).size() * static_cast<size_t>(engine->model().vocab_size()));
    const StepItem item{.sequence = sequence.get(), .tokens = prompt(100), .all_logits = true, .logits = logits.data()};
    ASSERT_TRUE(engine->step({&item, 1}).ok());
    if (exact.empty()) exact = logits;
    const double share = testing::largest_difference(logits, exact) / testing::standard_deviation(exact);
    EXPECT_LE(share, tolerance) << name(type);
    EXPECT_TRUE(type == KvType::kF32 || share > 0) << name(type) << " is not used";
  }
}

TEST_P(SessionTest, StopReasons) {
  const auto engine = load({.context_length = 80});
  const auto session = new_session(*engine);
  EXPECT_EQ(run(*session, prompt(60), greedy(4)).stop_reason, StopReason::kLength);
  EXPECT_EQ(run(*session, prompt(60), greedy(4)).ids.size(), 4u);
  const auto none = run(*session, prompt(60), greedy(0));
  EXPECT_EQ(none.stop_reason, StopReason::kLength);
  EXPECT_TRUE(none.ids.empty());
  // llama.cpp #27515: a context that is used up ends the answer cleanly; nothing is shifted.
  auto open = greedy(-1);
  open.sampling.logit_bias = {{511, -kInfinity}};
  const auto full = run(*session, prompt(60), open);
  EXPECT_EQ(full.stop_reason, StopReason::kContext);
  EXPECT_EQ(full.ids.size(), 21u);
  EXPECT_EQ(session->sequence().length(), 80);
  const auto last = run(*session, prompt(80), open);
  EXPECT_EQ(last.stop_reason, StopReason::kContext);
  EXPECT_EQ(last.ids.size(), 1u);
  const auto too_long = session->generate(prompt(81), open);
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.error().message.find("81 tokens, the context has room for 80"), std::string::npos);
  auto end = greedy(10);
  end.sampling.logit_bias = {{511, 1000.0f}};
  const auto eos = run(*session, prompt(60), end);
  EXPECT_EQ(eos.stop_reason, StopReason::kEos);
  EXPECT_EQ(eos.ids, std::vector<int32_t>{511});
  EXPECT_EQ(eos.text, "");
}

TEST_P(SessionTest, StopStringsMaySpanTokensAndAreNeverShown) {
  const auto engine = load();
  const auto session = new_session(*engine);
  std::vector<std::string> pieces;
  auto options = greedy(30);
  options.on_token = [&](const TokenEvent& event) { pieces.emplace_back(event.text); };
  const auto free = run(*session, prompt(50), options);
  std::string joined;
  for (const auto& piece : pieces) {
    EXPECT_EQ(text::to_valid_utf8(piece), piece);
    joined += piece;
  }
  EXPECT_EQ(joined, free.text);
  ASSERT_GT(free.text.size(), 12u);
  // A stop string that begins inside one token's text and ends inside a later one's.
  const std::string valid = free.text;
  size_t at = valid.size() / 3;
  while ((static_cast<unsigned char>(valid[at]) & 0xc0) == 0x80) ++at;
  size_t end = std::min(valid.size(), at + 7);
  while (end < valid.size() && (static_cast<unsigned char>(valid[end]) & 0xc0) == 0x80) ++end;
  const std::string stop = valid.substr(at, end - at);
  pieces.clear();
  options.stop = {"never seen", stop};
  const auto stopped = run(*session, prompt(50), options);
  EXPECT_EQ(stopped.stop_reason, StopReason::kStop);
  EXPECT_EQ(stopped.stop_string, stop);
  EXPECT_EQ(stopped.text, valid.substr(0, valid.find(stop)));
  joined.clear();
  for (const auto& piece : pieces) joined += piece;
  EXPECT_EQ(joined, stopped.text);
  EXPECT_LE(stopped.ids.size(), free.ids.size());
}

TEST_P(SessionTest, CancelledBetweenChunksAndBetweenTokens) {
  const auto engine = load({.chunk_size = 16});
  const auto session = new_session(*engine);
  const auto wanted = run(*session, prompt(100), greedy(20));
  session->clear();
  CancelToken cancel;
  auto options = greedy(20);
  options.cancel = &cancel;
  options.on_prompt = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 100);
    if (done >= 32) cancel.cancel();
  };
  const auto in_prompt = run(*session, prompt(100), options);
  EXPECT_EQ(in_prompt.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(in_prompt.ids.empty());
  EXPECT_EQ(in_prompt.timings.prompt_tokens, 32);
  EXPECT_EQ(session->sequence().length(), 32);
  cancel.reset();
  options.on_prompt = nullptr;
  int tokens = 0;
  options.on_token = [&](const TokenEvent& event) {
    if (event.id >= 0 && ++tokens == 5) cancel.cancel();
  };
  const auto in_answer = run(*session, prompt(100), options);
  EXPECT_EQ(in_answer.stop_reason, StopReason::kCancelled);
  EXPECT_EQ(in_answer.timings.cached_tokens, 32);
  EXPECT_EQ(in_answer.ids, std::vector<int32_t>(wanted.ids.begin(), wanted.ids.begin() + 5));
  cancel.reset();
  options.on_token = nullptr;
  EXPECT_EQ(run(*session, prompt(100), options).ids, wanted.ids);
}

// Log-probabilities are those of the model, whatever filters, temperature, penalties and bias do.
TEST_P(SessionTest, LogprobsAreTheModelsOwn) {
  const auto engine = load();
  const auto session = new_session(*engine);
  auto options = greedy(1);
  options.logprobs = 5;
  const auto plain = run(*session, prompt(40), options);
  ASSERT_EQ(plain.logprobs.size(), 1u);
  ASSERT_EQ(plain.logprobs[0].top.size(), 5u);
  EXPECT_EQ(plain.logprobs[0].top[0].token, plain.ids[0]);
  EXPECT_EQ(plain.logprobs[0].top[0].logprob, plain.logprobs[0].logprob);
  const int32_t rare = 77;
  options.sampling = {
      .temperature = 2, .top_k = 2, .min_p = 0.1f, .presence_penalty = 1, .logit_bias = {{rare, 500.0f}}, .seed = 3};
  const auto forced = run(*session, prompt(40), options);
  EXPECT_EQ(forced.ids[0], rare);
  EXPECT_EQ(forced.logprobs[0].id, rare);
  EXPECT_LT(forced.logprobs[0].logprob, plain.logprobs[0].logprob);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(forced.logprobs[0].top[i].token, plain.logprobs[0].top[i].token);
    EXPECT_EQ(forced.logprobs[0].top[i].logprob, plain.logprobs[0].top[i].logprob);
  }
  options.logprobs = -1;
  EXPECT_TRUE(run(*session, prompt(40), options).logprobs.empty());
}

TEST_P(SessionTest, SeedDecidesAndPenaltiesReachTheSampler) {
  const auto engine = load();
  const auto session = new_session(*engine);
  auto options = greedy(20);
  options.sampling = {.temperature = 20, .seed = 5};
  const auto first = run(*session, prompt(40), options);
  EXPECT_EQ(run(*session, prompt(40), options).ids, first.ids);
  options.sampling.seed = 6;
  EXPECT_NE(run(*session, prompt(40), options).ids, first.ids);
  // A penalty that nothing survives twice: no token repeats.
  options = greedy(20);
  options.sampling.presence_penalty = 100;
  options.sampling.logit_bias = {{511, -kInfinity}};
  auto ids = run(*session, prompt(40), options).ids;
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST_P(SessionTest, ForcedTokensFollowTheirTrigger) {
  const auto engine = load();
  const auto session = new_session(*engine);
  auto options = greedy(6);
  options.logprobs = 0;
  int calls = 0;
  options.force_after = [&](int32_t) { return ++calls == 2 ? std::vector<int32_t>{100, 101} : std::vector<int32_t>{}; };
  const auto generation = run(*session, prompt(40), options);
  ASSERT_EQ(generation.ids.size(), 6u);
  EXPECT_EQ(generation.ids[2], 100);
  EXPECT_EQ(generation.ids[3], 101);
  EXPECT_LT(generation.logprobs[2].logprob, 0);
  // The rest continues what was forced.
  std::vector<int32_t> text(ids_.begin(), ids_.begin() + 40);
  text.insert(text.end(), generation.ids.begin(), generation.ids.begin() + 4);
  const auto other_engine = load();
  const auto other = new_session(*other_engine);
  EXPECT_EQ(run(*other, text, greedy(1)).ids[0], generation.ids[4]);
}

// Table row 4: a restored session goes on bit for bit as the uninterrupted one.
TEST_P(SessionTest, SavedSessionsContinueBitForBit) {
  const testing::TemporaryFolder temporary;
  const auto file = temporary.path() / "talk.session";
  const auto engine = load({.chunk_size = 32});
  const auto session = new_session(*engine);
  const auto answer = run(*session, prompt(70), greedy(10));
  const auto saved = session->save(file, "the caller's own");
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  std::vector<int32_t> next(ids_.begin(), ids_.begin() + 70);
  next.insert(next.end(), answer.ids.begin(), answer.ids.end());
  next.push_back(9);
  auto options = greedy(15);
  options.logprobs = 4;
  const auto wanted = run(*session, next, options);
  const auto edited = prompt(69);
  const auto wanted_edited = run(*session, edited, options);

  const auto other_engine = load({.chunk_size = 32});
  const auto other = new_session(*other_engine);
  run(*other, std::span(ids_).subspan(20, 30), greedy(3));
  const auto attachment = other->load(file);
  ASSERT_TRUE(attachment.ok()) << attachment.error().message;
  EXPECT_EQ(*attachment, "the caller's own");
  const auto found = run(*other, next, options);
  EXPECT_EQ(found.timings.cached_tokens, wanted.timings.cached_tokens);
  EXPECT_EQ(found.ids, wanted.ids);
  for (size_t i = 0; i < wanted.logprobs.size(); ++i) EXPECT_EQ(found.logprobs[i].logprob, wanted.logprobs[i].logprob);
  const auto found_edited = run(*other, edited, options);
  EXPECT_EQ(found_edited.timings.cached_tokens, wanted_edited.timings.cached_tokens);
  EXPECT_EQ(found_edited.ids, wanted_edited.ids);

  const auto f32 = load({.kv_type = KvType::kF32});
  const auto refused = new_session(*f32)->load(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("another model or another KV cache type"), std::string::npos);
  EXPECT_FALSE(other->load(temporary.path() / "missing").ok());
  EXPECT_EQ(other->sequence().length(), 0);
}

TEST_P(SessionTest, BadInputIsNamed) {
  const auto engine = load();
  const auto session = new_session(*engine);
  const auto message = [&](std::vector<int32_t> ids, GenerateOptions options) {
    const auto result = session->generate(ids, options);
    EXPECT_FALSE(result.ok());
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_NE(message({}, greedy(1)).find("prompt is empty"), std::string::npos);
  EXPECT_NE(message({1, 512}, greedy(1)).find("token 1 of the input is 512, allowed are 0 to 511"), std::string::npos);
  EXPECT_NE(message({-1}, greedy(1)).find("-1"), std::string::npos);
  auto options = greedy(-2);
  EXPECT_NE(message({1}, options).find("max_tokens is -2"), std::string::npos);
  options = greedy(1);
  options.stop = {""};
  EXPECT_NE(message({1}, options).find("stop"), std::string::npos);
  options = greedy(1);
  options.logprobs = 1000000;
  EXPECT_NE(message({1}, options).find("logprobs"), std::string::npos);
  options = greedy(1);
  options.sampling.temperature = -1;
  EXPECT_NE(message({1}, options).find("temperature"), std::string::npos);
  EXPECT_EQ(run(*session, prompt(3), greedy(1)).ids.size(), 1u);
}

}  // namespace
}  // namespace crest::engine
