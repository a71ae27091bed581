#pragma once

#include "scenarios/validation/measured_table.h"
#include "scenarios/validation/table_node.h"

/// The parts of a row that describe a job and where it ran, read from `row` and, where it leaves a section out, from
/// `table`.
namespace headway::scenarios {

/// Which parts a format leaves out: headway-measurements/1 states them all, the others only what their source knew.
enum class JobDetail { kComplete, kPartial };

MeasuredCluster read_measured_cluster(const TableNode& row, const TableNode& table);
MeasuredJob read_measured_job(const TableNode& row, const TableNode& table, JobDetail detail);
Schedule read_measured_schedule(const TableNode& node);
/// `keys`, and those that say something to people and nothing to a prediction.
std::vector<std::string> with_remarks(std::vector<std::string> keys);
/// `keys`, remarks, and those that `read_measured_job` reads.
std::vector<std::string> with_job_keys(std::vector<std::string> keys);

}  // namespace headway::scenarios
