// Instead of libFuzzer: a target on the files of a folder, as they are, and with each of their first bytes inverted, or cut off
// there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(const std::string& input) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size()); }

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t kMostChanged = 400;  // bytes of a file
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argc == 2 ? argv[1] : "")) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::string input(std::istreambuf_iterator<char>(file), {});
    run(input);
    for (size_t i = 0; i < std::min(input.size(), kMostChanged); ++i) {
      input[i] = static_cast<char>(~input[i]);
      run(input);
      input[i] = static_cast<char>(~input[i]);
      run(input.substr(0, i));
    }
    ++inputs;
  }
  std::printf("%d files\n", inputs);
  return inputs > 0 ? 0 : 1;
}
