#pragma once
// A transaction on the files of one folder.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace onestep {

/// Files of one folder that replace those of the same names, and others, all together or, when one cannot be written (a disk
/// gets full), not at all: they are written into a folder `.new.tmp` in it and moved when all are there.
class NewFiles {
 public:
  /// Makes the folder if there is none.
  explicit NewFiles(std::filesystem::path folder);
  /// Deletes what was not moved, and a folder that it made and that is empty.
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  /// Where to write what will be called `name`. Throws IoError for a name that is there and no regular file.
  std::filesystem::path add(const std::string& name);
  /// Writes all of a file.
  void add(const std::string& name, std::string_view text);
  /// finish() deletes `name` if it is there. Throws IoError for one that is no regular file.
  void remove(const std::string& name);
  /// Deletes what is to go, then moves all to their place, in the order in which they were added, durably.
  void finish();

 private:
  std::filesystem::path folder_, temporary_;
  bool made_folder_ = false;
  std::vector<std::string> added_, removed_;
};

}  // namespace onestep
