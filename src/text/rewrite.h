#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/pattern.h"
#include "text/vocab_data.h"

namespace crest::text {

/// Applies RewriteSteps.
class Rewriter {
 public:
  static Result<Rewriter> create(std::span<const RewriteStep> steps);

  bool empty() const { return steps_.empty(); }
  /// at_start: the text begins the whole input. Error: the steps make the text more than 32 times as long.
  Result<std::string> apply(std::string_view text, bool at_start) const;

 private:
  struct Step {
    RewriteStep step;
    std::optional<Pattern> pattern;  ///< of a kReplace with a regular expression
  };
  std::vector<Step> steps_;
};

}  // namespace crest::text
