#include "format/vocab_metadata.h"

#include <gtest/gtest.h>

#include "format/gguf_builder.h"
#include "format/model_file.h"
#include "testing/temporary_folder.h"

namespace crest::format {
namespace {

using text::TokenId;
using text::TokenType;
using text::VocabData;

Metadata gpt2() {
  Metadata m("file");
  m.set("tokenizer.ggml.model", Value::string("gpt2"));
  m.set("tokenizer.ggml.pre", Value::string("qwen2"));
  m.set("tokenizer.ggml.tokens", Value::strings({"a", "b", "ab", "<|end|>", "<|x|>"}));
  const std::vector<int32_t> types = {1, 1, 1, 3, 4};
  m.set("tokenizer.ggml.token_type", Value::i32s(types));
  m.set("tokenizer.ggml.merges", Value::strings({"a b"}));
  m.set("tokenizer.ggml.eos_token_id", Value::u32(3));
  return m;
}

std::string error_of(const Metadata& m) {
  const auto vocab = vocab_from_metadata(m);
  return vocab.ok() ? "" : vocab.error().message;
}

TEST(VocabMetadata, ByteLevel) {
  Metadata m = gpt2();
  m.set("tokenizer.ggml.eom_token_id", Value::u32(4));
  m.set("tokenizer.ggml.bos_token_id", Value::u32(0xffffffff));
  m.set("tokenizer.ggml.padding_token_id", Value::i32(-1));
  m.set("tokenizer.ggml.add_bos_token", Value::boolean(true));
  m.set("tokenizer.chat_template", Value::string("T"));
  m.set("tokenizer.chat_template.tool_use", Value::string("U"));
  const auto vocab = vocab_from_metadata(m);
  ASSERT_TRUE(vocab.ok()) << vocab.error().message;
  EXPECT_EQ(vocab->kind, text::VocabKind::kByteLevelBpe);
  EXPECT_EQ(vocab->pre_name, "qwen2");
  EXPECT_EQ(vocab->types[3], TokenType::kControl);
  EXPECT_EQ(vocab->merges, (std::vector<text::Merge>{{0, 1}}));
  EXPECT_EQ(vocab->eos_id, 3);
  EXPECT_EQ(vocab->bos_id, text::kNoToken);
  EXPECT_EQ(vocab->pad_id, text::kNoToken);
  EXPECT_EQ(vocab->end_of_generation_ids, (std::vector<TokenId>{4}));
  EXPECT_TRUE(vocab->add_bos);
  EXPECT_EQ(vocab->chat_template, "T");
  ASSERT_EQ(vocab->named_chat_templates.size(), 1u);
  EXPECT_EQ(vocab->named_chat_templates[0].first, "tool_use");
}

TEST(VocabMetadata, SentencePiece) {
  Metadata m("file");
  m.set("tokenizer.ggml.model", Value::string("llama"));
  m.set("tokenizer.ggml.tokens", Value::strings({"<unk>", "<s>", "</s>", "▁a"}));
  const std::vector<float> scores = {0, 0, 0, -1};
  m.set("tokenizer.ggml.scores", Value::f32s(scores));
  m.set("tokenizer.ggml.add_space_prefix", Value::boolean(false));
  const auto vocab = vocab_from_metadata(m);
  ASSERT_TRUE(vocab.ok()) << vocab.error().message;
  EXPECT_EQ(vocab->kind, text::VocabKind::kSentencePieceBpe);
  EXPECT_EQ(vocab->scores[3], -1);
  EXPECT_FALSE(vocab->add_space_prefix);
  EXPECT_EQ(vocab->eos_id, 2);
  EXPECT_EQ(vocab->bos_id, 1);
}

TEST(VocabMetadata, BrokenFieldsAreNamed) {
  const auto check = [](std::string_view key, Value value, std::string_view word) {
    Metadata m = gpt2();
    m.set(key, std::move(value));
    EXPECT_NE(error_of(m).find(word), std::string::npos) << key << ": " << error_of(m);
  };
  const std::vector<int32_t> short_types = {1, 1}, wrong_types = {1, 1, 1, 1, 9};
  check("tokenizer.ggml.model", Value::string("bert"), "bert");
  check("tokenizer.ggml.tokens", Value::u32(4), "tokenizer.ggml.tokens is u32, expected an array of strings");
  check("tokenizer.ggml.token_type", Value::i32s(short_types), "has 2 entries, expected 5");
  check("tokenizer.ggml.token_type", Value::i32s(wrong_types), "[4] is 9, allowed is 0 to 6");
  // The scores of another type, read as floats by a careless reader.
  check("tokenizer.ggml.scores", Value::raw(ValueType::kU8, std::string(3, 'x'), true), "has 3 entries, expected 5");
  check("tokenizer.ggml.scores", Value::strings({"a"}), "expected an array of numbers");
  check("tokenizer.ggml.merges", Value::strings({"a q"}), "tokenizer.ggml.merges");
  check("tokenizer.ggml.eos_token_id", Value::u64(1ull << 40), "eos_token_id is 1099511627776");
  check("tokenizer.ggml.eos_token_id", Value::string("3"), "eos_token_id is string, expected an integer");
  check("tokenizer.ggml.add_bos_token", Value::string("yes"), "add_bos_token is string, expected a boolean");
  Metadata none("file");
  EXPECT_EQ(error_of(none), "file: metadata key tokenizer.ggml.model is missing");
}

TEST(VocabMetadata, RoundTrip) {
  const auto vocab = vocab_from_metadata(gpt2());
  ASSERT_TRUE(vocab.ok());
  VocabData more = *vocab;
  more.end_of_generation_ids = {3, 4};
  more.named_chat_templates = {{"rag", "R"}};
  Metadata written("again");
  ASSERT_TRUE(vocab_to_metadata(more, {}, written).ok());
  // llama.cpp knows eos and eot only: the second id fills eot.
  EXPECT_EQ(*written.integer("tokenizer.ggml.eot_token_id", 0, 9), 4);
  const auto again = vocab_from_metadata(written);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->tokens, more.tokens);
  EXPECT_EQ(again->merges, more.merges);
  EXPECT_EQ(again->splits, more.splits);
  EXPECT_EQ(again->end_of_generation_ids, (std::vector<TokenId>{4}));
  EXPECT_EQ(again->named_chat_templates, more.named_chat_templates);
}

// A tokenizer.json whose steps have no name in GGUF: they travel as they are.
TEST(VocabMetadata, StepsWithoutAName) {
  const std::string json =
      R"({"added_tokens":[{"id":3,"content":"<|end|>","special":true,"single_word":false,"lstrip":true,"rstrip":false,"normalized":false}],
"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,2}"},
"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";
  text::HfTokenizerFiles files;
  files.tokenizer_json = json;
  auto vocab = text::vocab_from_tokenizer_json(files);
  ASSERT_TRUE(vocab.ok()) << vocab.error().message;
  ASSERT_EQ(vocab->pre_name, "");
  ASSERT_TRUE(pad_vocab(*vocab, 6, "x").ok());
  Metadata m("file");
  EXPECT_FALSE(vocab_to_metadata(*vocab, {}, m).ok());
  ASSERT_TRUE(vocab_to_metadata(*vocab, json, m).ok());
  const auto again = vocab_from_metadata(m);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->tokens, vocab->tokens);
  EXPECT_EQ(again->splits, vocab->splits);
  EXPECT_EQ(again->normalizer, vocab->normalizer);
  EXPECT_EQ(again->added, vocab->added);
  m.set("tokenizer.ggml.tokens", Value::strings({"b", "a", "ab", "<|end|>", "c", "d"}));
  EXPECT_NE(error_of(m).find("has other tokens"), std::string::npos) << error_of(m);
}

// SentencePiece merges ranked in a tokenizer.json become scores that rank them alike.
TEST(VocabMetadata, ScoresFromMerges) {
  VocabData vocab;
  vocab.kind = text::VocabKind::kSentencePieceBpe;
  vocab.tokens = {"<unk>", "a", "b", "c", "bc", "ab", "abc"};
  vocab.types.assign(7, TokenType::kNormal);
  vocab.types[0] = TokenType::kUnknown;
  vocab.merges = {{2, 3}, {1, 2}, {1, 4}, {5, 3}};
  Metadata m("file");
  ASSERT_TRUE(vocab_to_metadata(vocab, {}, m).ok());
  const auto scores = *m.numbers("tokenizer.ggml.scores");
  EXPECT_GT(scores[4], scores[5]);
  EXPECT_GT(scores[5], scores[6]);
  EXPECT_EQ(scores[6], -2);
  vocab.merges.push_back({1, 99});
  EXPECT_FALSE(vocab_to_metadata(vocab, {}, m).ok());
}

// Vocabulary and embedding must agree: more tokens than rows would be looked up behind the end.
TEST(VocabMetadata, TokensAndEmbeddingRows) {
  const auto with_rows = [](int64_t rows) {
    GgufBuilder b;
    b.metadata = gpt2();
    b.set("general.architecture", Value::string("qwen3"));
    if (rows > 0) b.f32("token_embd.weight", {2, rows});
    const crest::testing::TemporaryFolder folder;
    const auto model = ModelFile::open(folder.write("m.gguf", b.bytes()));
    EXPECT_TRUE(model.ok());
    return (*model)->vocab();
  };
  EXPECT_EQ(with_rows(0)->tokens.size(), 5u);
  EXPECT_EQ(with_rows(5)->tokens.size(), 5u);
  const auto more = with_rows(7);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->tokens.size(), 7u);
  EXPECT_EQ(more->types[6], TokenType::kUnused);
  const auto fewer = with_rows(4);
  ASSERT_FALSE(fewer.ok());
  EXPECT_NE(fewer.error().message.find("5 tokens, but the embedding has 4 rows"), std::string::npos);
}

}  // namespace
}  // namespace crest::format
