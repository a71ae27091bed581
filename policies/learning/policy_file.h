#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "policies/learning/trained_policy.h"

namespace headway::policies {

inline constexpr int kPolicyFileVersion = 1;

/// A .policy file: 8 bytes "HEADWAYP", format version and feature set (little-endian 32-bit), then provenance, shape,
/// parameters, normalisers and ranges (doubles, little-endian), and a CRC-32 (IEEE 802.3) of all before it.
///
/// Errors of reading are scenarios::ConfigError naming `name`: "my.policy: trained on feature set 3, this program has
/// feature set 4: train it again". Equal policies give equal bytes.
std::string policy_bytes(const TrainedPolicy& policy);
TrainedPolicy policy_from_bytes(std::string_view bytes, const std::string& name);

/// Written beside it under a temporary name and renamed. Throws std::runtime_error naming the file.
void write_policy(const std::filesystem::path& path, const TrainedPolicy& policy);
TrainedPolicy read_policy(const std::filesystem::path& path);

}  // namespace headway::policies
