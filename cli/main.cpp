#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
    CLI::App app{"Headway keeps large-model training moving when the cluster does not behave.", "headway"};
    app.set_version_flag("--version", HEADWAY_VERSION);
    CLI11_PARSE(app, argc, argv);
    return 0;
}
