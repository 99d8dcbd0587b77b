#pragma once
// Command lines with unusable arguments: every command, every kind of path that is not a file or not a run. hostile_test.cpp
// runs and counts them.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/process.h"

namespace onestep::testing {

using Strings = std::vector<std::string>;

/// A folder with a trained run and things that no command can use.
class Place {
 public:
  Place();

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& bytes) const;

  /// The program; after 20 s it is as good as hanging (status 124).
  static ProcessResult run(Strings arguments);

 private:
  TemporaryFolder folder_;
};

/// Arguments, and what the sentence that refuses them names first: the argument, or the file and the place in it. The sentences
/// themselves are pinned where each is made.
struct CommandLine {
  Strings arguments;
  std::string named;
  std::string replaced = "", by = "";  ///< A file of the run that is a link to another thing of the place then.
};
using CommandLines = std::vector<CommandLine>;

inline const std::string kLong(5000, 'x');

CommandLines files_that_are_none(const Place& place);
CommandLines configs_that_are_none(const Place& place);
CommandLines runs_that_are_none(const Place& place);
CommandLines other_arguments(const Place& place);
CommandLines replaced_files(const Place& place);

CommandLines option_values(const Place& place);
CommandLines too_little_or_too_much(const Place& place);
CommandLines values_of_keys(const Place& place);

}  // namespace onestep::testing
