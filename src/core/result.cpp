#include "core/result.h"

#include <cstdio>

namespace crest {

void fail_check(const char* expression, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "crest: internal error: %s:%d: %s does not hold%s%s\n", file, line, expression,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace crest
