// The ids of strings, for tests/pretrained/tokenizers_differential: a list of strings in JSON on stdin -> a list of ids a line.
//   encode_strings FOLDER
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "train/text/tokenizer.h"

using namespace onestep;

int main(int, char** arguments) {
  try {
    const auto tokenizer = train::open_tokenizer(arguments[1]);
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    for (const nlohmann::json& string : nlohmann::json::parse(text))
      std::cout << nlohmann::json(tokenizer->encode(string.get_ref<const std::string&>())).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
