#pragma once

#include "engine/cancel.h"

namespace crest::cli {

/// While one of these exists, the first Ctrl-C cancels the token and the second ends the program with code 130 at once,
/// the terminal as it was found.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static const engine::CancelToken& token();
  static bool interrupted() { return token().cancelled(); }
  /// The interrupt was dealt with: the next Ctrl-C is a first one again.
  static void clear();
};

}  // namespace crest::cli
