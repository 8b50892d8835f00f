#include "text/unicode.h"

#include <gtest/gtest.h>

#include "core/sha256.h"
#include "text/normalize.h"
#include "text/tokenizer.h"

namespace crest::text {
namespace {

constexpr std::array<std::string_view, 30> kNames = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                     "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                     "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

void update(core::Sha256& hash, std::string_view text) {
  hash.update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string hex(core::Sha256& hash) {
  std::string text;
  for (const uint8_t byte : hash.digest()) text += fmt::format("{:02x}", byte);
  return text;
}

// The hashes are of the same strings made by PyPI's unicodedata2 18.0.0.
TEST(Unicode, CategoriesOfEveryCodePoint) {
  core::Sha256 hash;
  for (char32_t code = 0; code <= kLastCodePoint; ++code) update(hash, kNames[static_cast<size_t>(category(code))]);
  EXPECT_EQ(hex(hash), "72b91c54a82b3206b49e6cf13c5a4f80f22816cab0d9c19945f6a60af34fcdc5");
}

TEST(Unicode, NormalisationOfEveryCodePoint) {
  core::Sha256 hash;
  for (char32_t code = 0; code <= kLastCodePoint; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string alone, among = "A\xCC\x81";
    append_character(alone, code);
    among += alone + "\xCC\xA7\xE1\x85\xA1\xE1\x86\xA8";  // cedilla, Hangul vowel and final
    for (const std::string& text : {alone, among}) {
      update(hash, normalize_nfc(text));
      update(hash, normalize_nfd(text));
    }
  }
  EXPECT_EQ(hex(hash), "a1451ec8a6435b6ce8a13d8a66ce98344dcb7269385620a316791c158b72b66a");
}

TEST(Unicode, SetsAgreeWithTheCategories) {
  const CodeSet letters = *category_set("L"), marks = *category_set("M"), decimal = *category_set("Nd");
  for (char32_t code = 0; code <= kLastCodePoint; ++code) {
    const char first = kNames[static_cast<size_t>(category(code))][0];
    ASSERT_EQ(letters.contains(code), first == 'L') << static_cast<uint32_t>(code);
    ASSERT_EQ(marks.contains(code), first == 'M') << static_cast<uint32_t>(code);
    ASSERT_EQ(decimal.contains(code), category(code) == Category::kNd) << static_cast<uint32_t>(code);
    ASSERT_EQ(white_space_set().contains(code), is_white_space(code)) << static_cast<uint32_t>(code);
    ASSERT_EQ(word_set().contains(code), is_word_character(code)) << static_cast<uint32_t>(code);
  }
  EXPECT_FALSE(category_set("Han").has_value());
  EXPECT_FALSE(category_set("").has_value());
}

TEST(Unicode, SetsAreComplementedAndUnited) {
  CodeSet set({{'a', 'c'}, {'e', 'e'}});
  EXPECT_FALSE(set.contains('d'));
  set.add('d', 'd');
  EXPECT_EQ(set, CodeSet({{'a', 'e'}}));
  EXPECT_EQ(set.complement(), CodeSet({{0, 'a' - 1}, {'f', kLastCodePoint}}));
  EXPECT_EQ(set.complement().complement(), set);
  EXPECT_EQ(CodeSet().complement(), CodeSet({{0, kLastCodePoint}}));
}

TEST(Unicode, EveryCharacterGoesThroughUtf8) {
  for (char32_t code = 0; code < kCodeSpace; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_character(text, code);
    const auto decoded = decode_character(text);
    if (code >= kRawByte && code < kRawByte + 0x80) continue;  // an ASCII byte is never raw
    ASSERT_EQ(decoded.code, code);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Unicode, MalformedBytesAreCharactersOfTheirOwn) {
  for (const std::string_view text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xE6\xAD", "\xF0\x9F\xA6", "\xC3"}) {
    std::string back;
    for (const char32_t code : decode_characters(text)) {
      EXPECT_GE(code, kRawByte);
      append_character(back, code);
    }
    EXPECT_EQ(back, text);
  }
}

TEST(Unicode, ReplacesMaximalMalformedParts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(to_valid_utf8("a\xE6\xAD"), "a" + r);
  EXPECT_EQ(to_valid_utf8("\xE6\xAD\xE6\xAD\x8A"), r + "\xE6\xAD\x8A");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), r + r + r);
  // The example of the Unicode Standard, table 3-8.
  EXPECT_EQ(to_valid_utf8("\xF0\x80\x80\x41"), r + r + r + "A");
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

TEST(Unicode, NormalisationKeepsBytesThatAreNotUtf8) {
  EXPECT_EQ(normalize_nfc("e\xCC\x81\xE6\xAD"
                          "e\xCC\x81\x80"),
            "\xC3\xA9\xE6\xAD\xC3\xA9\x80");
  EXPECT_EQ(normalize_nfc("e\x80\xCC\x81"), "e\x80\xCC\x81");
  EXPECT_EQ(normalize_nfd("\xC3\xA9\xFF"), "e\xCC\x81\xFF");
}

TEST(Unicode, AMillionMarksAreOrderedInTime) {
  std::string text = "a";
  for (int i = 0; i < 500'000; ++i) text += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";  // above (230), below (220)
  const std::string composed = normalize_nfc(text);
  EXPECT_EQ(composed.substr(0, 5), "\xE1\xBA\xA1\xCC\xA3");  // a with dot below, dots below, ...
  EXPECT_EQ(composed.substr(composed.size() - 2), "\xCC\x81");
}

}  // namespace
}  // namespace crest::text
