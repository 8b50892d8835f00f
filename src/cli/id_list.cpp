#include "cli/id_list.h"

#include <charconv>
#include <string>

namespace crest::cli {
namespace {

bool is_separator(char c) { return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// {"ids": [1, 2]} and [1, 2] hold nothing but numbers between the brackets.
std::string_view inside_brackets(std::string_view text) {
  const size_t open = text.find('['), close = text.rfind(']');
  return open != std::string_view::npos && close != std::string_view::npos && open < close ? text.substr(open + 1, close - open - 1) : text;
}

}  // namespace

Result<std::vector<int32_t>> parse_id_list(std::string_view text, int64_t vocab_size) {
  text = inside_brackets(text);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < text.size();) {
    if (is_separator(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && !is_separator(text[end])) ++end;
    int64_t id = -1;
    const auto [stop, code] = std::from_chars(text.data() + i, text.data() + end, id);
    if (code != std::errc() || stop != text.data() + end || id < 0 || id >= vocab_size) {
      return make_error(ErrorCode::kInvalidArgument, "token id {} is '{}'; allowed: whole numbers from 0 to {}", ids.size(), text.substr(i, end - i), vocab_size - 1);
    }
    ids.push_back(static_cast<int32_t>(id));
    i = end;
  }
  return ids;
}

}  // namespace crest::cli
