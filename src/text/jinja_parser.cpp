#include "text/jinja_parser.h"

#include <algorithm>

namespace crest::text::jinja {

const Token& Parser::next() {
  const Token& token = current();
  if (!token.is(TokenKind::kEnd)) ++position_;
  return token;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().name(name)) return false;
  ++position_;
  return true;
}

bool Parser::skip_op(std::string_view op) {
  if (!current().op(op)) return false;
  ++position_;
  return true;
}

std::string Parser::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template data / text";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kString:
      return "string";
    case TokenKind::kInteger:
      return "integer";
    case TokenKind::kFloat:
      return "float";
    case TokenKind::kEnd:
      return "end of template";
    default:
      return token.text;
  }
}

void Parser::fail_at(uint32_t line, std::string message) const { throw SyntaxFault(line, std::move(message)); }
void Parser::fail(std::string message) const { fail_at(current().line, std::move(message)); }

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail(fmt::format("expected token '{}', got '{}'", op, describe(current())));
}

std::string Parser::expect_name() {
  if (!current().is(TokenKind::kName)) fail(fmt::format("expected token 'name', got '{}'", describe(current())));
  return next().text;
}

void Parser::expect(TokenKind kind) {
  if (!current().is(kind)) {
    fail(fmt::format("expected token '{}', got '{}'", describe(Token{kind, 0, {}, 0, 0}), describe(current())));
  }
  next();
}

void Parser::unknown_tag(const std::string& name) const {
  std::string message =
      name.empty() ? "Unexpected end of template." : fmt::format("Encountered unknown tag '{}'.", name);
  if (!end_stack_.empty()) {
    std::string wanted;
    for (const std::string_view end : end_stack_.back()) {
      if (!wanted.empty()) wanted += " or ";
      wanted += fmt::format("'{}'", end);
    }
    message += fmt::format(" Jinja was looking for the following tags: {}.", wanted);
  }
  if (!tag_stack_.empty()) {
    message += fmt::format(" The innermost block that needs to be closed is '{}'.", tag_stack_.back());
  }
  fail(std::move(message));
}

Tree Parser::parse() {
  tree_.body = subparse({});
  return std::move(tree_);
}

Body Parser::subparse(const Ends& ends) {
  const Nesting nesting(*this, statement_depth_, kMaxStatementDepth, "statements");
  if (!ends.empty()) end_stack_.push_back(ends);
  Body body;
  while (!current().is(TokenKind::kEnd)) {
    if (!current().is(TokenKind::kBlockBegin)) {
      output(body);
      continue;
    }
    next();
    const bool at_end =
        std::any_of(ends.begin(), ends.end(), [this](std::string_view end) { return current().name(end); });
    if (at_end) {
      end_stack_.pop_back();
      return body;
    }
    body.push_back(statement());
    expect(TokenKind::kBlockEnd);
  }
  if (!ends.empty()) unknown_tag({});
  return body;
}

/// Data and print tags in a row are one statement.
void Parser::output(Body& body) {
  StmtPtr output = make_stmt(StmtKind::kOutput);
  while (true) {
    if (current().is(TokenKind::kData)) {
      output->exprs.push_back(string_constant(next().text));
      tree_.constants.back()->markup = true;  // what stands outside of tags is never escaped
    } else if (current().is(TokenKind::kVariableBegin)) {
      next();
      output->exprs.push_back(tuple(false, true, {}, false, false));
      expect(TokenKind::kVariableEnd);
    } else {
      break;
    }
  }
  body.push_back(std::move(output));
}

StmtPtr Parser::make_stmt(StmtKind kind) const {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->line = current().line;
  return stmt;
}

Body Parser::statements(const Ends& ends) {
  skip_op(":");
  expect(TokenKind::kBlockEnd);
  return subparse(ends);
}

Body Parser::body_until(std::string_view end) {
  Body body = statements({end});
  next();
  return body;
}

StmtPtr Parser::statement() {
  if (!current().is(TokenKind::kName)) fail("tag name expected");
  const std::string tag = current().text;
  tag_stack_.push_back(tag);
  StmtPtr stmt;
  if (tag == "set") {
    stmt = set_statement();
  } else if (tag == "if") {
    stmt = if_statement();
  } else if (tag == "for") {
    stmt = for_statement();
  } else if (tag == "macro") {
    stmt = macro_statement();
  } else if (tag == "call") {
    stmt = call_block();
  } else if (tag == "filter") {
    stmt = filter_block();
  } else if (tag == "with") {
    stmt = with_statement();
  } else if (tag == "print") {
    stmt = print_statement();
  } else if (tag == "generation" || tag == "block" || tag == "autoescape") {
    stmt = scope_statement();
  } else if (tag == "break" || tag == "continue") {
    stmt = loop_control();
  } else if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
    fail(fmt::format("'{}' needs other templates, a chat template has none", tag));
  } else {
    tag_stack_.pop_back();
    unknown_tag(tag);
  }
  tag_stack_.pop_back();
  return stmt;
}

StmtPtr Parser::set_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kSet);
  next();
  stmt->targets.push_back(assign_target(true));
  if (skip_op("=")) {
    stmt->exprs.push_back(tuple(false, true, {}, false, false));
    return stmt;
  }
  stmt->kind = StmtKind::kSetBlock;
  stmt->exprs.push_back(filter(nullptr));
  stmt->bodies.push_back(body_until("endset"));
  return stmt;
}

StmtPtr Parser::for_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kFor);
  next();
  stmt->targets.push_back(assign_target(false, {"in"}));
  if (!skip_name("in")) fail(fmt::format("expected token 'in', got '{}'", describe(current())));
  stmt->exprs.push_back(tuple(false, false, {"recursive"}, false, false));
  stmt->exprs.push_back(skip_name("if") ? expression() : nullptr);
  stmt->recursive = skip_name("recursive");
  ++loop_depth_;
  stmt->bodies.push_back(statements({"endfor", "else"}));
  --loop_depth_;
  if (next().text == "else") stmt->bodies.push_back(body_until("endfor"));
  return stmt;
}

StmtPtr Parser::if_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kIf);
  next();
  while (true) {
    stmt->exprs.push_back(tuple(false, false, {}, false, false));
    stmt->bodies.push_back(statements({"elif", "else", "endif"}));
    const std::string& tag = next().text;
    if (tag == "elif") continue;
    if (tag == "else") stmt->bodies.push_back(body_until("endif"));
    return stmt;
  }
}

void Parser::signature(MacroSignature& macro) {
  expect_op("(");
  while (!current().op(")")) {
    if (!macro.parameters.empty()) expect_op(",");
    std::string name = expect_name();
    if (std::find(macro.parameters.begin(), macro.parameters.end(), name) != macro.parameters.end()) {
      fail(fmt::format("duplicate argument '{}' in macro definition", name));
    }
    if (skip_op("=")) {
      macro.defaults.push_back(expression());
    } else if (!macro.defaults.empty()) {
      fail("non-default argument follows default argument");
    }
    macro.variables.push_back(variable(name));
    macro.parameters.push_back(std::move(name));
  }
  expect_op(")");
}

/// The body of a macro and which of caller, varargs and kwargs it reads.
Body Parser::macro_body(MacroSignature& macro, std::string_view end) {
  const size_t from = loaded_.size();
  const uint32_t outer_loops = std::exchange(loop_depth_, 0);
  Body body = body_until(end);
  loop_depth_ = outer_loops;
  const auto reads = [&](std::string_view name) {
    const bool parameter = std::find(macro.parameters.begin(), macro.parameters.end(), name) != macro.parameters.end();
    return !parameter &&
           std::find(loaded_.begin() + static_cast<std::ptrdiff_t>(from), loaded_.end(), name) != loaded_.end();
  };
  macro.uses_caller = reads("caller");
  macro.uses_varargs = reads("varargs");
  macro.uses_kwargs = reads("kwargs");
  return body;
}

StmtPtr Parser::macro_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kMacro);
  next();
  ExprPtr target = make(ExprKind::kName);
  stmt->macro.name = expect_name();
  target->name = variable(stmt->macro.name);
  stmt->targets.push_back(std::move(target));
  signature(stmt->macro);
  stmt->bodies.push_back(macro_body(stmt->macro, "endmacro"));
  return stmt;
}

StmtPtr Parser::call_block() {
  StmtPtr stmt = make_stmt(StmtKind::kCallBlock);
  next();
  stmt->macro.name = "caller";
  if (current().op("(")) signature(stmt->macro);
  stmt->exprs.push_back(expression());
  if (stmt->exprs[0]->kind != ExprKind::kCall) fail_at(stmt->line, "expected call");
  stmt->bodies.push_back(macro_body(stmt->macro, "endcall"));
  return stmt;
}

StmtPtr Parser::filter_block() {
  StmtPtr stmt = make_stmt(StmtKind::kFilterBlock);
  next();
  stmt->exprs.push_back(filter(nullptr, true));
  stmt->bodies.push_back(body_until("endfilter"));
  return stmt;
}

StmtPtr Parser::with_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kWith);
  next();
  while (!current().is(TokenKind::kBlockEnd)) {
    if (!stmt->targets.empty()) expect_op(",");
    stmt->targets.push_back(assign_target(false));
    expect_op("=");
    stmt->exprs.push_back(expression());
  }
  stmt->bodies.push_back(body_until("endwith"));
  return stmt;
}

StmtPtr Parser::scope_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kScope);
  const std::string tag = next().text;
  if (tag == "autoescape") {
    stmt->kind = StmtKind::kAutoescape;
    stmt->exprs.push_back(expression());
  } else if (tag == "block") {
    const std::string name = expect_name();
    skip_name("scoped");
    stmt->bodies.push_back(statements({"endblock"}));
    next();
    skip_name(name);
    return stmt;
  }
  // The body of a generation block is a function of its own.
  const uint32_t outer_loops = loop_depth_;
  if (tag == "generation") loop_depth_ = 0;
  stmt->bodies.push_back(body_until(tag == "generation" ? "endgeneration" : "endautoescape"));
  loop_depth_ = outer_loops;
  return stmt;
}

StmtPtr Parser::print_statement() {
  StmtPtr stmt = make_stmt(StmtKind::kOutput);
  next();
  while (!current().is(TokenKind::kBlockEnd)) {
    if (!stmt->exprs.empty()) expect_op(",");
    stmt->exprs.push_back(expression());
  }
  return stmt;
}

StmtPtr Parser::loop_control() {
  StmtPtr stmt = make_stmt(current().name("break") ? StmtKind::kBreak : StmtKind::kContinue);
  if (loop_depth_ == 0) fail(fmt::format("'{}' outside loop", current().text));
  next();
  return stmt;
}

ExprPtr Parser::assign_target(bool with_namespace, const Ends& ends) {
  ExprPtr target = tuple(true, false, ends, false, with_namespace);
  check_target(*target);
  return target;
}

void Parser::check_target(const Expr& target) const {
  if (target.kind == ExprKind::kName || target.kind == ExprKind::kNamespaceRef) return;
  if (target.kind != ExprKind::kTuple) fail_at(target.line, "can't assign to a literal or an expression");
  for (const ExprPtr& item : target.items) check_target(*item);
}

}  // namespace crest::text::jinja
