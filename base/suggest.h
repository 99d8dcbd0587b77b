#pragma once
// "Did you mean ...?"
#include <string>
#include <string_view>
#include <vector>

namespace onestep {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` was most likely meant to be: begun by it (3 letters or more), or at most a third of its letters
/// away; empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// ` (did you mean NAME?)` for messages, or `otherwise` where `name` is empty.
std::string did_you_mean(const std::string& name, std::string_view otherwise = "");

}  // namespace onestep
