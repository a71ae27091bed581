#include "scenarios/record/record_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace headway::scenarios {

namespace {

/// How every record begins: what is not a record is never overwritten by one.
constexpr std::string_view kRecordStart = R"({"record":"header")";

[[noreturn]] void fail_writing(const std::filesystem::path& file, int error) {
    throw std::runtime_error("cannot write " + file.string() + ": " + std::generic_category().message(error));
}

}  // namespace

RecordFile::RecordFile(const std::filesystem::path& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);  // a pipe or terminal
    if (descriptor_ < 0) fail_writing(path, errno);
    try {
        take_over();
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

RecordFile::~RecordFile() {
    ::close(descriptor_);
}

void RecordFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail_writing(path_, errno);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

void RecordFile::take_over() {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail_writing(path_, errno);
    if (!S_ISREG(status.st_mode)) return;
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        throw std::runtime_error("cannot write " + path_.string() + ": another run writes to it");
    }
    std::array<char, kRecordStart.size()> start{};
    const ssize_t there = ::pread(descriptor_, start.data(), start.size(), 0);
    const bool is_record =
        there >= 0 && std::string_view(start.data(), static_cast<std::size_t>(there)) == kRecordStart;
    if (status.st_size > 0 && !is_record) {
        throw std::runtime_error("cannot write " + path_.string() + ": it exists and is not a run record");
    }
    if (::ftruncate(descriptor_, 0) != 0) fail_writing(path_, errno);
}

}  // namespace headway::scenarios
