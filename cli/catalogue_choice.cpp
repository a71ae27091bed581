#include "cli/catalogue_choice.h"

#include <stdexcept>

#include "cli/catalogue_directory.h"
#include "scenarios/language/config_error.h"

namespace headway::cli {

scenarios::Catalogue chosen_catalogue(const CatalogueArguments& arguments) {
    try {
        return {catalogue_directory(arguments.catalogue)};
    } catch (const std::invalid_argument& error) {
        throw scenarios::ConfigError(error.what());
    }
}

}  // namespace headway::cli
