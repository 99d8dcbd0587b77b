#pragma once
// The machine: its processor and its memory.
#include <cstdint>
#include <filesystem>
#include <string>

namespace onestep {

/// `AMD EPYC 7763`, where the system says so (Linux does).
std::string processor_name();

/// The memory that this process has in use, in MiB; 0 where the system does not say (it is Linux that does).
double memory_mib();

/// The most memory this process had in use, in MiB.
double peak_memory_mib();

/// The least of what the system can give, what the control group of this process leaves (Linux, cgroup v1 and v2) and what its
/// limits leave (RLIMIT_AS). `root` has proc/ and sys/.
int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace onestep
