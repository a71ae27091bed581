#pragma once

#include "backend/host/kernels/matrix.h"

/// Operations of single elements; backend/device/operations.h says what each computes. Real is float or double.
namespace headway::backend::host {

template <typename Real>
void add_bias(Matrix<Real> x, const Real* bias);
template <typename Real>
void bias_gradient(Matrix<const Real> dy, Real* dbias);
template <typename Real>
void gelu(Matrix<const Real> x, Matrix<Real> y);
template <typename Real>
void gelu_gradient(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx);
template <typename Real>
void swiglu(Matrix<const Real> gate, Matrix<const Real> up, Matrix<Real> y);
template <typename Real>
void swiglu_gradient(Matrix<const Real> gate, Matrix<const Real> up, Matrix<const Real> dy, Matrix<Real> dgate,
                     Matrix<Real> dup);
template <typename Real>
void add(Matrix<const Real> x, Matrix<Real> y);
template <typename Real>
void scale(Matrix<Real> x, Real factor);
template <typename Real>
void fill(Matrix<Real> x, Real value);
template <typename From, typename To>
void copy(Matrix<const From> from, Matrix<To> to);
template <typename Element>
void transpose(Matrix<const Element> from, Matrix<Element> to);

}  // namespace headway::backend::host
