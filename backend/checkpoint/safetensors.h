#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/checkpoint/plain_file.h"

/// The safetensors format: 8 bytes with the length of a JSON header (little-endian), the header (name -> dtype, shape,
/// data_offsets), then the data of all tensors, row-major and little-endian, without gaps
/// (https://github.com/huggingface/safetensors, "Format").
namespace headway::backend {

/// One tensor of a file. `begin` and `end` are bytes of the data, counted from its beginning.
struct SafetensorsEntry {
    std::string name;
    std::string dtype;  ///< "F32", "BF16", ...
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t elements() const;
};

/// Bytes of one element; 0 for a name that the format does not know.
std::int64_t safetensors_element_size(const std::string& dtype);

/// "[768, 2304]"
std::string shape_text(const std::vector<std::int64_t>& shape);

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> entries;        ///< in the order of their data
    std::map<std::string, std::string> metadata;  ///< texts of "__metadata__"
    std::int64_t data = 0;                        ///< where the data begins in the file

    const SafetensorsEntry* find(const std::string& name) const;
};

/// Reads and checks a header: its length against the file and the format's limit of 100 MB; every tensor has a known
/// dtype, a shape, and as much data as the two say; no name comes twice; the data lie one after the other up to the end
/// of the file. Throws ConfigError naming file and tensor.
SafetensorsHeader read_safetensors_header(const PlainFile& file);

/// Beginning of a file that holds `entries`, whose data follow in this order; fills in begin and end. The length is a
/// multiple of 8, so that data are aligned.
std::string safetensors_beginning(std::vector<SafetensorsEntry>& entries,
                                  const std::map<std::string, std::string>& metadata);

}  // namespace headway::backend
