#include "engine/stop_strings.h"

#include <algorithm>

#include "text/tokenizer.h"

namespace crest::engine {

size_t partial_match(std::string_view text, std::string_view pattern) {
  for (size_t length = std::min(text.size(), pattern.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == pattern.substr(0, length)) return length;
  }
  return 0;
}

Result<StopStrings> StopStrings::create(std::vector<std::string> strings) {
  if (strings.size() > kMaxStrings) {
    return make_error(ErrorCode::kInvalidArgument, "stop: {} strings given, at most {} are allowed", strings.size(),
                      kMaxStrings);
  }
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty() || strings[i].size() > kMaxBytes) {
      return make_error(ErrorCode::kInvalidArgument, "stop: string {} has {} bytes, allowed are 1 to {}", i,
                        strings[i].size(), kMaxBytes);
    }
    if (text::to_valid_utf8(strings[i]) != strings[i])
      return make_error(ErrorCode::kInvalidArgument, "stop: string {} is not valid UTF-8", i);
  }
  StopStrings result;
  result.strings_ = std::move(strings);
  return result;
}

bool StopStrings::push(std::string_view piece, std::string& shown) {
  held_ += piece;
  size_t first = std::string::npos;
  for (const auto& string : strings_) {
    if (const size_t at = held_.find(string); at < first) {
      first = at;
      matched_ = string;
    }
  }
  if (first != std::string::npos) {
    shown.append(held_, 0, first);
    held_.clear();
    return true;
  }
  size_t keep = 0;
  for (const auto& string : strings_) keep = std::max(keep, partial_match(held_, string));
  shown.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopStrings::finish(std::string& shown) {
  shown += held_;
  held_.clear();
}

}  // namespace crest::engine
