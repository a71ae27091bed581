#pragma once

#include <string>

#include "policies/planning/layout_search.h"
#include "scenarios/language/read.h"
#include "scenarios/language/scenario.h"

namespace headway::cli {

/// The search that `headway plan` makes, with progress on a terminal. Ctrl-C ends it with what was found. Throws
/// ConfigError, pointing at the strategy, where no layout is legal or none fits in memory; the message names the plan
/// that comes closest and what it lacks.
policies::SearchResult search_with_progress(const policies::PlanningTask& task, policies::SearchOptions options,
                                            const scenarios::KeyPlaces& places);

/// Puts the best plan that fits in place of the strategy's wildcards, everything healthy, and says so in one line on
/// standard error. Does nothing for a strategy without wildcards. Returns false when Ctrl-C ended the search.
bool resolve_wildcards(scenarios::Scenario& scenario, const scenarios::KeyPlaces& places);

/// Options that turn a scenario's strategy and micro-batch into these: "--set strategy.tensor=4 ...". Empty where
/// nothing differs, and where a list would be too long for a command line.
std::string options_for(const scenarios::Scenario& scenario, const scenarios::Strategy& strategy, int micro_batch);

}  // namespace headway::cli
