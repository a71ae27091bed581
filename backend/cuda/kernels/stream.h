#pragma once

struct CUstream_st;  // CUDA's own name, so that a cudaStream_t needs no cast

namespace headway::backend::cuda {

using Stream = CUstream_st*;

}  // namespace headway::backend::cuda
