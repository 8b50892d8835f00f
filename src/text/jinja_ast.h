#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_filters.h"
#include "text/jinja_value.h"

namespace crest::text::jinja {

enum class ExprKind : uint8_t {
  kConst,
  kName,
  kList,
  kTuple,
  kDict,
  kCondition,
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPositive,
  kBinary,
  kCompare,
  kConcat,
  kFilter,
  kTest,
  kCall,
  kGetattr,
  kGetitem,
  kSlice,
  kNamespaceRef,  // target of an assignment only
};

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class CompareOp : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;         // *args
  ExprPtr double_star;  // **kwargs
};

/// One node for all expressions: what `items` hold depends on the kind.
struct Expr {
  ExprKind kind;
  uint32_t line = 0;
  uint32_t depth = 1;
  Value constant;              // kConst; kGetattr: the name
  uint32_t name = 0;           // kName, kNamespaceRef: number of the variable
  std::string text;            // names of filters, tests, namespace attributes
  std::vector<ExprPtr> items;  // operands in order; an absent one is null
  BinaryOp binary = BinaryOp::kAdd;
  std::vector<CompareOp> compare;
  CallArgs args;
  Filter filter = nullptr;
  Test test = nullptr;
};

enum class StmtKind : uint8_t {
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kScope,  // generation, block
  kAutoescape,
  kBreak,
  kContinue,
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct MacroSignature {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<uint32_t> variables;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

struct Stmt {
  StmtKind kind;
  uint32_t line = 0;
  std::vector<ExprPtr> exprs;  // output; if: one test per branch; with: values; for: iterable, condition or null
  std::vector<ExprPtr> targets;
  std::vector<Body> bodies;  // if: one per branch and else; for: body and else
  bool recursive = false;
  MacroSignature macro;
};

/// A parsed template and the constants its nodes point to.
struct Tree {
  std::vector<std::unique_ptr<StringObject>> constants;  // first: they outlive the nodes, which look at them as they go
  std::vector<std::string> names;                        // variables by number
  Body body;

  Tree() = default;
  Tree(Tree&&) = default;
  Tree& operator=(Tree&& other) noexcept {
    constants.swap(other.constants);
    names.swap(other.names);
    body.swap(other.body);
    return *this;
  }
};

}  // namespace crest::text::jinja
