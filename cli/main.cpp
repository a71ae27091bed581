#include "cli/commands.h"
#include "cli/standard_output.h"

int main(int argc, char** argv) {
    headway::cli::prepare_standard_streams();
    return headway::cli::run_command(headway::cli::parse_arguments(argc, argv, HEADWAY_VERSION), HEADWAY_VERSION);
}
