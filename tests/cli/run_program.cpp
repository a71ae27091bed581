#include "tests/cli/run_program.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/paths.h"

namespace headway::tests {

namespace {

std::string text_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

}  // namespace

TestFolder::TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "headway-cli-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
}

TestFolder::~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TestFolder::write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
}

std::string TestFolder::read(const std::string& name) const {
    return text_of(path_ / name);
}

ProgramResult TestFolder::headway(const std::string& arguments, const std::string& redirections) const {
    const std::string command = "cd '" + path_.string() + "' || exit 99; '" + headway_program().string() + "' " +
                                arguments + " >.out 2>.err </dev/null " + redirections;
    std::filesystem::remove(path_ / ".out");
    std::filesystem::remove(path_ / ".err");
    const int status = std::system(command.c_str());
    ProgramResult result;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = text_of(path_ / ".out");
    result.err = text_of(path_ / ".err");
    return result;
}

std::string small_scenario(const std::string& further_sections) {
    return R"(name: small
job:
  model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 51200, sequence_length: 1024}
  precision: bf16
  global_batch: 32
  micro_batch: 2
  stack: megatron-lm-2022
cluster:
  nodes: 2
  node: {gpu: A100-SXM4-80GB, gpus: 8, fabric: nvlink3, nics: 8, network: infiniband-hdr, host_memory: 1 TB, pcie: 25 GB/s}
strategy: {tensor: 2, pipeline: 4, data: 2}
run: {iterations: 60}
)" + further_sections;
}

}  // namespace headway::tests
