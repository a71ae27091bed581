#include "cli/worker_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "cli/summary_bytes.h"

namespace headway::cli {

namespace {

/// How long an end that was asked for may go unnoticed.
constexpr int kPollMilliseconds = 200;

/// One running worker. What it writes is 'S' and its answer, or 'E' and a message; it ends with the pipe.
struct Worker {
    std::size_t index = 0;
    pid_t process = -1;
    int pipe = -1;
    std::string answer;
};

[[noreturn]] void work(std::size_t index, const std::function<std::string(std::size_t)>& run, int pipe) {
    std::string answer;
    try {
        answer = "S" + run(index);
    } catch (const std::exception& error) {
        answer = std::string("E") + error.what();
    }
    std::size_t done = 0;
    while (done < answer.size()) {
        const ssize_t count = ::write(pipe, answer.data() + done, answer.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    ::_exit(done == answer.size() ? 0 : 1);  // no destructors of the parent's objects
}

Worker start_worker(std::size_t index, const std::function<std::string(std::size_t)>& run,
                    const std::map<int, Worker>& running) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    std::fflush(nullptr);  // or both processes print what is buffered
    const pid_t process = ::fork();
    if (process < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for the answer any more
        ::close(ends[0]);
        for (const auto& [pipe, worker] : running) ::close(pipe);
        work(index, run, ends[1]);
    }
    ::close(ends[1]);
    return {index, process, ends[0], ""};
}

/// Waits for a worker whose pipe has ended; throws when it failed.
std::string result_of(Worker& worker) {
    int status = 0;
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (!worker.answer.empty() && worker.answer[0] == 'E') throw std::runtime_error(worker.answer.substr(1));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || worker.answer.empty()) {
        throw std::runtime_error("a worker process ended without an answer" +
                                 (WIFSIGNALED(status) ? " (signal " + std::to_string(WTERMSIG(status)) + ")" : ""));
    }
    worker.answer.erase(0, 1);
    return std::move(worker.answer);
}

/// Reads what a pipe holds; returns false at its end.
bool read_some(Worker& worker) {
    char buffer[65536];
    const ssize_t count = ::read(worker.pipe, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    worker.answer.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
}

void show_progress(std::size_t finished, std::size_t count) {
    if (!::isatty(STDERR_FILENO)) return;
    if (finished < count) {
        std::fprintf(stderr, "\r\033[Krun %zu of %zu", finished + 1, count);
    } else {
        std::fputs("\r\033[K", stderr);
    }
    std::fflush(stderr);
}

}  // namespace

std::vector<std::optional<std::string>> answers_of_processes(std::size_t count,
                                                             const std::function<std::string(std::size_t)>& run,
                                                             const ProcessOptions& options) {
    const std::size_t at_a_time =
        options.at_a_time > 0 ? options.at_a_time : std::max(1u, std::thread::hardware_concurrency());
    std::map<int, Worker> running;  // by pipe
    std::vector<std::optional<std::string>> answers(count);
    std::optional<std::runtime_error> failure;
    std::size_t next = 0, finished = 0;
    bool told_to_end = false;
    const auto end_asked = [&] { return failure || (options.end_asked && options.end_asked()); };
    while (!running.empty() || (next < count && !end_asked())) {
        while (running.size() < at_a_time && next < count && !end_asked()) {
            Worker worker = start_worker(next++, run, running);
            running.emplace(worker.pipe, std::move(worker));
        }
        if (running.empty()) break;
        if (!told_to_end && end_asked()) {  // a terminal tells them itself, `kill` tells only this process
            told_to_end = true;
            for (const auto& [pipe, worker] : running) ::kill(worker.process, options.abandon ? SIGKILL : SIGINT);
        }
        if (options.progress) options.progress(finished);
        std::vector<pollfd> waiting;
        for (const auto& [pipe, worker] : running) waiting.push_back({pipe, POLLIN, 0});
        if (::poll(waiting.data(), waiting.size(), kPollMilliseconds) < 0 && errno != EINTR) {
            throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
        }
        for (const pollfd& event : waiting) {
            if (event.revents == 0) continue;
            Worker& worker = running.at(event.fd);
            if (read_some(worker)) continue;
            ::close(worker.pipe);
            try {
                answers[worker.index] = result_of(worker);
                ++finished;
            } catch (const std::runtime_error& error) {
                if (!failure && !(told_to_end && options.abandon)) failure = error;
            }
            running.erase(event.fd);
        }
    }
    if (failure) throw *failure;
    return answers;
}

std::vector<scenarios::RunSummary> summaries_of_processes(std::size_t count,
                                                          const std::function<scenarios::RunSummary(std::size_t)>& run,
                                                          const std::function<bool()>& end_asked) {
    const ProcessOptions options{0, end_asked, false, [&](std::size_t finished) { show_progress(finished, count); }};
    const auto answers = answers_of_processes(
        count, [&](std::size_t index) { return to_bytes(run(index)); }, options);
    show_progress(count, count);
    std::vector<scenarios::RunSummary> ordered;
    for (const std::optional<std::string>& answer : answers)
        if (answer) ordered.push_back(summary_from_bytes(*answer));
    return ordered;
}

}  // namespace headway::cli
