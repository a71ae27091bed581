#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "scenarios/language/config_error.h"
#include "scenarios/validation/predict.h"
#include "tests/paths.h"

namespace headway::scenarios {
namespace {

using tests::source_directory;

std::string text_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

/// The head of a table and a few of its rows, so that a prediction takes milliseconds.
std::string short_table(const std::string& name, std::size_t bytes) {
    const std::string text = text_of(source_directory() / "scenarios" / "measured" / name);
    if (text.size() <= bytes) return text;
    const std::size_t cut = text.rfind("\n- ", bytes);
    return text.substr(0, cut + 1);
}

std::string mutated(std::string text, std::mt19937& random) {
    const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
    const int changes = 1 + static_cast<int>(below(3));
    for (int change = 0; change < changes; ++change) {
        const std::size_t at = below(text.size());
        static const std::string kLetters = "0123456789-+.,:{}[]'\"#&*!|>%@ \n\tabcxyz\xc3\x00";
        switch (below(5)) {
            case 0:
                text[at] = kLetters[below(kLetters.size())];
                break;
            case 1:
                text.erase(at, 1 + below(12));
                break;
            case 2:
                text.insert(at, 1, kLetters[below(kLetters.size())]);
                break;
            case 3:
                text.insert(at, text.substr(below(text.size()), below(40)));
                break;
            default: {  // another number in place of one
                static const char* const kNumbers[] = {"0",         "-1",  "1",          "3", "7",
                                                       "999999999", "1e9", "2147483648", ".5"};
                const std::size_t digit = text.find_first_of("0123456789", at);
                if (digit == std::string::npos) break;
                const std::size_t end = text.find_first_not_of("0123456789", digit);
                text.replace(digit, (end == std::string::npos ? text.size() : end) - digit, kNumbers[below(9)]);
            }
        }
        if (text.empty()) text = " ";
    }
    return text;
}

TEST(TableFuzz, AMutatedTableIsPredictedOrRefusedWithOneMessage) {
    const PredictionSettings settings{{source_directory() / "scenarios"}, std::nullopt};
    const int rounds = tests::long_tests() ? 20'000 : 150;
    std::mt19937 random(7);
    int refused = 0, predicted = 0;
    for (const char* name : {"korthikanti-2022.yaml", "korthikanti-2022-layer.yaml", "recorded-jobs.yaml",
                             "slow-pipeline-links.yaml", "collectives/a100-inside-node.yaml"}) {
        const std::string text = short_table(name, name == std::string("recorded-jobs.yaml") ? 9000 : 3000);
        ASSERT_NO_THROW(parse_measured_table(text, name)) << name;
        for (int round = 0; round < rounds; ++round) {
            const std::string changed = mutated(text, random);
            try {
                const TablePrediction prediction = predict_table(parse_measured_table(changed, name), settings);
                ++predicted;
                for (const ValidationRow& row : prediction.figures.rows) {
                    EXPECT_NE(row.predicted.has_value(), !row.reason.empty()) << row.id << "\n" << changed;
                }
            } catch (const ConfigError& error) {
                ++refused;
                EXPECT_NE(std::string(error.what()), "");
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what() << "\nin\n" << changed;
            }
        }
    }
    EXPECT_GT(refused, rounds);
    EXPECT_GT(predicted, rounds / 2);
}

}  // namespace
}  // namespace headway::scenarios
