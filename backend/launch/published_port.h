#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "backend/launch/process_rank.h"

/// How processes of one launch on one machine find the port of rank 0: it listens at a free one and writes its number
/// into a file of the user whose name only this launch has.
namespace headway::backend {

/// A socket that listens at a free port of the loopback interface. Throws BackendError.
RendezvousPoint listen_locally();

/// `launch`: what only processes of this launch know; empty: they are children of one process.
std::filesystem::path publication_file(const std::string& launch);
MeetingPoint publish_port(const std::filesystem::path& file);
/// Waits for it. Throws ConfigError at the timeout.
MeetingPoint published_port(const std::filesystem::path& file, std::chrono::milliseconds timeout);

}  // namespace headway::backend
