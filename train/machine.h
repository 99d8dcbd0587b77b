#pragma once
// What a run was computed on.
#include <string>

namespace onestep::train {

/// `AMD EPYC 7763, avx2, 2 threads`: processor, instruction set and threads in use.
std::string describe_machine();

/// The memory that this process has in use, in MiB; 0 where the system does not say (it is Linux that does).
double memory_mib();

/// The most memory this process had in use, in MiB.
double peak_memory_mib();

}  // namespace onestep::train
