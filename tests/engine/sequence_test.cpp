#include "engine/sequence.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/session_file.h"
#include "testing/temporary_folder.h"

namespace crest::engine {
namespace {

constexpr int64_t kVocab = 50;

model::ModelConfig make_config(bool recurrent) {
  model::ModelConfig config;
  config.head_dim = 4;
  config.delta_net = {.key_heads = 1, .value_heads = 2, .key_dim = 3, .value_dim = 2, .conv_kernel = 4};
  config.layers.push_back({.mixer = model::Mixer::kAttention, .kv_heads = 2});
  if (recurrent) config.layers.push_back({.mixer = model::Mixer::kGatedDeltaNet});
  return config;
}

std::unique_ptr<CacheStorage> make_storage(const model::ModelConfig& config, KvType type = KvType::kF32,
                                           int32_t pages = 64) {
  auto storage =
      CacheStorage::create(config, config.layers, {.kv_type = type, .page_size = 16, .pages = pages, .slots = 3});
  EXPECT_TRUE(storage.ok());
  return std::move(*storage);
}

/// A stand-in for a recurrent model: its state is a function of all tokens so far.
std::vector<float> state_after(std::span<const int32_t> tokens, int64_t size) {
  std::vector<float> state(static_cast<size_t>(size));
  float hash = 1;
  for (const int32_t token : tokens) hash = std::fmod(hash * 31 + static_cast<float>(token) + 1, 65521.0f);
  for (size_t i = 0; i < state.size(); ++i) state[i] = hash + static_cast<float>(i);
  return state;
}

void evaluate_to(Sequence& sequence, CacheStorage& storage, std::span<const int32_t> tokens) {
  ASSERT_TRUE(sequence.reserve(std::ssize(tokens)).ok());
  sequence.append(tokens);
  if (storage.state_size() > 0)
    storage.write_state(sequence.slot(), state_after(sequence.tokens(), storage.state_size()).data());
}

/// The chunked prefill of a session, with its snapshots.
int64_t run_prompt(Sequence& sequence, CacheStorage& storage, std::span<const int32_t> prompt, int64_t chunk) {
  const int64_t kept = sequence.reuse(prompt);
  int64_t begin = kept;
  for (const int64_t end : chunk_ends(kept, std::ssize(prompt), chunk, {})) {
    evaluate_to(sequence, storage, prompt.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    const std::vector<float> logits(kVocab, static_cast<float>(end));
    if (end == std::ssize(prompt)) {
      sequence.take_snapshot(logits);
    } else {
      sequence.take_snapshot();
    }
    begin = end;
  }
  return kept;
}

void expect_state_of(const Sequence& sequence, const CacheStorage& storage, std::span<const int32_t> tokens) {
  ASSERT_EQ(std::vector<int32_t>(sequence.tokens().begin(), sequence.tokens().end()),
            std::vector<int32_t>(tokens.begin(), tokens.end()));
  if (storage.state_size() == 0 || tokens.empty()) return;
  std::vector<float> state(static_cast<size_t>(storage.state_size()));
  storage.read_state(sequence.slot(), state.data());
  EXPECT_EQ(state, state_after(tokens, storage.state_size()));
}

std::vector<int32_t> counting(int count, int32_t first = 0) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((first + i) % kVocab);
  return ids;
}

class SequenceTest : public ::testing::TestWithParam<bool> {
 protected:
  SequenceTest() : storage_(make_storage(make_config(GetParam()))) {
    auto sequence = Sequence::create(*storage_, 1000, 1 << 20);
    EXPECT_TRUE(sequence.ok());
    sequence_ = std::move(*sequence);
  }
  std::unique_ptr<CacheStorage> storage_;
  std::unique_ptr<Sequence> sequence_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, SequenceTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "recurrent" : "attention"; });

// llama.cpp #20153, #22746: the second turn of a conversation evaluates only what is new.
TEST_P(SequenceTest, LongerPromptContinuesTheLiveState) {
  auto prompt = counting(100);
  EXPECT_EQ(run_prompt(*sequence_, *storage_, prompt, 32), 0);
  evaluate_to(*sequence_, *storage_, std::vector<int32_t>{7, 8, 9});  // the answer
  prompt.insert(prompt.end(), {7, 8, 9, 1, 2});
  EXPECT_EQ(run_prompt(*sequence_, *storage_, prompt, 32), 103);
  expect_state_of(*sequence_, *storage_, prompt);
}

// llama.cpp #24714, #21831: only the end of the prompt changed. A snapshot is valid iff the tokens before it are equal.
TEST_P(SequenceTest, EditedSuffixGoesBackToASnapshot) {
  auto prompt = counting(100);
  run_prompt(*sequence_, *storage_, prompt, 32);
  prompt[98] = 3;
  EXPECT_EQ(run_prompt(*sequence_, *storage_, prompt, 32), GetParam() ? 96 : 98);
  expect_state_of(*sequence_, *storage_, prompt);
  prompt[40] = 3;
  EXPECT_EQ(run_prompt(*sequence_, *storage_, prompt, 32), GetParam() ? 32 : 40);
  expect_state_of(*sequence_, *storage_, prompt);
  prompt[0] = 49;
  EXPECT_EQ(run_prompt(*sequence_, *storage_, prompt, 32), 0);
  expect_state_of(*sequence_, *storage_, prompt);
}

// Kind of fault: prompts shorter than a chunk leave no snapshot (a checkpoint belongs to the end of every prompt).
TEST_P(SequenceTest, ShortPromptExtendedAfterAnAnswer) {
  const auto prompt = counting(10);
  run_prompt(*sequence_, *storage_, prompt, 512);
  evaluate_to(*sequence_, *storage_, std::vector<int32_t>{30, 31, 32, 33});
  auto next = prompt;
  next.insert(next.end(), {40, 41});  // the answer was regenerated by the template in another form
  EXPECT_EQ(run_prompt(*sequence_, *storage_, next, 512), 10);
  expect_state_of(*sequence_, *storage_, next);
}

// Table row 37: the prompt equals the cached one. With recurrent layers the last token must not be applied twice.
TEST_P(SequenceTest, SamePromptAgainKeepsAllAndKnowsTheLogits) {
  const auto prompt = counting(45);
  run_prompt(*sequence_, *storage_, prompt, 32);
  evaluate_to(*sequence_, *storage_, std::vector<int32_t>{1, 2, 3});
  EXPECT_EQ(sequence_->reuse(prompt), 45);
  expect_state_of(*sequence_, *storage_, prompt);
  ASSERT_EQ(sequence_->kept_logits().size(), static_cast<size_t>(kVocab));
  EXPECT_EQ(sequence_->kept_logits()[0], 45.0f);
  // The same without known logits: at least one token is left to evaluate.
  auto other = Sequence::create(*storage_, 1000, 1 << 20);
  evaluate_to(**other, *storage_, prompt);
  EXPECT_LT((*other)->reuse(prompt), 45);
  EXPECT_TRUE((*other)->kept_logits().empty());
}

TEST_P(SequenceTest, PromptThatIsABeginningOfTheOldOne) {
  const auto prompt = counting(100);
  run_prompt(*sequence_, *storage_, prompt, 32);
  const auto shorter = counting(50);
  EXPECT_EQ(run_prompt(*sequence_, *storage_, shorter, 32), GetParam() ? 32 : 49);
  expect_state_of(*sequence_, *storage_, shorter);
}

TEST_P(SequenceTest, NoBudgetForSnapshotsIsSlowButRight) {
  auto plain = Sequence::create(*storage_, 1000, 0);
  auto prompt = counting(70);
  run_prompt(**plain, *storage_, prompt, 32);
  EXPECT_EQ(run_prompt(**plain, *storage_, prompt, 32), GetParam() ? 0 : 69);
  prompt[69] = 5;
  EXPECT_EQ(run_prompt(**plain, *storage_, prompt, 32), GetParam() ? 0 : 69);
  expect_state_of(**plain, *storage_, prompt);
}

// Any history of prompts, edits and answers: what is kept is a beginning of the prompt, and the state is its state.
TEST_P(SequenceTest, RandomConversations) {
  std::mt19937 random(GetParam() ? 1 : 2);
  auto prompt = counting(20);
  for (int round = 0; round < 3000; ++round) {
    switch (random() % 5) {
      case 0:
        break;  // the same again
      case 1:
        prompt.resize(1 + random() % prompt.size());
        break;
      case 2:
        prompt[random() % prompt.size()] = static_cast<int32_t>(random() % kVocab);
        break;
      default:
        for (size_t i = random() % 20 + 1; i > 0 && prompt.size() < 300; --i)
          prompt.push_back(static_cast<int32_t>(random() % kVocab));
    }
    const int64_t kept = run_prompt(*sequence_, *storage_, prompt, 1 + random() % 40);
    ASSERT_LE(kept, std::ssize(prompt));
    expect_state_of(*sequence_, *storage_, prompt);
    ASSERT_EQ(std::ssize(sequence_->pages()), (std::ssize(prompt) + 15) / 16);
    ASSERT_EQ(storage_->pages().available(), storage_->pages().total() - std::ssize(sequence_->pages()));
    if (kept == std::ssize(prompt)) {
      ASSERT_EQ(sequence_->kept_logits().size(), static_cast<size_t>(kVocab));
    }
    const std::vector<int32_t> answer(random() % 5, 11);
    evaluate_to(*sequence_, *storage_, answer);
    if (random() % 2 == 0) prompt.insert(prompt.end(), answer.begin(), answer.end());
    if (HasFatalFailure()) return;
  }
}

TEST_P(SequenceTest, PagesSlotsAndLimits) {
  const int32_t free_pages = storage_->pages().available();
  {
    auto second = Sequence::create(*storage_, 40, 0);
    ASSERT_TRUE(second.ok());
    EXPECT_TRUE((*second)->reserve(40).ok());
    const auto status = (*second)->reserve(41);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("41 tokens do not fit the context of 40"), std::string::npos);
    auto third = Sequence::create(*storage_, 40, 0);
    auto fourth = Sequence::create(*storage_, 40, 0);
    ASSERT_FALSE(fourth.ok());
    EXPECT_EQ(fourth.error().code, ErrorCode::kResourceExhausted);
    auto filler = (*third)->reserve(40);
    EXPECT_TRUE(filler.ok());
  }
  EXPECT_EQ(storage_->pages().available(), free_pages);
  EXPECT_TRUE(Sequence::create(*storage_, 40, 0).ok());
  const auto small = make_storage(make_config(false), KvType::kF32, 2);
  auto sequence = Sequence::create(*small, 1000, 0);
  const auto status = (*sequence)->reserve(33);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("KV cache of 32 tokens is full"), std::string::npos);
}

/// Fills the pages of a sequence with bytes that tell them apart.
std::vector<std::byte> page_pattern(int64_t bytes, size_t page) {
  std::vector<std::byte> content(static_cast<size_t>(bytes));
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 + page * 13 + 1);
  return content;
}

// llama.cpp #25913, #27813: a saved slot lost its state and its checkpoints.
TEST_P(SequenceTest, SaveAndRestoreEverything) {
  const testing::TemporaryFolder folder;
  const Digest fingerprint{1, 2, 3};
  const auto prompt = counting(70);
  for (const KvType type : {KvType::kF32, KvType::kQ8}) {
    const auto storage = make_storage(make_config(GetParam()), type);
    auto sequence = std::move(*Sequence::create(*storage, 1000, 1 << 20));
    run_prompt(*sequence, *storage, prompt, 32);
    evaluate_to(*sequence, *storage, std::vector<int32_t>{5, 6});
    for (size_t i = 0; i < sequence->pages().size(); ++i) {
      storage->write_page(sequence->pages()[i], page_pattern(storage->page_bytes(), i).data());
    }
    const auto file = folder.path() / "session";
    auto writer = SessionWriter::create(file, fingerprint);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(sequence->save(*writer).ok());
    ASSERT_TRUE(writer->commit().ok());

    const auto other_storage = make_storage(make_config(GetParam()), type);
    const auto blocker = std::move(*Sequence::create(*other_storage, 100, 0));
    ASSERT_TRUE(blocker->reserve(30).ok());
    auto other = std::move(*Sequence::create(*other_storage, 1000, 1 << 20));
    auto reader = SessionReader::open(file, fingerprint);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    const auto status = other->restore(*reader, kVocab);
    ASSERT_TRUE(status.ok()) << status.error().message;
    expect_state_of(*other, *other_storage, sequence->tokens());
    ASSERT_EQ(other->pages().size(), sequence->pages().size());
    for (size_t i = 0; i < other->pages().size(); ++i) {
      std::vector<std::byte> page(static_cast<size_t>(other_storage->page_bytes()));
      other_storage->read_page(other->pages()[i], page.data());
      EXPECT_EQ(page, page_pattern(storage->page_bytes(), i));
    }
    ASSERT_EQ(other->snapshots().all().size(), sequence->snapshots().all().size());
    EXPECT_EQ(other->reuse(prompt), 70);
    expect_state_of(*other, *other_storage, prompt);
    EXPECT_EQ(other->kept_logits().size(), static_cast<size_t>(kVocab));
  }
}

std::string read_all(const std::filesystem::path& path) { return *core::read_file(path, 1 << 24); }

/// The checksum made right again, so that what is behind it gets tested.
std::string with_checksum(std::string content) {
  core::Sha256 hash;
  hash.update(std::as_bytes(std::span(content)));
  const auto digest = hash.digest();
  return content + std::string(digest.begin(), digest.end());
}

TEST_P(SequenceTest, DamagedAndHostileFilesAreRefused) {
  const testing::TemporaryFolder folder;
  const Digest fingerprint{1, 2, 3};
  run_prompt(*sequence_, *storage_, counting(20), 8);
  const auto file = folder.path() / "session";
  auto writer = SessionWriter::create(file, fingerprint);
  ASSERT_TRUE(sequence_->save(*writer).ok());
  ASSERT_TRUE(writer->commit().ok());
  const std::string good = read_all(file);
  const auto restore = [&](const std::string& content, const Digest& expected) {
    const auto path = folder.write("bad", content);
    auto reader = SessionReader::open(path, expected);
    if (!reader.ok()) return std::move(reader).error().message;
    const auto status = sequence_->restore(*reader, kVocab);
    EXPECT_TRUE(status.ok() || sequence_->length() == 0);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(restore(good, fingerprint), "");
  EXPECT_NE(restore(good, Digest{9}).find("another model"), std::string::npos);
  EXPECT_NE(restore("GGUF and so on", fingerprint).find("not a saved session"), std::string::npos);
  EXPECT_NE(restore("", fingerprint), "");
  for (size_t size = 0; size < good.size(); size += size < 200 ? 1 : 97) {
    EXPECT_NE(restore(good.substr(0, size), fingerprint), "") << size;
  }
  for (size_t at = 0; at < good.size(); at += at < 200 ? 1 : 61) {
    std::string bad = good;
    bad[at] ^= 0x10;
    EXPECT_NE(restore(bad, fingerprint), "") << at;
  }
  // Every 8 bytes of the content as a number that is far too large, with a right checksum: no length is believed.
  const std::string content = good.substr(0, good.size() - 32);
  for (size_t at = 48; at + 8 <= content.size(); at += 8) {
    for (const uint64_t value : {~uint64_t{0}, uint64_t{1} << 62, uint64_t{1} << 33, uint64_t{1000000}}) {
      std::string bad = content;
      std::memcpy(bad.data() + at, &value, sizeof value);
      (void)restore(with_checksum(bad), fingerprint);
    }
  }
  uint64_t tokens = uint64_t{1} << 61;
  std::string bad = content;
  std::memcpy(bad.data() + 48, &tokens, sizeof tokens);
  EXPECT_NE(restore(with_checksum(bad), fingerprint).find("tokens has 2305843009213693952 values"), std::string::npos);
  const int32_t id = kVocab;
  bad = content;
  std::memcpy(bad.data() + 56, &id, sizeof id);
  EXPECT_NE(restore(with_checksum(bad), fingerprint).find("token id 50, allowed are 0 to 49"), std::string::npos);
  EXPECT_NE(restore(with_checksum(content + "more"), fingerprint).find("4 bytes are left"), std::string::npos);
}

// Memory is one state for a sequence, whatever else the engine could do (llama.cpp #22673).
TEST(CacheStorage, SizesAndRoundTrips) {
  const auto config = make_config(true);
  const auto storage = make_storage(config);
  EXPECT_EQ(storage->state_size(), 3 * (2 * 3 + 4) + 2 * 3 * 2);
  EXPECT_EQ(storage->page_bytes(), 2 * 2 * 16 * 4 * 4);
  EXPECT_EQ(make_storage(config, KvType::kQ8)->page_bytes(), 2 * 2 * 16 * (4 + 4));
  EXPECT_EQ(make_storage(config, KvType::kBF16)->page_bytes(), 2 * 2 * 16 * 4 * 2);
  const auto state = state_after(counting(5), storage->state_size());
  storage->write_state(1, state.data());
  std::vector<float> zeros(state.size()), found(state.size(), 1.0f);
  storage->read_state(0, found.data());
  EXPECT_EQ(found, zeros);
  storage->read_state(2, found.data());
  EXPECT_EQ(found, zeros);
  storage->read_state(1, found.data());
  EXPECT_EQ(found, state);
}

TEST(CacheStorage, RefusesBadSizes) {
  const auto config = make_config(false);
  for (const int64_t page_size : {0, 8, 24, -16}) {
    const auto storage = CacheStorage::create(config, config.layers, {.page_size = page_size, .pages = 1});
    ASSERT_FALSE(storage.ok());
    EXPECT_NE(storage.error().message.find("page size"), std::string::npos);
  }
  EXPECT_FALSE(parse_kv_type("q4").ok());
  EXPECT_EQ(*parse_kv_type("q8"), KvType::kQ8);
}

}  // namespace
}  // namespace crest::engine
