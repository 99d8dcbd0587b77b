#include "tests/support.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>

namespace onestep::testing {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

bool in_ci() {
  const char* value = std::getenv("CI");
  return value != nullptr && *value != '\0';
}

bool skips_without_ci() {
  if (!in_ci()) MESSAGE("skipped: it takes long (CI=1 runs it)");
  return !in_ci();
}

std::vector<std::vector<std::string>> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::vector<std::string>> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    found.emplace_back(it->begin(), it->end());
  return found;
}

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  for (const std::vector<std::string>& match : all_matches(text, pattern)) found.insert(match[1]);
  return found;
}

bool has_match(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

void expect_refusal(const std::string& refusal, const std::string& wanted) {
  if (wanted.ends_with(": "))
    CHECK(refusal.substr(0, wanted.size()) == wanted);
  else
    CHECK(refusal == wanted);
}

std::string without_folder(const std::string& message, const std::filesystem::path& folder) {
  const std::string prefix = folder.string() + "/";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

}  // namespace onestep::testing
