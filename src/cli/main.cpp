#include <fmt/format.h>

#include "core/version.h"

int main() {
  fmt::print("crest {}\n", crest::kVersion);
  return 0;
}
