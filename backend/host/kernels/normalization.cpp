#include "backend/host/kernels/normalization.h"

#include <cmath>

#include "backend/host/kernels/lanes.h"

namespace headway::backend::host {

template <typename Real>
void layer_norm(Matrix<const Real> x, const Real* gamma, const Real* beta, double epsilon, Matrix<Real> y, Real* mean,
                Real* rstd) {
    const Real columns = static_cast<Real>(x.columns);
    for (std::int64_t r = 0; r < x.rows; ++r) {
        const Real* in = x.row(r);
        Lanes<Real> sum{}, squares{};
        over_lanes<Real>(x.columns, [&](auto at) { sum += at.load(in); });
        const Real middle = sum_of<Real>(sum) / columns;
        over_lanes<Real>(x.columns, [&](auto at) {  // second pass: no cancellation where the mean is large
            const Lanes<Real> off = at.load(in, middle) - middle;
            squares += off * off;
        });
        const Real scale = Real(1) / std::sqrt(sum_of<Real>(squares) / columns + static_cast<Real>(epsilon));
        over_lanes<Real>(x.columns, [&](auto at) {
            at.store(y.row(r), (at.load(in) - middle) * scale * at.load(gamma) + at.load(beta));
        });
        mean[r] = middle;
        rstd[r] = scale;
    }
}

template <typename Real>
void layer_norm_gradient(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Real* mean,
                         const Real* rstd, Matrix<Real> dx, Real* dgamma, Real* dbeta) {
    const Real columns = static_cast<Real>(x.columns);
    for (std::int64_t r = 0; r < x.rows; ++r) {
        const Real *in = x.row(r), *out_gradient = dy.row(r), middle = mean[r], scale = rstd[r];
        Real* in_gradient = dx.row(r);
        Lanes<Real> sum{}, projection{};
        over_lanes<Real>(x.columns, [&](auto at) {
            const Lanes<Real> normal = (at.load(in) - middle) * scale, gradient = at.load(out_gradient);
            const Lanes<Real> weighted = gradient * at.load(gamma);
            sum += weighted;
            projection += weighted * normal;
            at.store(dgamma, at.load(dgamma) + gradient * normal);
            at.store(dbeta, at.load(dbeta) + gradient);
        });
        const Real mean_gradient = sum_of<Real>(sum) / columns, mean_projection = sum_of<Real>(projection) / columns;
        over_lanes<Real>(x.columns, [&](auto at) {
            const Lanes<Real> normal = (at.load(in) - middle) * scale;
            const Lanes<Real> weighted = at.load(out_gradient) * at.load(gamma);
            at.store(in_gradient, at.load(in_gradient) + (weighted - mean_gradient - normal * mean_projection) * scale);
        });
    }
}

template <typename Real>
void rms_norm(Matrix<const Real> x, const Real* gamma, double epsilon, Matrix<Real> y, Real* rstd) {
    for (std::int64_t r = 0; r < x.rows; ++r) {
        const Real* in = x.row(r);
        Lanes<Real> squares{};
        over_lanes<Real>(x.columns, [&](auto at) { squares += at.load(in) * at.load(in); });
        const Real mean_square = sum_of<Real>(squares) / static_cast<Real>(x.columns);
        const Real scale = Real(1) / std::sqrt(mean_square + static_cast<Real>(epsilon));
        over_lanes<Real>(x.columns, [&](auto at) { at.store(y.row(r), at.load(in) * scale * at.load(gamma)); });
        rstd[r] = scale;
    }
}

template <typename Real>
void rms_norm_gradient(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Real* rstd,
                       Matrix<Real> dx, Real* dgamma) {
    for (std::int64_t r = 0; r < x.rows; ++r) {
        const Real *in = x.row(r), *out_gradient = dy.row(r), scale = rstd[r];
        Real* in_gradient = dx.row(r);
        Lanes<Real> projection{};
        over_lanes<Real>(x.columns, [&](auto at) {
            const Lanes<Real> normal = at.load(in) * scale, gradient = at.load(out_gradient);
            projection += gradient * at.load(gamma) * normal;
            at.store(dgamma, at.load(dgamma) + gradient * normal);
        });
        const Real mean_projection = sum_of<Real>(projection) / static_cast<Real>(x.columns);
        over_lanes<Real>(x.columns, [&](auto at) {
            const Lanes<Real> normal = at.load(in) * scale, weighted = at.load(out_gradient) * at.load(gamma);
            at.store(in_gradient, at.load(in_gradient) + (weighted - normal * mean_projection) * scale);
        });
    }
}

#define HEADWAY_INSTANTIATE(Real)                                                                                    \
    template void layer_norm(Matrix<const Real>, const Real*, const Real*, double, Matrix<Real>, Real*, Real*);      \
    template void layer_norm_gradient(Matrix<const Real>, Matrix<const Real>, const Real*, const Real*, const Real*, \
                                      Matrix<Real>, Real*, Real*);                                                   \
    template void rms_norm(Matrix<const Real>, const Real*, double, Matrix<Real>, Real*);                            \
    template void rms_norm_gradient(Matrix<const Real>, Matrix<const Real>, const Real*, const Real*, Matrix<Real>,  \
                                    Real*);
HEADWAY_INSTANTIATE(float)
HEADWAY_INSTANTIATE(double)
#undef HEADWAY_INSTANTIATE

}  // namespace headway::backend::host
