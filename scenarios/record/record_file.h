#pragma once

#include <filesystem>
#include <string_view>

namespace headway::scenarios {

/// A record held open by one writer under its final name. It replaces an earlier record and refuses to overwrite
/// anything else; closing gives up the lock. Throws std::runtime_error naming the file.
class RecordFile {
  public:
    explicit RecordFile(const std::filesystem::path& path);
    RecordFile(const RecordFile&) = delete;
    RecordFile& operator=(const RecordFile&) = delete;
    ~RecordFile();

    void write(std::string_view bytes);

  private:
    void take_over();

    std::filesystem::path path_;
    int descriptor_ = -1;
};

}  // namespace headway::scenarios
