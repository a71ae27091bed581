#include "tests/backend/cuda/emulation/emulator.h"

#include <ucontext.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headway::emulation {

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::size_t kGuardBytes = 4096;
constexpr int kGuardByte = 0x5a;
constexpr int kNanByte = 0xff;  // a NaN as float and as bfloat16

struct PendingCopy {
    void* to;
    const void* from;
    bool there;
};

/// Where threads meet. Those that come wait for the generation to pass.
struct Meeting {
    int members = 0;  ///< threads that have not returned
    int arrived = 0;
    std::int64_t generation = 0;
};

struct Warp {
    Meeting meeting;
    Slot slots[2][32];  // of even and odd generations: nobody overwrites what another has yet to read
};

/// A coroutine that runs one thread after the other; it is made once, since that takes system calls.
struct Thread {
    ucontext_t context{};  ///< to begin
    jmp_buf where;         ///< to go on
    bool begun = false;
    std::unique_ptr<std::byte[]> stack;
    Place place;
    Warp* warp = nullptr;
    int lane = 0;
    bool finished = false;
    const Meeting* waits_for = nullptr;
    std::int64_t waits_past = 0;
    std::vector<PendingCopy> open;
    std::deque<std::vector<PendingCopy>> committed;
};

/// Launches and blocks so far decide in which order threads get their turn.
struct Counts {
    std::int64_t launches = 0, blocks = 0;
};

class Emulator {
  public:
    void launch(const char* name, const backend::cuda::Geometry& geometry, const std::function<void()>& body) {
        name_ = name;
        body_ = &body;
        ++counts_.launches;
        shared_bytes_ = geometry.shared_bytes;
        const unsigned threads = geometry.block.x * geometry.block.y;
        if (threads == 0 || threads > 1024 || geometry.block.z != 1 || threads % 32 != 0)
            fail("block of no whole warps");
        const auto& grid = geometry.grid;
        if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535) fail("grid out of range");
        if (geometry.shared_bytes > 227 * 1024) fail("more shared memory than there is");
        const std::int64_t blocks = static_cast<std::int64_t>(grid.x) * grid.y * grid.z;
        const bool backwards = counts_.launches % 2 == 0;
        for (std::int64_t i = 0; i < blocks; ++i) {
            const std::int64_t at = backwards ? blocks - 1 - i : i;
            run_block(geometry, {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                                 static_cast<unsigned>(at / grid.x / grid.y)});
        }
    }

    Thread& current() { return *current_; }
    /// To meet at: all of the block have to be there, though a GPU would do with those that have not returned.
    Meeting& block() {
        if (block_.members != static_cast<int>(warps_.size()) * 32)
            fail("a barrier of a block that some threads have left");
        return block_;
    }
    unsigned char* shared() { return shared_.data(); }
    bool any_[2] = {false, false};

    /// Returns the generation that was met in.
    std::int64_t meet(Meeting& meeting) {
        const std::int64_t generation = meeting.generation;
        if (++meeting.arrived == meeting.members) {
            meeting.arrived = 0;
            ++meeting.generation;
        } else {
            current_->waits_for = &meeting;
            current_->waits_past = generation;
            pause();
        }
        return generation;
    }

    void pause() {
        if (_setjmp(current_->where) == 0) _longjmp(scheduler_, 1);
    }

    [[noreturn]] void fail(const char* why) {
        std::fprintf(stderr, "emulated kernel %s: %s\n", name_, why);
        std::abort();
    }

  private:
    static void enter();
    void run_thread();

    void run_block(const backend::cuda::Geometry& geometry, Index block) {
        ++counts_.blocks;
        const int count = static_cast<int>(geometry.block.x * geometry.block.y);
        shared_.assign(shared_bytes_ + kGuardBytes, static_cast<unsigned char>(kNanByte));
        std::fill_n(shared_.begin() + static_cast<std::ptrdiff_t>(shared_bytes_), kGuardBytes, kGuardByte);
        block_ = {count, 0, 0};
        any_[0] = any_[1] = false;
        warps_ = std::vector<Warp>(static_cast<std::size_t>(count / 32));
        while (static_cast<int>(threads_.size()) < count) {
            threads_.push_back(std::make_unique<Thread>());
            Thread& thread = *threads_.back();
            thread.stack = std::make_unique<std::byte[]>(kStackBytes);
            getcontext(&thread.context);
            thread.context.uc_stack.ss_sp = thread.stack.get();
            thread.context.uc_stack.ss_size = kStackBytes;
            makecontext(&thread.context, &Emulator::enter, 0);
        }
        for (int i = 0; i < count; ++i) {
            Thread& thread = *threads_[static_cast<std::size_t>(i)];
            const unsigned at = static_cast<unsigned>(i);
            thread.place = {{at % geometry.block.x, at / geometry.block.x, 0},
                            block,
                            {geometry.block.x, geometry.block.y, 1},
                            {geometry.grid.x, geometry.grid.y, geometry.grid.z}};
            thread.warp = &warps_[static_cast<std::size_t>(i / 32)];
            thread.warp->meeting.members++;
            thread.lane = i % 32;
            thread.finished = false;
            thread.waits_for = nullptr;
            thread.open.clear();
            thread.committed.clear();
        }
        schedule(count);
        for (std::size_t i = 0; i < kGuardBytes; ++i)
            if (shared_[shared_bytes_ + i] != kGuardByte) fail("wrote past its shared memory");
    }

    /// Warps one after the other, in an order that differs from block to block, each as far as it gets.
    void schedule(int count) {
        const int warps = count / 32;
        const int start = static_cast<int>(counts_.blocks * 7 % warps), step = counts_.blocks % 2 == 0 ? 1 : warps - 1;
        int left = count;
        while (left > 0) {
            bool moved = false;
            for (int w = 0; w < warps; ++w) {
                const int warp = (start + w * (step == 0 ? 1 : step)) % warps;
                for (bool again = true; again;) {
                    again = false;
                    for (int lane = 0; lane < 32; ++lane) {
                        Thread& thread = *threads_[static_cast<std::size_t>(warp * 32 + lane)];
                        if (thread.finished || !ready(thread)) continue;
                        thread.waits_for = nullptr;
                        resume(thread);
                        moved = again = true;
                        if (thread.finished) --left;
                    }
                }
            }
            if (!moved && left > 0) fail("threads wait for others that never come");
        }
    }
    void resume(Thread& thread) {
        current_ = &thread;
        if (_setjmp(scheduler_) != 0) return;
        if (thread.begun) _longjmp(thread.where, 1);
        thread.begun = true;
        setcontext(&thread.context);
    }
    static bool ready(const Thread& thread) {
        return thread.waits_for == nullptr || thread.waits_for->generation > thread.waits_past;
    }

    const char* name_ = "";
    const std::function<void()>* body_ = nullptr;
    std::size_t shared_bytes_ = 0;
    std::vector<unsigned char> shared_;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Warp> warps_;
    Meeting block_;
    jmp_buf scheduler_;
    Thread* current_ = nullptr;
    Counts counts_;
};

Emulator& emulator() {
    static thread_local Emulator the;
    return the;
}

void Emulator::enter() {
    for (;;) {
        emulator().run_thread();
        emulator().pause();
    }
}

void Emulator::run_thread() {
    Emulator& all = *this;
    Thread& thread = all.current();
    (*all.body_)();
    if (!thread.open.empty()) all.fail("copies that were never committed");
    for (const auto& group : thread.committed)
        if (!group.empty()) all.fail("copies that were never waited for");
    thread.finished = true;
    // Others of its warp that wait for it would wait for ever: a return is a change of who is counted.
    --all.block_.members;
    --thread.warp->meeting.members;
    if (all.block_.arrived > 0) all.fail("a thread returned while others wait at the block's barrier");
    if (thread.warp->meeting.arrived > 0) all.fail("a lane returned while others wait in its warp");
}

void run_copy(const PendingCopy& copy) {
    if (copy.there) {
        std::memcpy(copy.to, copy.from, 16);
    } else {
        std::memset(copy.to, 0, 16);
    }
}

}  // namespace

const Place& place() {
    return emulator().current().place;
}
unsigned char* shared_memory() {
    return emulator().shared();
}

void block_barrier() {
    emulator().meet(emulator().block());
}
bool block_any(bool value) {
    Emulator& all = emulator();
    const std::int64_t generation = all.block().generation;
    bool& any = all.any_[generation % 2];
    if (all.block().arrived == 0) any = false;
    any = any || value;
    all.meet(all.block());
    return any;
}

const Slot* warp_exchange(const void* value, std::size_t bytes) {
    Thread& thread = emulator().current();
    Slot* const slots = thread.warp->slots[thread.warp->meeting.generation % 2];
    std::memcpy(slots[thread.lane].bytes, value, bytes);
    if (thread.warp->meeting.members != 32) emulator().fail("a collective of a warp that some lanes have left");
    emulator().meet(thread.warp->meeting);
    return slots;
}

void copy_later(void* to, const void* from, bool there) {
    if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
        emulator().fail("a copy of 16 bytes that is not aligned");
    std::memset(to, kNanByte, 16);
    emulator().current().open.push_back({to, from, there});
}
void commit_copies() {
    Thread& thread = emulator().current();
    thread.committed.push_back(std::move(thread.open));
    thread.open.clear();
}
void wait_for_copies(int groups) {
    Thread& thread = emulator().current();
    while (static_cast<int>(thread.committed.size()) > groups) {
        for (const PendingCopy& copy : thread.committed.front()) run_copy(copy);
        thread.committed.pop_front();
    }
}

void run_launch(const char* name, const backend::cuda::Geometry& geometry, const std::function<void()>& thread) {
    emulator().launch(name, geometry, thread);
}
std::function<void(backend::cuda::Stream, std::function<void()>)>& stream_order() {
    static std::function<void(backend::cuda::Stream, std::function<void()>)> order;
    return order;
}
void use_streams(std::function<void(backend::cuda::Stream, std::function<void()>)> add) {
    stream_order() = std::move(add);
}
int own_lane() {
    return emulator().current().lane;
}

}  // namespace headway::emulation

namespace headway::backend::cuda {

void emulated_launch(const char* name, const Geometry& geometry, Stream stream, std::function<void()> thread) {
    if (stream == nullptr || !emulation::stream_order()) return emulation::run_launch(name, geometry, thread);
    emulation::stream_order()(
        stream, [name, geometry, thread = std::move(thread)] { emulation::run_launch(name, geometry, thread); });
}

namespace {

float upper_half(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
float low_of(std::uint32_t pair) {
    return upper_half(pair << 16);
}
float high_of(std::uint32_t pair) {
    return upper_half(pair & 0xffff0000u);
}

struct Fragments {
    std::uint32_t a[4];
    std::uint32_t b[2];
};

void load_rows(std::uint32_t (&to)[4], const Bf16* row, bool transposed) {
    const auto* slots = emulation::warp_exchange(&row, sizeof row);
    const int lane = emulation::own_lane();
    for (int matrix = 0; matrix < 4; ++matrix) {
        std::uint16_t pair[2];
        for (int i = 0; i < 2; ++i) {
            const int at_row = transposed ? lane % 4 * 2 + i : lane / 4,
                      column = transposed ? lane / 4 : lane % 4 * 2 + i;
            const auto* start = emulation::of_lane<const std::uint16_t*>(slots, matrix * 8 + at_row);
            pair[i] = start[column];
        }
        to[matrix] = static_cast<std::uint32_t>(pair[1]) << 16 | pair[0];
    }
}

}  // namespace

void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    const Fragments own = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    const auto* slots = emulation::warp_exchange(&own, sizeof own);
    const int lane = emulation::own_lane(), group = lane / 4, within = lane % 4;
    // What this lane needs of the others: a's rows group and group + 8, b's columns 2 within and the next.
    float of_a[2][16], of_b[2][16];
    for (int pair = 0; pair < 8; ++pair) {
        const auto row = emulation::of_lane<Fragments>(slots, group * 4 + pair % 4);
        for (int half = 0; half < 2; ++half) {
            const auto column = emulation::of_lane<Fragments>(slots, (within * 2 + half) * 4 + pair % 4);
            of_a[half][2 * pair] = low_of(row.a[pair / 4 * 2 + half]);
            of_a[half][2 * pair + 1] = high_of(row.a[pair / 4 * 2 + half]);
            of_b[half][2 * pair] = low_of(column.b[pair / 4]);
            of_b[half][2 * pair + 1] = high_of(column.b[pair / 4]);
        }
    }
    for (int i = 0; i < 4; ++i) {
        float sum = 0.0f;
        for (int k = 0; k < 16; ++k) sum += of_a[i / 2][k] * of_b[i % 2][k];
        c[i] += sum;
    }
}

void load_matrices(std::uint32_t (&to)[4], const Bf16* row) {
    load_rows(to, row, false);
}
void load_matrices_transposed(std::uint32_t (&to)[4], const Bf16* row) {
    load_rows(to, row, true);
}

}  // namespace headway::backend::cuda
