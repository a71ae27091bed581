#include <cmath>
#include <nlohmann/json.hpp>

#include "backend/checkpoint/hugging_face_names.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

using ConfigJson = nlohmann::ordered_json;

ConfigJson config_of(const scenarios::Model& model) {
    if (hugging_face_family(model) == HuggingFaceFamily::kGpt2)
        return {{"architectures", {"GPT2LMHeadModel"}},
                {"model_type", "gpt2"},
                {"vocab_size", model.vocab},
                {"n_positions", model.sequence_length},
                {"n_embd", model.hidden},
                {"n_layer", model.layers},
                {"n_head", model.heads},
                {"n_inner", model.ffn},
                {"activation_function", "gelu_new"},
                {"layer_norm_epsilon", model.norm_epsilon},
                {"tie_word_embeddings", true}};
    return {{"architectures", {"LlamaForCausalLM"}},
            {"model_type", "llama"},
            {"vocab_size", model.vocab},
            {"max_position_embeddings", model.sequence_length},
            {"hidden_size", model.hidden},
            {"intermediate_size", model.ffn},
            {"num_hidden_layers", model.layers},
            {"num_attention_heads", model.heads},
            {"num_key_value_heads", model.kv_heads},
            {"head_dim", scenarios::head_dim_of(model)},
            {"hidden_act", "silu"},
            {"rms_norm_eps", model.norm_epsilon},
            {"rope_theta", model.rotary_base},
            {"attention_bias", false},
            {"mlp_bias", false},
            {"tie_word_embeddings", model.tied_embedding}};
}

/// Whether two values of a key mean the same; numbers to 1e-6, since some are written in single precision.
bool same_setting(const ConfigJson& said, const ConfigJson& wanted) {
    if (said.is_number() && wanted.is_number())
        return std::abs(said.get<double>() - wanted.get<double>()) <= 1e-6 * std::abs(wanted.get<double>());
    return said == wanted;
}

}  // namespace

std::string hugging_face_config(const scenarios::Model& model, const std::string& type) {
    ConfigJson config = config_of(model);
    config["torch_dtype"] = type;
    return config.dump(2) + "\n";
}

void check_hugging_face_config(const scenarios::Model& model, const std::string& text, const std::string& file) {
    ConfigJson said;
    try {
        said = ConfigJson::parse(text);
    } catch (const ConfigJson::exception& error) {
        throw scenarios::ConfigError(file + ": " + error.what());
    }
    if (!said.is_object()) throw scenarios::ConfigError(file + ": is no JSON object");
    const ConfigJson config = config_of(model);
    for (const auto& [key, wanted] : config.items()) {
        // Longer sequences are possible than are trained; the rest of the shape the tensors themselves tell.
        if (key == "architectures" || key == "n_positions" || key == "max_position_embeddings") continue;
        if (!said.contains(key) || said[key].is_null()) continue;
        if (key == "activation_function" && said[key] == "gelu_pytorch_tanh") continue;  // the same function
        if (!same_setting(said[key], wanted))
            throw scenarios::ConfigError(file + ": " + key + " is " + said[key].dump() +
                                         ", which the scenario's model '" + model.name + "' has at " + wanted.dump());
    }
    if (said.contains("rope_scaling") && !said["rope_scaling"].is_null())
        throw scenarios::ConfigError(file + ": rope_scaling is not supported, the rotary base alone");
}

}  // namespace headway::backend
