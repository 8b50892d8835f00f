#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace crest::text::jinja {

constexpr uint32_t kMaxExpressionDepth = 200;
constexpr uint32_t kMaxStatementDepth = 64;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  /// Raises SyntaxFault.
  Tree parse();

 private:
  // tokens
  const Token& current() const { return tokens_[position_]; }
  const Token& look() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  const Token& next();
  bool skip_name(std::string_view name);
  bool skip_op(std::string_view op);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(TokenKind kind);
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_at(uint32_t line, std::string message) const;
  [[noreturn]] void unknown_tag(const std::string& name) const;
  static std::string describe(const Token& token);

  // statements
  using Ends = std::vector<std::string_view>;
  Body statements(const Ends& ends);  // stands on the end tag's name behind it
  Body body_until(std::string_view end);
  Body subparse(const Ends& ends);
  void output(Body& body);
  StmtPtr statement();
  StmtPtr set_statement();
  StmtPtr for_statement();
  StmtPtr if_statement();
  StmtPtr macro_statement();
  StmtPtr call_block();
  StmtPtr filter_block();
  StmtPtr with_statement();
  StmtPtr scope_statement();
  StmtPtr print_statement();
  StmtPtr loop_control();
  void signature(MacroSignature& macro);
  Body macro_body(MacroSignature& macro, std::string_view end);
  ExprPtr assign_target(bool with_namespace, const Ends& ends = {});
  void check_target(const Expr& target) const;
  StmtPtr make_stmt(StmtKind kind) const;

  // expressions
  ExprPtr make(ExprKind kind) const;
  ExprPtr adopt(ExprPtr parent, ExprPtr child) const;
  ExprPtr node(ExprKind kind, ExprPtr a, ExprPtr b = nullptr) const;
  ExprPtr string_constant(std::string text);
  ExprPtr constant(Value value) const;
  uint32_t variable(const std::string& name);
  ExprPtr expression(bool with_condition = true);
  ExprPtr condition();
  ExprPtr or_expr();
  ExprPtr and_expr();
  ExprPtr not_expr();
  ExprPtr compare();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter = true);
  ExprPtr primary(bool with_namespace = false);
  ExprPtr name_or_literal(bool with_namespace);
  ExprPtr tuple(bool simplified, bool with_condition, const Ends& ends, bool parentheses, bool with_namespace);
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr value);
  ExprPtr filter_expr(ExprPtr value);
  ExprPtr subscript(ExprPtr value);
  ExprPtr subscribed();
  ExprPtr call(ExprPtr value);
  ExprPtr filter(ExprPtr value, bool inline_start = false);
  ExprPtr test(ExprPtr value);
  CallArgs call_args(uint32_t& depth);
  std::string dotted_name();

  struct Nesting;

  std::vector<Token> tokens_;
  size_t position_ = 0;
  uint32_t expression_depth_ = 0;
  uint32_t statement_depth_ = 0;
  uint32_t loop_depth_ = 0;
  std::vector<Ends> end_stack_;
  std::vector<std::string> tag_stack_;
  std::vector<std::string> loaded_;  // names read so far, to see what a macro's body reads
  std::map<std::string, uint32_t, std::less<>> numbers_;
  Tree tree_;
};

/// Counts nested calls of the parser and undoes it.
struct Parser::Nesting {
  Nesting(const Parser& parser, uint32_t& depth, uint32_t limit, const char* what) : depth_(depth) {
    if (++depth_ > limit) {
      --depth_;
      parser.fail(fmt::format("{} are nested deeper than {}", what, limit));
    }
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  uint32_t& depth_;
};

}  // namespace crest::text::jinja
