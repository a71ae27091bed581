#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace headway::cli {

namespace {

// The one mutable variable of the program: a signal handler can reach nothing else.
std::atomic<bool> interrupt_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void ask_for_the_end(int) {
    interrupt_asked.store(true, std::memory_order_relaxed);
}

}  // namespace

void catch_interrupts() {
    struct sigaction action {};
    action.sa_handler = ask_for_the_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // Whoever started this process may have held them back until now.
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGINT);
    ::sigaddset(&mask, SIGTERM);
    ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
}

bool interrupted() {
    return interrupt_asked.load(std::memory_order_relaxed);
}

}  // namespace headway::cli
