#pragma once

namespace headway::cli {

/// From now on the first Ctrl-C (or SIGTERM) only asks the run to end; a second one ends the process. To be called
/// again after SimGrid has made its engine, which puts a handler of its own in place.
void catch_interrupts();

/// Whether an end was asked for.
bool interrupted();

}  // namespace headway::cli
