#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace crest::engine {

/// Cuts a stream of text at the first of several strings, which may be spread over any number of pieces. Text that
/// could still become a stop string is held back, so none of it is ever shown.
class StopStrings {
 public:
  static constexpr size_t kMaxStrings = 64;
  static constexpr size_t kMaxBytes = 4096;

  StopStrings() = default;
  /// Errors: an empty string, more than kMaxStrings, one longer than kMaxBytes, one that is not UTF-8.
  static Result<StopStrings> create(std::vector<std::string> strings);

  /// Takes the next piece of text (whole UTF-8 characters) and appends to `shown` what may be shown now.
  /// Returns true when a stop string is complete: nothing after its beginning is shown, and the stream is over.
  bool push(std::string_view piece, std::string& shown);
  /// The stream is over without a stop string: appends what was held back.
  void finish(std::string& shown);
  /// The string that ended the stream, or empty.
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  std::string matched_;
};

/// Length of the longest end of `text` that is a proper beginning of `pattern`.
size_t partial_match(std::string_view text, std::string_view pattern);

}  // namespace crest::engine
