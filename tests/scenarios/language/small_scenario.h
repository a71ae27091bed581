#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/language/read.h"
#include "tests/paths.h"

/// A small valid scenario (one node of 8 GPUs, GPT-2), and the message of what is made of it.
namespace headway::scenarios {

inline Catalogue shipped() {
    return {tests::source_directory() / "scenarios"};
}

inline std::string small_scenario() {
    return "name: small\n"
           "job:\n"
           "  model: gpt2-124m\n"
           "  precision: bf16\n"
           "  global_batch: 16\n"
           "  micro_batch: 2\n"
           "  stack: megatron-lm-2021\n"
           "cluster:\n"
           "  base: selene\n"
           "  nodes: 1\n"
           "strategy:\n"
           "  tensor: 2\n"
           "  pipeline: 2\n"
           "  data: auto\n"
           "disturbances:\n"
           "  - start: 5 s\n"
           "    jitter: {spread: 0.1}\n"
           "seed: 7\n"
           "run: {iterations: 10}\n";
}

/// The small scenario with the first `from` replaced.
inline std::string small_with(const std::string& from, const std::string& to) {
    std::string text = small_scenario();
    const std::size_t at = text.find(from);
    if (at == std::string::npos) throw std::logic_error("the small scenario has no '" + from + "'");
    return text.replace(at, from.size(), to);
}

inline int line_of(const std::string& text, const std::string& part) {
    const std::size_t at = text.find(part);
    if (at == std::string::npos) throw std::logic_error("no '" + part + "'");
    int line = 1;
    for (std::size_t i = 0; i < at; ++i) line += text[i] == '\n';
    return line;
}

inline Scenario read_small(const std::vector<Override>& overrides = {}) {
    return parse_scenario(small_scenario(), "small.yaml", ".", shipped(), overrides);
}

/// Message of the ConfigError that the text leads to; a failure of the test when there is none.
inline std::string error_of(const std::string& text, const std::vector<Override>& overrides = {},
                            const std::filesystem::path& folder = ".") {
    try {
        parse_scenario(text, "small.yaml", folder, shipped(), overrides);
    } catch (const ConfigError& error) {
        return error.what();
    }
    ADD_FAILURE() << "accepted without an error:\n" << text;
    return {};
}

inline std::string error_of_file(const std::filesystem::path& file) {
    try {
        read_scenario(file, shipped());
    } catch (const ConfigError& error) {
        return error.what();
    }
    ADD_FAILURE() << "accepted without an error: " << file;
    return {};
}

}  // namespace headway::scenarios
