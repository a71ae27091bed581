#include "backend/checkpoint/plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "backend/backend_error.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

std::string reason_of(int error) {
    return std::generic_category().message(error);
}

[[noreturn]] void fail_reading(const std::filesystem::path& file, const std::string& why) {
    throw scenarios::ConfigError(file.string() + ": " + why);
}

[[noreturn]] void fail_writing(const std::filesystem::path& file, int error) {
    throw BackendError("writing " + file.string(), reason_of(error));
}

}  // namespace

PlainFile::PlainFile(int descriptor, std::filesystem::path path, std::int64_t size)
    : descriptor_(descriptor), path_(std::move(path)), size_(size) {}

PlainFile PlainFile::open(const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail_reading(file, errno == ENOENT ? "no such file" : "cannot be opened: " + reason_of(errno));
    PlainFile opened(descriptor, file, 0);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) fail_reading(file, "cannot be read: " + reason_of(errno));
    if (!S_ISREG(status.st_mode))
        fail_reading(file, S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a plain file");
    opened.size_ = status.st_size;
    return opened;
}

PlainFile PlainFile::create(const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) fail_writing(file, errno);
    return {descriptor, file, 0};
}

PlainFile::PlainFile(PlainFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

PlainFile& PlainFile::operator=(PlainFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    std::swap(size_, other.size_);
    return *this;
}

PlainFile::~PlainFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void PlainFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_reading(path_, "cannot be read: " + reason_of(errno));
        if (got == 0) fail_reading(path_, "is cut at " + std::to_string(offset) + " bytes");
        bytes = bytes.subspan(static_cast<std::size_t>(got));
        offset += got;
    }
}

void PlainFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail_writing(path_, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(put));
        size_ += put;
    }
}

void PlainFile::sync() {
    if (::fsync(descriptor_) != 0) fail_writing(path_, errno);
}

void sync_folder(const std::filesystem::path& folder) {
    const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail_writing(folder, errno);
    const int failed = ::fsync(descriptor), error = errno;
    ::close(descriptor);
    if (failed != 0 && error != EINVAL) fail_writing(folder, error);  // EINVAL: a file system that has no such thing
}

std::string text_of_file(const std::filesystem::path& file, std::int64_t limit) {
    const PlainFile opened = PlainFile::open(file);
    if (opened.size() > limit) fail_reading(file, "is too long: " + std::to_string(opened.size()) + " bytes");
    std::string text(static_cast<std::size_t>(opened.size()), '\0');
    opened.read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

std::filesystem::path temporary_name(const std::filesystem::path& file) {
    return file.parent_path() / ("." + file.filename().string() + ".writing");
}

namespace {

void write_and_rename(const std::filesystem::path& file, const std::string& text, bool sync) {
    const std::filesystem::path temporary = temporary_name(file);
    PlainFile writing = PlainFile::create(temporary);
    writing.write(text);
    if (sync) writing.sync();
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail_writing(file, errno);
}

}  // namespace

void replace_file(const std::filesystem::path& file, const std::string& text) {
    write_and_rename(file, text, true);
}

void place_file(const std::filesystem::path& file, const std::string& text) {
    write_and_rename(file, text, false);
}

}  // namespace headway::backend
