#include "backend/launch/local_launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "backend/backend_error.h"
#include "backend/launch/process_rank.h"
#include "backend/launch/published_port.h"

namespace headway::backend {

namespace {

using LaunchClock = std::chrono::steady_clock;

/// A child that could not become the program says so by this exit code, as shells do.
constexpr int kNotExecuted = 127;

struct LaunchedRank {
    pid_t process = -1;
    int output = -1;  ///< pipe of its streams; -1: rank 0, or ended
    std::string line;
    bool ended = false;
};

/// While it lives, these signals wait in a descriptor instead of ending this process.
class CaughtSignals {
  public:
    CaughtSignals() {
        sigset_t mask;
        ::sigemptyset(&mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&mask, signal);
        ::sigprocmask(SIG_BLOCK, &mask, &before_);
        descriptor_ = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    ~CaughtSignals() {
        ::close(descriptor_);
        ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    CaughtSignals(const CaughtSignals&) = delete;
    CaughtSignals& operator=(const CaughtSignals&) = delete;

    int descriptor() const { return descriptor_; }
    const sigset_t& before() const { return before_; }
    /// Next one that came; 0: none.
    int next() const {
        signalfd_siginfo info;
        return ::read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
    }

  private:
    sigset_t before_;
    int descriptor_ = -1;
};

class LocalRanks {
  public:
    explicit LocalRanks(const LocalLaunch& launch) : launch_(launch), ranks_(static_cast<std::size_t>(launch.ranks)) {
        result_.ends.resize(ranks_.size());
        for (std::size_t i = 0; i < ranks_.size(); ++i) result_.ends[i].rank = static_cast<int>(i);
    }
    ~LocalRanks() {
        kill_all(SIGKILL);  // only when something was thrown is anybody left
        for (const LaunchedRank& rank : ranks_) {
            if (rank.process > 0 && !rank.ended) ::waitpid(rank.process, nullptr, 0);
            if (rank.output >= 0) ::close(rank.output);
        }
    }

    LaunchResult run() {
        const RendezvousPoint point = listen_locally();
        try {
            for (int rank = 0; rank < launch_.ranks; ++rank) start(rank, point);
        } catch (...) {
            ::close(point.listener);
            throw;
        }
        ::close(point.listener);
        while (anybody_runs() || anything_to_read()) step();
        return result_;
    }

  private:
    void tell(const std::string& line) const {
        if (launch_.tell) launch_.tell(line);
    }
    bool anybody_runs() const {
        return std::any_of(ranks_.begin(), ranks_.end(), [](const LaunchedRank& rank) { return !rank.ended; });
    }
    bool anything_to_read() const {
        return std::any_of(ranks_.begin(), ranks_.end(), [](const LaunchedRank& rank) { return rank.output >= 0; });
    }
    void kill_all(int signal) const {
        for (const LaunchedRank& rank : ranks_)
            if (rank.process > 0 && !rank.ended) ::kill(rank.process, signal);
    }

    void start(int rank, const RendezvousPoint& point) {
        // All that allocates happens before the fork.
        std::vector<char*> arguments;
        for (const std::string& argument : launch_.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        const auto variables = local_rank_environment(rank, launch_.ranks, point);
        int ends[2] = {-1, -1};
        if (rank != 0 && ::pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
        const pid_t parent = ::getpid();
        const pid_t process = ::fork();
        if (process < 0) {
            for (const int end : ends)
                if (end >= 0) ::close(end);
            fail("fork");
        }
        if (process == 0) become(rank, parent, ends[1], point.listener, variables, arguments);
        if (ends[1] >= 0) ::close(ends[1]);
        ranks_[static_cast<std::size_t>(rank)] = {process, ends[0], "", false};
    }

    [[noreturn]] void become(int rank, pid_t parent, int output, int listener,
                             const std::vector<std::pair<std::string, std::string>>& variables,
                             const std::vector<char*>& arguments) const {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(kNotExecuted);  // it ended before it could be watched
        ::setpgid(0, 0);  // a terminal's Ctrl-C reaches the launching process alone, which passes it on
        sigset_t blocked = signals_.before();
        if (launch_.hold_requests)
            for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&blocked, signal);
        ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
        const int nothing = ::open("/dev/null", O_RDONLY);
        if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
        if (rank == 0) {
            ::fcntl(listener, F_SETFD, 0);
        } else {
            ::dup2(output, STDOUT_FILENO);
            ::dup2(output, STDERR_FILENO);
        }
        for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
        ::execv(arguments[0], arguments.data());
        const std::string why = std::string(arguments[0]) + ": " + std::strerror(errno) + "\n";
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, why.data(), why.size());
        ::_exit(kNotExecuted);
    }

    [[noreturn]] void fail(const char* call) const {
        throw BackendError(0, launch_.ranks, std::string("starting local ranks: ") + call, std::strerror(errno));
    }

    void step() {
        std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}};
        std::vector<LaunchedRank*> whose{nullptr};
        for (LaunchedRank& rank : ranks_) {
            if (rank.output < 0) continue;
            waiting.push_back({rank.output, POLLIN, 0});
            whose.push_back(&rank);
        }
        ::poll(waiting.data(), waiting.size(), 200);
        for (std::size_t i = 1; i < waiting.size(); ++i)
            if (waiting[i].revents != 0) read_from(*whose[i]);
        for (int signal = signals_.next(); signal != 0; signal = signals_.next())
            if (signal != SIGCHLD) pass_on(signal);
        for (LaunchedRank& rank : ranks_) see_whether_ended(rank);
        if (LaunchClock::now() >= latest_ && anybody_runs()) {
            for (const LaunchedRank& rank : ranks_)
                if (!rank.ended) tell(name_of(rank) + " did not end and is killed");
            kill_all(SIGKILL);
            latest_ = LaunchClock::time_point::max();
        }
    }

    std::string name_of(const LaunchedRank& rank) const { return "rank " + std::to_string(&rank - ranks_.data()); }

    void pass_on(int signal) {
        ++requests_;
        result_.asked_to_end = result_.asked_to_end != 0 ? result_.asked_to_end : signal;
        if (requests_ >= 2) latest_ = std::min(latest_, LaunchClock::now() + launch_.grace);
        kill_all(requests_ >= 3 ? SIGKILL : signal == SIGHUP ? SIGTERM : signal);
    }

    void read_from(LaunchedRank& rank) {
        char buffer[16384];
        const ssize_t count = ::read(rank.output, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) return;
        if (count > 0) {
            rank.line.append(buffer, static_cast<std::size_t>(count));
        } else {
            close_output(rank);
        }
        for (std::size_t end = rank.line.find('\n'); end != std::string::npos; end = rank.line.find('\n')) {
            tell(name_of(rank) + ": " + rank.line.substr(0, end));
            rank.line.erase(0, end + 1);
        }
        if (rank.output < 0 && !rank.line.empty()) tell(name_of(rank) + ": " + std::exchange(rank.line, ""));
    }

    static void close_output(LaunchedRank& rank) { ::close(std::exchange(rank.output, -1)); }

    void see_whether_ended(LaunchedRank& rank) {
        int status = 0;
        if (rank.ended || ::waitpid(rank.process, &status, WNOHANG) != rank.process) return;
        rank.ended = true;
        if (rank.output >= 0) {  // what it left; a grandchild may keep the pipe open, so it is not waited for
            ::fcntl(rank.output, F_SETFL, O_NONBLOCK);
            for (pollfd left{rank.output, POLLIN, 0}; rank.output >= 0 && ::poll(&left, 1, 0) > 0;) read_from(rank);
            if (rank.output >= 0) close_output(rank);
        }
        RankEnd& end = result_.ends[static_cast<std::size_t>(&rank - ranks_.data())];
        if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
        if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
        if (!end.failed() || result_.first_failed >= 0) return;
        result_.first_failed = end.rank;
        const bool said_itself = end.rank == 0 && end.signal == 0;
        if (result_.asked_to_end == 0 && !said_itself) tell(end.text());
        latest_ = std::min(latest_, LaunchClock::now() + launch_.grace);
    }

    const LocalLaunch& launch_;
    CaughtSignals signals_;
    std::vector<LaunchedRank> ranks_;
    LaunchResult result_;
    int requests_ = 0;  ///< to end
    LaunchClock::time_point latest_ = LaunchClock::time_point::max();
};

}  // namespace

std::string RankEnd::text() const {
    const std::string who = "rank " + std::to_string(rank);
    if (signal != 0) return who + " was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    return who + " ended with exit code " + std::to_string(exit_code);
}

int LaunchResult::exit_code() const {
    if (first_failed < 0) return 0;
    if (ends.front().exit_code != 0) return ends.front().exit_code;
    const RankEnd& first = ends[static_cast<std::size_t>(first_failed)];
    return first.signal != 0 ? 1 : first.exit_code;
}

LaunchResult run_local_ranks(const LocalLaunch& launch) {
    if (launch.ranks < 1 || launch.arguments.empty()) throw std::invalid_argument("a launch has a program and ranks");
    return LocalRanks(launch).run();
}

}  // namespace headway::backend
