#pragma once
// What tests of all kinds need: texts, whole files, and the sentence of an error.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace onestep::testing {

bool contains(const std::string& text, const std::string& part);

/// All bytes of a file; "" where there is none.
std::string read(const std::filesystem::path& path);

/// Makes the file, or replaces what it held.
void write(const std::filesystem::path& path, const std::string& bytes);

/// Whether the tests are those of continuous integration, which repeat more: whether CI is set.
bool in_ci();

/// Says in one line that a test of some seconds runs only where CI is set, where it is not.
bool skips_without_ci();

// Regular expressions are ECMAScript's; <regex> itself takes the compiler seconds a file.

/// Every match, in which ^ and $ stand for the ends of lines: the whole and its groups.
std::vector<std::vector<std::string>> all_matches(const std::string& text, const std::string& pattern);
/// The first groups of all matches.
std::set<std::string> matches(const std::string& text, const std::string& pattern);
/// Whether there is a match in which ^ and $ stand for the ends of the text.
bool has_match(const std::string& text, const std::string& pattern);

/// Compares what an error says with `wanted`: one test pins a whole sentence, every other one says where the error is (a file,
/// a pointer, an argument) in a text that ends with ": ".
void expect_refusal(const std::string& refusal, const std::string& wanted);

/// A message that begins with `FOLDER/`, without that.
std::string without_folder(const std::string& message, const std::filesystem::path& folder);

/// What `action` says when it throws an E; "" if it throws nothing.
template <class E = Error, class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace onestep::testing
