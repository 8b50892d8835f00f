#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_runtime.h"

namespace crest::text::jinja {

/// Variables of one block; inner blocks see outer ones.
struct Scope : Object {
  explicit Scope(Scope* outer) : parent(outer) {}
  Scope* parent;
  std::vector<std::pair<uint32_t, Value>> variables;

  void set(uint32_t name, const Value& value);
};

/// Runs one template once.
class Interpreter : public Runtime {
 public:
  Interpreter(const Tree& tree, const Limits& limits, std::optional<std::tm> now);

  /// Before run().
  void define(std::string name, const Value& value) { variables_[std::move(name)] = value; }
  Text run();
  /// Line of the template at work, for messages.
  uint32_t line() const { return line_; }

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  struct MacroObject;
  class Capture;

  Flow execute(const Body& body, Scope& scope);
  Flow execute(const Stmt& stmt, Scope& scope);
  void output(const Stmt& stmt, Scope& scope);
  void emit(const Text& text);
  void emit_value(const Value& value);
  Flow branch(const Stmt& stmt, Scope& scope);
  Flow loop(const Stmt& stmt, Scope& scope, const Value& iterable, Int depth0);
  Flow set_block(const Stmt& stmt, Scope& scope);
  Flow filter_block(const Stmt& stmt, Scope& scope);
  void call_block(const Stmt& stmt, Scope& scope);
  Flow autoescape_block(const Stmt& stmt, Scope& scope);
  void assign(const Expr& target, const Value& value, Scope& scope);
  void assign_namespace(const Expr& target, const Value& value, Scope& scope);
  Value make_macro(const Stmt& stmt, Scope& closure);
  Value call_macro(const Stmt& stmt, Scope& closure, Args& args);
  void bind_parameters(const Stmt& stmt, Scope& scope, Args& args);

  Value evaluate(const Expr& expr, Scope& scope);
  Value variable(uint32_t name, const Scope& scope);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs, Scope& scope);
  Value make_dict(const Expr& expr, Scope& scope);
  Value binary(const Expr& expr, Scope& scope);
  Value compare(const Expr& expr, Scope& scope);
  bool compare_pair(CompareOp op, const Value& a, const Value& b);
  Value concat(const Expr& expr, Scope& scope);
  Value filtered(const Expr& expr, Scope& scope);
  Value tested(const Expr& expr, Scope& scope);
  Value subscripted(const Expr& expr, Scope& scope);
  Args arguments(const CallArgs& args, Scope& scope);
  Value call(const Value& callee, Args args);

  const Tree& tree_;
  std::map<std::string, Value, std::less<>> variables_;
  std::vector<Value> context_;  // by number of the name
  uint64_t captured_scopes_ = 0;  // by macros, which may outlive the turn of a loop
  Text* out_ = nullptr;
  const Value* block_input_ = nullptr;  // what a filter block or set block filters
  uint32_t loop_name_ = UINT32_MAX;
  uint32_t caller_name_ = UINT32_MAX;
  uint32_t varargs_name_ = UINT32_MAX;
  uint32_t kwargs_name_ = UINT32_MAX;
  uint32_t line_ = 0;
};

}  // namespace crest::text::jinja
