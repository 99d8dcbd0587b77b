#pragma once
// What the programs of the project do around their work.
#include <filesystem>
#include <functional>
#include <string>

namespace onestep::cli {

/// The work of a main(): its result is the exit status. Every failure becomes one sentence on stderr and exit status 2, one of
/// writing to stdout, too.
int guarded(const std::function<int()>& work);

/// The folder of this program's file. Throws ConfigError naming `needed_by` where that is not known.
std::filesystem::path program_folder(const std::string& needed_by);

}  // namespace onestep::cli
