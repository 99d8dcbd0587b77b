#pragma once
// Where what nodes save goes while a checkpointed function runs.

namespace onestep {

class Node;

/// While it is set, gets every node that this thread records, with what the node saved, and may take that away.
class SavedTaker {
 public:
  virtual ~SavedTaker() = default;
  virtual void take(Node& node) = 0;

  /// That of this thread, or nullptr.
  static SavedTaker* active();
  /// Returns the one that was set before.
  static SavedTaker* set_active(SavedTaker* taker);
};

}  // namespace onestep
