#include "policies/learning/curriculum.h"

#include <algorithm>
#include <stdexcept>

#include "policies/learning/byte_stream.h"

namespace headway::policies {

Curriculum::Curriculum(std::size_t scenarios, const CurriculumOptions& options)
    : options_(options), gap_(scenarios, options.first_gap) {
    if (scenarios == 0) throw std::invalid_argument("a curriculum of no scenarios");
    if (!(options.uniform_share >= 0.0 && options.uniform_share <= 1.0 && options.memory >= 0.0 &&
          options.memory <= 1.0 && options.sharpness > 0.0)) {
        throw std::invalid_argument("curriculum: shares and memory are from 0 to 1, sharpness is above 0");
    }
}

std::vector<double> Curriculum::probabilities() const {
    std::vector<double> result(gap_.size());
    double sum = 0.0;
    for (std::size_t i = 0; i < gap_.size(); ++i) {
        if (gap_[i] > 0.0) {
            result[i] =
                scenarios::portable_exp(options_.sharpness * scenarios::portable_log(std::max(gap_[i], 1e-300)));
        }
        sum += result[i];
    }
    const double uniform = 1.0 / static_cast<double>(gap_.size());
    const double share = sum > 0.0 ? options_.uniform_share : 1.0;
    for (double& p : result) p = share * uniform + (sum > 0.0 ? (1.0 - share) * p / sum : 0.0);
    return result;
}

std::size_t Curriculum::draw(scenarios::RandomStream& stream) const {
    const std::vector<double> probability = probabilities();
    double left = stream.uniform();
    for (std::size_t i = 0; i + 1 < probability.size(); ++i) {
        if (left < probability[i]) return i;
        left -= probability[i];
    }
    return probability.size() - 1;
}

void Curriculum::record(std::size_t scenario, double learner, double reference) {
    const double seen = std::max(0.0, reference - learner);
    double& gap = gap_.at(scenario);
    gap = options_.memory * gap + (1.0 - options_.memory) * seen;
}

std::string Curriculum::bytes() const {
    ByteWriter out;
    out.numbers(gap_);
    return out.take();
}

void Curriculum::restore(std::string_view bytes) {
    ByteReader in(bytes);
    std::vector<double> gap = in.numbers();
    if (!in.at_end() || gap.size() != gap_.size()) {
        throw std::runtime_error("curriculum: state of " + std::to_string(gap.size()) + " scenarios for " +
                                 std::to_string(gap_.size()));
    }
    gap_ = std::move(gap);
}

}  // namespace headway::policies
