#include <algorithm>

#include "text/jinja_interpreter.h"
#include "text/jinja_loop.h"

namespace crest::text::jinja {

/// A macro is a function that sees the variables around its definition.
struct Interpreter::MacroObject : CallableObject {
  MacroObject(Interpreter& owner, const Stmt& definition, Scope& outer)
      : interpreter(owner), stmt(definition), closure(outer) {}
  Value call(Runtime&, Args& args) override { return interpreter.call_macro(stmt, closure, args); }
  std::string describe() const override { return fmt::format("<Macro '{}'>", stmt.macro.name); }
  Value attribute(Runtime& runtime, std::string_view name) override {
    if (name == "name") return runtime.string(stmt.macro.name);
    if (name == "caller") return Value::boolean(stmt.macro.uses_caller);
    if (name == "catch_kwargs") return Value::boolean(stmt.macro.uses_kwargs);
    if (name == "catch_varargs") return Value::boolean(stmt.macro.uses_varargs);
    if (name != "arguments") return {};
    std::vector<Value> names;
    for (const std::string& parameter : stmt.macro.parameters) names.push_back(runtime.string(parameter));
    return runtime.list(std::move(names));
  }

  Interpreter& interpreter;
  const Stmt& stmt;
  Scope& closure;
};

/// Collects what is written while it lives.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.out_, &text_)) {}
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Value value() { return interpreter_.string(std::move(text_), interpreter_.autoescape); }

 private:
  Interpreter& interpreter_;
  Text text_;
  Text* outer_;
};

void Scope::set(uint32_t name, const Value& value) {
  for (auto& [known, slot] : variables) {
    if (known == name) {
      slot = value;
      return;
    }
  }
  variables.emplace_back(name, value);
}

Interpreter::Interpreter(const Tree& tree, const Limits& limits, std::optional<std::tm> now)
    : Runtime(limits, now), tree_(tree), context_(tree.names.size()) {
  for (uint32_t i = 0; i < tree.names.size(); ++i) {
    if (tree.names[i] == "loop") loop_name_ = i;
    if (tree.names[i] == "caller") caller_name_ = i;
    if (tree.names[i] == "varargs") varargs_name_ = i;
    if (tree.names[i] == "kwargs") kwargs_name_ = i;
  }
}

Text Interpreter::run() {
  for (size_t i = 0; i < tree_.names.size(); ++i) {
    const auto given = variables_.find(tree_.names[i]);
    context_[i] = given != variables_.end() ? given->second : find_global(*this, tree_.names[i]);
  }
  Text output;
  out_ = &output;
  execute(tree_.body, *make<Scope>(nullptr));
  return output;
}

Interpreter::Flow Interpreter::execute(const Body& body, Scope& scope) {
  for (const StmtPtr& stmt : body) {
    const Flow flow = execute(*stmt, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt, Scope& scope) {
  const Depth depth(*this);
  tick();
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::kOutput:
      output(stmt, scope);
      break;
    case StmtKind::kIf:
      return branch(stmt, scope);
    case StmtKind::kFor:
      return loop(stmt, scope, evaluate(*stmt.exprs[0], scope), 0);
    case StmtKind::kSet:
      assign(*stmt.targets[0], evaluate(*stmt.exprs[0], scope), scope);
      break;
    case StmtKind::kSetBlock:
      return set_block(stmt, scope);
    case StmtKind::kMacro:
      scope.set(stmt.targets[0]->name, make_macro(stmt, scope));
      break;
    case StmtKind::kCallBlock:
      call_block(stmt, scope);
      break;
    case StmtKind::kFilterBlock:
      return filter_block(stmt, scope);
    case StmtKind::kWith: {
      const std::vector<Value> values = evaluate_all(stmt.exprs, scope);
      Scope& inner = *make<Scope>(&scope);
      for (size_t i = 0; i < values.size(); ++i) assign(*stmt.targets[i], values[i], inner);
      return execute(stmt.bodies[0], inner);
    }
    case StmtKind::kScope:
      return execute(stmt.bodies[0], *make<Scope>(&scope));
    case StmtKind::kAutoescape:
      return autoescape_block(stmt, scope);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

void Interpreter::output(const Stmt& stmt, Scope& scope) {
  for (const ExprPtr& expr : stmt.exprs) {
    if (expr->kind == ExprKind::kConst && expr->constant.is_string() && expr->constant.string().markup) {
      emit(expr->constant.text());
    } else {
      emit_value(evaluate(*expr, scope));
    }
  }
}

void Interpreter::emit(const Text& text) {
  tick_bytes(text.size());
  if (out_->size() + text.size() > limits().output_bytes) exhausted("output bytes");
  out_->append(text);
}

void Interpreter::emit_value(const Value& value) {
  if (autoescape) return emit(escape(value).text());
  if (value.is_string()) return emit(value.text());
  emit(str(value));
}

Interpreter::Flow Interpreter::branch(const Stmt& stmt, Scope& scope) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (truth(evaluate(*stmt.exprs[i], scope))) return execute(stmt.bodies[i], scope);
  }
  return stmt.bodies.size() > stmt.exprs.size() ? execute(stmt.bodies.back(), scope) : Flow::kNormal;
}

Interpreter::Flow Interpreter::loop(const Stmt& stmt, Scope& scope, const Value& iterable, Int depth0) {
  auto* state = make<LoopObject>(*this, iterable, depth0);
  const Value loop_value(Kind::kLoop, state);
  if (stmt.exprs[1]) {
    state->condition = [&](const Value& item) {
      Scope& inner = *make<Scope>(&scope);
      assign(*stmt.targets[0], item, inner);
      return truth(evaluate(*stmt.exprs[1], inner));
    };
  }
  if (stmt.recursive) {
    ++captured_scopes_;
    state->recurse = [&stmt, &scope, depth0, this](const Value& inner) {
      const Depth nested(*this);
      Capture capture(*this);
      loop(stmt, scope, inner, depth0 + 1);
      return capture.value();
    };
  }
  // As in jinja2, "else" runs unless some turn came to its end: turns cut short by break or continue do not count.
  bool completed = false;
  Scope* inner = nullptr;
  uint64_t captured = 0;
  for (Value item; state->advance(item);) {
    // Each turn has variables of its own; their room is used again unless a macro still refers to it.
    if (inner == nullptr || captured != captured_scopes_) inner = make<Scope>(&scope);
    inner->variables.clear();
    captured = captured_scopes_;
    assign(*stmt.targets[0], item, *inner);
    if (loop_name_ != UINT32_MAX) inner->set(loop_name_, loop_value);
    const Flow flow = execute(stmt.bodies[0], *inner);
    completed = completed || flow == Flow::kNormal;
    if (flow == Flow::kBreak) break;
  }
  // The condition refers to this frame; who keeps the loop object must not run it later.
  state->condition = nullptr;
  if (!completed && stmt.bodies.size() > 1) return execute(stmt.bodies[1], *make<Scope>(&scope));
  return Flow::kNormal;
}

/// A break or continue inside of the block leaves the loop around it, and the block's text is lost.
Interpreter::Flow Interpreter::set_block(const Stmt& stmt, Scope& scope) {
  Capture capture(*this);
  if (const Flow flow = execute(stmt.bodies[0], *make<Scope>(&scope)); flow != Flow::kNormal) return flow;
  Value value = capture.value();
  if (stmt.exprs[0]) {
    const Value* outer = std::exchange(block_input_, &value);
    value = evaluate(*stmt.exprs[0], scope);
    block_input_ = outer;
  }
  assign(*stmt.targets[0], value, scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::filter_block(const Stmt& stmt, Scope& scope) {
  Value value;
  {
    Capture capture(*this);
    if (const Flow flow = execute(stmt.bodies[0], *make<Scope>(&scope)); flow != Flow::kNormal) return flow;
    value = capture.value();
  }
  const Value* outer = std::exchange(block_input_, &value);
  const Value result = evaluate(*stmt.exprs[0], scope);
  block_input_ = outer;
  emit_value(result);
  return Flow::kNormal;
}

void Interpreter::call_block(const Stmt& stmt, Scope& scope) {
  const Expr& call_expr = *stmt.exprs[0];
  const Value callee = evaluate(*call_expr.items[0], scope);
  Args args = arguments(call_expr.args, scope);
  args.named.emplace_back("caller", make_macro(stmt, scope));
  emit(str(call(callee, std::move(args))));
}

Interpreter::Flow Interpreter::autoescape_block(const Stmt& stmt, Scope& scope) {
  struct Restore {
    bool& flag;
    bool before;
    ~Restore() { flag = before; }
  } restore{autoescape, autoescape};
  autoescape = truth(evaluate(*stmt.exprs[0], scope));
  return execute(stmt.bodies[0], *make<Scope>(&scope));
}

void Interpreter::assign(const Expr& target, const Value& value, Scope& scope) {
  if (target.kind == ExprKind::kName) return scope.set(target.name, value);
  if (target.kind == ExprKind::kNamespaceRef) return assign_namespace(target, value, scope);
  if (!Iterator::iterable(value)) raise(Fault::kType, "cannot unpack non-iterable {} object", type_name(value));
  const std::vector<Value> values = items_of(value);
  const size_t wanted = target.items.size();
  if (values.size() < wanted) {
    raise(Fault::kValue, "not enough values to unpack (expected {}, got {})", wanted, values.size());
  }
  if (values.size() > wanted) raise(Fault::kValue, "too many values to unpack (expected {})", wanted);
  for (size_t i = 0; i < wanted; ++i) assign(*target.items[i], values[i], scope);
}

void Interpreter::assign_namespace(const Expr& target, const Value& value, Scope& scope) {
  const Value owner = variable(target.name, scope);
  if (!owner.is(Kind::kNamespace)) {
    if (owner.undefined()) owner.undefined_object().fail();
    raise(Fault::kTemplate, "cannot assign attribute on non-namespace object");
  }
  if (target.text.starts_with('_')) {
    raise(Fault::kSecurity, "namespaces have no attributes that begin with an underscore, but got '{}'", target.text);
  }
  if (Value* slot = owner.name_space().find(target.text)) {
    *slot = value;
  } else {
    pay(sizeof(Value) + target.text.size());
    owner.name_space().items.emplace_back(target.text, value);
  }
}

Value Interpreter::make_macro(const Stmt& stmt, Scope& closure) {
  ++captured_scopes_;
  return Value(Kind::kCallable, make<MacroObject>(*this, stmt, closure));
}

void Interpreter::bind_parameters(const Stmt& stmt, Scope& scope, Args& args) {
  const MacroSignature& macro = stmt.macro;
  const auto take = [&](std::string_view name) -> Value {
    const auto found =
        std::find_if(args.named.begin(), args.named.end(), [&](const auto& a) { return a.first == name; });
    if (found == args.named.end()) return {};
    const Value value = found->second;
    args.named.erase(found);
    return value;
  };
  const size_t count = macro.parameters.size();
  std::vector<Value> given(args.positional.begin(), args.positional.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                                  count, args.positional.size())));
  while (given.size() < count) given.push_back(take(macro.parameters[given.size()]));
  if (macro.uses_caller) {
    const Value caller = take("caller");
    scope.set(caller_name_, caller.none_or_missing() ? undefined("No caller defined") : caller);
  }
  if (macro.uses_kwargs) {
    auto* rest = make<DictObject>();
    for (const auto& [name, value] : args.named) rest->set(string(name), value);
    scope.set(kwargs_name_, dict(rest));
  } else if (!args.named.empty()) {
    raise(Fault::kType, "macro '{}' takes no keyword argument '{}'", macro.name, args.named[0].first);
  }
  if (macro.uses_varargs) {
    const size_t from = std::min(count, args.positional.size());
    scope.set(varargs_name_,
              tuple({args.positional.begin() + static_cast<std::ptrdiff_t>(from), args.positional.end()}));
  } else if (args.positional.size() > count) {
    raise(Fault::kType, "macro '{}' takes not more than {} argument(s)", macro.name, count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (given[i].missing()) {
      const size_t first_default = count - macro.defaults.size();
      given[i] = i >= first_default ? evaluate(*macro.defaults[i - first_default], scope)
                                    : undefined(fmt::format("parameter '{}' was not provided", macro.parameters[i]));
    }
    scope.set(macro.variables[i], given[i]);
  }
}

Value Interpreter::call_macro(const Stmt& stmt, Scope& closure, Args& args) {
  const Depth depth(*this);
  const uint32_t line = line_;
  Scope& scope = *make<Scope>(&closure);
  bind_parameters(stmt, scope, args);
  Capture capture(*this);
  execute(stmt.bodies[0], scope);
  line_ = line;
  return capture.value();
}

}  // namespace crest::text::jinja
