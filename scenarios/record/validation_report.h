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

/// Figures over some rows of a table, as fractions.
struct ValidationGroup {
    std::string name;  ///< model shape, or collective and ranks
    int rows = 0;
    std::optional<double> mape;
    std::optional<double> worst;
    std::optional<double> bias;
    std::optional<double> kendall_tau;
};

/// One table. The figures are fractions; absent where no row has an error (kendall_tau: fewer than two).
struct ValidationTable {
    std::string file;
    std::vector<ValidationRow> rows;
    std::optional<double> mape;   ///< mean absolute error
    std::optional<double> worst;  ///< largest absolute error
    std::optional<double> bias;   ///< mean signed error
    std::optional<double> kendall_tau;
    std::vector<ValidationGroup> groups;            ///< rows that are ranked against each other
    std::optional<ValidationGroup> large_messages;  ///< collectives: rows of 1 MB or more
    std::vector<std::string> notes;                 ///< decisions that the table does not make itself
};

struct ValidationReport {
    std::vector<ValidationTable> tables;
    std::optional<double> mape;  ///< over all rows of all tables
};

/// {"tables":[{"file","rows":[{"id","measured","predicted","error"}],"mape","worst","bias","kendall_tau","groups",
/// "large_messages"(collectives only),"notes"}],"mape"} on one line; a row that cannot be expressed has
/// "predicted":null, "error":null and "reason". Throws std::invalid_argument for a figure that is not finite.
std::string validation_json(const ValidationReport& report);

}  // namespace headway::scenarios
