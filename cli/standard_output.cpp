#include "cli/standard_output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace headway::cli {

namespace {

/// Returns 0 or the error number.
int write_all(int descriptor, const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        done += static_cast<std::size_t>(count);
    }
    return 0;
}

}  // namespace

void prepare_standard_streams() {
    for (int descriptor = 0; descriptor <= 2; ++descriptor) {
        if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
        // Read-only in place of an output: writing to it fails, as it would have failed without us.
        [[maybe_unused]] const int opened = ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
    }
    ::signal(SIGPIPE, SIG_IGN);
}

void print(const std::string& text) {
    const int error = write_all(STDOUT_FILENO, text);
    if (error != 0 && error != EPIPE) {
        throw std::runtime_error(std::string("standard output cannot be written: ") + std::strerror(error));
    }
}

void complain(const std::string& message) {
    write_all(STDERR_FILENO, "headway: " + message + "\n");
}

}  // namespace headway::cli
