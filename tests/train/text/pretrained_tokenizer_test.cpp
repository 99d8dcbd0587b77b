// Tokenizers in the shapes of published models' against the tokenizers library (tests/goldens/hf_tokenizers, hf_tokenizers.py).
#include "train/text/pretrained_tokenizer.h"

#include <doctest/doctest.h>

#include <functional>

#include "base/utf8.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "tests/support.h"
#include "train/text/nfc.h"

using namespace onestep;
using namespace onestep::train;
using nlohmann::json;
using onestep::testing::golden;
using onestep::testing::read;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = ONESTEP_SOURCE_DIR "/tests/goldens/hf_tokenizers";

const std::vector<std::string> kNames{"gpt2", "llama2", "llama2_normalized", "llama3", "mistral", "qwen2"};

std::unique_ptr<Tokenizer> open(const std::string& name) { return open_tokenizer((kGoldens / name).string()); }

/// The ids of a text that comes in parts, each `step` bytes longer than what the one before left.
std::vector<int64_t> encode_in_parts(const Tokenizer& tokenizer, const std::string& text, size_t step) {
  std::vector<int64_t> ids;
  size_t taken = 0;
  for (size_t end = step;; end += step) {
    const bool last = end >= text.size();
    const std::string_view part = std::string_view(text).substr(taken, std::min(end, text.size()) - taken);
    taken += tokenizer.encode_part({part, last, static_cast<int64_t>(taken)}, ids);
    if (last) return ids;
  }
}

/// How a changed tokenizer.json is refused, without the name of the source.
std::string error(const std::string& name, const std::function<void(json&)>& change) {
  json root = json::parse(read(kGoldens / name / "tokenizer.json"));
  change(root);
  return testing::refusal<IoError>([&] { parse_tokenizer(root.dump(), "t.json"); });
}

}  // namespace

TEST_CASE("pretrained tokenizer: ids are those of the tokenizers library on strings of many scripts") {
  const json& wanted = golden("hf_tokenizers/ids.json");
  for (const std::string& name : kNames) {
    CAPTURE(name);
    const auto tokenizer = open(name);
    REQUIRE(wanted["strings"].size() == wanted["ids"][name].size());
    for (size_t i = 0; i < wanted["strings"].size(); ++i) {
      const auto text = wanted["strings"][i].get<std::string>();
      CAPTURE(quote(text));
      CHECK(json(tokenizer->encode(text)) == wanted["ids"][name][i]);
    }
  }
}

TEST_CASE("pretrained tokenizer: decoded texts are those of the tokenizers library") {
  const json& wanted = golden("hf_tokenizers/ids.json");
  for (const std::string& name : kNames) {
    CAPTURE(name);
    const auto tokenizer = open(name);
    size_t compared = 0;
    for (size_t i = 0; i < wanted["decoded"][name].size(); ++i) {
      const auto ids = wanted["ids"][name][i].get<std::vector<int64_t>>();
      const auto text = wanted["decoded"][name][i].get<std::string>();
      if (text.find("\xEF\xBF\xBD") != std::string::npos) continue;  // bytes that are no UTF-8 stay what they are here
      CHECK(tokenizer->decode(ids) == text);
      ++compared;
    }
    CHECK(compared > 30);
  }
}

TEST_CASE("pretrained tokenizer: a text in parts gets the ids of the whole") {
  std::string text;
  for (const json& string : golden("hf_tokenizers/ids.json")["strings"]) text += string.get<std::string>() + " then\nx ";
  for (const std::string& name : kNames) {
    CAPTURE(name);
    const auto tokenizer = open(name);
    const std::vector<int64_t> whole = tokenizer->encode(text);
    for (const int step : {1, 7, 100, 1000}) CHECK(encode_in_parts(*tokenizer, text, static_cast<size_t>(step)) == whole);
  }
}

TEST_CASE("pretrained tokenizer: bytes that are no UTF-8 come back") {
  const std::string text =
      "a\xff\xfe"
      "b \xe5\x8d z\xc0";
  for (const char* const name : {"gpt2", "llama2", "llama3", "mistral", "qwen2"}) {
    CAPTURE(name);
    const auto tokenizer = open(name);
    CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  }
}

TEST_CASE("pretrained tokenizer: it travels with a run as the file that it was read from") {
  for (const std::string& name : kNames) {
    const auto tokenizer = open(name);
    CHECK(tokenizer->kind() == TokenizerKind::bpe);
    CHECK(tokenizer->to_json() == read(kGoldens / name / "tokenizer.json"));
    CHECK(parse_tokenizer(tokenizer->to_json(), "t.json")->encode("one step") == tokenizer->encode("one step"));
  }
  CHECK(open("llama2")->prompt_prefix() == std::vector<int64_t>{1});
  CHECK(open("llama3")->prompt_prefix() == open("llama3")->encode("<|begin_of_text|>"));
  CHECK(open("qwen2")->prompt_prefix().empty());
}

TEST_CASE("pretrained tokenizer: a file that asks for something else is refused with its key") {
  CHECK(error("qwen2", [](json&) {}) == "");
  CHECK(error("qwen2", [](json& t) { t["model"]["type"] = "WordPiece"; }) ==
        "t.json: /model/type: must be \"BPE\": got \"WordPiece\"");
  CHECK(error("qwen2", [](json& t) { t["normalizer"]["type"] = "NFKC"; }).starts_with("t.json: /normalizer/type: must be "));
  CHECK(error("qwen2", [](json& t) { t["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }) ==
        "t.json: /pre_tokenizer/pretokenizers/0/behavior: must be \"Isolated\": got \"Removed\"");
  CHECK(error("qwen2", [](json& t) {
          t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "([";
        }).starts_with("t.json: /pre_tokenizer: tokenizer: PCRE2 cannot read the pattern "));
  CHECK(error("qwen2", [](json& t) {
          t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[\\S]";
        }).starts_with("t.json: /pre_tokenizer: "));
  CHECK(error("qwen2", [](json& t) {
          t["pre_tokenizer"]["pretokenizers"] = 3;
        }).starts_with("t.json: /pre_tokenizer/pretokenizers: "));
  CHECK(error("qwen2", [](json& t) { t["decoder"]["type"] = "WordPiece"; }).starts_with("t.json: /decoder/type: "));
  CHECK(error("llama3", [](json& t) {
          t["post_processor"]["processors"][1]["special_tokens"].clear();
        }).starts_with("t.json: /post_processor/processors/1/special_tokens/<|begin_of_text|>: "));
  CHECK(error("qwen2", [](json& t) { t["model"]["vocab"].erase("\u0100"); }).starts_with("t.json: /model/"));
  CHECK(error("qwen2", [](json& t) {
          t["model"]["vocab"]["a"] = t["model"]["vocab"]["b"];
        }).starts_with("t.json: /model/vocab/b: id "));
  CHECK(error("qwen2", [](json& t) { t["model"]["vocab"]["new"] = 16'000'000; }).starts_with("t.json: /model/vocab/new: id "));
  CHECK(error("qwen2", [](json& t) { t["model"]["vocab"]["new"] = -1; }) ==
        "t.json: /model/vocab/new: must be a token id: got -1");
  CHECK(error("qwen2", [](json& t) { t["model"]["merges"].push_back("a b c"); }).starts_with("t.json: /model/merges/"));
  CHECK(error("qwen2", [](json& t) { t["model"]["merges"].push_back({"q", "zq"}); }).starts_with("t.json: /model/merges/"));
  CHECK(error("qwen2", [](json& t) { t["model"]["merges"].push_back(t["model"]["merges"][0]); }).find(" a second time") !=
        std::string::npos);
  CHECK(error("qwen2", [](json& t) { t["model"]["dropout"] = 0.1; }) == "t.json: /model/dropout: must be absent: got 0.1");
  CHECK(error("qwen2", [](json& t) {
          t["added_tokens"][0]["single_word"] = true;
        }).starts_with("t.json: /added_tokens/0/single_word: "));
  CHECK(error("qwen2", [](json& t) { t["added_tokens"][0]["content"] = ""; }).starts_with("t.json: /added_tokens/0/content: "));
  CHECK(error("qwen2", [](json& t) { t["added_tokens"][0]["id"] = 16'000'000; }).starts_with("t.json: /added_tokens/0/id: "));
  CHECK(error("qwen2", [](json& t) { t["model"] = nullptr; }).starts_with("t.json: /model: "));
}

TEST_CASE("pretrained tokenizer: a normalizer that takes added tokens away or makes a text endless does no harm") {
  const auto with_steps = [](const json& steps) {
    json root = json::parse(read(kGoldens / "llama2_normalized/tokenizer.json"));
    root["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    return root.dump();
  };
  const auto replace = [](const std::string& from, const std::string& to) {
    return json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  const std::string gone = with_steps({replace("<s>", ""), replace("\u0001", std::string(1, '\0'))});
  const auto tokenizer = parse_tokenizer(gone, "t.json");
  CHECK(tokenizer->decode(tokenizer->encode(std::string("a<s>b\0c", 7))) == std::string("ab\0c", 4));
  const std::string endless = with_steps(json(20, replace("a", "aa")));
  CHECK(testing::refusal<IoError>([&] { parse_tokenizer(endless, "t.json"); }).starts_with("t.json: /normalizer: would make "));
}

TEST_CASE("pretrained tokenizer: a pattern that matches nothing but a place separates there") {
  for (const std::string pattern : {"(?=(\\d{3})+(?!\\d))", "(?=a)", "x*", "$"}) {
    CAPTURE(pattern);
    json root = json::parse(read(kGoldens / "qwen2/tokenizer.json"));
    root["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern;
    const auto tokenizer = parse_tokenizer(root.dump(), "t.json");
    for (const std::string text : {"1234567", "aaéaa", "xxyxé"}) CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  }
}

TEST_CASE("nfc: marks are ordered and put together as Unicode says") {
  CHECK(to_nfc("plain") == "plain");
  CHECK(to_nfc("e\u0301") == "\u00e9");
  CHECK(to_nfc("\u212b") == "\u00c5");                                         // a sign that is another name of a letter
  CHECK(to_nfc("q\u0307\u0323") == "q\u0323\u0307");                           // by class
  CHECK(to_nfc("a\u0323\u0302") == "\u1ead");                                  // twice
  CHECK(to_nfc("a\u0302\u0323") == "\u1ead");                                  // whatever the order
  CHECK(to_nfc("a\u0315\u0300\u05ae\u0300b") == "\u00e0\u05ae\u0300\u0315b");  // one is blocked
  CHECK(to_nfc("\u1100\u1161\u11a8") == "\uac01");
  CHECK(to_nfc("\uac00\u11a7") == "\uac00\u11a7");  // no trailing consonant
  CHECK(to_nfc("\u0958") == "\u0915\u093c");        // excluded from composition
  CHECK(to_nfc("\U0001d15e") == "\U0001d157\U0001d165");
  CHECK(to_nfc("\u0301") == "\u0301");  // nothing to combine with
}
