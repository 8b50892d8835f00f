#include "text/tokenizer_tables.h"

namespace crest::text {
namespace {

struct Utf8Step {
  size_t length = 0;  ///< bytes of the character, or of the maximal part of one
  bool complete = false;
  bool may_continue = false;  ///< the text ends where the character would go on
};

/// The first character of a text that is not empty (Unicode Standard, table 3-7).
Utf8Step next_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 1;
  if (length == 1) return {1};
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, false, true};
    const uint8_t low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < low || byte(i) > high) return {i};
  }
  return {length, true};
}

/// Moves all complete characters of `bytes` to `out`; with `all`, also what is unfinished at the end.
void take_characters(std::string& bytes, bool all, std::string& out) {
  size_t done = 0;
  while (done < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(done);
    const Utf8Step step = next_character(rest);
    if (step.may_continue && !all) break;
    out += step.complete ? rest.substr(0, step.length) : "\xEF\xBF\xBD";
    done += step.length;
  }
  bytes.erase(0, done);
}

}  // namespace

void Tokenizer::Tables::append(TokenId id, const DecodeOptions& options, bool& strip, std::string& out) const {
  const TokenType token_type = type(id);
  const bool is_control = token_type == TokenType::kControl || token_type == TokenType::kUnknown;
  std::string_view bytes = text(id);
  if (is_control || token_type == TokenType::kUserDefined) {
    if (!is_control || !options.skip_special) out += bytes;
    strip = strips_after_added;
    return;
  }
  if (strip && bytes.starts_with(' ')) bytes.remove_prefix(1);
  if (!text(id).empty()) strip = false;
  out += bytes;
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string out;
  bool strip = options.at_start && tables_->strips_start;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!is_valid(ids[i])) {
      return make_error(ErrorCode::kInvalidArgument,
                        "id {} (at position {}) is not in the vocabulary, allowed are 0 to {}", ids[i], i,
                        vocab_size() - 1);
    }
    tables_->append(ids[i], options, strip, out);
  }
  return out;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(options), strip_space_(options.at_start && tokenizer.tables_->strips_start) {}

std::string StreamDecoder::push(TokenId id) {
  std::string out;
  if (!tokenizer_->is_valid(id)) return out;
  tokenizer_->tables_->append(id, options_, strip_space_, pending_);
  take_characters(pending_, false, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  take_characters(pending_, true, out);
  return out;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string copy(bytes), out;
  out.reserve(bytes.size());
  take_characters(copy, true, out);
  return out;
}

}  // namespace crest::text
