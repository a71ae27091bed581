#include "scenarios/record/evaluation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headway::scenarios {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// One scenario, static and a trained policy.
EvaluationReport report_with(double goodput, double handed_over) {
    EvaluationReport report;
    EvaluatedScenario scenario{"one", "family", {}};
    for (const char* name : {"static", "my.policy"}) {
        EvaluatedRun run;
        run.policy = name;
        EvaluatedPolicy policy;
        policy.policy = name;
        if (run.policy == "my.policy") {
            run.goodput = policy.figures.goodput = goodput;
            run.handed_over = policy.figures.handed_over = handed_over;
        }
        scenario.runs.push_back(run);
        report.policies.push_back(policy);
    }
    report.scenarios.push_back(scenario);
    return report;
}

TEST(EvaluationReport, SaysWhichShareOfTheDecisionsWasNotThePolicysOwn) {
    const EvaluationReport report = report_with(0.9, 0.25);
    EXPECT_THAT(evaluation_text(report), HasSubstr("decisions of my.policy, guards took 25.0 % over to the rule"));
    EXPECT_THAT(evaluation_text(report), Not(HasSubstr("decisions of static")));
    const auto json = nlohmann::json::parse(evaluation_json(report));
    EXPECT_EQ(json.at("policies").at(1).at("handed_over"), 0.25);
    EXPECT_EQ(json.at("scenarios").at(0).at("policies").at("my.policy").at("handed_over"), 0.25);
    EXPECT_THAT(evaluation_text(report_with(0.9, 0.0)), Not(HasSubstr("guards took")));
}

TEST(EvaluationReport, ExplainsGoodputAboveThatOfTheHealthyPlan) {
    EXPECT_THAT(evaluation_text(report_with(1.05, 0.0)), HasSubstr("Goodput above 100 %: plans that are faster"));
    EXPECT_THAT(evaluation_text(report_with(0.95, 0.0)), Not(HasSubstr("above 100 %")));
}

}  // namespace
}  // namespace headway::scenarios
