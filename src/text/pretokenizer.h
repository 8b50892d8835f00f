#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/pattern.h"
#include "text/vocab_data.h"

namespace crest::text {

/// Splits text into the pieces that are encoded one by one (tokenizer.json's Split steps, in sequence).
class PreTokenizer {
 public:
  static Result<PreTokenizer> create(std::span<const SplitStep> steps);

  /// Pieces in order, none empty. Without a step: the whole text, which must be shorter than 4 GiB.
  Result<std::vector<std::string_view>> split(std::string_view text) const;

 private:
  struct Step {
    Pattern pattern;
    SplitBehavior behavior;
    bool invert;
  };
  std::vector<Step> steps_;
};

}  // namespace crest::text
