#include "scenarios/record/whole_file.h"

#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace headway::scenarios {

namespace fs = std::filesystem;

WholeFile::WholeFile(fs::path path) : path_(std::move(path)) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path_, ignored);
    if (fs::is_directory(status)) fail(EISDIR);
    // A pipe or terminal cannot be renamed onto.
    if (!fs::exists(status) || fs::is_regular_file(status)) {
        temporary_ = path_;
        temporary_ += ".partial-" + std::to_string(::getpid());
    }
    file_.reset(std::fopen((temporary_.empty() ? path_ : temporary_).c_str(), "wbe"));
    if (!file_) {
        const int error = errno;
        temporary_.clear();
        fail(error);
    }
}

WholeFile::~WholeFile() {
    file_.reset();
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void WholeFile::write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail(errno);
}

void WholeFile::commit() {
    if (std::fclose(file_.release()) != 0) fail(errno);
    if (temporary_.empty()) return;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
    temporary_.clear();
}

void WholeFile::fail(int error) const {
    throw std::runtime_error("cannot write " + path_.string() + ": " + std::generic_category().message(error));
}

}  // namespace headway::scenarios
