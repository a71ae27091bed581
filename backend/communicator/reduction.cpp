#include "backend/communicator/reduction.h"

#include <stdexcept>

namespace headway::backend {

namespace {

template <typename Number>
void combine_as(ReduceOperation operation, void* into, const void* from, std::size_t count) {
    Number* __restrict const to = static_cast<Number*>(into);
    const Number* __restrict const other = static_cast<const Number*>(from);
    if (operation == ReduceOperation::kSum) {
        for (std::size_t i = 0; i < count; ++i) to[i] += other[i];
    } else {
        for (std::size_t i = 0; i < count; ++i) to[i] = to[i] < other[i] ? other[i] : to[i];
    }
}

}  // namespace

void combine(DataType type, ReduceOperation operation, void* into, const void* from, std::size_t count) {
    switch (type) {
        case DataType::kFloat64:
            return combine_as<double>(operation, into, from, count);
        case DataType::kFloat32:
            return combine_as<float>(operation, into, from, count);
        case DataType::kInt32:
            return combine_as<std::int32_t>(operation, into, from, count);
        case DataType::kBfloat16:
            break;
    }
    throw std::invalid_argument("bfloat16 is not reduced between hosts");
}

}  // namespace headway::backend
