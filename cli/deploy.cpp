#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "backend/backend_error.h"
#include "backend/cluster/member.h"
#include "backend/cluster/packet.h"
#include "backend/cluster/real_cluster.h"
#include "backend/communicator/host_control.h"
#include "backend/launch/process_rank.h"
#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/deploy_progress.h"
#include "cli/deployment.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/own_ranks.h"
#include "cli/policy_run.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/read.h"
#include "scenarios/record/exports.h"
#include "scenarios/record/report.h"
#include "scenarios/record/run_writer.h"

namespace headway::cli {

namespace {

/// What process 0 tells the others before anything starts.
struct JobOrder {
    std::string problem;  ///< not empty: nothing starts
    std::string scenario_yaml;
    scenarios::Plan plan;
    std::string data, checkpoints, weights;  ///< empty: none
};

std::vector<char> packed(const JobOrder& order) {
    backend::PacketWriter packet;
    packet.put(order.problem).put(order.scenario_yaml).put(order.plan.layout).put(order.plan.gpu_of_rank);
    packet.put(order.plan.layers_of_cell).put(order.plan.micro_batches_of_replica);
    return packet.put(order.data).put(order.checkpoints).put(order.weights).take();
}

JobOrder unpacked_order(const std::vector<char>& bytes) {
    backend::PacketReader packet(bytes);
    JobOrder order;
    order.problem = packet.take<std::string>();
    order.scenario_yaml = packet.take<std::string>();
    order.plan.layout = packet.take<scenarios::Layout>();
    order.plan.gpu_of_rank = packet.take<std::vector<int>>();
    order.plan.layers_of_cell = packet.take<std::vector<int>>();
    order.plan.micro_batches_of_replica = packet.take<std::vector<int>>();
    for (std::string* text : {&order.data, &order.checkpoints, &order.weights}) *text = packet.take<std::string>();
    return order;
}

JobOrder order_of(const Deployment& deployment) {
    JobOrder order;
    order.scenario_yaml = scenarios::write_scenario(deployment.scenario);
    order.plan = deployment.plan;
    order.data = deployment.data.string();
    if (deployment.checkpoints) order.checkpoints = deployment.checkpoints->string();
    if (deployment.weights) order.weights = deployment.weights->string();
    return order;
}

std::chrono::milliseconds timeout_of(const scenarios::Scenario& scenario) {
    const scenarios::Deployment deploy = scenario.deploy.value_or(scenarios::Deployment());
    return std::chrono::milliseconds(std::max<std::int64_t>(1, deploy.timeout.ns() / 1'000'000));
}

backend::DeploymentOptions options_of(const DeployArguments& arguments, const JobOrder& order, int device) {
    backend::DeploymentOptions options;
    options.processors = arguments.processors;
    options.device = device;
    options.data = order.data;
    if (!order.checkpoints.empty()) options.checkpoints = order.checkpoints;
    if (!order.weights.empty()) options.weights = order.weights;
    options.resume = arguments.resume;
    options.asked_to_stop = interrupted;
    return options;
}

/// A process other than 0. What goes wrong is told by process 0.
int serve(const DeployArguments& arguments, const backend::ProcessRank& process, backend::Control& control) {
    std::vector<char> bytes;
    control.broadcast(bytes, 0);
    const JobOrder order = unpacked_order(bytes);
    if (!order.problem.empty()) return kBadInput;
    const scenarios::Scenario scenario =
        scenarios::parse_scenario(order.scenario_yaml, "the scenario of process 0", ".", chosen_catalogue(arguments));
    backend::Member member(scenario, order.plan, options_of(arguments, order, process.local_rank), control);
    member.serve();
    return kSucceeded;
}

/// The record is closed whatever happens.
class OpenRecord {
  public:
    OpenRecord(scenarios::RunSink& sink, const scenarios::SummarySink& seen, const backend::RealCluster& cluster)
        : sink_(sink), seen_(seen), cluster_(cluster) {}
    void fail(const std::string& why) {
        if (!seen_.begun()) return;  // nothing was written yet
        sink_.log({scenarios::LogEvent::Severity::kError, cluster_.now().ns(), why});
        scenarios::RunFooter footer;
        footer.complete = false;
        footer.wall_ns = cluster_.now().ns();
        if (seen_.begun()) {
            footer.decisions = seen_.summary().decisions;
            footer.switches = seen_.summary().switches;
        }
        footer.gpus = cluster_.gpu_summaries();
        sink_.end(footer);
    }

  private:
    scenarios::RunSink& sink_;
    const scenarios::SummarySink& seen_;
    const backend::RealCluster& cluster_;
};

int lead(const DeployArguments& arguments, const backend::ProcessRank& process, const Deployment& deployment,
         backend::Control& control, const std::string& version) {
    const JobOrder order = order_of(deployment);
    std::vector<char> bytes = packed(order);
    control.broadcast(bytes, 0);
    const backend::DeploymentOptions options = options_of(arguments, order, process.local_rank);
    backend::Member member(deployment.scenario, deployment.plan, options, control);

    scenarios::SummarySink summary;
    DeployProgress progress(deployment.scenario.decision_interval);
    std::unique_ptr<scenarios::RecordWriter> record;
    std::vector<scenarios::RunSink*> sinks = {&summary, &progress};
    if (arguments.out) {
        scenarios::RecordOptions record_options;
        record_options.level = arguments.level;
        record_options.provenance = scenarios::current_provenance("headway " + version);
        record = std::make_unique<scenarios::RecordWriter>(*arguments.out, record_options);
        sinks.push_back(record.get());
    }
    std::unique_ptr<scenarios::TraceWriter> trace;
    if (arguments.trace) {
        trace = std::make_unique<scenarios::TraceWriter>(*arguments.trace);
        sinks.push_back(trace.get());
    }
    scenarios::SinkList sink(sinks);
    const bool operations = arguments.trace || arguments.level == scenarios::RecordLevel::kOperations;
    Oversight oversight;
    oversight.guards = guards_without(arguments.no_guards);
    oversight.shadow = arguments.shadow;
    PolicyRun run(deployment.scenario, oversight, 0);
    backend::RealCluster cluster(deployment.scenario, deployment.plan, options, control, member, &sink, operations);
    OpenRecord open(sink, summary, cluster);
    bool complete = false;
    try {
        policies::EpisodeSummary done = run.run(cluster, deployment.plan, sink);
        cluster.finish();
        complete = done.complete = done.complete && !cluster.stopped();
        done.wall = cluster.now();
        sink.end(run_footer(done, cluster.gpu_summaries()));
    } catch (const std::exception& error) {
        open.fail(error.what());
        throw;
    }
    if (!complete) complain("interrupted: the report covers what was done");
    print(arguments.json ? scenarios::report_json(summary.summary()) : scenarios::report_text(summary.summary()));
    return complete ? kSucceeded : kInterrupted;
}

/// One of several processes, or the only one.
int take_part(const DeployArguments& arguments, const backend::ProcessRank& process, const std::string& version) {
    constexpr std::chrono::milliseconds kMeeting{60'000};
    std::optional<Deployment> deployment;
    std::string problem;
    std::chrono::milliseconds timeout = kMeeting;
    if (process.rank == 0) {
        try {
            deployment = prepare_deployment(arguments, process.local_size == process.size);
            if (!deployment) return kInterrupted;
            timeout = timeout_of(deployment->scenario);
            backend::expect_processes(process, deployment->scenario.cluster.gpus(),
                                      "the cluster of " + arguments.scenario.string());
        } catch (const scenarios::ConfigError& error) {
            if (process.size == 1) throw;
            problem = error.what();
        }
    } else {
        // The others ask nobody but the scenario for the timeout; process 0 tells what is wrong with it.
        try {
            timeout = timeout_of(
                scenarios::read_scenario(arguments.scenario, chosen_catalogue(arguments), arguments.overrides));
        } catch (const scenarios::ConfigError&) {
            timeout = kMeeting;
        }
    }
    const backend::MeetingPoint meeting = backend::meeting_point(process, arguments.rendezvous, kMeeting);
    backend::HostControl control(meeting.point, process.rank, process.size, timeout);
    if (process.rank > 0) return serve(arguments, process, control);
    if (problem.empty()) return lead(arguments, process, *deployment, control, version);
    JobOrder refused;
    refused.problem = problem;
    std::vector<char> bytes = packed(refused);
    control.broadcast(bytes, 0);
    throw scenarios::ConfigError(problem);
}

}  // namespace

int deploy(const DeployArguments& arguments, const std::string& version) {
    const backend::ProcessRank process = backend::process_rank();
    if (process.told_by.empty()) {
        if (arguments.rendezvous)
            throw scenarios::ConfigError("--rendezvous: started alone (mpirun -n N or srun start several processes)");
        const std::optional<Deployment> deployment = prepare_deployment(arguments, true);
        if (!deployment) return kInterrupted;
        if (deployment->scenario.cluster.gpus() > 1)
            return run_as_ranks(arguments.command_line, deployment->scenario.cluster.gpus(), true);
    }
    catch_interrupts();
    try {
        return take_part(arguments, process, version);
    } catch (const std::exception& error) {
        if (process.rank == 0) throw;
        return dynamic_cast<const scenarios::ConfigError*>(&error) != nullptr ? kBadInput : kFailed;
    }
}

}  // namespace headway::cli
