#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/paths.h"

namespace headway::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Lines of an `nm` listing that name a symbol of a library the policies must not know: the same libheadway_policies.a
/// decides over simulated and real clusters, so nothing of either may be inside.
std::vector<std::string> foreign_symbols(const std::string& listing) {
    static const std::array<const char*, 22> kForeign = {
        "simgrid::", "sg_", "xbt_", "smpi_", "SIMIX_", "MPI_", "cuda", "cublas", "nccl", "nvml",
        "gloo::", "YAML::", "Qt::", "QMetaObject", "nlohmann::", "headway::sim::", "headway::backend::",
        // Time comes in through the seam, chance through the seed, and no environment variable changes a result.
        "system_clock::now", "steady_clock::now", "clock_gettime", "std::random_device", "getenv"};
    std::vector<std::string> found;
    std::istringstream stream(listing);
    for (std::string line; std::getline(stream, line);) {
        // 16 columns of address, then the kind between blanks: "                 U simgrid::s4u::Engine::run()".
        if (line.size() < 20 || line[16] != ' ' || line[18] != ' ') continue;
        const std::string name = line.substr(19);
        for (const char* foreign : kForeign) {
            const bool inside_names = std::string_view(foreign).find("::") != std::string_view::npos;
            if (inside_names ? name.find(foreign) != std::string::npos : name.starts_with(foreign)) {
                found.push_back(name);
                break;
            }
        }
    }
    return found;
}

std::string nm_listing(const std::string& library) {
    const std::string command = "nm -C '" + library + "' 2>&1";
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string listing;
    std::array<char, 4096> chunk;
    while (pipe && std::fgets(chunk.data(), chunk.size(), pipe.get())) listing += chunk.data();
    return listing;
}

TEST(SymbolRule, FindsAForeignSymbolInAListing) {
    EXPECT_THAT(foreign_symbols("                 U simgrid::s4u::Engine::run()\n"),
                ElementsAre("simgrid::s4u::Engine::run()"));
    EXPECT_THAT(foreign_symbols("0000000000000000 T void f<YAML::Node>(int)\n"),
                ElementsAre("void f<YAML::Node>(int)"));
    EXPECT_THAT(foreign_symbols("                 U ncclAllReduce\n                 U cudaMalloc\n"),
                ElementsAre("ncclAllReduce", "cudaMalloc"));
    EXPECT_THAT(foreign_symbols("                 U headway::sim::run()\n"), ElementsAre("headway::sim::run()"));
}

TEST(SymbolRule, AcceptsOurOwnSymbolsAndTheStandardLibrary) {
    EXPECT_THAT(foreign_symbols("plan.cpp.o:\n0000000000000000 T headway::policies::choose()\n"
                                "                 U std::vector<int>::size()\n                 U memcpy\n"),
                IsEmpty());
}

TEST(SymbolRule, PoliciesKnowNeitherSimulatorNorBackendNorFileFormats) {
    const std::string listing = nm_listing(policies_library().string());
    ASSERT_NE(listing.find("headway::policies::"), std::string::npos)
        << "no symbol of our own: wrong library? " << listing;
    EXPECT_THAT(foreign_symbols(listing), IsEmpty());
}

}  // namespace
}  // namespace headway::tests
