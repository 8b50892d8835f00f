// Bytes as a tokenizer.json and a text to encode with it. The input is cut at the first NUL: what stands before is the
// file, what stands behind is the text. Whatever loads must encode without a fault, and what encodes must decode; with
// the small sound vocabulary below, the text must come back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/log.h"
#include "text/byte_alphabet.h"
#include "text/normalize.h"
#include "text/tokenizer.h"

namespace {

using crest::text::HfTokenizerFiles;
using crest::text::Segment;
using crest::text::StreamDecoder;
using crest::text::Tokenizer;

void require(bool condition) {
  if (!condition) std::abort();
}

/// A byte-level vocabulary with every byte, a few merges, a control and a user-defined token.
Tokenizer sound_tokenizer() {
  crest::text::VocabData vocab;
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    vocab.tokens.push_back(crest::text::letters_of_bytes({&letter, 1}));
  }
  const auto merge = [&](int left, int right) {
    vocab.merges.push_back({left, right});
    vocab.tokens.push_back(vocab.tokens[static_cast<size_t>(left)] + vocab.tokens[static_cast<size_t>(right)]);
  };
  merge('a', 'b'), merge('a', 'a'), merge(257, 257), merge(' ', 'a'), merge(0xE6, 0xAD), merge('<', '|');
  vocab.types.assign(vocab.tokens.size(), crest::text::TokenType::kNormal);
  vocab.tokens.insert(vocab.tokens.end(), {"<|end|>", "<think>"});
  vocab.types.insert(vocab.types.end(), {crest::text::TokenType::kControl, crest::text::TokenType::kUserDefined});
  crest::text::set_gguf_pretokenizer(vocab, "qwen35");
  return Tokenizer::create(std::move(vocab)).value();
}

void encode_with(const Tokenizer& tokenizer, std::string_view text, bool must_come_back) {
  for (const bool special : {false, true}) {
    const auto ids = tokenizer.encode(text, {.parse_special = special, .add_special = !must_come_back});
    if (!ids.ok()) continue;
    const auto back = tokenizer.decode(*ids, {.skip_special = false, .at_start = true});
    require(back.ok());
    StreamDecoder stream(tokenizer, {.skip_special = false, .at_start = true});
    std::string joined;
    for (const auto id : *ids) {
      require(tokenizer.is_valid(id));
      require(special || !must_come_back || !tokenizer.is_control(id));
      joined += stream.push(id);
    }
    require(joined + stream.finish() == crest::text::to_valid_utf8(*back));
    if (must_come_back) require(*back == crest::text::normalize_nfc(text));
  }
  const size_t half = text.size() / 2;
  const std::vector<Segment> segments = {{std::string(text.substr(0, half)), true},
                                         {std::string(text.substr(half)), false}};
  (void)tokenizer.encode(segments);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  crest::core::set_log_level(crest::core::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer sound = sound_tokenizer();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view text = cut == std::string_view::npos ? input : input.substr(cut + 1);
  encode_with(sound, text, true);
  HfTokenizerFiles files;
  files.tokenizer_json = input.substr(0, cut);
  auto vocab = crest::text::vocab_from_tokenizer_json(files);
  if (!vocab.ok()) return 0;
  const auto tokenizer = Tokenizer::create(*std::move(vocab));
  if (tokenizer.ok()) encode_with(*tokenizer, text, false);
  return 0;
}
