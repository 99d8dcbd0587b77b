// Files of examples: a CSV and JSON lines, separated by a NUL byte. Refused with ConfigError or IoError, or read.
#include "base/error.h"
#include "tests/fuzz/input.h"
#include "train/data/classification.h"
#include "train/data/instructions.h"

using namespace onestep;

namespace {

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const ConfigError&) {
  } catch (const IoError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFolder folder("a.csv", "a.jsonl");
  folder.fill(fuzz::text_of(data, size));
  const std::string csv = (folder.path() / "a.csv").string(), lines = (folder.path() / "a.jsonl").string();
  const train::ByteTokenizer bytes;
  const train::ChatTemplate chat = train::make_chat_template("plain");
  try_to([&] {
    for (const auto& each : train::read_labelled_texts(csv, {})) fuzz::require(!each.label.empty(), "a label is not empty");
  });
  try_to([&] { train::read_labelled_texts(lines, {}); });
  try_to([&] {
    for (const train::Dialogue& dialogue : train::read_dialogues(lines)) {
      const train::Example example = train::encode_dialogue(dialogue, chat, bytes);
      fuzz::require(example.inputs.size() == example.targets.size(), "a target for every input");
    }
  });
  return 0;
}
