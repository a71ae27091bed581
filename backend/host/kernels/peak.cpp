#include "backend/host/kernels/peak.h"

#include "backend/host/kernels/lanes.h"

namespace headway::backend::host {

double multiply_adds_in_registers(std::int64_t rounds) {
    // Ten independent sums: two units with a latency of four or five cycles.
    Lanes<float> factor = spread(0.999f), addend = spread(0.001f);
    Lanes<float> a = factor, b = factor, c = factor, d = factor, e = factor;
    Lanes<float> f = factor, g = factor, h = factor, i = factor, j = factor;
    for (std::int64_t round = 0; round < rounds; ++round) {
        a = a * factor + addend;
        b = b * factor + addend;
        c = c * factor + addend;
        d = d * factor + addend;
        e = e * factor + addend;
        f = f * factor + addend;
        g = g * factor + addend;
        h = h * factor + addend;
        i = i * factor + addend;
        j = j * factor + addend;
        // Nobody may see that all ten are equal, nor work several rounds out at once.
        asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(f), "+x"(g), "+x"(h), "+x"(i), "+x"(j));
    }
    [[maybe_unused]] volatile float kept = sum_of<float>(a + b + c + d + e + f + g + h + i + j);
    return static_cast<double>(rounds) * 10.0 * 2.0 * static_cast<double>(kLanes<float>);
}

}  // namespace headway::backend::host
