#include <functional>

#include "tokenizer_testing.h"

namespace crest::text {
namespace {

using nlohmann::json;

std::string error_of(const json& file) {
  const auto result = tokenizer_of(file.dump());
  return result.ok() ? "" : result.error().message;
}

TEST(TokenizerJson, SmallFileWorks) {
  const Tokenizer tokenizer = tokenizer_of(small_json().dump()).value();
  EXPECT_EQ(ids_of(tokenizer, "abcab<end>", {.parse_special = true}), (Ids{4, 3, 5}));
  EXPECT_EQ(ids_of(tokenizer, "cba"), (Ids{2, 1, 0}));
}

struct BadFile {
  std::string name;
  std::function<void(json&)> edit;
  std::string message;
};

// Hostile or broken files: each is refused with a message that names the thing.
TEST(TokenizerJson, RefusesBrokenFiles) {
  const auto add = [](json entry) { return [entry](json& file) { file["added_tokens"].push_back(entry); }; };
  const std::vector<BadFile> files = {
      {"merge with an unknown token", [](json& f) { f["model"]["merges"].push_back({"a", "x"}); },
       "\"x\" is not in the vocabulary"},
      {"merge whose result is no token", [](json& f) { f["model"]["merges"].push_back({"c", "c"}); },
       "\"cc\", which is not"},
      {"merge of three", [](json& f) { f["model"]["merges"].push_back({"a", "b", "c"}); }, "merge 2 is neither"},
      {"merge line without a space", [](json& f) { f["model"]["merges"].push_back("ab"); }, "merge 2 is neither"},
      {"merge line with two spaces", [](json& f) { f["model"]["merges"].push_back("a b c"); }, "merge 2 is neither"},
      {"merge of the wrong type", [](json& f) { f["model"]["merges"].push_back(7); }, "merge 2 is neither"},
      {"no merges", [](json& f) { f["model"]["merges"] = json::array(); }, "no merges"},
      {"merges missing", [](json& f) { f["model"].erase("merges"); }, "model.merges"},
      {"vocabulary missing", [](json& f) { f["model"].erase("vocab"); }, "model.vocab"},
      {"vocabulary is a list", [](json& f) { f["model"]["vocab"] = {"a", "b"}; }, "model.vocab"},
      {"one id for two tokens", [](json& f) { f["model"]["vocab"]["c"] = 1; }, "given to both"},
      {"negative id", [](json& f) { f["model"]["vocab"]["c"] = -2; }, "is -2, allowed are 0"},
      {"id of the wrong type", [](json& f) { f["model"]["vocab"]["c"] = "2"; }, "expected an integer"},
      {"id that is no integer", [](json& f) { f["model"]["vocab"]["c"] = 2.5; }, "expected an integer"},
      {"id far beyond the vocabulary", [](json& f) { f["model"]["vocab"]["c"] = 2'000'000'000; }, "allowed are 0"},
      {"id of 64 bits", [](json& f) { f["model"]["vocab"]["c"] = 18446744073709551615ULL; }, "expected an integer"},
      {"empty token", [](json& f) { f["model"]["vocab"][""] = 9; }, "is empty"},
      {"no tokens",
       [](json& f) {
         f["model"]["vocab"] = json::object(), f["model"]["merges"] = json::array(), f["added_tokens"] = json::array();
       },
       "has 0 tokens"},
      {"added token without text", add({{"id", 9}, {"content", ""}}), "no content"},
      {"added token without id", add({{"content", "<x>"}}), "no id"},
      {"added token with a negative id", add({{"id", -1}, {"content", "<x>"}}), "is -1"},
      {"added token far beyond", add({{"id", 100'000'000}, {"content", "<x>"}}), "allowed are 0"},
      {"added token on another's id", add({{"id", 0}, {"content", "<x>"}}), "given to both"},
      {"added token of 2000 bytes", add({{"id", 9}, {"content", std::string(2000, 'x')}}), "2000 bytes"},
      {"added token's flag of the wrong type", add({{"id", 9}, {"content", "<x>"}, {"special", 1}}),
       "expected true or false"},
      {"added tokens are an object", [](json& f) { f["added_tokens"] = json::object(); }, "not an array"},
      {"other model", [](json& f) { f["model"]["type"] = "Unigram"; }, "\"Unigram\" is not supported"},
      {"word prefix", [](json& f) { f["model"]["continuing_subword_prefix"] = "##"; }, "continuing_subword_prefix"},
      {"dropout", [](json& f) { f["model"]["dropout"] = 0.1; }, "dropout"},
      {"unknown token that is none", [](json& f) { f["model"]["unk_token"] = "<unk>"; }, "unk_token"},
      {"neither bytes nor pieces", [](json& f) { f["pre_tokenizer"] = nullptr; }, "neither byte-level"},
      {"other normaliser", [](json& f) { f["normalizer"] = {{"type", "Lowercase"}}; },
       "\"Lowercase\" is not supported"},
      {"normaliser without type", [](json& f) { f["normalizer"] = json::object(); }, "no \"type\""},
      {"other pre-tokeniser", [](json& f) { f["pre_tokenizer"] = {{"type", "UnicodeScripts"}}; },
       "\"UnicodeScripts\" is not supported"},
      {"other post-processor", [](json& f) { f["post_processor"] = {{"type", "BertProcessing"}}; },
       "\"BertProcessing\" is not supported"},
      {"pattern that is broken",
       [](json& f) {
         f["pre_tokenizer"] = {
             {"type", "Sequence"},
             {"pretokenizers",
              {{{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}}, f["pre_tokenizer"]}}};
       },
       "not closed"},
      {"behaviour that is none",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Sideways"}};
       },
       "Sideways"},
      {"no model", [](json& f) { f.erase("model"); }, "\"model\" is missing"},
      {"replacement of nothing",
       [](json& f) { f["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}}; },
       "empty pattern"},
  };
  for (const BadFile& file : files) {
    json edited = small_json();
    file.edit(edited);
    const std::string message = error_of(edited);
    EXPECT_NE(message.find(file.message), std::string::npos) << file.name << ": \"" << message << '"';
  }
}

TEST(TokenizerJson, RefusesWhatIsNoJson) {
  for (const std::string text :
       {"", "{", "[]", "null", "version https://git-lfs.github.com/spec/v1", "{\"model\": 1}", "{\"model\": {}} x"}) {
    EXPECT_FALSE(tokenizer_of(text).ok()) << text;
  }
  const std::string deep = "{\"model\":" + std::string(100'000, '[');
  EXPECT_FALSE(tokenizer_of(deep).ok());
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  json file = small_json();
  file["normalizer"] = nested;
  EXPECT_NE(error_of(file).find("nested too deeply"), std::string::npos);
  // A surrogate without its other half is no text.
  std::string lone = small_json().dump();
  lone.replace(lone.find("\"a\":0"), 5, "\"\\ud800\":0");
  EXPECT_FALSE(tokenizer_of(lone).ok());
}

TEST(TokenizerJson, DuplicateNamesAreFound) {
  std::string text = small_json().dump();
  text.replace(text.find("\"a\":0"), 5, "\"a\":0,\"a\":7");
  const auto result = tokenizer_of(text);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("\"a\" has two ids"), std::string::npos) << result.error().message;
}

TEST(TokenizerJson, OfTwoEqualMergesTheLaterCounts) {
  json file = small_json();
  file["model"]["vocab"]["bc"] = 6;
  file["model"]["merges"] = {"a b", "b c", "a b"};
  EXPECT_EQ(ids_of(tokenizer_of(file.dump()).value(), "abc"), (Ids{0, 6})) << "as PyPI's tokenizers has it";
}

TEST(TokenizerJson, HolesInTheIdsAreUnusedTokens) {
  json file = small_json();
  file["added_tokens"].push_back({{"id", 9}, {"content", "<x>"}});
  const Tokenizer tokenizer = tokenizer_of(file.dump()).value();
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  EXPECT_EQ(tokenizer.token_type(7), TokenType::kUnused);
  EXPECT_EQ(text_of(tokenizer, {4, 7, 9}), "abc<x>");
}

// A token's name need not be cut out to be dangerous: merging must not arrive at a control token either.
TEST(TokenizerJson, MergesNeverEndInAControlToken) {
  json file = small_json();
  file["added_tokens"].push_back({{"id", 3}, {"content", "ab"}, {"special", true}});
  const Tokenizer tokenizer = tokenizer_of(file.dump()).value();
  EXPECT_EQ(ids_of(tokenizer, "ab"), (Ids{0, 1}));
  EXPECT_EQ(ids_of(tokenizer, "abc"), Ids{2 + 2}) << "what goes through it is not lost";
  EXPECT_EQ(ids_of(tokenizer, "ab", {.parse_special = true}), Ids{3});
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(ids_of(tokenizer_of(file.dump()).value(), "ab"), (Ids{0, 1}));
}

TEST(TokenizerJson, ReplacementsCannotBlowTextUp) {
  json file = small_json();
  json grow = json::array();
  for (int i = 0; i < 8; ++i)
    grow.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(4000, 'a')}});
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", grow}};
  const auto ids = tokenizer_of(file.dump())->encode("aaaa");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().code, ErrorCode::kResourceExhausted);
}

TEST(TokenizerJson, MillionsOfMergesAreRead) {
  std::string text = small_json().dump();
  std::string merges = "\"merges\":[";
  for (int i = 0; i < 2'000'000; ++i) merges += "\"a b\",";
  const size_t begin = text.find("\"merges\":["), end = text.find("]]", begin) + 2;
  text.replace(begin, end - begin, merges + "\"ab c\"]");
  EXPECT_EQ(ids_of(tokenizer_of(text).value(), "abc"), Ids{4});
}

TEST(TokenizerJson, SettingsFilesMayBeBroken) {
  const std::string tokenizer = small_json().dump();
  HfTokenizerFiles files;
  files.tokenizer_json = tokenizer;
  files.tokenizer_config_json =
      R"({"bos_token": 7, "eos_token": "<end>", "pad_token": "no such token", "add_bos_token": "yes", "chat_template": 3})";
  files.generation_config_json = R"({"eos_token_id": ["x", -1, 5]})";
  const auto vocab = vocab_from_tokenizer_json(files);
  ASSERT_TRUE(vocab.ok()) << vocab.error().message;
  EXPECT_EQ(vocab->eos_id, 5);
  EXPECT_EQ(vocab->pad_id, kNoToken);
  files.config_json = "{";
  const auto broken = vocab_from_tokenizer_json(files);
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message.find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace crest::text
