#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crest::text {

/// GPT-2's alphabet of byte-level BPE: printable Latin-1 bytes stand for themselves, the others for U+0100, U+0101, ...
/// in order.
const std::array<char32_t, 256>& byte_alphabet();

/// A token's bytes, or nothing when it contains a character outside the alphabet.
std::optional<std::string> bytes_of_letters(std::string_view letters);
/// The inverse: bytes to the alphabet's letters (UTF-8).
std::string letters_of_bytes(std::string_view bytes);

/// The byte of a SentencePiece byte token ("<0x0A>").
std::optional<uint8_t> byte_of_hex_token(std::string_view token);
std::string hex_token_of_byte(uint8_t byte);

}  // namespace crest::text
