#include "backend/launch/process_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "backend/launch/published_port.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Environment variables for the length of a test, none of any launcher beside them.
class Environment {
  public:
    explicit Environment(const std::map<std::string, std::string>& variables) {
        for (const char* const name : {"HEADWAY_RANK",
                                       "HEADWAY_SIZE",
                                       "HEADWAY_RENDEZVOUS",
                                       "HEADWAY_LISTENER",
                                       "OMPI_COMM_WORLD_RANK",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "OMPI_COMM_WORLD_LOCAL_SIZE",
                                       "PMIX_NAMESPACE",
                                       "OMPI_MCA_ess_base_jobid",
                                       "PMI_RANK",
                                       "PMI_SIZE",
                                       "PMI_JOBID",
                                       "MPI_LOCALRANKID",
                                       "MPI_LOCALNRANKS",
                                       "SLURM_PROCID",
                                       "SLURM_NTASKS",
                                       "SLURM_LOCALID",
                                       "SLURM_JOB_ID",
                                       "SLURM_STEP_ID",
                                       "SLURM_NNODES",
                                       "SLURM_STEP_NUM_NODES",
                                       "SLURM_STEP_NODELIST",
                                       "SLURM_JOB_NODELIST"})
            remember(name);
        for (const auto& [name, value] : variables) {
            remember(name);
            ::setenv(name.c_str(), value.c_str(), 1);
        }
    }
    ~Environment() {
        for (const auto& [name, value] : before_)
            value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }

  private:
    void remember(const std::string& name) {
        const char* const value = std::getenv(name.c_str());
        before_.emplace(name, value != nullptr ? value : "");
        ::unsetenv(name.c_str());
    }
    std::map<std::string, std::string> before_;
};

std::string message_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const scenarios::ConfigError& error) {
        return error.what();
    }
    return "no error";
}

TEST(ProcessRank, IsAloneWithoutALauncher) {
    const Environment environment({});
    const ProcessRank process = process_rank();
    EXPECT_EQ(process.size, 1);
    EXPECT_EQ(process.told_by, "");
    EXPECT_NO_THROW(expect_processes(process, 1, "the plan"));
}

TEST(ProcessRank, IsReadFromEachLauncher) {
    const std::map<std::string, std::map<std::string, std::string>> launchers = {
        {"OMPI_COMM_WORLD_RANK",
         {{"OMPI_COMM_WORLD_RANK", "5"},
          {"OMPI_COMM_WORLD_SIZE", "8"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}},
        {"PMI_RANK", {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}}},
        {"SLURM_PROCID", {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}}};
    for (const auto& [name, variables] : launchers) {
        const Environment environment(variables);
        const ProcessRank process = process_rank();
        EXPECT_EQ(process.rank, 5) << name;
        EXPECT_EQ(process.size, 8) << name;
        EXPECT_EQ(process.local_rank, 1) << name;
        EXPECT_EQ(process.told_by, name);
    }
}

TEST(ProcessRank, RefusesNumbersThatAreNone) {
    using Variables = std::map<std::string, std::string>;
    const std::pair<Variables, std::string> cases[] = {
        {{{"PMI_RANK", "1"}}, "PMI_RANK is set, but not PMI_SIZE"},
        {{{"PMI_RANK", "one"}, {"PMI_SIZE", "2"}}, "PMI_RANK: 'one' is no number of a process"},
        {{{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}, "PMI_RANK=2 is no rank of PMI_SIZE=2"},
        {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "-1"}}, "SLURM_NTASKS: '-1' is no number of a process"}};
    for (const auto& [variables, message] : cases) {
        const Environment environment(variables);
        EXPECT_THAT(message_of([] { process_rank(); }), HasSubstr(message));
    }
}

TEST(ProcessRank, SaysWhatALaunchOfAnotherSizeLacks) {
    const Environment environment({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
    EXPECT_EQ(message_of([] { expect_processes(process_rank(), 16, "the plan of two-racks.yaml"); }),
              "the plan of two-racks.yaml needs 16 processes, but 4 processes were started (OMPI_COMM_WORLD_RANK)");
}

TEST(MeetingPoint, IsWhereTheOptionOrTheLauncherSays) {
    {
        const Environment environment({{"HEADWAY_RANK", "0"},
                                       {"HEADWAY_SIZE", "2"},
                                       {"HEADWAY_RENDEZVOUS", "127.0.0.1:1234"},
                                       {"HEADWAY_LISTENER", "9"}});
        const MeetingPoint meeting = meeting_point(process_rank(), std::nullopt, std::chrono::milliseconds(10));
        EXPECT_EQ(meeting.point.port, 1234);
        EXPECT_EQ(meeting.point.listener, 9);
    }
    const Environment environment({{"SLURM_PROCID", "3"},
                                   {"SLURM_NTASKS", "4"},
                                   {"SLURM_JOB_ID", "77"},
                                   {"SLURM_STEP_ID", "1"},
                                   {"SLURM_STEP_NUM_NODES", "2"},
                                   {"SLURM_STEP_NODELIST", "node[017-018]"}});
    const MeetingPoint under_srun = meeting_point(process_rank(), std::nullopt, std::chrono::milliseconds(10));
    EXPECT_EQ(under_srun.point.host, "node017");
    EXPECT_EQ(under_srun.point.port, 20'000 + 77 * 16 + 1);
    EXPECT_EQ(meeting_point(process_rank(), "node3:555", std::chrono::milliseconds(10)).point.host, "node3");
    EXPECT_THAT(message_of([] { meeting_point(process_rank(), "node3", std::chrono::milliseconds(10)); }),
                HasSubstr("--rendezvous: 'node3' is not HOST:PORT"));
}

TEST(MeetingPoint, HasToBeGivenForSeveralMachines) {
    const Environment environment(
        {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    EXPECT_EQ(message_of([] { meeting_point(process_rank(), std::nullopt, std::chrono::milliseconds(10)); }),
              "process 2 of 4 (OMPI_COMM_WORLD_RANK): --rendezvous HOST:PORT is needed, a host and free port of "
              "process 0");
}

TEST(MeetingPoint, IsFoundByProcessesOfOneMachine) {
    const std::string launch = "a launch of process " + std::to_string(::getpid());
    std::map<std::string, std::string> variables = {{"OMPI_COMM_WORLD_SIZE", "2"},
                                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                    {"PMIX_NAMESPACE", launch},
                                                    {"OMPI_COMM_WORLD_RANK", "1"}};
    const auto look = [] { return meeting_point(process_rank(), std::nullopt, std::chrono::milliseconds(50)); };
    {
        const Environment second(variables);
        EXPECT_THAT(message_of([&] { look(); }), HasSubstr("rank 0 did not say within 50 ms where it is"));
    }
    variables["OMPI_COMM_WORLD_RANK"] = "0";
    MeetingPoint published;
    {
        const Environment first(variables);
        published = look();
    }
    EXPECT_GE(published.point.listener, 0);
    variables["OMPI_COMM_WORLD_RANK"] = "1";
    const Environment second(variables);
    EXPECT_EQ(look().point.port, published.point.port);
    EXPECT_EQ(look().point.host, "127.0.0.1");
    published.published.reset();
    EXPECT_THAT(message_of([&] { look(); }), HasSubstr("rank 0 did not say"));
    ::close(published.point.listener);
}

TEST(MeetingPoint, IsNotThatOfAProcessThatHasEnded) {
    const auto file = publication_file("an old launch of process " + std::to_string(::getpid()));
    std::ofstream(file) << "4321 " << ::getpid() << " 17\n";  // this process began later
    EXPECT_THAT(message_of([&] { published_port(file, std::chrono::milliseconds(30)); }),
                HasSubstr("rank 0 did not say"));
    std::filesystem::remove(file);
}

TEST(MeetingPoint, TakesTheFirstHostOfANodeList) {
    EXPECT_EQ(first_host("node17"), "node17");
    EXPECT_EQ(first_host("login,node[1-3]"), "login");
    EXPECT_EQ(first_host("node[017-019,021],login"), "node017");
    EXPECT_EQ(first_host("rack1-node[3,5]-ib"), "rack1-node3-ib");
    EXPECT_EQ(first_host("n[9-12]"), "n9");
}

}  // namespace
}  // namespace headway::backend
