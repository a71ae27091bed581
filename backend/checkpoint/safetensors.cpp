#include "backend/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::int64_t kLongestSafetensorsHeader = 100'000'000;  // of the format's own library
constexpr std::int64_t kMostElements = std::int64_t{1} << 56;    // times 8 bytes still fits

using HeaderJson = nlohmann::json;  // sorted: finds a name quickly among many

/// Parses the header of one file; every complaint names it.
class HeaderParser {
  public:
    explicit HeaderParser(const PlainFile& file) : file_(file.path().string()) {}

    [[noreturn]] void fail(const std::string& why) const { throw scenarios::ConfigError(file_ + ": " + why); }

    HeaderJson parse(const std::string& text) const {
        if (text.empty() || text.front() != '{') fail("not a safetensors file: its header is no JSON object");
        // The last of two equal names would win silently.
        std::vector<std::set<std::string>> names;
        const auto notice = [&](int depth, HeaderJson::parse_event_t event, HeaderJson& value) {
            if (event == HeaderJson::parse_event_t::object_start) {
                names.resize(static_cast<std::size_t>(depth) + 1);
                names.back().clear();
            }
            if (event == HeaderJson::parse_event_t::key) {
                const auto name = value.get<std::string>();
                if (!names[static_cast<std::size_t>(depth) - 1].insert(name).second)
                    fail("'" + name + "' comes twice in its header");
            }
            return true;
        };
        try {
            return HeaderJson::parse(text, notice);
        } catch (const HeaderJson::exception& error) {
            fail(std::string("not a safetensors file: ") + error.what());
        }
    }

    SafetensorsEntry entry(const std::string& name, const HeaderJson& value) const {
        const std::string tensor = "tensor '" + name + "'";
        if (!value.is_object()) fail(tensor + " is no object");
        for (const auto& [key, unused] : value.items())
            if (key != "dtype" && key != "shape" && key != "data_offsets") fail(tensor + ": unknown key '" + key + "'");
        for (const char* const key : {"dtype", "shape", "data_offsets"})
            if (!value.contains(key)) fail(tensor + " has no '" + key + "'");
        SafetensorsEntry entry;
        entry.name = name;
        if (!value["dtype"].is_string()) fail(tensor + ": dtype is no text");
        entry.dtype = value["dtype"].get<std::string>();
        const std::int64_t size = safetensors_element_size(entry.dtype);
        if (size == 0) fail(tensor + ": unknown dtype '" + entry.dtype + "'");
        entry.shape = numbers(value["shape"], tensor + ": shape");
        std::int64_t elements = 1;
        for (const std::int64_t extent : entry.shape) {
            if (extent > 0 && elements > kMostElements / extent)
                fail(tensor + ": a shape too large to exist, " + shape_text(entry.shape));
            elements *= extent;
        }
        const std::vector<std::int64_t> offsets = numbers(value["data_offsets"], tensor + ": data_offsets");
        if (offsets.size() != 2 || offsets[0] > offsets[1]) fail(tensor + ": data_offsets are no range");
        entry.begin = offsets[0];
        entry.end = offsets[1];
        if (entry.end - entry.begin != elements * size)
            fail(tensor + ": " + std::to_string(entry.end - entry.begin) + " bytes of data do not make " + entry.dtype +
                 " " + shape_text(entry.shape));
        return entry;
    }

    std::map<std::string, std::string> metadata(const HeaderJson& value) const {
        if (!value.is_object()) fail("__metadata__ is no object");
        std::map<std::string, std::string> texts;
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string()) fail("__metadata__: '" + key + "' is no text");
            texts[key] = text.get<std::string>();
        }
        return texts;
    }

  private:
    std::vector<std::int64_t> numbers(const HeaderJson& value, const std::string& what) const {
        if (!value.is_array()) fail(what + " is no list");
        std::vector<std::int64_t> result;
        for (const HeaderJson& number : value) {
            if (!number.is_number_unsigned() || number.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
                fail(what + ": " + number.dump(-1, ' ', false, HeaderJson::error_handler_t::replace) + " is no count");
            result.push_back(number.get<std::int64_t>());
        }
        return result;
    }

    std::string file_;
};

}  // namespace

std::int64_t SafetensorsEntry::elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
}

std::int64_t safetensors_element_size(const std::string& dtype) {
    static const std::map<std::string, std::int64_t> kSizes = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
        {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"I64", 8},     {"U64", 8}, {"F64", 8}};
    const auto found = kSizes.find(dtype);
    return found == kSizes.end() ? 0 : found->second;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + "]";
}

const SafetensorsEntry* SafetensorsHeader::find(const std::string& name) const {
    for (const SafetensorsEntry& entry : entries)
        if (entry.name == name) return &entry;
    return nullptr;
}

SafetensorsHeader read_safetensors_header(const PlainFile& file) {
    const HeaderParser parser(file);
    std::uint64_t length = 0;
    if (file.size() < 8) parser.fail("not a safetensors file: " + std::to_string(file.size()) + " bytes");
    file.read(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > static_cast<std::uint64_t>(kLongestSafetensorsHeader))
        parser.fail("not a safetensors file: a header of " + std::to_string(length) + " bytes (at most 100 MB)");
    if (static_cast<std::int64_t>(length) > file.size() - 8)
        parser.fail("is cut within its header, or not a safetensors file: " + std::to_string(length) +
                    " bytes of header, " + std::to_string(file.size()) + " in all");
    std::string text(length, '\0');
    file.read(8, std::as_writable_bytes(std::span(text)));

    SafetensorsHeader header;
    header.data = 8 + static_cast<std::int64_t>(length);
    const HeaderJson json = parser.parse(text);
    for (const auto& [name, value] : json.items()) {
        if (name == "__metadata__")
            header.metadata = parser.metadata(value);
        else
            header.entries.push_back(parser.entry(name, value));
    }
    std::stable_sort(header.entries.begin(), header.entries.end(),
                     [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                         return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                     });
    std::int64_t end = 0;
    for (const SafetensorsEntry& entry : header.entries) {
        if (entry.begin < end) parser.fail("the data of tensor '" + entry.name + "' overlap those of another");
        if (entry.begin > end) parser.fail("a gap before the data of tensor '" + entry.name + "'");
        end = entry.end;
    }
    const std::int64_t held = file.size() - header.data;
    if (end > held)
        parser.fail("is cut: " + std::to_string(held) + " bytes of data where its header says " + std::to_string(end));
    if (end < held) parser.fail(std::to_string(held - end) + " bytes more than its header says");
    return header;
}

std::string safetensors_beginning(std::vector<SafetensorsEntry>& entries,
                                  const std::map<std::string, std::string>& metadata) {
    HeaderJson header = HeaderJson::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::int64_t next = 0;
    for (SafetensorsEntry& entry : entries) {
        entry.begin = next;
        entry.end = next += entry.elements() * safetensors_element_size(entry.dtype);
        if (header.contains(entry.name)) throw std::invalid_argument("safetensors: '" + entry.name + "' comes twice");
        header[entry.name] = {
            {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    const std::uint64_t length = text.size();
    std::string beginning(sizeof length, '\0');
    std::memcpy(beginning.data(), &length, sizeof length);
    return beginning + text;
}

}  // namespace headway::backend
