#pragma once

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/jinja_ast.h"
#include "text/segment.h"

namespace crest::text::jinja {

/// The variables of one rendering.
struct Inputs {
  /// Text of the conversation: untrusted.
  std::vector<std::pair<std::string, const nlohmann::ordered_json*>> variables;
  /// Spellings of special tokens: trusted.
  std::map<std::string, std::string> tokens;
  std::optional<std::tm> now;
};

constexpr size_t kMaxSource = 1u << 20;

class Template {
 public:
  /// Errors: syntax, with the line; source longer than kMaxSource.
  static Result<Template> parse(std::string_view source);

  /// Errors: what the template raises or does wrong, with the line; a budget used up.
  Result<std::vector<Segment>> render(const Inputs& inputs) const;

  /// Whether a variable of this name is read anywhere.
  bool reads(std::string_view variable) const;

 private:
  explicit Template(Tree tree) : tree_(std::move(tree)) {}
  Tree tree_;
};

}  // namespace crest::text::jinja
