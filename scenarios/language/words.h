#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scenarios/language/hardware.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// The words that stand for enumerators in YAML, tables and reports: one table an enumeration.
namespace headway::scenarios {

template <class E, std::size_t N>
using WordTable = std::array<std::pair<std::string_view, E>, N>;

constexpr auto words(FabricKind) {
    return WordTable<FabricKind, 8>{{{"nvlink", FabricKind::kNvlink},
                                     {"xgmi", FabricKind::kXgmi},
                                     {"pcie", FabricKind::kPcie},
                                     {"infiniband", FabricKind::kInfiniband},
                                     {"roce", FabricKind::kRoce},
                                     {"slingshot", FabricKind::kSlingshot},
                                     {"omni-path", FabricKind::kOmniPath},
                                     {"ethernet", FabricKind::kEthernet}}};
}
constexpr auto words(Positions) {
    return WordTable<Positions, 3>{
        {{"learned", Positions::kLearned}, {"rotary", Positions::kRotary}, {"alibi", Positions::kAlibi}}};
}
constexpr auto words(Norm) {
    return WordTable<Norm, 2>{{{"layer", Norm::kLayer}, {"rms", Norm::kRms}}};
}
constexpr auto words(Precision) {
    return WordTable<Precision, 4>{
        {{"fp16", Precision::kFp16}, {"bf16", Precision::kBf16}, {"fp8", Precision::kFp8}, {"fp32", Precision::kFp32}}};
}
constexpr auto words(Schedule) {
    return WordTable<Schedule, 4>{{{"gpipe", Schedule::kGPipe},
                                   {"1f1b", Schedule::kOneForwardOneBackward},
                                   {"interleaved", Schedule::kInterleaved},
                                   {"zero-bubble", Schedule::kZeroBubble}}};
}
constexpr auto words(Recompute) {
    return WordTable<Recompute, 3>{
        {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}}};
}

template <class E>
concept HasWords = requires(E value) {
    words(value);
};

/// The word of an enumerator.
template <HasWords E>
constexpr std::string_view word_of(E value) {
    for (const auto& [word, enumerator] : words(value)) {
        if (enumerator == value) return word;
    }
    return "?";
}

/// The enumerator of a word; empty for a word that is not in the table.
template <HasWords E>
constexpr std::optional<E> parse_word(std::string_view text) {
    for (const auto& [word, enumerator] : words(E{})) {
        if (word == text) return enumerator;
    }
    return std::nullopt;
}

/// "1f1b, gpipe, ...": for messages.
template <HasWords E>
std::string all_words() {
    std::string text;
    for (const auto& entry : words(E{})) text += (text.empty() ? "" : ", ") + std::string(entry.first);
    return text;
}

}  // namespace headway::scenarios
