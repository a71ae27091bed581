#include "backend/checkpoint/checkpoint_reader.h"

#include <algorithm>

#include "backend/checkpoint/checkpoint_folder.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

constexpr std::int64_t kLongestManifest = std::int64_t{1} << 32;

}  // namespace

CheckpointReader::CheckpointReader(const std::filesystem::path& folder)
    : CheckpointReader(folder, parse_manifest(text_of_file(folder / kManifestName, kLongestManifest),
                                              (folder / kManifestName).string())) {}

CheckpointReader::CheckpointReader(std::filesystem::path folder, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), files_(manifest_.files.size()) {
    for (std::size_t file = 0; file < manifest_.files.size(); ++file)
        for (const SavedPart& part : manifest_.files[file].parts)
            places_[{part.block.kind, part.block.layer}].push_back({file, &part});
    for (auto& [block, places] : places_)
        std::sort(places.begin(), places.end(),
                  [](const Place& a, const Place& b) { return a.part->elements.begin < b.part->elements.begin; });
}

CheckpointReader::~CheckpointReader() = default;

template <typename T>
std::vector<T> CheckpointReader::read(const scenarios::Block& block, const scenarios::Interval& elements,
                                      std::size_t state_part) {
    std::vector<T> values(static_cast<std::size_t>(std::max<std::int64_t>(elements.size(), 0)));
    const std::int64_t end = std::min(elements.end, real_elements(manifest_.model, block.kind));
    std::int64_t next = elements.begin;
    const auto expect_no_gap_before = [&](std::int64_t begin) {
        if (next < begin)
            throw scenarios::ConfigError((folder_ / kManifestName).string() + ": elements " + std::to_string(next) +
                                         " to " + std::to_string(begin) + " of " + block_text(block) + " are missing");
    };
    for (const Place& place : places_[{block.kind, block.layer}]) {
        const scenarios::Interval wanted{std::max(next, place.part->elements.begin),
                                         std::min(end, place.part->elements.end)};
        if (wanted.empty()) continue;
        expect_no_gap_before(wanted.begin);
        std::unique_ptr<StateFileReader>& file = files_[place.file];
        if (!file)
            file = std::make_unique<StateFileReader>(folder_, manifest_.files[place.file], manifest_.chunk_elements);
        file->read(*place.part, state_part, wanted, values.data() + (wanted.begin - elements.begin));
        next = wanted.end;
    }
    expect_no_gap_before(end);
    return values;
}

template std::vector<float> CheckpointReader::read(const scenarios::Block&, const scenarios::Interval&, std::size_t);
template std::vector<double> CheckpointReader::read(const scenarios::Block&, const scenarios::Interval&, std::size_t);

std::int64_t CheckpointReader::bytes_read() const {
    std::int64_t bytes = 0;
    for (const auto& file : files_)
        if (file) bytes += file->bytes_read();
    return bytes;
}

std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) throw scenarios::ConfigError(path.string() + ": no such folder");
    if (!std::filesystem::is_directory(path, ignored))
        throw scenarios::ConfigError(path.string() + ": is a file, not a checkpoint's folder");
    if (std::filesystem::exists(path / kManifestName, ignored)) return path;
    const std::vector<CheckpointName> names = complete_checkpoints(path);
    if (names.empty()) throw scenarios::ConfigError(path.string() + ": holds no checkpoint");
    return path / names.back().text();
}

}  // namespace headway::backend
