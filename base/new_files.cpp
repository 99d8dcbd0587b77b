#include "base/new_files.h"

#include <utility>

#include "base/error.h"
#include "base/open_file.h"
#include "base/write_file.h"

namespace onestep {

namespace fs = std::filesystem;

NewFiles::NewFiles(fs::path folder) : folder_(std::move(folder)), temporary_(temporary_path(folder_ / "new")) {
  std::error_code ignored;
  made_folder_ = !fs::exists(folder_, ignored);
  make_folders(folder_);
  make_folders(temporary_);
}

NewFiles::~NewFiles() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  if (made_folder_) fs::remove(folder_, ignored);  // if nothing is in it
}

fs::path NewFiles::add(const std::string& name) {
  check_replaceable(folder_ / name);
  added_.push_back(name);
  return temporary_ / name;
}

void NewFiles::add(const std::string& name, std::string_view text) {
  OutputFile file(add(name).string());
  file.write(text);
  file.finish();
}

void NewFiles::remove(const std::string& name) {
  check_replaceable(folder_ / name);
  removed_.push_back(name);
}

void NewFiles::finish() {
  for (const std::string& name : removed_) {
    std::error_code error;
    fs::remove(folder_ / name, error);
    ONESTEP_CHECK(IoError, !error, (folder_ / name).string(), ": cannot be deleted: ", error_reason(error.value()));
  }
  if (!removed_.empty()) sync_folder(folder_);  // no crash leaves them beside what is new
  for (const std::string& name : added_) rename_path(temporary_ / name, followed(folder_ / name));
  sync_folder(folder_);
}

}  // namespace onestep
