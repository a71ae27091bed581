#include "backend/checkpoint/state_file.h"

#include <algorithm>
#include <cstring>

#include "backend/backend_error.h"
#include "backend/checkpoint/checksum.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

template <typename From, typename T>
void convert_elements(const std::byte* from, std::int64_t first, std::int64_t count, T* to) {
    const auto* const values = reinterpret_cast<const From*>(from) + first;
    std::transform(values, values + count, to, [](From value) { return static_cast<T>(value); });
}

}  // namespace

SavedFile write_state_file(const std::filesystem::path& file, std::span<const StagedPart> parts,
                           const std::function<std::string()>& given_up) {
    SavedFile saved;
    saved.name = file.filename().string();
    std::vector<SafetensorsEntry> entries;
    for (const StagedPart& staged : parts) {
        SavedPart& part = saved.parts.emplace_back();
        part.block = staged.part.block;
        part.elements = staged.part.elements;
        for (std::size_t i = 0; i < kStateParts; ++i)
            entries.push_back({state_tensor_name(part, i), staged.wide ? "F64" : "F32", {part.elements.size()}});
    }
    const std::string beginning = safetensors_beginning(entries, {});
    saved.header_checksum = checksum_of(beginning);

    PlainFile writing = PlainFile::create(file);
    writing.write(beginning);
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const auto chunk_bytes = static_cast<std::size_t>(kChunkElements * (parts[p].wide ? 8 : 4));
        for (std::size_t i = 0; i < kStateParts; ++i) {
            std::span<const std::byte> rest = parts[p].state[i].bytes();
            while (!rest.empty()) {
                if (const std::string reason = given_up(); !reason.empty())
                    throw BackendError("writing " + file.string(), reason);
                const std::span<const std::byte> chunk = rest.first(std::min(rest.size(), chunk_bytes));
                saved.parts[p].checksums[i].push_back(checksum_of(chunk));
                writing.write(chunk);
                rest = rest.subspan(chunk.size());
            }
        }
    }
    writing.sync();
    saved.bytes = writing.size();
    return saved;
}

StateFileReader::StateFileReader(const std::filesystem::path& folder, const SavedFile& saved,
                                 std::int64_t chunk_elements)
    : file_(PlainFile::open(folder / saved.name)), chunk_elements_(chunk_elements) {
    const std::string name = file_.path().string();
    if (file_.size() != saved.bytes)
        throw scenarios::ConfigError(name + ": is cut or was changed: " + std::to_string(file_.size()) +
                                     " bytes instead of " + std::to_string(saved.bytes));
    header_ = read_safetensors_header(file_);
    std::vector<std::byte> beginning(static_cast<std::size_t>(header_.data));
    file_.read(0, beginning);
    bytes_read_ += header_.data;
    if (checksum_of(beginning) != saved.header_checksum)
        throw scenarios::ConfigError(name + ": is damaged: the checksum of its header differs");
}

template <typename T>
void StateFileReader::read(const SavedPart& part, std::size_t state_part, const scenarios::Interval& wanted, T* to) {
    const std::string tensor = state_tensor_name(part, state_part),
                      where = file_.path().string() + ": tensor '" + tensor + "'";
    const SafetensorsEntry* const entry = header_.find(tensor);
    if (entry == nullptr) throw scenarios::ConfigError(where + " is missing");
    const std::int64_t size = safetensors_element_size(entry->dtype);
    if ((entry->dtype != "F32" && entry->dtype != "F64") || entry->elements() != part.elements.size())
        throw scenarios::ConfigError(where + " is not what the manifest says");
    const scenarios::Interval inside{wanted.begin - part.elements.begin, wanted.end - part.elements.begin};
    for (std::int64_t c = inside.begin / chunk_elements_; c * chunk_elements_ < inside.end; ++c) {
        const scenarios::Interval chunk{c * chunk_elements_, std::min((c + 1) * chunk_elements_, part.elements.size())};
        chunk_.resize(static_cast<std::size_t>(chunk.size() * size));
        file_.read(header_.data + entry->begin + chunk.begin * size, chunk_);
        bytes_read_ += chunk.size() * size;
        if (checksum_of(chunk_) != part.checksums[state_part][static_cast<std::size_t>(c)])
            throw scenarios::ConfigError(where + " is damaged: the checksum of elements " +
                                         std::to_string(part.elements.begin + chunk.begin) + " to " +
                                         std::to_string(part.elements.begin + chunk.end) + " differs");
        const std::int64_t begin = std::max(chunk.begin, inside.begin), count = std::min(chunk.end, inside.end) - begin;
        T* const target = to + (begin - inside.begin);
        if (size == 4)
            convert_elements<float>(chunk_.data(), begin - chunk.begin, count, target);
        else
            convert_elements<double>(chunk_.data(), begin - chunk.begin, count, target);
    }
}

template void StateFileReader::read(const SavedPart&, std::size_t, const scenarios::Interval&, float*);
template void StateFileReader::read(const SavedPart&, std::size_t, const scenarios::Interval&, double*);

}  // namespace headway::backend
