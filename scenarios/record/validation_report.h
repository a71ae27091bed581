#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headway::scenarios {

/// One row of a measured table. `error` = (predicted - measured) / measured.
struct ValidationRow {
    std::string id;
    std::optional<double> measured;
    std::optional<double> predicted;  ///< absent: the row cannot be expressed; `reason` says why
    std::optional<double> error;
    std::string reason;
};

/// One table. The figures are fractions; absent where no row has an error (kendall_tau: fewer than two).
struct ValidationTable {
    std::string file;
    std::vector<ValidationRow> rows;
    std::optional<double> mape;   ///< mean absolute error
    std::optional<double> worst;  ///< largest absolute error
    std::optional<double> bias;   ///< mean signed error
    std::optional<double> kendall_tau;
};

struct ValidationReport {
    std::vector<ValidationTable> tables;
    std::optional<double> mape;  ///< over all rows of all tables
};

/// {"tables":[{"file","rows":[{"id","measured","predicted","error"}],"mape","worst","bias","kendall_tau"}],"mape"} on
/// one line; a row that cannot be expressed has "predicted":null, "error":null and "reason". Throws
/// std::invalid_argument for a figure that is not finite.
std::string validation_json(const ValidationReport& report);

}  // namespace headway::scenarios
