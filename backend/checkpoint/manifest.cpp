#include "backend/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>

#include "backend/checkpoint/checksum.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

using scenarios::Block;
using scenarios::BlockKind;
using ManifestJson = nlohmann::ordered_json;

constexpr const char* kManifestFormat = "headway checkpoint";
constexpr int kManifestVersion = 1;

/// The shape of a model, by name. Enumerations are told by their position.
template <typename ModelType, typename Visit>
void visit_model_facts(ModelType& model, Visit visit) {
    visit("layers", model.layers);
    visit("hidden", model.hidden);
    visit("heads", model.heads);
    visit("kv_heads", model.kv_heads);
    visit("head_dim", model.head_dim);
    visit("ffn", model.ffn);
    visit("gated_mlp", model.gated_mlp);
    visit("vocab", model.vocab);
    visit("sequence_length", model.sequence_length);
    visit("positions", model.positions);
    visit("norm", model.norm);
    visit("biases", model.biases);
    visit("tied_embedding", model.tied_embedding);
    visit("norm_epsilon", model.norm_epsilon);
    visit("rotary_base", model.rotary_base);
}

struct FactWords {
    static std::vector<std::string> of(scenarios::Positions) { return {"learned", "rotary", "alibi"}; }
    static std::vector<std::string> of(scenarios::Norm) { return {"layer", "rms"}; }
};

template <typename Value>
ManifestJson fact_json(const Value& value) {
    if constexpr (std::is_enum_v<Value>)
        return FactWords::of(value)[static_cast<std::size_t>(value)];
    else
        return value;
}

template <typename Value>
void read_fact(const ManifestJson& json, Value& value) {
    if constexpr (std::is_enum_v<Value>) {
        const std::vector<std::string> words = FactWords::of(Value{});
        const auto found = std::find(words.begin(), words.end(), json.get<std::string>());
        if (found == words.end()) throw scenarios::ConfigError("'" + json.get<std::string>() + "' is unknown");
        value = static_cast<Value>(found - words.begin());
    } else {
        value = json.get<Value>();
    }
}

const std::map<BlockKind, std::string>& edge_block_texts() {
    static const std::map<BlockKind, std::string> kTexts = {{BlockKind::kEmbedding, "embedding"},
                                                            {BlockKind::kPositions, "positions"},
                                                            {BlockKind::kFinalNorm, "final norm"},
                                                            {BlockKind::kHead, "head"}};
    return kTexts;
}

Block block_of_text(const std::string& text) {
    for (const auto& [kind, name] : edge_block_texts())
        if (name == text) return {kind, -1};
    std::istringstream words(text);
    std::string layer, kind;
    int number = -1;
    if (words >> layer >> number >> kind && layer == "layer" && number >= 0 && words.eof()) {
        if (kind == "split") return {BlockKind::kLayerSplit, number};
        if (kind == "replicated") return {BlockKind::kLayerReplicated, number};
    }
    throw scenarios::ConfigError("'" + text + "' is no block");
}

std::uint64_t checksum_of_text(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.size() != 16 || problem != std::errc{} || end != text.data() + text.size())
        throw scenarios::ConfigError("'" + text + "' is no checksum");
    return value;
}

ManifestJson file_json(const SavedFile& file) {
    ManifestJson json = {
        {"name", file.name}, {"bytes", file.bytes}, {"header_checksum", checksum_text(file.header_checksum)}};
    ManifestJson& parts = json["parts"] = ManifestJson::array();
    for (const SavedPart& part : file.parts) {
        ManifestJson entry = {
            {"block", block_text(part.block)}, {"begin", part.elements.begin}, {"end", part.elements.end}};
        for (std::size_t i = 0; i < kStateParts; ++i) {
            ManifestJson& checksums = entry[kStatePartNames[i]] = ManifestJson::array();
            for (const std::uint64_t checksum : part.checksums[i]) checksums.push_back(checksum_text(checksum));
        }
        parts.push_back(std::move(entry));
    }
    return json;
}

SavedFile file_of_json(const ManifestJson& json) {
    SavedFile file;
    file.name = json.at("name").get<std::string>();
    file.bytes = json.at("bytes").get<std::int64_t>();
    file.header_checksum = checksum_of_text(json.at("header_checksum").get<std::string>());
    for (const ManifestJson& entry : json.at("parts")) {
        SavedPart part;
        part.block = block_of_text(entry.at("block").get<std::string>());
        part.elements = {entry.at("begin").get<std::int64_t>(), entry.at("end").get<std::int64_t>()};
        for (std::size_t i = 0; i < kStateParts; ++i)
            for (const ManifestJson& checksum : entry.at(kStatePartNames[i]))
                part.checksums[i].push_back(checksum_of_text(checksum.get<std::string>()));
        file.parts.push_back(std::move(part));
    }
    return file;
}

std::string dump(const ManifestJson& json) {
    return json.dump(1, ' ', false, ManifestJson::error_handler_t::replace);
}

/// Runs `read`; what JSON or a check complains about becomes a ConfigError that names the file.
template <typename Read>
auto naming_file(const std::string& file, Read read) {
    try {
        return read();
    } catch (const nlohmann::json::exception& error) {
        throw scenarios::ConfigError(file + ": " + error.what());
    } catch (const scenarios::ConfigError& error) {
        throw scenarios::ConfigError(file + ": " + error.what());
    }
}

void check_model(const scenarios::Model& model) {
    visit_model_facts(model, [](const std::string& name, const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int>)
            if (value < 1 || value > 100'000'000) throw scenarios::ConfigError("model: " + name + " is no size");
    });
}

void check_parts(const Manifest& manifest) {
    if (manifest.chunk_elements < 1) throw scenarios::ConfigError("chunks of no elements");
    const std::vector<Block> blocks = scenarios::blocks_of(manifest.model);
    for (const SavedFile& file : manifest.files) {
        if (file.name.empty() || file.name.find('/') != std::string::npos)
            throw scenarios::ConfigError("'" + file.name + "' is no file of the checkpoint's folder");
        for (const SavedPart& part : file.parts) {
            const std::string what = file.name + ": " + block_text(part.block);
            if (std::find(blocks.begin(), blocks.end(), part.block) == blocks.end())
                throw scenarios::ConfigError(what + " is no block of the model");
            const std::int64_t elements = part.elements.size();
            if (part.elements.begin < 0 || part.elements.empty() ||
                part.elements.end > real_elements(manifest.model, part.block.kind))
                throw scenarios::ConfigError(what + " has no such elements");
            const auto chunks =
                static_cast<std::size_t>((elements + manifest.chunk_elements - 1) / manifest.chunk_elements);
            for (const std::vector<std::uint64_t>& checksums : part.checksums)
                if (checksums.size() != chunks) throw scenarios::ConfigError(what + " has not one checksum a chunk");
        }
    }
}

}  // namespace

std::string block_text(const Block& block) {
    const auto found = edge_block_texts().find(block.kind);
    if (found != edge_block_texts().end()) return found->second;
    return "layer " + std::to_string(block.layer) + (block.kind == BlockKind::kLayerSplit ? " split" : " replicated");
}

std::string state_tensor_name(const SavedPart& part, std::size_t state_part) {
    return block_text(part.block) + " " + std::to_string(part.elements.begin) + ":" +
           std::to_string(part.elements.end) + " " + kStatePartNames[state_part];
}

std::int64_t real_elements(const scenarios::Model& model, BlockKind kind) {
    switch (kind) {
        case BlockKind::kEmbedding:
        case BlockKind::kHead:
            return scenarios::embedding_parameters(model);
        case BlockKind::kPositions:
            return scenarios::position_parameters(model);
        case BlockKind::kLayerSplit:
            return scenarios::layer_parameters(model).split;
        case BlockKind::kLayerReplicated:
            return scenarios::layer_parameters(model).replicated;
        case BlockKind::kFinalNorm:
            return scenarios::final_norm_parameters(model);
    }
    return 0;
}

std::string manifest_text(const Manifest& manifest) {
    ManifestJson json = {{"format", kManifestFormat}, {"version", kManifestVersion}, {"checksum", ""},
                         {"step", manifest.step},     {"seed", manifest.seed},       {"scenario", manifest.scenario}};
    ManifestJson& model = json["model"] = ManifestJson::object();
    model["name"] = manifest.model.name;
    visit_model_facts(manifest.model, [&](const char* name, const auto& value) { model[name] = fact_json(value); });
    json["plan"] = {{"layout", scenarios::describe(manifest.plan.layout)},
                    {"gpu_of_rank", manifest.plan.gpu_of_rank},
                    {"layers_of_cell", manifest.plan.layers_of_cell},
                    {"micro_batches_of_replica", manifest.plan.micro_batches_of_replica}};
    json["chunk_elements"] = manifest.chunk_elements;
    ManifestJson& files = json["files"] = ManifestJson::array();
    for (const SavedFile& file : manifest.files) files.push_back(file_json(file));
    json["checksum"] = checksum_text(checksum_of(dump(json)));
    return dump(json) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& file) {
    return naming_file(file, [&] {
        ManifestJson json = ManifestJson::parse(text);
        if (!json.is_object() || json.value("format", "") != kManifestFormat)
            throw scenarios::ConfigError("not a checkpoint of Headway");
        if (json.at("version") != kManifestVersion)
            throw scenarios::ConfigError("a checkpoint of version " + json.at("version").dump() +
                                         "; this program reads version " + std::to_string(kManifestVersion));
        const std::uint64_t checksum = checksum_of_text(json.at("checksum").get<std::string>());
        json["checksum"] = "";
        if (checksum_of(dump(json)) != checksum) throw scenarios::ConfigError("is damaged: its checksum differs");

        Manifest manifest;
        manifest.step = json.at("step").get<std::int64_t>();
        manifest.seed = json.at("seed").get<std::uint64_t>();
        manifest.scenario = json.at("scenario").get<std::string>();
        const ManifestJson& model = json.at("model");
        manifest.model.name = model.at("name").get<std::string>();
        visit_model_facts(manifest.model, [&](const char* name, auto& value) { read_fact(model.at(name), value); });
        manifest.chunk_elements = json.at("chunk_elements").get<std::int64_t>();
        for (const ManifestJson& entry : json.at("files")) manifest.files.push_back(file_of_json(entry));
        check_model(manifest.model);
        check_parts(manifest);
        return manifest;
    });
}

std::string saved_file_text(const SavedFile& file) {
    return dump(file_json(file));
}

SavedFile parse_saved_file(const std::string& text, const std::string& file) {
    return naming_file(file, [&] { return file_of_json(ManifestJson::parse(text)); });
}

std::string difference_of_models(const scenarios::Model& saved, const scenarios::Model& wanted) {
    std::vector<std::string> wanted_facts, differences;
    visit_model_facts(wanted, [&](const char*, const auto& value) { wanted_facts.push_back(fact_json(value).dump()); });
    std::size_t next = 0;
    visit_model_facts(saved, [&](const char* name, const auto& value) {
        const std::string fact = fact_json(value).dump(), &other = wanted_facts[next++];
        if (fact != other)
            differences.push_back(std::string(name) + " is " + fact + " in it and " + other + " in the scenario");
    });
    std::string text;
    for (const std::string& difference : differences) text += (text.empty() ? "" : ", ") + difference;
    return text;
}

}  // namespace headway::backend
