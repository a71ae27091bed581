#include "backend/communicator/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <fstream>
#include <system_error>
#include <utility>

namespace headway::backend {

namespace {

constexpr int kFutexWait = 0, kFutexWake = 1;  // futex(2)
constexpr std::size_t kHeadBytes = 16 << 10;
constexpr std::size_t kMostMembers = 512;
constexpr std::uint32_t kRounds = 0x3fffffff;
constexpr std::uint32_t kLeftBit = 0x40000000;
constexpr std::uint32_t kStoppedBit = 0x80000000;

[[noreturn]] void throw_errno(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
}

/// Between processes, which std::atomic::wait does not promise.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds timeout) {
    timespec time{};
    time.tv_sec = timeout.count() / 1'000'000'000;
    time.tv_nsec = timeout.count() % 1'000'000'000;
    ::syscall(SYS_futex, &word, kFutexWait, value, &time, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, &word, kFutexWake, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

std::string machine_identity() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    char processes[256] = "";
    const ssize_t length = ::readlink("/proc/self/ns/pid", processes, sizeof processes - 1);
    if (boot.empty() || length <= 0) return "";
    return boot + " " + std::string(processes, static_cast<std::size_t>(length)) + " " + std::to_string(::getuid());
}

SharedMemory::SharedMemory(int descriptor, std::size_t bytes) : descriptor_(descriptor), bytes_(bytes) {
    void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (data == MAP_FAILED) {
        const int error = errno;
        ::close(descriptor);
        throw std::system_error(error, std::generic_category(), "mmap");
    }
    data_ = static_cast<std::byte*>(data);
    name_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor);
}

SharedMemory::~SharedMemory() {
    ::munmap(data_, bytes_);
    ::close(descriptor_);
}

std::shared_ptr<SharedMemory> SharedMemory::create(std::size_t bytes) {
    const int descriptor = ::memfd_create("headway", MFD_CLOEXEC);
    if (descriptor < 0) throw_errno("memfd_create");
    if (::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
        const int error = errno;
        ::close(descriptor);
        throw std::system_error(error, std::generic_category(), "ftruncate");
    }
    return std::shared_ptr<SharedMemory>(new SharedMemory(descriptor, bytes));
}

std::shared_ptr<SharedMemory> SharedMemory::open(const std::string& name, std::size_t bytes) {
    const int descriptor = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) throw_errno("open");
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes) {
        ::close(descriptor);
        throw std::system_error(EINVAL, std::generic_category(), "memory of another size");
    }
    return std::shared_ptr<SharedMemory>(new SharedMemory(descriptor, bytes));
}

/// At the beginning of a group's memory. Its members never use it again after one of them has stopped.
struct SharedRounds::Head {
    std::atomic<std::uint32_t> arrived;  ///< at the present meeting
    std::atomic<std::uint32_t> met;      ///< meetings that all have come to; with the bits: somebody left, all stopped
    std::atomic<std::uint32_t> rounds[kMostMembers];    ///< meetings that each member has come to
    std::atomic<std::uint64_t> calls[2][kMostMembers];  ///< in which each is at even and odd meetings
    std::atomic<bool> left[kMostMembers];
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

std::size_t SharedRounds::bytes_for(int size) {
    static_assert(sizeof(Head) <= kHeadBytes);
    return kHeadBytes + 2 * static_cast<std::size_t>(size) * kSlotBytes;
}

SharedRounds::SharedRounds(std::shared_ptr<SharedMemory> memory, std::size_t offset, int rank, int size)
    : memory_(std::move(memory)), offset_(offset), rank_(rank), size_(size) {
    if (static_cast<std::size_t>(size) > kMostMembers) throw std::system_error(E2BIG, std::generic_category(), "group");
}

SharedRounds::~SharedRounds() {
    head().left[rank_].store(true, std::memory_order_release);
    head().met.fetch_or(kLeftBit, std::memory_order_acq_rel);
    futex_wake_all(head().met);
}

SharedRounds::Head& SharedRounds::head() const {
    return *reinterpret_cast<Head*>(memory_->data() + offset_);
}

std::byte* SharedRounds::slot_at(std::uint32_t round, int member) const {
    const std::size_t place = (round % 2) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(member);
    return memory_->data() + offset_ + kHeadBytes + place * kSlotBytes;
}

SharedRounds::Meeting SharedRounds::meet(std::uint64_t call, std::chrono::milliseconds timeout) {
    Head& all = head();
    const std::uint32_t before = std::exchange(round_, (round_ + 1) & kRounds);
    if (stopped_) return Meeting::kStopped;
    all.calls[before % 2][rank_].store(call, std::memory_order_relaxed);
    all.rounds[rank_].store(round_, std::memory_order_release);
    const auto met_with = [&] { return disagreeing() < 0 ? Meeting::kMet : Meeting::kDisagree; };
    if (all.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
        all.arrived.store(0, std::memory_order_relaxed);
        std::uint32_t met = all.met.load(std::memory_order_acquire);
        do {
            if ((met & kStoppedBit) != 0) return Meeting::kStopped;
        } while (!all.met.compare_exchange_weak(met, round_ | (met & kLeftBit), std::memory_order_acq_rel));
        futex_wake_all(all.met);
        return met_with();
    }
    const auto latest = std::chrono::steady_clock::now() + timeout;
    for (;;) {
        const std::uint32_t met = all.met.load(std::memory_order_acquire);
        if ((met & kRounds) == round_) return met_with();
        if (stopped_ || (met & kStoppedBit) != 0) return Meeting::kStopped;
        if ((met & kLeftBit) != 0 && all.left[missing()].load(std::memory_order_acquire)) return Meeting::kLeft;
        const auto left = latest - std::chrono::steady_clock::now();
        if (left.count() <= 0) return Meeting::kLate;
        futex_wait(all.met, met, left);
    }
}

int SharedRounds::missing() const {
    int late = rank_;
    for (int member = size_ - 1; member >= 0; --member) {
        if (head().rounds[member].load(std::memory_order_acquire) == round_) continue;
        if (head().left[member].load(std::memory_order_acquire)) return member;
        late = member;
    }
    return late;
}

int SharedRounds::disagreeing() const {
    const auto& calls = head().calls[(round_ - 1) % 2];
    for (int member = 1; member < size_; ++member)
        if (calls[member].load(std::memory_order_relaxed) != calls[0].load(std::memory_order_relaxed)) return member;
    return -1;
}

void SharedRounds::stop() {
    stopped_ = true;
    head().met.fetch_or(kStoppedBit, std::memory_order_acq_rel);
    futex_wake_all(head().met);
}

}  // namespace headway::backend
