#include "text/tokenizer.h"

#include <random>

#include "text/normalize.h"
#include "text/unicode.h"
#include "tokenizer_testing.h"

namespace crest::text {
namespace {

constexpr EncodeOptions kParseSpecial = {.parse_special = true};

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = load_tokenizer("tiny.json");
  return tokenizer;
}

// tests/data/tokenizer/tiny_cases.json: texts and ids of the trained test model's own tokeniser, special tokens parsed.
TEST(Tokenizer, TinyModelsCases) {
  const auto cases = nlohmann::json::parse(read_test_file("tiny_cases.json"));
  ASSERT_GT(cases.size(), 10u);
  for (const auto& entry : cases) {
    const std::string text = entry["text"];
    EXPECT_EQ(ids_of(tiny(), text, kParseSpecial), entry["ids"].get<Ids>()) << text;
    EXPECT_EQ(text_of(tiny(), entry["ids"].get<Ids>()), normalize_nfc(text)) << text;
  }
}

// tests/data/tokenizer/cases.json: many kinds of tokenizer.json, texts, and PyPI tokenizers' ids
// (tests/oracle/make_tokenizer_data.py).
TEST(Tokenizer, EveryKindOfTokenizerJson) {
  const auto file = nlohmann::json::parse(read_test_file("cases.json"));
  const auto texts = file["texts"].get<std::vector<std::string>>();
  ASSERT_GT(file["cases"].size(), 30u);
  for (const auto& entry : file["cases"]) {
    const Tokenizer tokenizer = load_tokenizer(entry["vocabulary"].get<std::string>());
    const auto ids = entry["ids"].get<std::vector<Ids>>();
    ASSERT_EQ(ids.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(ids_of(tokenizer, texts[i], {.parse_special = entry["special"].get<bool>()}), ids[i])
          << entry["vocabulary"] << ": \"" << texts[i] << '"';
    }
  }
}

// Fault: merges written as pairs are not read, so that every byte is a token; merges applied from left to right instead
// of by rank.
TEST(Tokenizer, MergesAsPairsAndAsLines) {
  const Ids expected = {2047, 2262, 11, 273, 4078, 2407, 78};
  auto json = nlohmann::json::parse(read_test_file("tiny.json"));
  ASSERT_TRUE(json["model"]["merges"][0].is_array());
  EXPECT_EQ(ids_of(tiny(), "import os, the volcano"), expected);
  for (auto& merge : json["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_EQ(ids_of(tokenizer_of(json.dump()).value(), "import os, the volcano"), expected);
  json["model"]["merges"] = nlohmann::json::array();
  const auto none = tokenizer_of(json.dump());
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("no merges"), std::string::npos) << none.error().message;
}

// Fault: text that ends inside a character aborts the program or loses bytes.
TEST(Tokenizer, KeepsBytesThatAreNotUtf8) {
  EXPECT_EQ(ids_of(tiny(), "\xE6\xAD"), (Ids{162, 255}));
  EXPECT_EQ(ids_of(tiny(), "\xE6\xAD\xAA"), (Ids{162, 255, 103}));
  const std::vector<std::string> texts = {
      "a line \xE6\xAD in the middle\n", "\x80",         "\xED\xA0\x80", "\xC0\x80",
      std::string("\0a\0", 3),           "\xFF\xFE\xFD", "é\xE6",        "  \xE6  x"};
  for (const std::string& text : texts) {
    for (const bool special : {false, true}) {
      EXPECT_EQ(text_of(tiny(), ids_of(tiny(), text, {.parse_special = special})), text);
    }
  }
}

// Fault: a message that spells a control token becomes that token.
TEST(Tokenizer, TextNeverBecomesAControlToken) {
  const Ids parsed = ids_of(tiny(), "<|im_start|>user\n<think>x</think><|im_end|>", kParseSpecial);
  EXPECT_EQ(parsed, (Ids{8184, 327, 198, 8190, 87, 8191, 8185}));
  const Ids plain = ids_of(tiny(), "<|im_start|>user\n<think>x</think><|im_end|>");
  for (const TokenId id : plain) EXPECT_FALSE(tiny().is_control(id));
  EXPECT_EQ(text_of(tiny(), plain), "<|im_start|>user\n<think>x</think><|im_end|>");
  EXPECT_NE(std::find(plain.begin(), plain.end(), 8190), plain.end()) << "user-defined tokens are always cut out";
}

TEST(Tokenizer, SegmentsAreOneTextButForControlTokens) {
  const std::vector<Segment> chat = {{"<|im_start|>user\nWhat is", true},
                                     {" a vol", false},
                                     {"cano?<|im_", false},
                                     {"end|>", true},
                                     {"<|im_end|>\n", true}};
  const auto ids = tiny().encode(chat);
  ASSERT_TRUE(ids.ok());
  std::string all;
  for (const Segment& segment : chat) all += segment.text;
  EXPECT_EQ(text_of(tiny(), *ids), all);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), 8184), 1);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), 8185), 1) << "the one that straddles the seam is text";
  const std::vector<Segment> words = {{"What is", true}, {" a vol", false}, {"cano?", false}};
  EXPECT_EQ(*tiny().encode(words), ids_of(tiny(), "What is a volcano?")) << "merges reach over seams";
}

TEST(Tokenizer, SegmentsCutAnywhereGiveTheSameIds) {
  const std::string text = "don't 12 naïve e\u0301 <think>日本語  \n\n x</think> tail";
  const Ids whole = ids_of(tiny(), text);
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Segment> segments;
    for (size_t i = 0; i < text.size();) {
      const size_t length = 1 + random() % 9;
      segments.push_back({text.substr(i, length), random() % 2 == 0});
      i += length;
    }
    EXPECT_EQ(*tiny().encode(segments), whole);
  }
}

// Fault: the start of a trusted control token is swallowed by a token that untrusted text began.
TEST(Tokenizer, UntrustedTextCannotTakeAControlTokenAway) {
  auto json = small_json();
  json["added_tokens"].push_back({{"id", 6}, {"content", "c<"}, {"special", false}});
  json["added_tokens"].push_back({{"id", 7}, {"content", "b<end"}, {"special", true}});
  const Tokenizer tokenizer = tokenizer_of(json.dump()).value();
  EXPECT_EQ(ids_of(tokenizer, "c<end>", kParseSpecial), (Ids{6}))
      << "as the library does; e, n, d and > have no token here";
  EXPECT_EQ(*tokenizer.encode(std::vector<Segment>{{"abc", false}, {"<end>", true}}), (Ids{4, 5}));
  EXPECT_EQ(*tokenizer.encode(std::vector<Segment>{{"ab", false}, {"<end>", true}}), (Ids{3, 5}));
  EXPECT_EQ(*tokenizer.encode(std::vector<Segment>{{"ab<end>", false}, {"<end>", true}}), (Ids{3, 5}));
}

// Fault: a character split over tokens is replaced, or the generation ends in a bare byte.
TEST(Tokenizer, StreamHoldsUnfinishedCharactersBack) {
  const auto push_all = [](StreamDecoder& stream, const Ids& ids) {
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    return text;
  };
  StreamDecoder stream(tiny());
  EXPECT_EQ(push_all(stream, {865, 69, 127}), "caf");
  EXPECT_EQ(stream.pending(), "\xC3");
  EXPECT_EQ(push_all(stream, {102}), "é");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(push_all(stream, {172, 253, 99, 247}), "🦙");
  EXPECT_EQ(push_all(stream, {127}), "");
  EXPECT_EQ(stream.finish(), "\uFFFD") << "cut in the middle of a character";
  StreamDecoder shows(tiny(), {.skip_special = false, .at_start = false});
  EXPECT_EQ(push_all(shows, {127, 8185, 87}), "\uFFFD<|im_end|>x");
  EXPECT_EQ(text_of(tiny(), {865, 69, 127}), "caf\xC3") << "decode gives the bytes";
  EXPECT_EQ(push_all(shows, {-1, 1 << 30}), "");
}

TEST(Tokenizer, StreamEqualsDecodeWhereverItIsCut) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Ids ids(1 + random() % 40);
    for (TokenId& id : ids)
      id = random() % 3 == 0 ? static_cast<TokenId>(random() % 8192) : static_cast<TokenId>(93 + random() % 170);
    for (const bool skip : {false, true}) {
      const DecodeOptions options{.skip_special = skip, .at_start = false};
      StreamDecoder stream(tiny(), options);
      std::string joined;
      for (const TokenId id : ids) {
        const std::string part = stream.push(id);
        EXPECT_EQ(part, to_valid_utf8(part));
        joined += part;
      }
      joined += stream.finish();
      EXPECT_EQ(joined, to_valid_utf8(text_of(tiny(), ids, options)));
    }
  }
}

TEST(Tokenizer, DecodeKeepsUserDefinedAndSkipsControl) {
  const Ids ids = {8184, 8190, 87, 8191, 8185};
  EXPECT_EQ(text_of(tiny(), ids), "<|im_start|><think>x</think><|im_end|>");
  EXPECT_EQ(text_of(tiny(), ids, {.skip_special = true}), "<think>x</think>");
  for (const TokenId bad : {-1, 8192}) {
    const auto result = tiny().decode(Ids{1, bad});
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().message.find("8191"), std::string::npos);
  }
}

TEST(Tokenizer, LooksTokensUp) {
  EXPECT_EQ(tiny().vocab_size(), 8192);
  EXPECT_EQ(tiny().find("<|im_end|>"), 8185);
  EXPECT_EQ(tiny().find("no such token"), std::nullopt);
  EXPECT_TRUE(tiny().is_control(8185));
  EXPECT_FALSE(tiny().is_control(8190));
  EXPECT_FALSE(tiny().is_control(-1));
  EXPECT_EQ(tiny().token_text(*tiny().find("Ġ")), " ");
  EXPECT_EQ(tiny().token_name(*tiny().find("Ġ")), "Ġ");
  EXPECT_EQ(tiny().token_text(-5), "");
  EXPECT_EQ(tiny().token_type(8190), TokenType::kUserDefined);
}

// Fault: the end of turn is taken from one file only. <|im_start|> is not an end.
TEST(Tokenizer, EndsOfGenerationAreTheUnionOfAllSources) {
  const std::string json = read_test_file("tiny.json");
  HfTokenizerFiles files;
  files.tokenizer_json = json;
  files.tokenizer_config_json =
      R"({"eos_token": {"content": "<|im_end|>"}, "chat_template": [{"name": "default", "template": "d"}, {"name": "t", "template": "u"}]})";
  files.generation_config_json = R"({"eos_token_id": [8191, 99999], "bos_token_id": 8183})";
  files.config_json = R"({"text_config": {"eos_token_id": 8187}})";
  const Tokenizer tokenizer = Tokenizer::create(vocab_from_tokenizer_json(files).value()).value();
  const auto ends = tokenizer.end_of_generation_ids();
  EXPECT_EQ(Ids(ends.begin(), ends.end()), (Ids{8183, 8185, 8187, 8191}));
  EXPECT_FALSE(tokenizer.is_end_of_generation(8184));
  EXPECT_EQ(tokenizer.eos_id(), 8185);
  EXPECT_EQ(tokenizer.bos_id(), 8183);
  EXPECT_EQ(tokenizer.vocab().chat_template, "d");
  EXPECT_EQ(tokenizer.vocab().named_chat_templates.at(0).second, "u");
}

// Fault: BOS twice, once from the template and once from the tokeniser.
TEST(Tokenizer, AddsBosOnce) {
  const Tokenizer tokenizer = load_tokenizer("pieces_llama.json");
  ASSERT_TRUE(tokenizer.adds_bos());
  const Ids plain = ids_of(tokenizer, "Hello");
  const Ids with_bos = ids_of(tokenizer, "Hello", {.add_special = true});
  ASSERT_EQ(with_bos.size(), plain.size() + 1);
  EXPECT_EQ(with_bos[0], 1);
  EXPECT_EQ(ids_of(tokenizer, "<s>Hello", {.parse_special = true, .add_special = true}), with_bos);
  EXPECT_EQ(ids_of(tokenizer, "", {.add_special = true}), Ids{1});
  EXPECT_EQ(ids_of(tokenizer, ""), Ids{});
}

TEST(Tokenizer, RoundTripsRandomBytesAndCharacters) {
  std::mt19937 random(17);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const bool bytes = round % 2 == 0;
    for (size_t i = random() % 30; i > 0; --i) {
      if (bytes) {
        text.push_back(static_cast<char>(random() % 256));
      } else {
        append_character(text, random() % 4 == 0 ? random() % 0xD800 : random() % 0x250);
      }
    }
    const Ids ids = ids_of(tiny(), text, {.parse_special = round % 3 == 0});
    EXPECT_EQ(text_of(tiny(), ids), normalize_nfc(text));
  }
}

}  // namespace
}  // namespace crest::text
