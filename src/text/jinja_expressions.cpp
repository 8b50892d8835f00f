#include "text/jinja_interpreter.h"
#include "text/jinja_loop.h"

namespace crest::text::jinja {

Value Interpreter::variable(uint32_t name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    for (const auto& [known, value] : at->variables) {
      if (known == name) return value;
    }
  }
  return context_[name].missing() ? undefined_variable(tree_.names[name]) : context_[name];
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs, Scope& scope) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) values.push_back(evaluate(*expr, scope));
  return values;
}

Value Interpreter::evaluate(const Expr& expr, Scope& scope) {
  tick();
  if (expr.kind == ExprKind::kConst) return expr.constant;
  if (expr.kind == ExprKind::kName) return variable(expr.name, scope);
  const Depth depth(*this);
  line_ = expr.line;
  switch (expr.kind) {
    case ExprKind::kList:
      return list(evaluate_all(expr.items, scope));
    case ExprKind::kTuple:
      return tuple(evaluate_all(expr.items, scope));
    case ExprKind::kDict:
      return make_dict(expr, scope);
    case ExprKind::kCondition:
      if (truth(evaluate(*expr.items[0], scope))) return evaluate(*expr.items[1], scope);
      if (expr.items[2]) return evaluate(*expr.items[2], scope);
      return undefined(fmt::format(
          "the inline if-expression on line {} evaluated to false and no else section was defined.", expr.line));
    case ExprKind::kAnd: {
      const Value left = evaluate(*expr.items[0], scope);
      return truth(left) ? evaluate(*expr.items[1], scope) : left;
    }
    case ExprKind::kOr: {
      const Value left = evaluate(*expr.items[0], scope);
      return truth(left) ? left : evaluate(*expr.items[1], scope);
    }
    case ExprKind::kNot:
      return Value::boolean(!truth(evaluate(*expr.items[0], scope)));
    case ExprKind::kNegate:
      return negate(evaluate(*expr.items[0], scope));
    case ExprKind::kPositive:
      return positive(evaluate(*expr.items[0], scope));
    case ExprKind::kBinary:
      return binary(expr, scope);
    case ExprKind::kCompare:
      return compare(expr, scope);
    case ExprKind::kConcat:
      return concat(expr, scope);
    case ExprKind::kFilter:
      return filtered(expr, scope);
    case ExprKind::kTest:
      return tested(expr, scope);
    case ExprKind::kCall: {
      const Value callee = evaluate(*expr.items[0], scope);
      return call(callee, arguments(expr.args, scope));
    }
    case ExprKind::kGetattr:
      return getattr(evaluate(*expr.items[0], scope), expr.constant);
    case ExprKind::kGetitem:
      return subscripted(expr, scope);
    case ExprKind::kSlice:
      raise(Fault::kType, "a slice stands where an index is expected");
    default:
      raise(Fault::kTemplate, "a namespace attribute can only be assigned here");
  }
}

Value Interpreter::make_dict(const Expr& expr, Scope& scope) {
  auto* object = make<DictObject>();
  for (size_t i = 0; i < expr.items.size(); i += 2) {
    const Value key = evaluate(*expr.items[i], scope);
    object->set(key, evaluate(*expr.items[i + 1], scope));
  }
  return dict(object);
}

Value Interpreter::binary(const Expr& expr, Scope& scope) {
  const Value left = evaluate(*expr.items[0], scope);
  const Value right = evaluate(*expr.items[1], scope);
  switch (expr.binary) {
    case BinaryOp::kAdd:
      return add(left, right);
    case BinaryOp::kSubtract:
      return subtract(left, right);
    case BinaryOp::kMultiply:
      return multiply(left, right);
    case BinaryOp::kDivide:
      return divide(left, right);
    case BinaryOp::kFloorDivide:
      return floor_divide(left, right);
    case BinaryOp::kModulo:
      return modulo(left, right);
    case BinaryOp::kPower:
      return power(left, right);
  }
  return {};
}

bool Interpreter::compare_pair(CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEqual:
      return equal(a, b);
    case CompareOp::kNotEqual:
      return !equal(a, b);
    case CompareOp::kLess:
      return less(a, b, "<");
    case CompareOp::kLessEqual:
      return less(a, b, "<=") || equal(a, b);
    case CompareOp::kGreater:
      return less(b, a, ">", true);
    case CompareOp::kGreaterEqual:
      return less(b, a, ">=", true) || equal(a, b);
    case CompareOp::kIn:
      return contains(b, a);
    case CompareOp::kNotIn:
      return !contains(b, a);
  }
  return false;
}

Value Interpreter::compare(const Expr& expr, Scope& scope) {
  Value left = evaluate(*expr.items[0], scope);
  for (size_t i = 0; i < expr.compare.size(); ++i) {
    const Value right = evaluate(*expr.items[i + 1], scope);
    if (!compare_pair(expr.compare[i], left, right)) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

Value Interpreter::concat(const Expr& expr, Scope& scope) {
  std::vector<Value> parts = evaluate_all(expr.items, scope);
  bool markup = false;
  for (const Value& part : parts) markup = markup || (autoescape && part.is_string() && part.string().markup);
  Text out;
  for (const Value& part : parts) {
    const Text text = markup ? escape(part).text() : str(part);
    check_string(static_cast<Int>(out.size() + text.size()));
    out.append(text);
  }
  return string(std::move(out), markup);
}

Value Interpreter::filtered(const Expr& expr, Scope& scope) {
  const Value input = expr.items[0] ? evaluate(*expr.items[0], scope) : *block_input_;
  if (expr.filter == nullptr) raise(Fault::kTemplate, "No filter named '{}'.", expr.text);
  return expr.filter(*this, input, arguments(expr.args, scope));
}

Value Interpreter::tested(const Expr& expr, Scope& scope) {
  const Value input = evaluate(*expr.items[0], scope);
  if (expr.test == nullptr) raise(Fault::kTemplate, "No test named '{}'.", expr.text);
  return Value::boolean(expr.test(*this, input, arguments(expr.args, scope)));
}

Value Interpreter::subscripted(const Expr& expr, Scope& scope) {
  const Value object = evaluate(*expr.items[0], scope);
  const Expr& key = *expr.items[1];
  if (key.kind != ExprKind::kSlice) return getitem(object, evaluate(key, scope));
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (key.items[i]) bounds[i] = evaluate(*key.items[i], scope);
  }
  return slice(object, bounds[0], bounds[1], bounds[2]);
}

Args Interpreter::arguments(const CallArgs& args, Scope& scope) {
  Args values;
  values.positional = evaluate_all(args.positional, scope);
  for (const auto& [name, expr] : args.named) values.named.emplace_back(name, evaluate(*expr, scope));
  if (args.star) {
    for (const Value& item : items_of(evaluate(*args.star, scope))) values.positional.push_back(item);
  }
  if (args.double_star) {
    const Value mapping = evaluate(*args.double_star, scope);
    if (!mapping.is(Kind::kDict))
      raise(Fault::kType, "argument after ** must be a mapping, not {}", type_name(mapping));
    for (const auto& [key, value] : mapping.dict().items) {
      tick();
      if (!key.is_string()) raise(Fault::kType, "keywords must be strings");
      for (const auto& [known, unused] : args.named) {
        if (known == key.bytes()) raise(Fault::kType, "got multiple values for keyword argument '{}'", known);
      }
      values.named.emplace_back(key.bytes(), value);
    }
  }
  return values;
}

Value Interpreter::call(const Value& callee, Args args) {
  switch (callee.kind()) {
    case Kind::kCallable:
      return callee.callable().call(*this, args);
    case Kind::kUndefined:
      callee.undefined_object().fail();
    case Kind::kLoop: {
      LoopObject& loop = as_loop(callee);
      if (!loop.recurse) raise(Fault::kType, "The loop must have the 'recursive' marker to be called recursively.");
      const Parameters parameters("loop", args, {"iterable"}, 1);
      return loop.recurse(parameters[0]);
    }
    default:
      raise(Fault::kType, "'{}' object is not callable", type_name(callee));
  }
}

}  // namespace crest::text::jinja
