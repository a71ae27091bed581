#include "scenarios/record/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "scenarios/record/figures.h"
#include "scenarios/record/validation_report.h"
#include "tests/scenarios/record/small_run.h"

namespace headway::tests {
namespace {

using namespace scenarios;
using Json = nlohmann::ordered_json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunSummary summary_of_small_run() {
    SummarySink sink;
    play_small_run(sink);
    return sink.summary();
}

std::vector<std::string> keys_of(const Json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
}

std::vector<std::string> text_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

TEST(ReportJson, HasThePromisedKeysInOrder) {
    const std::string text = report_json(summary_of_small_run());
    EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
    const Json json = Json::parse(text);
    auto keys = keys_of(json);
    ASSERT_GE(keys.size(), 13u);
    keys.resize(13);
    EXPECT_THAT(keys,
                ElementsAre("scenario", "policy", "seed", "iterations", "iteration_s", "tokens_per_s", "tflops_per_gpu",
                            "mfu", "goodput", "time_share", "disturbances", "decisions", "switches"));
    EXPECT_THAT(keys_of(json["iteration_s"]), ElementsAre("mean", "p50", "p95"));
    EXPECT_THAT(keys_of(json["time_share"]),
                ElementsAre("compute", "bubble", "tensor", "pipeline", "data", "straggling", "recovery"));
}

TEST(ReportJson, TellsTheFiguresOfTheSummary) {
    const RunSummary summary = summary_of_small_run();
    const Json json = Json::parse(report_json(summary));
    EXPECT_EQ(json["scenario"], "small");
    EXPECT_EQ(json["seed"], 7);
    EXPECT_TRUE(json["iterations"].is_number_integer());
    EXPECT_EQ(json["iterations"], 5);
    EXPECT_EQ(json["iteration_s"]["p95"].get<double>(), 12.0);
    EXPECT_EQ(json["tokens_per_s"].get<double>(), summary.tokens_per_s);
    EXPECT_EQ(json["mfu"].get<double>(), summary.mfu);
    EXPECT_EQ(json["goodput"].get<double>(), summary.goodput);
    double sum = 0.0;
    for (const auto& [part, fraction] : json["time_share"].items()) sum += fraction.get<double>();
    EXPECT_NEAR(sum, 1.0, 1e-12);
    ASSERT_EQ(json["disturbances"].size(), 2u);
    EXPECT_EQ(json["disturbances"][0]["duration_s"], 60.0);
    EXPECT_TRUE(json["disturbances"][1]["duration_s"].is_null());
    EXPECT_EQ(json["disturbances"][1]["cost_s"], 75.0);
    EXPECT_EQ(json["decisions"], 2);
    EXPECT_EQ(json["slowest_gpus"][0]["gpu"], 1);
}

TEST(ReportText, SaysFirstWhatAPersonWantsFirst) {
    const std::string text = report_text(summary_of_small_run());
    const auto at = [&](const char* what) {
        EXPECT_THAT(text, HasSubstr(what));
        return text.find(what);
    };
    EXPECT_LT(at("small, policy static, seed 7"), at("iteration time"));
    EXPECT_LT(at("iteration time"), at("tokens/s"));
    EXPECT_LT(at("tokens/s"), at("MFU"));
    EXPECT_LT(at("goodput"), at("Where time goes"));
    EXPECT_LT(at("Where time goes"), at("What each disturbance cost"));
    EXPECT_LT(at("What each disturbance cost"), at("Slowest GPUs"));
    EXPECT_THAT(text, HasSubstr("5 iterations in 2 min 11 s, 2 more lost to rollback"));
    EXPECT_THAT(text, HasSubstr("p95 12.00 s"));
    EXPECT_THAT(text, HasSubstr("goodput           38.2 %"));
    EXPECT_THAT(text, HasSubstr("waited 40 s for its repair"));
    EXPECT_THAT(text, HasSubstr("stood still 55.0 s, lost 2 iterations (trained again in 20.0 s)"));
    EXPECT_THAT(text, HasSubstr("2 decisions, 0 switches"));
    EXPECT_THAT(text, Not(HasSubstr("interrupted")));
}

TEST(ReportText, FitsEightyColumns) {
    RunSummary summary = summary_of_small_run();
    summary.disturbances[0].name = "an airflow fault with a very long name that goes on and on for ever and a day";
    summary.disturbances[1].what = {std::string("why ") + std::string(30, 'x') +
                                    " and so on and so forth, with very many words to wrap"};
    summary.time_share = {1.0, 0, 0, 0, 0, 0, 0};
    for (const std::string& line : text_lines(report_text(summary))) {
        EXPECT_LE(text_width(line), 80u) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
    }
}

TEST(ReportText, GivesALongNameALineOfItsOwn) {
    RunSummary summary = summary_of_small_run();
    summary.disturbances[0].name = "link bandwidth of the network of node 12";
    EXPECT_THAT(report_text(summary),
                HasSubstr("  link bandwidth of the network of node 12\n" + std::string(40, ' ') + "5.00 s"));
}

TEST(ReportText, SaysWhenARunWasInterrupted) {
    RunSummary summary = summary_of_small_run();
    summary.complete = false;
    EXPECT_THAT(report_text(summary), HasSubstr("interrupted"));
}

TEST(ReportText, ListsTheDearestOfManyDisturbancesAndSumsUpTheRest) {
    RunSummary summary = summary_of_small_run();
    summary.disturbances.clear();
    for (int i = 0; i < 40; ++i) {
        DisturbanceCost cost;
        cost.name = "event " + std::to_string(i);
        cost.slowed_ns = i < 24 ? kSecond : 2 * kSecond;
        summary.disturbances.push_back(cost);
    }
    const std::string text = report_text(summary);
    EXPECT_THAT(text, HasSubstr("event 39"));
    EXPECT_THAT(text, Not(HasSubstr("event 23")));
    EXPECT_THAT(text, HasSubstr("and 24 that cost less, together 24.0 s"));
}

TEST(Repeats, GiveMeanAndConfidenceInterval) {
    std::vector<RunSummary> runs(3, summary_of_small_run());
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].seed = i + 1;
        runs[i].goodput = 0.4 + 0.1 * static_cast<double>(i);
    }
    const Json json = Json::parse(repeats_json(runs));
    EXPECT_THAT(keys_of(json), ElementsAre("scenario", "policy", "seeds", "mean", "ci95", "runs"));
    EXPECT_EQ(json["seeds"], Json({1, 2, 3}));
    EXPECT_DOUBLE_EQ(json["mean"]["goodput"].get<double>(), 0.5);
    EXPECT_NEAR(json["ci95"]["goodput"].get<double>(), 4.302653 * 0.1 / std::sqrt(3.0), 1e-6);
    EXPECT_EQ(json["ci95"]["mfu"], 0.0);
    EXPECT_EQ(json["mean"]["iteration_s"]["p95"], 12.0);
    EXPECT_EQ(json["runs"].size(), 3u);
    const std::string text = repeats_text(runs);
    EXPECT_THAT(text, HasSubstr("3 runs (seeds 1, 2, 3)"));
    EXPECT_THAT(text, HasSubstr("50.0 %  ± 24.8 %"));
    EXPECT_THROW(repeats_json({}), std::invalid_argument);
    EXPECT_THROW(repeats_text({}), std::invalid_argument);
}

TEST(Repeats, OfOneRunHaveNoInterval) {
    const std::vector<RunSummary> runs = {summary_of_small_run()};
    EXPECT_TRUE(Json::parse(repeats_json(runs))["ci95"]["goodput"].is_null());
    EXPECT_THAT(repeats_text(runs), Not(HasSubstr("±")));
}

TEST(Compare, ShowsDifferences) {
    const RunSummary a = summary_of_small_run();
    RunSummary b = a;
    b.iteration_mean_s *= 0.9;
    b.goodput += 0.05;
    b.switches = 3;
    const Json json = Json::parse(compare_json("a.run.jsonl", a, "b.run.jsonl", b));
    EXPECT_THAT(keys_of(json), ElementsAre("names", "a", "b", "difference"));
    EXPECT_NEAR(json["difference"]["iteration_s"]["mean"].get<double>(), -0.1, 1e-12);
    EXPECT_NEAR(json["difference"]["goodput"].get<double>(), 0.05, 1e-12);
    EXPECT_EQ(json["difference"]["tokens_per_s"], 0.0);
    EXPECT_TRUE(json["difference"]["switches"].is_null()) << "3 over 0";
    const std::string text = compare_text("a.run.jsonl", a, "b.run.jsonl", b);
    EXPECT_THAT(text, HasSubstr("-10.0 %"));
    EXPECT_THAT(text, HasSubstr("+5.0 points"));
    EXPECT_THAT(text, HasSubstr("\n  GPU 1 loses airflow\n"));
    EXPECT_THAT(text, Not(HasSubstr("differs")));
    for (const std::string& line : text_lines(text)) EXPECT_LE(text_width(line), 80u) << line;
}

TEST(Compare, PointsOutRunsThatAreNotOfOneKind) {
    const RunSummary a = summary_of_small_run();
    RunSummary b = a;
    b.seed = 8;
    b.scenario = "another";
    b.disturbances.clear();
    const auto lines = text_lines(compare_text("a", a, "b", b));
    EXPECT_THAT(lines, Contains(::testing::AllOf(HasSubstr("scenario"), HasSubstr("differs"))));
    EXPECT_THAT(lines, Contains(::testing::AllOf(HasSubstr("seed"), HasSubstr("differs"))));
    EXPECT_THAT(lines, Not(Contains(HasSubstr("What each disturbance cost"))));
}

TEST(FigureText, ReadsNaturally) {
    EXPECT_EQ(duration_text(0), "0 s");
    EXPECT_EQ(duration_text(812), "812 ns");
    EXPECT_EQ(duration_text(1'500), "1.50 us");
    EXPECT_EQ(duration_text(43'100'000), "43.1 ms");
    EXPECT_EQ(duration_text(999'999'999), "1.00 s");
    EXPECT_EQ(duration_text(23'440'000'000), "23.4 s");
    EXPECT_EQ(duration_text(99'960'000'000), "1 min 40 s");
    EXPECT_EQ(duration_text(1800 * kSecond), "30 min");
    EXPECT_EQ(duration_text(1800 * kSecond + 1), "30 min 00 s");
    EXPECT_EQ(duration_text(7200 * kSecond), "2 h");
    EXPECT_EQ(duration_text(86'400 * kSecond), "24 h");
    EXPECT_EQ(duration_text(3'599'600'000'000), "1 h 00 min");
    EXPECT_EQ(duration_text(15'120 * kSecond), "4 h 12 min");
    EXPECT_EQ(duration_text(266'400 * kSecond), "3 d 02 h");
    EXPECT_EQ(duration_text(-5 * kSecond), "-5.00 s");
    EXPECT_EQ(figure_text(FigureUnit::kSeconds, 23.4149), "23.41 s");
    EXPECT_EQ(figure_text(FigureUnit::kSeconds, 1.25), "1.250 s");
    EXPECT_EQ(figure_text(FigureUnit::kSeconds, 0.0431), "43.1 ms");
    EXPECT_EQ(count_text(1536), "1,536");
    EXPECT_EQ(count_text(-1234567.4), "-1,234,567");
    EXPECT_EQ(count_text(999), "999");
    EXPECT_EQ(pad_right("a°b", 5), "a°b  ");
    EXPECT_EQ(pad_right("a°bcdef", 4), "a°b…");
    EXPECT_EQ(bar_text(0.5, 4), "██");
    EXPECT_EQ(bar_text(7.0, 2), "██");
    EXPECT_EQ(bar_text(0.0625, 2), "▏");
    EXPECT_EQ(wrap_text("one two three", 2, 9), "  one two\n  three\n");
    EXPECT_EQ(wrap_text("lost for 9 min 28 s, then", 0, 14), "lost for\n9 min 28 s,\nthen\n");
}

TEST(ValidationJson, HasThePromisedShape) {
    ValidationReport report;
    report.tables.push_back({"t.yaml",
                             {{"a", 2.0, 2.1, 0.05, ""}, {"b", 3.0, {}, {}, "expert parallel is not built"}},
                             0.05,
                             0.05,
                             0.05,
                             {},
                             {{"layers 2", 1, 0.05, 0.05, 0.05, {}}},
                             {},
                             {"network not stated: infiniband-ndr"}});
    report.mape = 0.05;
    EXPECT_EQ(
        validation_json(report),
        R"({"tables":[{"file":"t.yaml","rows":[{"id":"a","measured":2,"predicted":2.1,"error":0.05},)"
        R"({"id":"b","measured":3,"predicted":null,"error":null,"reason":"expert parallel is not built"}],)"
        R"("mape":0.05,"worst":0.05,"bias":0.05,"kendall_tau":null,"groups":[{"name":"layers 2","rows":1,)"
        R"("mape":0.05,"worst":0.05,"bias":0.05,"kendall_tau":null}],"notes":["network not stated: infiniband-ndr"]}],)"
        R"("mape":0.05})"
        "\n");
}

}  // namespace
}  // namespace headway::tests
