#pragma once

#include "engine/cancel.h"

namespace crest::cli {

/// While one of these exists, the first Ctrl-C (or SIGTERM, SIGHUP) cancels the token and the second ends the program
/// with code 130 at once, the terminal as it was found.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static const engine::CancelToken& token();
  static bool interrupted() { return token().cancelled(); }
  /// Asked to end, not only to stop what is going on: SIGTERM or SIGHUP came.
  static bool terminated();
  /// The interrupt was dealt with: the next Ctrl-C is a first one again.
  static void clear();
};

/// A mapped file that another program cuts short while it is read cannot be guarded against: the system sends SIGBUS. From
/// now on the program then says so and ends with code 1.
void explain_bus_errors();

}  // namespace crest::cli
