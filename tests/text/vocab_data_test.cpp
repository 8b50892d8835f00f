#include "text/vocab_data.h"

#include "tokenizer_testing.h"

namespace crest::text {
namespace {

/// tiny.json's vocabulary as a GGUF file would give it.
VocabData tiny_as_gguf(std::string_view pre) {
  const VocabData source = vocab_of(read_test_file("tiny.json")).value();
  VocabData vocab;
  vocab.kind = vocab_kind_from_gguf("gpt2").value();
  vocab.tokens = source.tokens;
  vocab.types = source.types;
  const auto lines = merge_lines(source).value();
  vocab.merges = resolve_merges(vocab.tokens, std::vector<std::string_view>(lines.begin(), lines.end())).value();
  EXPECT_EQ(vocab.merges, source.merges);
  set_gguf_pretokenizer(vocab, pre);
  return vocab;
}

TEST(VocabData, GgufAndTokenizerJsonGiveTheSameIds) {
  const Tokenizer gguf = Tokenizer::create(tiny_as_gguf("qwen35")).value();
  for (const auto& entry : nlohmann::json::parse(read_test_file("tiny_cases.json"))) {
    EXPECT_EQ(ids_of(gguf, entry["text"].get<std::string>(), {.parse_special = true}), entry["ids"].get<Ids>());
  }
}

TEST(VocabData, PreTokeniserIsRecognisedForWriting) {
  EXPECT_EQ(vocab_of(read_test_file("tiny.json"))->pre_name, "qwen35");
  for (const std::string name : {"gpt-2", "llama-bpe", "qwen2", "qwen35", "smollm", "default"}) {
    EXPECT_EQ(gguf_pretokenizer_name(tiny_as_gguf(name)), name);
  }
  EXPECT_EQ(gguf_pretokenizer_name(tiny_as_gguf("llama3")), "llama-bpe");
  EXPECT_EQ(vocab_of(read_test_file("bytes_gpt4o.json"))->pre_name, "");
}

// Each pre-tokeniser has its own idea of digits, marks and contractions.
TEST(VocabData, PreTokenisersDiffer) {
  const auto pieces = [](std::string_view pre) {
    VocabData vocab;  // every letter is a token, nothing merges: ids count pieces only through ignore_merges
    vocab.kind = VocabKind::kByteLevelBpe;
    vocab.tokens = {"1", "2", "3", "4", "1234", "123", "12", "'S", "'", "S"};
    vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
    set_gguf_pretokenizer(vocab, pre);
    vocab.ignore_merges = true;
    return ids_of(Tokenizer::create(vocab).value(), "1234'S");
  };
  EXPECT_EQ(pieces("gpt-2"), (Ids{4, 8, 9}));
  EXPECT_EQ(pieces("llama-bpe"), (Ids{5, 3, 7}));
  EXPECT_EQ(pieces("qwen2"), (Ids{0, 1, 2, 3, 7}));
  EXPECT_EQ(pieces("smollm"), (Ids{0, 1, 2, 3, 8, 9}));
  EXPECT_EQ(pieces("default"), (Ids{5, 3, 8, 9}));
  EXPECT_EQ(pieces("never heard of"), pieces("default")) << "with a warning";
}

TEST(VocabData, DefaultsOfPreTokenisers) {
  EXPECT_TRUE(tiny_as_gguf("llama-bpe").add_bos);
  EXPECT_TRUE(tiny_as_gguf("llama-bpe").ignore_merges);
  EXPECT_FALSE(tiny_as_gguf("qwen2").add_bos);
  EXPECT_EQ(tiny_as_gguf("qwen2").normalizer.size(), 1u) << "NFC";
  EXPECT_TRUE(tiny_as_gguf("gpt2").normalizer.empty());
  EXPECT_FALSE(vocab_kind_from_gguf("bert").ok());
}

TEST(VocabData, MergesMustReferToTokens) {
  const std::vector<std::string> tokens = {"a", "b", "ab"};
  const auto error = [&](std::string_view line) {
    const auto result = resolve_merges(tokens, std::vector<std::string_view>{"a b", line});
    return result.ok() ? "" : result.error().message;
  };
  EXPECT_NE(error("a x").find("merge 1 is \"a x\", but \"x\" is not"), std::string::npos);
  for (const std::string_view line : {"", " ", "ab", "a ", " b"}) EXPECT_NE(error(line), "") << line;
  EXPECT_EQ(*resolve_merges(tokens, std::vector<std::string_view>{"a b"}), (std::vector<Merge>{{0, 1}}));
}

TEST(VocabData, CreateChecksEverything) {
  const auto error = [](auto edit) {
    VocabData vocab = tiny_as_gguf("qwen35");
    edit(vocab);
    const auto result = Tokenizer::create(std::move(vocab));
    return result.ok() ? "" : result.error().message;
  };
  EXPECT_NE(error([](VocabData& v) { v.eos_id = 8192; }).find("the EOS id is 8192, allowed are 0 to 8191"),
            std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.bos_id = -2; }).find("BOS"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.end_of_generation_ids = {1 << 30}; }).find("end-of-generation"),
            std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.added.push_back({.id = 9000}); }).find("added token"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.types.pop_back(); }).find("token types"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.types[3] = static_cast<TokenType>(9); }).find("type of token 3 is 9"),
            std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.scores.resize(5); }).find("5 scores"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.merges.push_back({0, 8192}); }).find("8192"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.merges.push_back({-1, 0}); }).find("merge"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.merges.push_back({8191, 8191}); }).find("not in the vocabulary"),
            std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.merges.clear(); }).find("no merges"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.tokens[8185].clear(); }).find("added token 8185 is empty"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.splits[0].pattern = "("; }).find("not closed"), std::string::npos);
  EXPECT_NE(error([](VocabData& v) { v.tokens.clear(), v.types.clear(); }).find("0 tokens"), std::string::npos);
}

}  // namespace
}  // namespace crest::text
