#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/read.h"
#include "scenarios/language/stack.h"
#include "scenarios/validation/measured_table.h"

namespace headway::scenarios {

/// Finds what a table's names mean in a catalogue. A name is an entry of the catalogue (letters and digits compared,
/// without case) or stands in the catalogue's `aliases/measured-tables.yaml`. Nothing is guessed: a name that neither
/// knows is a std::invalid_argument whose message is the reason that a report prints for the row. Every decision that
/// the table does not make itself is added to `notes`, once.
class HardwareNames {
  public:
    /// Throws ConfigError when measured-tables.yaml is missing or wrong.
    explicit HardwareNames(const Catalogue& catalogue);

    /// A node of the table's cluster, with the NIC rate that the table states.
    Node node(const MeasuredCluster& cluster, std::vector<std::string>& notes);
    /// `chosen` (the --stack option) wins over `software`.
    SoftwareStack stack(const std::string& software, const std::optional<std::string>& chosen,
                        std::vector<std::string>& notes);

  private:
    using Names = std::map<std::string, std::string>;

    std::string entry(const std::string& kind, const Names& names, const std::string& name) const;
    GpuType& gpu(const std::string& entry_name);
    Fabric& fabric(const std::string& entry_name);

    Catalogue catalogue_;
    Names gpu_names_;
    Names network_names_;
    Names node_fabrics_;                                            ///< by GPU entry
    std::vector<std::pair<double, std::string>> networks_by_rate_;  ///< Gbit/s of a NIC whose network is not stated
    std::vector<std::pair<std::string, std::string>> software_;     ///< beginning of the name, stack entry
    std::map<std::string, GpuType> gpus_;
    std::map<std::string, Fabric> fabrics_;
    std::map<std::string, SoftwareStack> stacks_;
};

}  // namespace headway::scenarios
