#include <algorithm>
#include <cstring>
#include <system_error>

#include "backend/backend_error.h"
#include "backend/checkpoint/float_formats.h"
#include "backend/checkpoint/hugging_face.h"
#include "backend/checkpoint/hugging_face_names.h"
#include "backend/checkpoint/manifest.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

struct WeightTypeNames {
    const char* safetensors;
    const char* torch;
};

WeightTypeNames names_of(WeightType type) {
    switch (type) {
        case WeightType::kFloat32:
            return {"F32", "float32"};
        case WeightType::kBfloat16:
            return {"BF16", "bfloat16"};
        case WeightType::kFloat16:
            return {"F16", "float16"};
    }
    return {"F32", "float32"};
}

/// Tensors of one block in their own shapes, from the block's elements.
std::vector<std::pair<std::string, std::vector<float>>> tensors_of_block(const PlacedBlock& placed,
                                                                         const std::vector<float>& elements) {
    std::vector<std::pair<std::string, std::vector<float>>> tensors;
    std::map<std::string, std::size_t> index;
    for (const PlacedTensor& tensor : placed.tensors) {
        if (!index.emplace(tensor.name, tensors.size()).second) continue;
        std::int64_t count = 1;
        for (const std::int64_t extent : tensor.shape) count *= extent;
        tensors.push_back({tensor.name, std::vector<float>(static_cast<std::size_t>(count))});
    }
    for (const PlacedPart& part : placed_parts(placed, {0, static_cast<std::int64_t>(elements.size())})) {
        const PlacedTensor& tensor = *part.tensor;
        float* const to = tensors[index.at(tensor.name)].second.data() + tensor.base;
        const float* from = elements.data() + part.offset;
        for (std::int64_t r = part.row; r < part.row + part.rows; ++r)
            for (std::int64_t c = part.column; c < part.column + part.columns; ++c)
                to[r * tensor.row_stride + c * tensor.column_stride] = *from++;
    }
    return tensors;
}

void write_values(PlainFile& file, const std::vector<float>& values, WeightType type) {
    if (type == WeightType::kFloat32) return file.write(std::as_bytes(std::span(values)));
    std::vector<std::uint16_t> bits(values.size());
    std::transform(values.begin(), values.end(), bits.begin(),
                   type == WeightType::kBfloat16 ? bfloat16_of_float : half_of_float);
    file.write(std::as_bytes(std::span(bits)));
}

void write_weights(CheckpointReader& checkpoint, const std::filesystem::path& out, WeightType type) {
    const scenarios::Model& model = checkpoint.manifest().model;
    std::vector<SafetensorsEntry> entries;
    for (const scenarios::Block& block : scenarios::blocks_of(model))
        for (const PlacedTensor& tensor : placed_block(model, block).tensors)
            if (std::none_of(entries.begin(), entries.end(), [&](const auto& e) { return e.name == tensor.name; }))
                entries.push_back({tensor.name, names_of(type).safetensors, tensor.shape});
    const std::filesystem::path temporary = temporary_name(out);
    try {
        PlainFile file = PlainFile::create(temporary);
        file.write(safetensors_beginning(entries, {{"format", "pt"}}));
        for (const scenarios::Block& block : scenarios::blocks_of(model)) {
            const std::vector<float> elements = checkpoint.read<float>(block, {0, real_elements(model, block.kind)}, 0);
            for (const auto& [name, values] : tensors_of_block(placed_block(model, block), elements))
                write_values(file, values, type);
        }
        file.sync();
        std::filesystem::rename(temporary, out);
    } catch (...) {
        std::error_code ignored;
        std::filesystem::remove(temporary, ignored);
        throw;
    }
}

}  // namespace

void export_hugging_face(CheckpointReader& checkpoint, const std::filesystem::path& out, WeightType type) {
    const scenarios::Model& model = checkpoint.manifest().model;
    hugging_face_family(model);  // or throws
    if (out.extension() == ".safetensors") return write_weights(checkpoint, out, type);
    std::error_code problem;
    std::filesystem::create_directories(out, problem);
    if (problem || !std::filesystem::is_directory(out, problem))
        throw scenarios::ConfigError(
            out.string() + ": is no folder and cannot be made one (or name a file that ends in .safetensors)");
    write_weights(checkpoint, out / "model.safetensors", type);
    replace_file(out / "config.json", hugging_face_config(model, names_of(type).torch));
}

}  // namespace headway::backend
