#pragma once

namespace crest::cli {

/// While one of these exists, the first Ctrl-C sets the flag and the second ends the program with code 130 at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();
  static void clear();
};

}  // namespace crest::cli
