#include "policies/learning/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "policies/learning/features.h"
#include "policies/learning/framed_file.h"
#include "policies/learning/network.h"
#include "policies/learning/normaliser.h"
#include "scenarios/language/config_error.h"

namespace headway::policies {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TrainedPolicy some_policy() {
    TrainedPolicy policy;
    policy.shape = default_shape();
    scenarios::RandomStream stream(9, "test.policy_file");
    policy.parameters = Network::initial_parameters(policy.shape, stream);
    policy.global_normaliser = empty_normaliser(global_features().size());
    policy.candidate_normaliser = empty_normaliser(candidate_features().size());
    policy.global_ranges.assign(global_features().size(), {-0.5, 0.25});
    policy.novelty_limit = 0.3;
    policy.provenance = {7, 120, 3, 456789, "default", "three seeds, the best one"};
    return policy;
}

std::string error_of(const std::string& bytes) {
    try {
        policy_from_bytes(bytes, "my.policy");
    } catch (const scenarios::ConfigError& error) {
        return error.what();
    }
    return "";
}

TEST(PolicyFile, KeepsEverything) {
    const TrainedPolicy policy = some_policy();
    const std::string bytes = policy_bytes(policy);
    EXPECT_EQ(policy_from_bytes(bytes, "my.policy"), policy);
    EXPECT_EQ(policy_bytes(policy_from_bytes(bytes, "my.policy")), bytes);
}

TEST(PolicyFile, NamesBothVersionsOfAnotherFormat) {
    std::string bytes = policy_bytes(some_policy());
    bytes[8] = 9;
    EXPECT_EQ(error_of(bytes),
              "my.policy: policy file of format version 9, this program reads version 1: train it again");
}

TEST(PolicyFile, NamesBothFeatureSets) {
    std::string bytes = policy_bytes(some_policy());
    bytes[12] = 42;
    const std::uint32_t crc = crc32(std::string_view(bytes).substr(0, bytes.size() - 4));
    bytes.replace(bytes.size() - 4, 4, reinterpret_cast<const char*>(&crc), 4);
    EXPECT_EQ(error_of(bytes), "my.policy: trained on feature set 42, this program has feature set " +
                                   std::to_string(kFeatureSet) + ": train it again");
}

TEST(PolicyFile, RefusesEveryCutAndEveryFlippedByte) {
    const std::string good = policy_bytes(some_policy());
    for (std::size_t length = 0; length < good.size(); length += 1 + length / 7) {
        EXPECT_THAT(error_of(good.substr(0, length)), HasSubstr("my.policy: ")) << "cut to " << length;
    }
    for (std::size_t at = 0; at < good.size(); at += 1 + at / 9) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
        EXPECT_THAT(error_of(bytes), HasSubstr("my.policy: ")) << "byte " << at;
    }
    EXPECT_THAT(error_of(good.substr(0, good.size() - 9)), HasSubstr("corrupt or cut short"));
    EXPECT_THAT(error_of("# a scenario\n"), HasSubstr("not a policy file"));
    EXPECT_THAT(error_of(""), HasSubstr("not a policy file"));
}

TEST(PolicyFile, RefusesANetworkOfOtherFeaturesUnderTheSameSet) {
    TrainedPolicy policy = some_policy();
    policy.shape.global_features -= 1;
    scenarios::RandomStream stream(9, "test.policy_file");
    policy.parameters = Network::initial_parameters(policy.shape, stream);
    policy.global_normaliser = empty_normaliser(global_features().size() - 1);
    policy.global_ranges.pop_back();
    EXPECT_THAT(error_of(policy_bytes(policy)), AllOf(HasSubstr("corrupt"), HasSubstr("features instead of")));
}

TEST(PolicyFile, RefusesAParameterThatIsNoNumber) {
    TrainedPolicy policy = some_policy();
    policy.parameters[17] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(error_of(policy_bytes(policy)), HasSubstr("no number"));
}

TEST(PolicyFile, IsWrittenWholeAndReadBack) {
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "policy_file_test";
    std::filesystem::create_directories(folder);
    const std::filesystem::path path = folder / "a.policy";
    write_policy(path, some_policy());
    EXPECT_EQ(read_policy(path), some_policy());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing temporary is left";
    EXPECT_THROW(read_policy(folder / "none.policy"), scenarios::ConfigError);
    EXPECT_THROW(read_policy(folder), scenarios::ConfigError);
    std::filesystem::remove_all(folder);
}

TEST(Crc32, AgreesWithThePublishedCheckValue) {
    EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
}

}  // namespace
}  // namespace headway::policies
