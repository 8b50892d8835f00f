#include "cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace crest::cli {
namespace {

std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");
struct sigaction previous_action;

void on_interrupt(int) {
  if (interrupts.fetch_add(1) >= 1) {
    static constexpr char kNewLine = '\n';
    (void)!::write(2, &kNewLine, 1);
    ::_exit(130);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupts = 0;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { ::sigaction(SIGINT, &previous_action, nullptr); }
bool InterruptGuard::interrupted() { return interrupts.load() > 0; }
void InterruptGuard::clear() { interrupts = 0; }

}  // namespace crest::cli
