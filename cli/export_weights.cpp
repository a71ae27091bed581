#include <map>

#include "backend/checkpoint/hugging_face.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "cli/standard_output.h"

namespace headway::cli {

int export_weights(const ExportWeightsArguments& arguments) {
    static const std::map<std::string, backend::WeightType> kTypes = {{"f32", backend::WeightType::kFloat32},
                                                                      {"bf16", backend::WeightType::kBfloat16},
                                                                      {"f16", backend::WeightType::kFloat16}};
    const bool one_file = arguments.out.extension() == ".safetensors";
    const std::filesystem::path weights = one_file ? arguments.out : arguments.out / "model.safetensors";
    if (one_file) expect_writable("--out", weights, arguments.force);
    std::error_code ignored;
    for (const std::filesystem::path& file : {weights, arguments.out / "config.json"})
        if (!one_file && std::filesystem::exists(file, ignored)) expect_writable("--out", file, arguments.force);
    const std::filesystem::path folder = backend::find_checkpoint(arguments.checkpoint);
    backend::CheckpointReader checkpoint(folder);
    backend::export_hugging_face(checkpoint, arguments.out, kTypes.at(arguments.type));
    const std::string& model = checkpoint.manifest().model.name;
    print(weights.string() + ": weights" + (model.empty() ? "" : " of " + model) + " after " +
          std::to_string(checkpoint.manifest().step) + " steps, from " + folder.string() + "\n");
    return kSucceeded;
}

}  // namespace headway::cli
