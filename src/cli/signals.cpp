#include "cli/signals.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <iterator>

namespace crest::cli {
namespace {

engine::CancelToken cancel_token;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction previous_actions[std::size(kSignals)];
volatile sig_atomic_t termination = 0;
termios terminal_state;
bool terminal_known = false;

void on_interrupt(int signal) {
  if (signal != SIGINT) termination = 1;
  if (cancel_token.cancelled()) {
    if (terminal_known) ::tcsetattr(0, TCSANOW, &terminal_state);
    static constexpr char kNewLine = '\n';
    (void)!::write(2, &kNewLine, 1);
    ::_exit(130);
  }
  cancel_token.cancel();
}

void on_bus_error(int) {
  static constexpr char kText[] = "error: a file became shorter (or its disk failed) while it was being read\n";
  (void)!::write(2, kText, sizeof kText - 1);
  ::_exit(1);
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action {};
  action.sa_handler = on_bus_error;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

InterruptGuard::InterruptGuard() {
  cancel_token.reset();
  terminal_known = ::isatty(0) == 1 && ::tcgetattr(0, &terminal_state) == 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous_actions[i]);
    // nohup has a hang-up ignored on purpose. (Scripts start background jobs without SIGINT, yet do send it.)
    if (kSignals[i] != SIGHUP || previous_actions[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &previous_actions[i], nullptr);
}

bool InterruptGuard::terminated() { return termination != 0; }

const engine::CancelToken& InterruptGuard::token() { return cancel_token; }
void InterruptGuard::clear() { cancel_token.reset(); }

}  // namespace crest::cli
