#include "scenarios/language/csv.h"

#include <algorithm>
#include <optional>

#include "scenarios/language/bounds.h"
#include "scenarios/language/nearest_name.h"
#include "scenarios/language/read_context.h"
#include "scenarios/language/value_text.h"

namespace headway::scenarios {
namespace {

constexpr std::size_t kMostCsvRows = 1'000'000;

std::vector<std::string> split_csv_line(std::string line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<std::string> cells(1);
    for (const char c : line) {
        if (c == ',')
            cells.emplace_back();
        else
            cells.back() += c;
    }
    for (std::string& cell : cells) {
        cell.erase(0, std::min(cell.find_first_not_of(" \t"), cell.size()));
        cell.erase(cell.find_last_not_of(" \t") + 1);
    }
    return cells;
}

/// A CSV file whose columns are known by name.
class CsvFile {
  public:
    CsvFile(const std::filesystem::path& file, const std::string& where, std::vector<std::string> needed,
            const std::vector<std::string>& optional)
        : name_(file.string()) {
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(file, ignored))
            throw ConfigError(where + ": " + name_ + ": no such file (a CSV file relative to the scenario's folder)");
        text_ = read_text_file(file, where);
        if (text_.empty()) throw ConfigError(name_ + ":1: the file is empty (the first line names the columns)");
        if (text_.back() != '\n') {
            line_ = 1 + static_cast<int>(std::count(text_.begin(), text_.end(), '\n'));
            throw error("the last line has no line end (was the file cut off?)");
        }
        if (!next_line()) throw ConfigError(name_ + ":1: no line with column names");
        columns_ = cells_;
        std::vector<std::string> known = needed;
        known.insert(known.end(), optional.begin(), optional.end());
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (std::find(known.begin(), known.end(), columns_[i]) == known.end())
                throw error("unknown column '" + shown(columns_[i]) + "'" + suggestion(columns_[i], known));
            if (std::find(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(i), columns_[i]) !=
                columns_.begin() + static_cast<std::ptrdiff_t>(i)) {
                throw error("column '" + columns_[i] + "' is given twice");
            }
        }
        for (const std::string& column : needed) {
            if (!has(column)) throw error("column '" + column + "' is missing");
        }
    }

    /// Moves to the next row; false at the end.
    bool next() {
        if (!next_line()) return false;
        if (++rows_ > kMostCsvRows) throw error("more than 1000000 rows");
        if (cells_.size() != columns_.size()) {
            throw error(std::to_string(cells_.size()) + " values in this line, but " + std::to_string(columns_.size()) +
                        " columns");
        }
        return true;
    }

    bool has(const std::string& column) const {
        return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
    }

    double number(const std::string& column, const Bounds& bounds) const {
        const auto value = parse_number(cell(column));
        if (!value || !bounds.contains(*value)) throw not_allowed(column, "a number, " + bounds.allowed);
        return *value;
    }

    int index(const std::string& column) const {
        const auto value = parse_unsigned(cell(column));
        if (!value || *value > 1'000'000) throw not_allowed(column, "a whole number from 0");
        return static_cast<int>(*value);
    }

    ConfigError not_allowed(const std::string& column, const std::string& allowed) const {
        return error(column + ": " + (cell(column).empty() ? "''" : shown(cell(column))) + " is not allowed (" +
                     allowed + ")");
    }
    ConfigError error(const std::string& message) const {
        return ConfigError(name_ + ":" + std::to_string(line_) + ": " + message);
    }

  private:
    static std::string shown(const std::string& text) {
        return YamlNode{YamlNode::Kind::kScalar, {}, text, {}, {}}.shown();
    }

    const std::string& cell(const std::string& column) const {
        return cells_[static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin())];
    }

    bool next_line() {
        while (at_ < text_.size()) {
            const std::size_t end = text_.find('\n', at_);
            const std::string line = text_.substr(at_, end - at_);
            at_ = end + 1;
            ++line_;
            if (line.empty() || line == "\r" || line.front() == '#') continue;
            cells_ = split_csv_line(line);
            return true;
        }
        return false;
    }

    std::string name_;
    std::string text_;
    std::size_t at_ = 0;
    int line_ = 0;
    std::size_t rows_ = 0;
    std::vector<std::string> columns_;
    std::vector<std::string> cells_;
};

constexpr double kLongestCsvSeconds = 1e8;

}  // namespace

void read_csv_rows(const std::filesystem::path& file, const std::string& where, std::vector<SpeedPoint>& rows) {
    CsvFile csv(file, where, {"time_s", "factor"}, {});
    rows.clear();
    while (csv.next()) {
        const SpeedPoint point{Duration::seconds(csv.number("time_s", between(0, kLongestCsvSeconds))),
                               csv.number("factor", pace_left(10))};
        if (rows.empty() && point.time != Duration{}) throw csv.not_allowed("time_s", "the first time is 0");
        if (!rows.empty() && point.time <= rows.back().time)
            throw csv.not_allowed("time_s", "later than the row before");
        rows.push_back(point);
    }
    if (rows.empty()) throw csv.error("no rows");
}

void read_csv_rows(const std::filesystem::path& file, const std::string& where, std::vector<MeasuredWorker>& rows) {
    CsvFile csv(file, where, {"replica", "stage", "forward_ms", "backward_ms"},
                {"send_activation_ms", "send_gradient_ms"});
    rows.clear();
    while (csv.next()) {
        const Bounds time = between_above(0, kLongestCsvSeconds);
        MeasuredWorker worker;
        worker.replica = csv.index("replica");
        worker.stage = csv.index("stage");
        worker.forward = Duration::milliseconds(csv.number("forward_ms", time));
        worker.backward = Duration::milliseconds(csv.number("backward_ms", time));
        if (csv.has("send_activation_ms"))
            worker.send_activation =
                Duration::milliseconds(csv.number("send_activation_ms", between(0, kLongestCsvSeconds)));
        if (csv.has("send_gradient_ms"))
            worker.send_gradient =
                Duration::milliseconds(csv.number("send_gradient_ms", between(0, kLongestCsvSeconds)));
        rows.push_back(worker);
    }
    if (rows.empty()) throw csv.error("no rows");
}

}  // namespace headway::scenarios
