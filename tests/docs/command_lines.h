#pragma once
// The command lines of pages, run in a folder with what they take for granted.
#include <fstream>
#include <sstream>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"

namespace onestep::testing {

/// A folder that looks like this checkout with its build, a text called FILE and a GPT-2 called gpt2 in it.
class CheckoutFolder {
 public:
  CheckoutFolder() {
    namespace fs = std::filesystem;
    for (const auto& entry : fs::directory_iterator(ONESTEP_SOURCE_DIR)) {
      const std::string name = entry.path().filename();
      if (name != "build" && name != "runs" && name != "onestep") fs::create_symlink(entry.path(), path() / name);
    }
    fs::create_directory(path() / "build");
    fs::create_symlink(ONESTEP_BINARY_DIR, path() / "build/release");
    fs::create_symlink(ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2", path() / "gpt2");
    std::ofstream text(path() / "FILE");
    for (int i = 0; i < 300; ++i) text << "Your journey starts with one step.\n";
  }

  const std::filesystem::path& path() const { return folder_.path(); }

  /// Runs `script` after `prelude`, which defines `onestep` and other commands as functions that cut work short.
  ProcessResult run(const std::string& prelude, const std::string& script) const {
    return run_process({"bash", "-ec", prelude + script}, {.directory = path(), .environment = {{"HOME", path()}}});
  }

 private:
  TemporaryFolder folder_;
};

/// The lines in the blocks of one language of a page.
inline std::string code_lines(const std::string& page, const std::string& language) {
  std::ifstream in(std::filesystem::path(ONESTEP_SOURCE_DIR) / page);
  std::string lines;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```"))
      inside = line == "```" + language;
    else if (inside)
      lines += line + '\n';
  }
  return lines;
}

/// Those of sh; `./onestep` is called `onestep`, `bench/compare.py` `compare` there.
inline std::string command_lines(const std::string& page) {
  std::istringstream in(code_lines(page, "sh"));
  std::string script;
  for (std::string line; std::getline(in, line);) {
    for (size_t at = 0; (at = line.find("./onestep ", at)) != std::string::npos;) line.erase(at, 2);
    if (line.starts_with("bench/compare.py")) line.replace(0, 16, "compare");
    script += line + '\n';
  }
  return script;
}

}  // namespace onestep::testing
