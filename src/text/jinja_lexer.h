#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace crest::text::jinja {

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  // text holds it: "//", "=="
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;
  std::string text;  // name, operator, string or data after escapes
  Int integer = 0;
  double real = 0;

  bool is(TokenKind k) const { return kind == k; }
  bool name(std::string_view n) const { return kind == TokenKind::kName && text == n; }
  bool op(std::string_view o) const { return kind == TokenKind::kOperator && text == o; }
};

/// Raised for source that is not a template.
class SyntaxFault : public TemplateFault {
 public:
  SyntaxFault(uint32_t line, std::string message) : TemplateFault(Fault::kSyntax, std::move(message)), line_(line) {}
  uint32_t line() const { return line_; }

 private:
  uint32_t line_;
};

/// Tokens of a template under trim_blocks and lstrip_blocks; comments are gone, raw blocks are data. Ends with kEnd.
std::vector<Token> tokenize(std::string_view source);

}  // namespace crest::text::jinja
