#include "backend/communicator/address_exchange.h"

#include <cstring>
#include <string>

#include "backend/backend_error.h"

namespace headway::backend {

std::vector<std::vector<char>> exchange_addresses(Control& control, std::uint64_t agreed,
                                                  const std::vector<std::vector<char>>& expected) {
    std::vector<char> mine(sizeof agreed);
    std::memcpy(mine.data(), &agreed, sizeof agreed);
    for (const std::vector<char>& address : expected) {
        const std::uint32_t size = static_cast<std::uint32_t>(address.size());
        const char* const begin = reinterpret_cast<const char*>(&size);
        mine.insert(mine.end(), begin, begin + sizeof size);
        mine.insert(mine.end(), address.begin(), address.end());
    }
    std::vector<std::vector<char>> of_me;
    const std::vector<std::vector<char>> all = control.all_gather(mine);
    for (std::size_t process = 0; process < all.size(); ++process) {
        const std::vector<char>& told = all[process];
        if (told.size() < sizeof agreed || std::memcmp(told.data(), all[0].data(), sizeof agreed) != 0) {
            const std::string why = "rank " + std::to_string(process) + " asks for other groups than rank 0";
            control.abort(why);
            throw BackendError(control.rank(), control.size(), "making groups", why);
        }
        std::size_t at = sizeof agreed;
        for (int to = 0; to <= control.rank(); ++to) {
            std::uint32_t size = 0;
            std::memcpy(&size, told.data() + at, sizeof size);
            at += sizeof size;
            if (to == control.rank()) {
                const auto first = told.begin() + static_cast<std::ptrdiff_t>(at);
                of_me.emplace_back(first, first + size);
            }
            at += size;
        }
    }
    return of_me;
}

}  // namespace headway::backend
