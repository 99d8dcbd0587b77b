// Text that stops: what is shown never holds a stop string, nor a part of one that came whole later.
#include "train/text/stopping_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace onestep::train;

namespace {

const ByteTokenizer kBytes;

struct Shown {
  std::string text;
  bool stopped = false;
};

/// All that is shown of the bytes of `text`, and none of it too early: at any time it is a beginning of what is shown in the
/// end.
Shown shown(const std::string& text, const Stops& stops) {
  StoppingText stopping(&kBytes, stops);
  std::string all;
  for (const char c : text) all += stopping.add(static_cast<unsigned char>(c));
  all += stopping.finish();
  return {all, stopping.stopped()};
}

}  // namespace

TEST_CASE("stopping text: it ends before the first stop string") {
  const Stops stops{.strings = {"END", "\n\n"}};
  const auto check = [&](const std::string& text, const std::string& want, bool stopped) {
    const Shown got = shown(text, stops);
    CHECK(got.text == want);
    CHECK(got.stopped == stopped);
  };
  check("one END two", "one ", true);
  check("one\n\ntwo END", "one", true);
  check("ENENDEN", "EN", true);
  check("one EN", "one EN", false);
  check("one\ntwo", "one\ntwo", false);
  check("", "", false);
  check("END", "", true);
}

TEST_CASE("stopping text: what may become a stop string is held back, and nothing else") {
  const Stops stops{.strings = {"aab"}};
  StoppingText text(&kBytes, stops);
  CHECK(text.add('x') == "x");
  CHECK(text.add('a') == "");
  CHECK(text.add('a') == "");
  CHECK(text.add('a') == "a");
  CHECK(text.add('c') == "aac");
  CHECK(text.add('a') == "");
  CHECK(text.finish() == "a");
}

TEST_CASE("stopping text: it agrees with a search in the whole text") {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto word = [&](size_t length) {
      std::string out;
      while (out.size() < length) out += "ab"[random() % 2];
      return out;
    };
    const Stops stops{.strings = {word(1 + random() % 4), word(1 + random() % 5)}};
    const std::string text = word(random() % 12);
    const size_t first = std::min(text.find(stops.strings[0]), text.find(stops.strings[1]));
    const Shown got = shown(text, stops);
    CHECK(got.stopped == (first != std::string::npos));
    CHECK(got.text.size() <= text.size());
    CHECK(text.starts_with(got.text));
    // Of two stop strings the one that is whole first ends the text: it may begin later.
    CHECK((got.stopped ? got.text.size() >= first : got.text == text));
    for (const std::string& stop : stops.strings) CHECK(got.text.find(stop) == std::string::npos);
  }
}

TEST_CASE("stopping text: it ends at a stop token, and with the character that was begun") {
  const Stops stops{.ids = {'!', '?'}};
  CHECK(shown("so?no", stops).text == "so");
  CHECK(shown("so?no", stops).stopped);
  CHECK(shown("\xc3\xa9!", stops).text == "\xc3\xa9");
  CHECK(shown("\xc3!", stops).text == "\xef\xbf\xbd");
}

TEST_CASE("stopping text: without a tokenizer ids are words") {
  const Stops stops{.ids = {7}};
  StoppingText text(nullptr, stops);
  CHECK(text.follow(3) == "3");
  CHECK(text.add(4) == " 4");
  CHECK(text.add(7) == "");
  CHECK(text.stopped());
  CHECK(text.add(5) == "");
  CHECK(text.finish() == "");
}
