#include "backend/training/training_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/backend/training/training_case.h"

namespace headway::tests {
namespace {

using backend::GroupSpec;
using scenarios::Job;
using scenarios::Layout;
using scenarios::Plan;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// Notes what it is asked for.
class NotingMaker final : public backend::CommunicatorMaker {
  public:
    std::vector<std::unique_ptr<backend::Communicator>> make(const std::vector<GroupSpec>& groups) override {
        for (const GroupSpec& group : groups) asked[group.name] = group.members;
        EXPECT_EQ(asked.size(), groups.size()) << "two groups have one name";
        return std::vector<std::unique_ptr<backend::Communicator>>(groups.size());
    }
    std::map<std::string, std::vector<int>> asked;
};

std::map<std::string, std::vector<int>> groups_of(const Job& job, const Plan& plan, int process) {
    NotingMaker maker;
    const backend::TrainingGroups groups(job, plan, backend::place_in_plan(plan, process), maker);
    return maker.asked;
}

Job untied() {
    Job job = gpt2_in_small();
    job.model.tied_embedding = false;
    return job;
}

TEST(TrainingGroups, AreOneADegreeInAMixedLayout) {
    Layout layout;
    layout.tensor = layout.pipeline = layout.data = 2;
    const Plan plan = even_plan(gpt2_in_small(), layout);
    EXPECT_THAT(groups_of(gpt2_in_small(), plan, 0),
                UnorderedElementsAre(Pair("all ranks", ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)),
                                     Pair("tensor of replica 0, stage 0", ElementsAre(0, 1)),
                                     Pair("tensor of replica 1, stage 0", ElementsAre(2, 3)),
                                     Pair("tensor of replica 0, stage 1", ElementsAre(4, 5)),
                                     Pair("tensor of replica 1, stage 1", ElementsAre(6, 7)),
                                     Pair("pipeline of replica 0, tensor rank 0", ElementsAre(0, 4)),
                                     Pair("pipeline of replica 0, tensor rank 1", ElementsAre(1, 5)),
                                     Pair("pipeline of replica 1, tensor rank 0", ElementsAre(2, 6)),
                                     Pair("pipeline of replica 1, tensor rank 1", ElementsAre(3, 7)),
                                     Pair("data of stage 0, tensor rank 0", ElementsAre(0, 2)),
                                     Pair("data of stage 0, tensor rank 1", ElementsAre(1, 3)),
                                     Pair("data of stage 1, tensor rank 0", ElementsAre(4, 6)),
                                     Pair("data of stage 1, tensor rank 1", ElementsAre(5, 7)),
                                     Pair("embedding of replica 0, tensor rank 0", ElementsAre(0, 4)),
                                     Pair("embedding of replica 0, tensor rank 1", ElementsAre(1, 5)),
                                     Pair("embedding of replica 1, tensor rank 0", ElementsAre(2, 6)),
                                     Pair("embedding of replica 1, tensor rank 1", ElementsAre(3, 7))));
}

TEST(TrainingGroups, JoinTheHoldersOfALayerWhereverTheyStand) {
    Layout layout;
    layout.pipeline = layout.data = 2;
    Plan plan = even_plan(untied(), layout);
    plan.layers_of_cell = {1, 3, 3, 1};
    plan.gpu_of_rank = {9, 4, 7, 2};  // stage 0: 9 and 4, stage 1: 7 and 2
    EXPECT_THAT(
        groups_of(untied(), plan, 4),
        UnorderedElementsAre(
            Pair("all ranks", ElementsAre(9, 4, 7, 2)), Pair("pipeline of replica 0", ElementsAre(9, 7)),
            Pair("pipeline of replica 1", ElementsAre(4, 2)), Pair("data of stage 0", ElementsAre(9, 4)),
            Pair("data of stage 1", ElementsAre(7, 2)), Pair("data of layers on stages 1 0", ElementsAre(7, 4))));
}

TEST(TrainingGroups, AreTheSameForEveryProcess) {
    Layout layout;
    layout.pipeline = 2;
    layout.data = 3;
    Plan plan = even_plan(gpt2_in_small(), layout);
    plan.layers_of_cell = {1, 3, 3, 1, 2, 2};
    for (int process = 1; process < 8; ++process)
        EXPECT_EQ(groups_of(gpt2_in_small(), plan, process), groups_of(gpt2_in_small(), plan, 0));
}

TEST(TrainingGroups, SplitMessagesWhereTheirOrderDiffersBetweenTheEnds) {
    Layout layout;
    layout.pipeline = 2;
    layout.schedule = scenarios::Schedule::kInterleaved;
    layout.virtual_pipeline = 2;
    const auto names = [&] {
        std::vector<std::string> found;
        for (const auto& [name, members] : groups_of(untied(), even_plan(untied(), layout), 0))
            if (name != "all ranks") found.push_back(name);
        return found;
    };
    EXPECT_THAT(names(), ElementsAre("activations of replica 0", "gradients of replica 0"));
    layout.overlap_pipeline_comm = true;
    EXPECT_THAT(names(), ElementsAre("activations around the ring of replica 0", "activations of replica 0",
                                     "gradients around the ring of replica 0", "gradients of replica 0"));
    layout.pipeline = 4;
    layout.virtual_pipeline = 1;
    layout.schedule = scenarios::Schedule::kOneForwardOneBackward;
    EXPECT_THAT(names(), ElementsAre("activations of replica 0", "gradients of replica 0"));
}

}  // namespace
}  // namespace headway::tests
