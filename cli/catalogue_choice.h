#pragma once

#include "cli/arguments.h"
#include "scenarios/language/read.h"

namespace headway::cli {

/// The catalogue that a command reads. Throws ConfigError when --catalogue names no folder or none is found.
scenarios::Catalogue chosen_catalogue(const CatalogueArguments& arguments);

}  // namespace headway::cli
