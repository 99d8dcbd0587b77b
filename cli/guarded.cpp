#include "cli/guarded.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "base/error.h"
#include "base/open_file.h"
#include "base/utf8.h"

namespace onestep::cli {
namespace {

constexpr int kBadInput = 2;

// Names and values in a message may come from a file: they must not do anything to the terminal.
void complain(const std::string& message) { std::cerr << "onestep: " << escaped(message) << '\n'; }

/// Opens what is closed of the descriptors 0 to 2 on /dev/null: the next file opened would get its number, and messages.
/// Standard input is opened for writing, so that reading it still fails.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_WRONLY) != fd) ::_exit(kBadInput);
}

constexpr const char* kOutOfMemory = "onestep: out of memory (try a smaller model, batch or context)\n";

#if defined(__linux__)
// Before any static object is made: one that finds no memory would end the program with the words of the standard library.
void need_memory_to_start() {
  void* volatile block = std::malloc(size_t{64} << 10);
  if (block == nullptr) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kOutOfMemory, std::strlen(kOutOfMemory));
    ::_exit(kBadInput);
  }
  std::free(block);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = need_memory_to_start;
#endif

}  // namespace

int guarded(const std::function<int()>& work) {
  open_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error of the write, with its one sentence
  try {
    kernels::num_threads();  // refuses a wrong OMP_NUM_THREADS
    kernels::active_isa();   // and a wrong ONESTEP_ISA
    const int status = work();
    if (!std::cout.flush()) throw IoError("stdout: cannot be written (disk full or closed?)");
    return status;
  } catch (const std::bad_alloc&) {
    std::cerr << kOutOfMemory;
  } catch (const std::filesystem::filesystem_error& error) {
    complain(error.path1().string() + ": " + error_reason(error.code().value()));
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return kBadInput;
}

std::filesystem::path program_folder(const std::string& needed_by) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  ONESTEP_CHECK(ConfigError, !error, needed_by, ": where this program is installed is known on Linux alone");
  return program.parent_path();
}

}  // namespace onestep::cli
