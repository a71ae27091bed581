#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Memory that processes of one machine share, and how the members of a group meet in it.
namespace headway::backend {

/// Tells whether two processes can share memory: the same in both.
std::string machine_identity();

class SharedMemory {
  public:
    /// Zeroes, taken from the system when they are touched. Throws std::system_error.
    static std::shared_ptr<SharedMemory> create(std::size_t bytes);
    /// What another process created and named. Throws std::system_error.
    static std::shared_ptr<SharedMemory> open(const std::string& name, std::size_t bytes);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    /// By which other processes of the user open it while this one has it.
    const std::string& name() const { return name_; }
    std::byte* data() const { return data_; }

  private:
    SharedMemory(int descriptor, std::size_t bytes);
    int descriptor_;
    std::size_t bytes_;
    std::byte* data_;
    std::string name_;
};

/// Rounds of one group: in each every member writes into its slot, all meet, and everybody reads all slots. What is
/// read stays until the member that reads comes to the meeting after the next one.
class SharedRounds {
  public:
    static constexpr std::size_t kSlotBytes = 512 << 10;
    static std::size_t bytes_for(int size);

    /// `offset` into `memory`: bytes_for(size) zeroes that only this group uses.
    SharedRounds(std::shared_ptr<SharedMemory> memory, std::size_t offset, int rank, int size);
    /// Leaves the group: nobody waits for this member any more.
    ~SharedRounds();
    SharedRounds(const SharedRounds&) = delete;
    SharedRounds& operator=(const SharedRounds&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    /// Of the coming round, this member's.
    std::byte* slot() const { return slot_at(round_, rank_); }
    /// Of the round in which all have met last.
    const std::byte* slot_of(int member) const { return slot_at(round_ - 1, member); }

    enum class Meeting { kMet, kStopped, kLate, kLeft, kDisagree };
    /// Waits for all members, without spinning. `call` has to be the same in all.
    Meeting meet(std::uint64_t call, std::chrono::milliseconds timeout);
    /// After kLate or kLeft: a member that had not come, or had left before.
    int missing() const;
    /// After kDisagree: a member with another call than the first one's.
    int disagreeing() const;
    /// Ends all meetings of the group, also later ones. Any thread.
    void stop();

  private:
    struct Head;
    Head& head() const;
    std::byte* slot_at(std::uint32_t round, int member) const;

    std::shared_ptr<SharedMemory> memory_;
    std::size_t offset_;
    int rank_;
    int size_;
    std::uint32_t round_ = 0;  ///< meetings so far, modulo 2^30
    std::atomic<bool> stopped_{false};
};

}  // namespace headway::backend
