#include <algorithm>

#include "text/jinja_parser.h"

namespace crest::text::jinja {

ExprPtr Parser::make(ExprKind kind) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = current().line;
  return expr;
}

/// Long chains ("a + b + c …") grow a tree as deep as they are long.
ExprPtr Parser::adopt(ExprPtr parent, ExprPtr child) const {
  if (child) {
    parent->depth = std::max(parent->depth, child->depth + 1);
    if (parent->depth > kMaxExpressionDepth)
      fail(fmt::format("expressions are nested deeper than {}", kMaxExpressionDepth));
  }
  parent->items.push_back(std::move(child));
  return parent;
}

ExprPtr Parser::node(ExprKind kind, ExprPtr a, ExprPtr b) const {
  ExprPtr expr = adopt(make(kind), std::move(a));
  return b ? adopt(std::move(expr), std::move(b)) : std::move(expr);
}

ExprPtr Parser::constant(Value value) const {
  ExprPtr expr = make(ExprKind::kConst);
  expr->constant = value;
  return expr;
}

ExprPtr Parser::string_constant(std::string text) {
  auto object = std::make_unique<StringObject>();
  object->text = Text(std::move(text));
  (void)object->length();  // counted now: renderings in several threads share the constant
  tree_.constants.push_back(std::move(object));
  return constant(Value(Kind::kString, tree_.constants.back().get()));
}

uint32_t Parser::variable(const std::string& name) {
  const auto [entry, added] = numbers_.emplace(name, static_cast<uint32_t>(tree_.names.size()));
  if (added) tree_.names.push_back(name);
  return entry->second;
}

ExprPtr Parser::expression(bool with_condition) {
  const Nesting nesting(*this, expression_depth_, kMaxExpressionDepth, "expressions");
  return with_condition ? condition() : or_expr();
}

ExprPtr Parser::condition() {
  ExprPtr value = or_expr();
  while (skip_name("if")) {
    ExprPtr test = or_expr();
    ExprPtr otherwise;
    if (skip_name("else")) {
      const Nesting nesting(*this, expression_depth_, kMaxExpressionDepth, "expressions");
      otherwise = condition();
    }
    value = adopt(node(ExprKind::kCondition, std::move(test), std::move(value)), std::move(otherwise));
  }
  return value;
}

ExprPtr Parser::or_expr() {
  ExprPtr left = and_expr();
  while (skip_name("or")) left = node(ExprKind::kOr, std::move(left), and_expr());
  return left;
}

ExprPtr Parser::and_expr() {
  ExprPtr left = not_expr();
  while (skip_name("and")) left = node(ExprKind::kAnd, std::move(left), not_expr());
  return left;
}

ExprPtr Parser::not_expr() {
  if (!current().name("not")) return compare();
  next();
  const Nesting nesting(*this, expression_depth_, kMaxExpressionDepth, "expressions");
  return node(ExprKind::kNot, not_expr());
}

ExprPtr Parser::compare() {
  ExprPtr first = sum();
  ExprPtr chain;
  const auto operation = [this]() -> std::optional<CompareOp> {
    constexpr std::pair<std::string_view, CompareOp> kOperators[] = {
        {"==", CompareOp::kEqual},     {"!=", CompareOp::kNotEqual}, {"<", CompareOp::kLess},
        {"<=", CompareOp::kLessEqual}, {">", CompareOp::kGreater},   {">=", CompareOp::kGreaterEqual}};
    for (const auto& [text, op] : kOperators) {
      if (skip_op(text)) return op;
    }
    if (skip_name("in")) return CompareOp::kIn;
    if (!current().name("not") || !look().name("in")) return std::nullopt;
    next();
    next();
    return CompareOp::kNotIn;
  };
  while (const auto op = operation()) {
    if (!chain) chain = node(ExprKind::kCompare, std::move(first));
    chain->compare.push_back(*op);
    chain = adopt(std::move(chain), sum());
  }
  return chain ? std::move(chain) : std::move(first);
}

ExprPtr Parser::sum() {
  ExprPtr left = concat();
  while (current().op("+") || current().op("-")) {
    const BinaryOp op = next().text == "+" ? BinaryOp::kAdd : BinaryOp::kSubtract;
    left = node(ExprKind::kBinary, std::move(left), concat());
    left->binary = op;
  }
  return left;
}

ExprPtr Parser::concat() {
  ExprPtr first = product();
  if (!current().op("~")) return first;
  ExprPtr joined = node(ExprKind::kConcat, std::move(first));
  while (skip_op("~")) joined = adopt(std::move(joined), product());
  return joined;
}

ExprPtr Parser::product() {
  constexpr std::pair<std::string_view, BinaryOp> kOperators[] = {
      {"*", BinaryOp::kMultiply}, {"/", BinaryOp::kDivide}, {"//", BinaryOp::kFloorDivide}, {"%", BinaryOp::kModulo}};
  ExprPtr left = power();
  while (true) {
    const auto* found =
        std::find_if(std::begin(kOperators), std::end(kOperators), [this](auto& o) { return current().op(o.first); });
    if (found == std::end(kOperators)) return left;
    next();
    left = node(ExprKind::kBinary, std::move(left), power());
    left->binary = found->second;
  }
}

ExprPtr Parser::power() {
  ExprPtr left = unary();
  while (skip_op("**")) {
    left = node(ExprKind::kBinary, std::move(left), unary());
    left->binary = BinaryOp::kPower;
  }
  return left;
}

ExprPtr Parser::unary(bool with_filter) {
  const Nesting nesting(*this, expression_depth_, kMaxExpressionDepth, "expressions");
  ExprPtr value;
  if (skip_op("-")) {
    value = node(ExprKind::kNegate, unary(false));
  } else if (skip_op("+")) {
    value = node(ExprKind::kPositive, unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filter ? filter_expr(std::move(value)) : std::move(value);
}

ExprPtr Parser::name_or_literal(bool with_namespace) {
  const std::string name = next().text;
  if (name == "true" || name == "True") return constant(Value::boolean(true));
  if (name == "false" || name == "False") return constant(Value::boolean(false));
  if (name == "none" || name == "None") return constant(Value::none());
  const bool attribute = with_namespace && skip_op(".");
  ExprPtr expr = make(attribute ? ExprKind::kNamespaceRef : ExprKind::kName);
  expr->name = variable(name);
  if (attribute) expr->text = expect_name();
  loaded_.push_back(name);
  return expr;
}

ExprPtr Parser::primary(bool with_namespace) {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::kName:
      return name_or_literal(with_namespace);
    case TokenKind::kString: {
      std::string text;
      while (current().is(TokenKind::kString)) text += next().text;
      return string_constant(std::move(text));
    }
    case TokenKind::kInteger:
      return constant(Value::integer(next().integer));
    case TokenKind::kFloat:
      return constant(Value::real(next().real));
    default:
      break;
  }
  if (skip_op("(")) {
    ExprPtr value = tuple(false, true, {}, true, false);
    expect_op(")");
    return value;
  }
  if (token.op("[")) return list();
  if (token.op("{")) return dict();
  fail(fmt::format("unexpected '{}'", describe(token)));
}

ExprPtr Parser::tuple(bool simplified, bool with_condition, const Ends& ends, bool parentheses, bool with_namespace) {
  const auto at_end = [&] {
    const Token& token = current();
    if (token.is(TokenKind::kVariableEnd) || token.is(TokenKind::kBlockEnd) || token.op(")")) return true;
    return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return token.name(end); });
  };
  ExprPtr items = make(ExprKind::kTuple);
  bool is_tuple = false;
  while (true) {
    if (!items->items.empty()) expect_op(",");
    if (at_end()) break;
    items = adopt(std::move(items), simplified ? primary(with_namespace) : expression(with_condition));
    if (!current().op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return items;
  if (!items->items.empty()) return std::move(items->items[0]);
  if (!parentheses) fail(fmt::format("Expected an expression, got '{}'", describe(current())));
  return items;
}

ExprPtr Parser::list() {
  ExprPtr items = make(ExprKind::kList);
  expect_op("[");
  while (!current().op("]")) {
    if (!items->items.empty()) expect_op(",");
    if (current().op("]")) break;
    items = adopt(std::move(items), expression());
  }
  expect_op("]");
  return items;
}

ExprPtr Parser::dict() {
  ExprPtr items = make(ExprKind::kDict);
  expect_op("{");
  while (!current().op("}")) {
    if (!items->items.empty()) expect_op(",");
    if (current().op("}")) break;
    items = adopt(std::move(items), expression());
    expect_op(":");
    items = adopt(std::move(items), expression());
  }
  expect_op("}");
  return items;
}

ExprPtr Parser::postfix(ExprPtr value) {
  while (true) {
    if (current().op(".") || current().op("[")) {
      value = subscript(std::move(value));
    } else if (current().op("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr Parser::filter_expr(ExprPtr value) {
  while (true) {
    if (current().op("|")) {
      value = filter(std::move(value));
    } else if (current().name("is")) {
      value = test(std::move(value));
    } else if (current().op("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr value) {
  if (skip_op(".")) {
    if (current().is(TokenKind::kName)) {
      ExprPtr name = string_constant(next().text);
      ExprPtr expr = node(ExprKind::kGetattr, std::move(value));
      expr->constant = name->constant;
      return expr;
    }
    if (!current().is(TokenKind::kInteger)) fail("expected name or number");
    return node(ExprKind::kGetitem, std::move(value), constant(Value::integer(next().integer)));
  }
  expect_op("[");
  ExprPtr keys = make(ExprKind::kTuple);
  while (!current().op("]")) {
    if (!keys->items.empty()) expect_op(",");
    keys = adopt(std::move(keys), subscribed());
  }
  expect_op("]");
  const bool single = keys->items.size() == 1;
  ExprPtr key = single ? std::move(keys->items[0]) : std::move(keys);
  return node(ExprKind::kGetitem, std::move(value), std::move(key));
}

ExprPtr Parser::subscribed() {
  ExprPtr start;
  if (!current().op(":")) {
    start = expression();
    if (!current().op(":")) return start;
  }
  ExprPtr slice = adopt(make(ExprKind::kSlice), std::move(start));
  for (int part = 0; part < 2; ++part) {
    const bool given = skip_op(":") && !current().op(":") && !current().op("]") && !current().op(",");
    slice = adopt(std::move(slice), given ? expression() : nullptr);
  }
  return slice;
}

CallArgs Parser::call_args(uint32_t& depth) {
  CallArgs args;
  const auto argument = [&] {
    ExprPtr value = expression();
    depth = std::max(depth, value->depth + 1);
    return value;
  };
  const auto ensure = [&](bool valid) {
    if (!valid) fail("invalid syntax for function call expression");
  };
  expect_op("(");
  bool first = true;
  while (!current().op(")")) {
    if (!first) {
      expect_op(",");
      if (current().op(")")) break;
    }
    first = false;
    if (skip_op("*")) {
      ensure(!args.star && !args.double_star);
      args.star = argument();
    } else if (skip_op("**")) {
      ensure(!args.double_star);
      args.double_star = argument();
    } else if (current().is(TokenKind::kName) && look().op("=")) {
      ensure(!args.double_star);
      std::string name = next().text;
      next();
      const bool repeated = std::any_of(args.named.begin(), args.named.end(), [&](auto& a) { return a.first == name; });
      if (repeated) fail(fmt::format("keyword argument repeated: {}", name));
      args.named.emplace_back(std::move(name), argument());
    } else {
      ensure(!args.star && !args.double_star && args.named.empty());
      args.positional.push_back(argument());
    }
  }
  expect_op(")");
  return args;
}

ExprPtr Parser::call(ExprPtr value) {
  ExprPtr expr = node(ExprKind::kCall, std::move(value));
  expr->args = call_args(expr->depth);
  if (expr->depth > kMaxExpressionDepth)
    fail(fmt::format("expressions are nested deeper than {}", kMaxExpressionDepth));
  return expr;
}

std::string Parser::dotted_name() {
  std::string name = expect_name();
  while (skip_op(".")) name.append(1, '.').append(expect_name());
  return name;
}

ExprPtr Parser::filter(ExprPtr value, bool inline_start) {
  while (inline_start || skip_op("|")) {
    inline_start = false;
    ExprPtr expr = adopt(make(ExprKind::kFilter), std::move(value));
    expr->text = dotted_name();
    expr->filter = find_filter(expr->text);
    if (current().op("(")) expr->args = call_args(expr->depth);
    value = std::move(expr);
  }
  return value;
}

ExprPtr Parser::test(ExprPtr value) {
  next();
  const bool negated = skip_name("not");
  ExprPtr expr = node(ExprKind::kTest, std::move(value));
  expr->text = dotted_name();
  expr->test = find_test(expr->text);
  const Token& token = current();
  const bool operand = token.is(TokenKind::kName) || token.is(TokenKind::kString) || token.is(TokenKind::kInteger) ||
                       token.is(TokenKind::kFloat) || token.op("[") || token.op("{");
  if (token.op("(")) {
    expr->args = call_args(expr->depth);
  } else if (operand && !token.name("else") && !token.name("or") && !token.name("and")) {
    if (token.name("is")) fail("You cannot chain multiple tests with is");
    ExprPtr argument = postfix(primary());
    expr->depth = std::max(expr->depth, argument->depth + 1);
    expr->args.positional.push_back(std::move(argument));
  }
  return negated ? node(ExprKind::kNot, std::move(expr)) : std::move(expr);
}

}  // namespace crest::text::jinja
