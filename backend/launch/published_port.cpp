#include "backend/launch/published_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "backend/backend_error.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};

/// When a process began, in ticks since the machine did (proc(5), stat, field 22); 0 where it is not told.
std::string start_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return "0";
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    for (int i = 3; i <= 22; ++i) fields >> field;
    return field;
}

/// 0 when there is none, or it is left over from a process that has ended.
int port_told_in(const std::filesystem::path& file) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::getuid()) return 0;
    std::ifstream told(file);
    int port = 0;
    pid_t process = 0;
    std::string start;
    if (!(told >> port >> process >> start) || start_of(process) != start) return 0;
    return port;
}

[[noreturn]] void fail_to_listen(const char* call) {
    throw BackendError(0, 1, std::string("listening on this machine: ") + call, std::strerror(errno));
}

}  // namespace

RendezvousPoint listen_locally() {
    RendezvousPoint point{"127.0.0.1", 0, ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (point.listener < 0) fail_to_listen("socket");
    const int yes = 1;  // whoever is left after a failure may listen there again at once
    ::setsockopt(point.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(point.listener, reinterpret_cast<sockaddr*>(&address), length) != 0) fail_to_listen("bind");
    if (::listen(point.listener, SOMAXCONN) != 0) fail_to_listen("listen");
    if (::getsockname(point.listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        fail_to_listen("getsockname");
    point.port = ntohs(address.sin_port);
    return point;
}

std::filesystem::path publication_file(const std::string& launch) {
    const pid_t parent = ::getppid();
    const std::string name = launch.empty() ? std::to_string(parent) + "-" + start_of(parent)
                                            : std::to_string(std::hash<std::string>()(launch));
    return std::filesystem::temp_directory_path() / ("headway-" + std::to_string(::getuid()) + "-" + name + ".port");
}

MeetingPoint publish_port(const std::filesystem::path& file) {
    const RendezvousPoint point = listen_locally();
    const std::filesystem::path whole = file.string() + ".new";
    std::error_code ignored;
    std::filesystem::remove(whole, ignored);
    const int descriptor = ::open(whole.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    const std::string text =
        std::to_string(point.port) + " " + std::to_string(::getpid()) + " " + start_of(::getpid()) + "\n";
    const bool written =
        descriptor >= 0 && ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const std::string why = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    if (!written || std::rename(whole.c_str(), file.c_str()) != 0)
        throw BackendError(0, 1, "telling the port of rank 0 in " + file.string(), why);
    return {point, std::shared_ptr<void>(nullptr, [file](void*) {
                std::error_code unimportant;
                std::filesystem::remove(file, unimportant);
            })};
}

MeetingPoint published_port(const std::filesystem::path& file, std::chrono::milliseconds timeout) {
    const auto latest = std::chrono::steady_clock::now() + timeout;
    do {
        if (const int port = port_told_in(file); port > 0) return {{"127.0.0.1", port, -1}, nullptr};
        std::this_thread::sleep_for(kBetweenLooks);
    } while (std::chrono::steady_clock::now() < latest);
    throw scenarios::ConfigError("rank 0 did not say within " + std::to_string(timeout.count()) +
                                 " ms where it is (in " + file.string() +
                                 "): if it is on another machine, give --rendezvous HOST:PORT");
}

}  // namespace headway::backend
