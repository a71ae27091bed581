#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "backend/checkpoint/agreement.h"
#include "backend/checkpoint/float_formats.h"
#include "backend/checkpoint/hugging_face.h"
#include "backend/checkpoint/hugging_face_names.h"
#include "backend/checkpoint/manifest.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// The family's names without the prefix that only some files have.
std::string usual_name(HuggingFaceFamily family, std::string name) {
    const std::string wrapped = "transformer.";
    if (family == HuggingFaceFamily::kGpt2 && name.starts_with(wrapped)) return name.substr(wrapped.size());
    if (family == HuggingFaceFamily::kLlama)
        for (const char* const bare : {"layers.", "embed_tokens.", "norm."})
            if (name.starts_with(bare)) return "model." + name;
    return name;
}

/// Constants that some versions of the library save with the weights.
bool is_no_weight(const std::string& name) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           name.ends_with(".rotary_emb.inv_freq");
}

/// Element (r, c) of the rectangle is element r * row_stride + c * column_stride of `from`, in type From.
template <typename From, typename Convert>
void gather_rectangle(const std::byte* from, const PlacedPart& part, float* to, Convert convert) {
    const std::int64_t row_stride = part.tensor->row_stride, column_stride = part.tensor->column_stride;
    const auto element = [&](std::int64_t row, std::int64_t column) {
        From value;
        std::memcpy(&value,
                    from + (row * row_stride + column * column_stride) * static_cast<std::int64_t>(sizeof value),
                    sizeof value);
        return convert(value);
    };
    if (column_stride == 1) {
        for (std::int64_t r = 0; r < part.rows; ++r)
            for (std::int64_t c = 0; c < part.columns; ++c) to[r * part.columns + c] = element(r, c);
        return;
    }
    for (std::int64_t c = 0; c < part.columns; ++c)  // along the file's rows
        for (std::int64_t r = 0; r < part.rows; ++r) to[r * part.columns + c] = element(r, c);
}

void gather(const std::string& dtype, const std::byte* data, const PlacedPart& part, float* to) {
    const PlacedTensor& tensor = *part.tensor;
    const std::int64_t first = tensor.base + part.row * tensor.row_stride + part.column * tensor.column_stride;
    const std::byte* const from = data + first * safetensors_element_size(dtype);
    if (dtype == "F32") return gather_rectangle<float>(from, part, to, [](float x) { return x; });
    if (dtype == "F64") return gather_rectangle<double>(from, part, to, [](double x) { return static_cast<float>(x); });
    if (dtype == "BF16") return gather_rectangle<std::uint16_t>(from, part, to, float_of_bfloat16);
    gather_rectangle<std::uint16_t>(from, part, to, float_of_half);
}

}  // namespace

HuggingFaceWeights::HuggingFaceWeights(const std::filesystem::path& path, const scenarios::Model& model)
    : model_(model), what_(path.string()) {
    hugging_face_family(model);  // or throws
    std::error_code ignored;
    std::filesystem::path folder = path;
    if (std::filesystem::is_directory(path, ignored)) {
        if (std::filesystem::exists(path / kIndex, ignored))
            open_index(path / kIndex);
        else if (std::filesystem::exists(path / kOneFile, ignored))
            open(path / kOneFile);
        else
            throw scenarios::ConfigError(what_ + ": holds neither " + kOneFile + " nor " + kIndex);
    } else {
        folder = path.parent_path();
        if (path.string().ends_with(".index.json"))
            open_index(path);
        else
            open(path);
    }
    if (std::filesystem::exists(folder / "config.json", ignored))
        check_hugging_face_config(model_, text_of_file(folder / "config.json", 1 << 20),
                                  (folder / "config.json").string());
    check_names();
}

void HuggingFaceWeights::open(const std::filesystem::path& file) {
    const SafetensorsHeader header = read_safetensors_header(PlainFile::open(file));
    files_.push_back(std::make_unique<MappedFile>(file));
    const std::byte* const data = files_.back()->bytes().data() + header.data;
    const HuggingFaceFamily family = hugging_face_family(model_);
    for (const SafetensorsEntry& entry : header.entries) {
        const std::string name = usual_name(family, entry.name);
        if (!sources_.emplace(name, Source{files_.size() - 1, entry, data + entry.begin}).second)
            throw scenarios::ConfigError(file.string() + ": tensor '" + entry.name + "' is there a second time");
    }
}

void HuggingFaceWeights::open_index(const std::filesystem::path& index) {
    std::set<std::string> files;
    try {
        const auto json = nlohmann::json::parse(text_of_file(index, 1 << 28));
        for (const auto& [tensor, file] : json.at("weight_map").items()) files.insert(file.get<std::string>());
    } catch (const nlohmann::json::exception& error) {
        throw scenarios::ConfigError(index.string() + ": " + error.what());
    }
    for (const std::string& file : files) {
        if (file.find('/') != std::string::npos)
            throw scenarios::ConfigError(index.string() + ": '" + file + "' is no file of the same folder");
        open(index.parent_path() / file);
    }
}

const HuggingFaceWeights::Source& HuggingFaceWeights::source(const std::string& name) const {
    const auto found = sources_.find(name);
    if (found == sources_.end())
        throw scenarios::ConfigError(what_ + ": tensor '" + name + "' of the scenario's model '" + model_.name +
                                     "' is missing");
    return found->second;
}

void HuggingFaceWeights::check_names() const {
    std::set<std::string> known;
    for (const scenarios::Block& block : scenarios::blocks_of(model_))
        for (const PlacedTensor& tensor : placed_block(model_, block).tensors) {
            const SafetensorsEntry& entry = source(tensor.name).entry;
            known.insert(tensor.name);
            std::vector<std::int64_t> shape = entry.shape;
            if (block.kind == scenarios::BlockKind::kPositions && shape.size() == 2)
                shape[0] = std::min(shape[0], tensor.shape[0]);
            if (shape != tensor.shape)
                throw scenarios::ConfigError(what_ + ": tensor '" + entry.name + "' is " + shape_text(entry.shape) +
                                             ", not " + shape_text(tensor.shape) + " as the scenario's model '" +
                                             model_.name + "' has it");
            if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16" && entry.dtype != "F64")
                throw scenarios::ConfigError(what_ + ": tensor '" + entry.name + "' is of type " + entry.dtype +
                                             " (F32, F16, BF16 or F64)");
        }
    if (model_.tied_embedding) known.insert("lm_head.weight");  // the embedding once more
    for (const auto& [name, unused] : sources_)
        if (!known.contains(name) && !is_no_weight(name))
            throw scenarios::ConfigError(what_ + ": the scenario's model '" + model_.name + "' has no tensor '" + name +
                                         "'");
}

std::vector<float> HuggingFaceWeights::read(const scenarios::Block& block, const scenarios::Interval& elements) const {
    std::vector<float> values(static_cast<std::size_t>(std::max<std::int64_t>(elements.size(), 0)));
    const PlacedBlock placed = placed_block(model_, block);
    for (const PlacedPart& part :
         placed_parts(placed, {elements.begin, std::min(elements.end, real_elements(model_, block.kind))})) {
        const Source& from = source(part.tensor->name);
        gather(from.entry.dtype, from.data, part, values.data() + part.offset);
    }
    return values;
}

void load_hugging_face(const std::filesystem::path& path, const scenarios::Job& job, Control& control, Device& device,
                       std::span<StateSlice> state) {
    const std::string problem = first_problem(
        control, problem_of([&] {
            const HuggingFaceWeights weights(path, job.model);
            for (const StateSlice& slice : state) {
                const std::vector<float> values = weights.read(slice.block, slice.elements);
                if (slice.master.type == DataType::kFloat64)
                    device.from_host(std::vector<double>(values.begin(), values.end()).data(), slice.master);
                else
                    device.from_host(values.data(), slice.master);
                device.operations().fill(slice.first_moment, 0.0);
                device.operations().fill(slice.second_moment, 0.0);
            }
        }));
    if (!problem.empty()) throw scenarios::ConfigError(problem);
}

}  // namespace headway::backend
