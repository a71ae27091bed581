#include "backend/host/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "backend/host/kernels/lanes.h"

namespace headway::backend::host {

namespace {

template <typename Real>
Lanes<Real> square_root(Lanes<Real> x) {
    for (std::int64_t i = 0; i < kLanes<Real>; ++i) x[i] = std::sqrt(x[i]);
    return x;
}

}  // namespace

template <typename Real>
void adamw(const AdamWFactors<Real>& factors, const Real* gradient, Real* parameters, Real* first_moment,
           Real* second_moment, std::int64_t count) {
    over_lanes<Real>(count, [&](auto at) {
        const Lanes<Real> g = at.load(gradient) * factors.gradient_scale;
        const Lanes<Real> m = factors.beta1 * at.load(first_moment) + factors.fresh1 * g;
        const Lanes<Real> v = factors.beta2 * at.load(second_moment) + factors.fresh2 * (g * g);
        const Lanes<Real> divisor = square_root<Real>(v) * factors.root_scale + factors.epsilon;
        at.store(first_moment, m);
        at.store(second_moment, v);
        at.store(parameters, factors.decay * at.load(parameters) - factors.rate * m / divisor);
    });
}

// Squares of floats are exact in double; the order of the sum is fixed.
template <typename Real>
double sum_of_squares(Matrix<const Real> x) {
    constexpr std::int64_t kSums = 8;
    double sums[kSums] = {};
    for (std::int64_t r = 0; r < x.rows; ++r) {
        const Real* row = x.row(r);
        std::int64_t i = 0;
        for (; i + kSums <= x.columns; i += kSums)
            for (std::int64_t j = 0; j < kSums; ++j) {
                const double value = row[i + j];
                sums[j] += value * value;
            }
        for (std::int64_t j = 0; i + j < x.columns; ++j) {
            const double value = row[i + j];
            sums[j] += value * value;
        }
    }
    for (std::int64_t width = kSums / 2; width > 0; width /= 2)
        for (std::int64_t j = 0; j < width; ++j) sums[j] += sums[j + width];
    return sums[0];
}

#define HEADWAY_INSTANTIATE(Real)                                                                   \
    template void adamw(const AdamWFactors<Real>&, const Real*, Real*, Real*, Real*, std::int64_t); \
    template double sum_of_squares(Matrix<const Real>);
HEADWAY_INSTANTIATE(float)
HEADWAY_INSTANTIATE(double)
#undef HEADWAY_INSTANTIATE

}  // namespace headway::backend::host
