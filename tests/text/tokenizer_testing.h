#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace crest::text {

using Ids = std::vector<TokenId>;

inline std::string read_test_file(std::string_view name) {
  std::ifstream file(std::string(CREST_TEST_DATA "/tokenizer/") + std::string(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Result<VocabData> vocab_of(std::string_view tokenizer_json) {
  HfTokenizerFiles files;
  files.tokenizer_json = tokenizer_json;
  return vocab_from_tokenizer_json(files);
}

inline Result<Tokenizer> tokenizer_of(std::string_view tokenizer_json) {
  CREST_TRY(VocabData vocab, vocab_of(tokenizer_json));
  return Tokenizer::create(std::move(vocab));
}

/// A tokeniser from tests/data; the test aborts when it cannot be built.
inline Tokenizer load_tokenizer(std::string_view name) { return tokenizer_of(read_test_file(name)).value(); }

inline Ids ids_of(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok());
  return std::move(ids).value();
}

inline std::string text_of(const Tokenizer& tokenizer, const Ids& ids, DecodeOptions options = {}) {
  auto text = tokenizer.decode(ids, options);
  EXPECT_TRUE(text.ok());
  return std::move(text).value();
}

/// The tokenizer.json of a few tokens, for edits: byte-level "a" to "c" and what merges make of them.
inline nlohmann::json small_json() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "added_tokens": [{"id": 5, "content": "<end>", "special": true, "normalized": false}],
    "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": [["a", "b"], ["ab", "c"]]}})");
}

/// A GGUF-like SentencePiece vocabulary: <unk> <s> </s>, byte tokens, then (text, score) pairs.
inline VocabData small_sentencepiece(const std::vector<std::pair<std::string, float>>& pieces) {
  VocabData vocab;
  vocab.kind = VocabKind::kSentencePieceBpe;
  vocab.tokens = {"<unk>", "<s>", "</s>"};
  vocab.types = {TokenType::kUnknown, TokenType::kControl, TokenType::kControl};
  for (int byte = 0; byte < 256; ++byte) {
    vocab.tokens.push_back(fmt::format("<0x{:02X}>", byte));
    vocab.types.push_back(TokenType::kByte);
  }
  vocab.scores.assign(vocab.tokens.size(), 0.0F);
  for (const auto& [text, score] : pieces) {
    vocab.tokens.push_back(text);
    vocab.types.push_back(TokenType::kNormal);
    vocab.scores.push_back(score);
  }
  set_gguf_pretokenizer(vocab, "default");
  return vocab;
}

}  // namespace crest::text
