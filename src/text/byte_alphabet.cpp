#include "text/byte_alphabet.h"

#include <fmt/format.h>

#include "text/unicode.h"

namespace crest::text {
namespace {

constexpr char32_t kLettersEnd = 0x144;

std::array<int16_t, kLettersEnd> make_inverse() {
  std::array<int16_t, kLettersEnd> inverse;
  inverse.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) inverse[byte_alphabet()[byte]] = static_cast<int16_t>(byte);
  return inverse;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

const std::array<char32_t, 256>& byte_alphabet() {
  static const auto alphabet = [] {
    std::array<char32_t, 256> letters{};
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      letters[byte] = printable ? byte : next++;
    }
    return letters;
  }();
  return alphabet;
}

std::optional<std::string> bytes_of_letters(std::string_view letters) {
  static const auto inverse = make_inverse();
  std::string bytes;
  for (size_t i = 0; i < letters.size();) {
    const auto [code, length] = decode_character(letters.substr(i));
    if (code >= kLettersEnd || inverse[code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(inverse[code]));
    i += length;
  }
  return bytes;
}

std::string letters_of_bytes(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) append_character(letters, byte_alphabet()[static_cast<uint8_t>(byte)]);
  return letters;
}

std::optional<uint8_t> byte_of_hex_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

std::string hex_token_of_byte(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace crest::text
