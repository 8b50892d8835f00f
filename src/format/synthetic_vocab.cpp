#include "format/synthetic_vocab.h"

#include <algorithm>
#include <string>

namespace crest::format {
namespace {

using text::TokenId;
using text::TokenType;

constexpr const char* kControl[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
constexpr const char* kUser[] = {"<think>",      "</think>",        "<tool_call>",
                                 "</tool_call>", "<tool_response>", "</tool_response>"};
constexpr const char* kChatMl =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::string utf8(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's alphabet: printable bytes stand for themselves, the others for U+0100 and up.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> letters;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    letters.push_back(utf8(printable ? byte : next++));
  }
  return letters;
}

std::string_view pre_name(Family family) {
  switch (family) {
    case Family::kQwen35:
    case Family::kQwen35Moe:
      return "qwen35";
    case Family::kQwen2:
    case Family::kQwen3:
    case Family::kQwen3Moe:
      return "qwen2";
    case Family::kLlama:
      return "llama-bpe";
    case Family::kGemma3:
      return "gpt-2";
  }
  return "gpt-2";
}

}  // namespace

text::VocabData synthetic_vocab(int64_t size, Family family) {
  CREST_CHECK(size >= kMinSyntheticVocab, "a vocabulary of {}", size);
  text::VocabData vocab;
  vocab.kind = text::VocabKind::kByteLevelBpe;
  vocab.tokens = byte_alphabet();
  // Frequent bytes first, so that small vocabularies merge letters and not control codes.
  std::vector<TokenId> letters;
  for (const char c : std::string_view(" etaoinshrdlucmfwypvbgkjxqz.,-\nETAOINSHRDLUCMFWYPVBGKJXQZ0123456789"))
    letters.push_back(c);
  const auto seldom = static_cast<TokenId>(letters.size());
  for (TokenId byte = 0; byte < 256; ++byte) {
    if (std::find(letters.begin(), letters.begin() + seldom, byte) == letters.begin() + seldom) letters.push_back(byte);
  }
  const auto words = static_cast<size_t>(size) - std::size(kControl) - std::size(kUser);
  // Level by level: each token of the level before, lengthened by each letter.
  std::vector<TokenId> stems = letters;
  while (vocab.tokens.size() < words) {
    std::vector<TokenId> longer;
    for (const TokenId stem : stems) {
      for (const TokenId letter : letters) {
        if (vocab.tokens.size() == words) break;
        longer.push_back(static_cast<TokenId>(vocab.tokens.size()));
        vocab.merges.push_back({stem, letter});
        vocab.tokens.push_back(vocab.tokens[static_cast<size_t>(stem)] + vocab.tokens[static_cast<size_t>(letter)]);
      }
    }
    stems = std::move(longer);
  }
  vocab.types.assign(words, TokenType::kNormal);
  for (const char* name : kControl) {
    vocab.tokens.emplace_back(name);
    vocab.types.push_back(TokenType::kControl);
  }
  for (const char* name : kUser) {
    vocab.tokens.emplace_back(name);
    vocab.types.push_back(TokenType::kUserDefined);
  }
  vocab.pre_name = pre_name(family);
  vocab.pad_id = static_cast<TokenId>(words);
  vocab.eos_id = static_cast<TokenId>(words) + 2;
  vocab.end_of_generation_ids = {vocab.pad_id};
  vocab.chat_template = kChatMl;
  return vocab;
}

}  // namespace crest::format
