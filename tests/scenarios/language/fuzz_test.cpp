#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scenarios/language/random.h"
#include "tests/scenarios/language/small_scenario.h"

/// Mutated scenarios: each either is refused with a place, or reads as a scenario that reads back equal. No crash, no
/// hang.
namespace headway::scenarios {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::string line;
    for (const char c : text) {
        line += c;
        if (c == '\n') {
            lines.push_back(line);
            line.clear();
        }
    }
    if (!line.empty()) lines.push_back(line);
    return lines;
}

class Mutator {
  public:
    Mutator(RandomStream& random, std::vector<std::string> corpus) : random_(random), corpus_(std::move(corpus)) {
        for (const std::string& text : corpus_) {
            for (const std::string& line : lines_of(text)) all_lines_.push_back(line);
        }
    }

    const std::string& pick_text() { return corpus_[below(corpus_.size())]; }

    std::string mutate(std::string text) {
        switch (random_.below(9)) {
            case 0:
                return change_byte(std::move(text));
            case 1:
                return cut(std::move(text));
            case 2:
                return replace_value(std::move(text));
            case 3:
                return misspell_key(std::move(text));
            case 4:
                return move_line(std::move(text));
            case 5:
                return duplicate_line(std::move(text));
            case 6:
                return drop_line(std::move(text));
            case 7:
                return change_indent(std::move(text));
            default:
                return insert_token(std::move(text));
        }
    }

  private:
    std::size_t below(std::size_t count) {
        return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(std::max<std::size_t>(count, 1))));
    }

    std::string change_byte(std::string text) {
        if (!text.empty()) text[below(text.size())] = static_cast<char>(random_.below(256));
        return text;
    }
    std::string cut(std::string text) {
        text.resize(below(text.size() + 1));
        return text;
    }
    std::string replace_value(std::string text) {
        static const std::vector<std::string> kValues{"0",
                                                      "-1",
                                                      "1",
                                                      "2",
                                                      "3",
                                                      "7",
                                                      "8",
                                                      "1000",
                                                      "2147483647",
                                                      "2147483648",
                                                      "-2147483648",
                                                      "99999999999999999999",
                                                      "1e308",
                                                      "1e-320",
                                                      "1e999",
                                                      ".nan",
                                                      ".inf",
                                                      "nan",
                                                      "~",
                                                      "null",
                                                      "''",
                                                      "auto",
                                                      "even",
                                                      "true",
                                                      "no",
                                                      "[]",
                                                      "{}",
                                                      "[1, 2]",
                                                      "[0, 0]",
                                                      "{a: 1}",
                                                      "5 s",
                                                      "0 s",
                                                      "1e300 s",
                                                      "10 y",
                                                      "9000000000 s",
                                                      "80 GiB",
                                                      "-1 GiB",
                                                      "25 GB/s",
                                                      "0 W",
                                                      "nvlink3",
                                                      "selene",
                                                      "../../etc/passwd",
                                                      "&a x",
                                                      "*a",
                                                      "!!binary abc",
                                                      "|",
                                                      ">",
                                                      "\"\\x00\"",
                                                      "\"\\u0000\"",
                                                      "'",
                                                      "\"",
                                                      "%",
                                                      "@",
                                                      "0.5",
                                                      "1.0000001",
                                                      "interleaved",
                                                      "zero-bubble",
                                                      "1f1b",
                                                      "fp8",
                                                      "fp32"};
        std::vector<std::string> lines = lines_of(text);
        if (lines.empty()) return text;
        std::string& line = lines[below(lines.size())];
        const std::size_t colon = line.rfind(": ");
        if (colon != std::string::npos)
            line = line.substr(0, colon + 2) + kValues[below(kValues.size())] +
                   (line.find('}', colon) != std::string::npos ? "}" : "") + "\n";
        return join(lines);
    }
    std::string misspell_key(std::string text) {
        std::vector<std::size_t> colons;
        for (std::size_t i = 1; i < text.size(); ++i) {
            if (text[i] == ':') colons.push_back(i);
        }
        if (colons.empty()) return text;
        const std::size_t at = colons[below(colons.size())];
        if (random_.below(2))
            text.erase(at - 1, 1);
        else
            text.insert(at, 1, static_cast<char>('a' + random_.below(26)));
        return text;
    }
    std::string move_line(std::string text) {
        std::vector<std::string> lines = lines_of(text);
        if (lines.size() > 1) std::swap(lines[below(lines.size())], lines[below(lines.size())]);
        return join(lines);
    }
    std::string duplicate_line(std::string text) {
        std::vector<std::string> lines = lines_of(text);
        const std::string& line = all_lines_[below(all_lines_.size())];
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(lines.size() + 1)), line);
        return join(lines);
    }
    std::string drop_line(std::string text) {
        std::vector<std::string> lines = lines_of(text);
        if (!lines.empty()) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(below(lines.size())));
        return join(lines);
    }
    std::string change_indent(std::string text) {
        std::vector<std::string> lines = lines_of(text);
        if (lines.empty()) return text;
        std::string& line = lines[below(lines.size())];
        if (random_.below(2))
            line.insert(0, static_cast<std::size_t>(random_.below(6)), ' ');
        else if (line.front() == ' ')
            line.erase(0, 1);
        return join(lines);
    }
    std::string insert_token(std::string text) {
        static const std::vector<std::string> kTokens{"[",
                                                      "]",
                                                      "{",
                                                      "}",
                                                      ",",
                                                      ": ",
                                                      "- ",
                                                      "\n",
                                                      "---\n",
                                                      "...\n",
                                                      "&x ",
                                                      "*x ",
                                                      "<<: ",
                                                      "? ",
                                                      "!t ",
                                                      "#",
                                                      "\t",
                                                      "\"",
                                                      "'",
                                                      "\r",
                                                      std::string(1, '\0'),
                                                      "\xff",
                                                      "\xef\xbb\xbf",
                                                      "[[[[[[[[",
                                                      "{{{{{{{{",
                                                      "999"};
        text.insert(below(text.size() + 1), kTokens[below(kTokens.size())]);
        return text;
    }
    static std::string join(const std::vector<std::string>& lines) {
        std::string text;
        for (const std::string& line : lines) text += line;
        return text;
    }

    RandomStream& random_;
    std::vector<std::string> corpus_;
    std::vector<std::string> all_lines_;
};

std::vector<std::string> fuzz_corpus() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(shipped().directory)) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<std::string> corpus{small_scenario(), write_scenario(read_small())};
    for (const fs::path& file : files) {
        std::ifstream stream(file, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
    return corpus;
}

/// Files and options are named by "NAME:LINE", "--set" or, for a missing file, by the file itself.
bool names_a_place(const std::string& message) {
    return message.rfind("fuzz.yaml:", 0) == 0 || message.find(".yaml:") != std::string::npos ||
           message.find(".csv:") != std::string::npos;
}

TEST(Fuzz, MutatedScenariosAreRefusedWithAPlaceOrReadBackEqual) {
    RandomStream random(17, "fuzz");
    Mutator mutator(random, fuzz_corpus());
    const auto limit = tests::long_tests() ? std::chrono::minutes(4) : std::chrono::minutes(1);
    const int rounds = tests::long_tests() ? 2'000'000 : 6'000;
    const auto begin = std::chrono::steady_clock::now();
    int accepted = 0;
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
        std::string text = mutator.pick_text();
        for (auto changes = 1 + random.below(3); changes > 0; --changes) text = mutator.mutate(std::move(text));
        const auto start = std::chrono::steady_clock::now();
        if (start - begin > limit) break;
        try {
            const Scenario scenario = parse_scenario(text, "fuzz.yaml", shipped().directory, shipped());
            const std::string written = write_scenario(scenario);
            const Scenario again = parse_scenario(written, "again.yaml", "/nonexistent", Catalogue{"/nonexistent"});
            ASSERT_TRUE(again == scenario) << text;
            ASSERT_EQ(write_scenario(again), written) << text;
            ASSERT_NO_THROW(initial_plan(scenario.strategy, scenario.job, scenario.cluster)) << text;
            ++accepted;
        } catch (const ConfigError& error) {
            const std::string message = error.what();
            ASSERT_TRUE(names_a_place(message)) << message << "\n" << text;
            ASSERT_LT(message.size(), 2000u) << message;
            ++refused;
        } catch (const std::exception& error) {
            FAIL() << "not a ConfigError: " << error.what() << "\n" << text;
        }
        ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << text;
    }
    EXPECT_GT(accepted, 100);
    EXPECT_GT(refused, 1000);
    RecordProperty("accepted", accepted);
    RecordProperty("refused", refused);
}

TEST(Fuzz, MutatedOverridesAreRefusedOrReadBackEqual) {
    RandomStream random(18, "fuzz overrides");
    const std::vector<std::string> keys{"job",
                                        "job.model",
                                        "job.model.layers",
                                        "cluster",
                                        "cluster.node.gpu.memory",
                                        "cluster.node_groups.0.count",
                                        "strategy.data",
                                        "strategy.placement",
                                        "disturbances",
                                        "disturbances.0",
                                        "disturbances.0.start",
                                        "disturbances.9",
                                        "generate",
                                        "seed",
                                        "run",
                                        "run.time",
                                        "",
                                        ".",
                                        "a.b.c",
                                        "0",
                                        "cluster.base",
                                        "cluster.nodes.0",
                                        "job.model.base"};
    const std::vector<std::string> values{"",
                                          "~",
                                          "1",
                                          "-1",
                                          "auto",
                                          "[]",
                                          "{}",
                                          "[0]",
                                          "{base: selene}",
                                          "selene",
                                          "1 s",
                                          "{start: 1 s, jitter: {spread: 1}}",
                                          "[[[",
                                          "&a 1",
                                          "{time: 1 d}",
                                          "{horizon: 1 d, airflow: {per_day: 100}}",
                                          "gpt2-124m",
                                          "99999999999"};
    const auto pick = [&](const std::vector<std::string>& from) {
        return from[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(from.size())))];
    };
    for (int round = 0; round < (tests::long_tests() ? 50'000 : 1'500); ++round) {
        std::vector<Override> overrides;
        for (auto count = 1 + random.below(3); count > 0; --count) overrides.emplace_back(pick(keys), pick(values));
        try {
            const Scenario scenario = read_small(overrides);
            ASSERT_TRUE(parse_scenario(write_scenario(scenario), "again.yaml", "/nonexistent",
                                       Catalogue{"/nonexistent"}) == scenario);
        } catch (const ConfigError& error) {
            const std::string message = error.what();
            ASSERT_TRUE(message.rfind("--set ", 0) == 0 || message.rfind("small.yaml:", 0) == 0 ||
                        message.find(".yaml:") != std::string::npos)
                << message;
        }
    }
}

}  // namespace
}  // namespace headway::scenarios
