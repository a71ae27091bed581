#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/ownership.h"

/// manifest.json of a checkpoint: what it is of, and where which elements of the state are.
namespace headway::backend {

/// What is kept of each element: master weight and the two moments of Adam, in this order.
constexpr std::size_t kStateParts = 3;
constexpr std::array<const char*, kStateParts> kStatePartNames = {"master", "first_moment", "second_moment"};

/// Elements of one block, in block order, in one file: there are kStateParts tensors of them, named by
/// state_tensor_name().
struct SavedPart {
    scenarios::Block block;
    scenarios::Interval elements;
    /// [kStateParts][chunks]: of every Manifest::chunk_elements elements, the last chunk shorter.
    std::array<std::vector<std::uint64_t>, kStateParts> checksums;
};

struct SavedFile {
    std::string name;
    std::int64_t bytes = 0;
    std::uint64_t header_checksum = 0;  ///< of the file's bytes before the data
    std::vector<SavedPart> parts;       ///< in the order of the file
};

struct Manifest {
    std::int64_t step = 0;
    std::uint64_t seed = 0;
    std::string scenario;
    scenarios::Model model;  ///< has to be the job's, but for its name
    scenarios::Plan plan;    ///< under which it was written: told, not needed
    std::int64_t chunk_elements = 0;
    std::vector<SavedFile> files;
};

constexpr const char* kManifestName = "manifest.json";

/// "embedding", "layer 3 split", "layer 3 replicated", "final norm": in manifests and messages.
std::string block_text(const scenarios::Block& block);
/// "layer 3 split 0:589824 master"
std::string state_tensor_name(const SavedPart& part, std::size_t state_part);

/// Elements of a block that a model has, whatever the layout: without padding rows.
std::int64_t real_elements(const scenarios::Model& model, scenarios::BlockKind kind);

std::string manifest_text(const Manifest& manifest);
/// Checks the checksum over the whole manifest, its version, and that the parts are of the model and do not overlap.
/// Throws ConfigError naming `file`. Everything but `plan` is read.
Manifest parse_manifest(const std::string& text, const std::string& file);

/// One file's entry alone, as it stands in a manifest: what a rank tells the one that writes the manifest.
std::string saved_file_text(const SavedFile& file);
SavedFile parse_saved_file(const std::string& text, const std::string& file);

/// What is different, "hidden is 768 in it and 512 in the scenario"; empty: the same model but for the name.
std::string difference_of_models(const scenarios::Model& saved, const scenarios::Model& wanted);

}  // namespace headway::backend
