// `onestep report` from outside, and its page in a browser.
#include "train/report/report.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "autograd/ops.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using namespace onestep::testing;

namespace {

const std::string kSentence = ONESTEP_SOURCE_DIR "/configs/sentence.json";

void train_run(const fs::path& run, const std::string& seed) {
  const ProcessResult result = run_onestep(
      {"train", kSentence, "--out", run.string(), "--quiet", "--set", "train.steps=30", "--set", "train.eval_every=10", "--set",
       "train.log_every=1", "--set", "train.sample_every=10", "--set", "train.histogram_every=5", "--set", "seed=" + seed});
  REQUIRE(result.status == 0);
}

// Uses the page as a reader would and leaves what was seen in the title, for --dump-dom to print.
constexpr const char* kReader = R"js(<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
const over = (what) => {
  const box = what.getBoundingClientRect();
  what.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + box.height / 2}));
};
const seen = {};
const loss = () => document.querySelector("figure[data-title=loss] svg");
seen.summary = [...document.querySelectorAll("#summary th")].map((run) => run.textContent).join("|");
seen.points = [...loss().querySelectorAll("path.curve")].map((path) => path.dataset.points).join(" ");
over(loss());
seen.hover = document.getElementById("tip").textContent.replaceAll("\n", "; ");
const linear = loss().querySelector("path.curve").getAttribute("d");
document.getElementById("log").click();
seen.log = loss().querySelector("path.curve").getAttribute("d") !== linear;
document.getElementById("smoothing").value = 0;
document.getElementById("smoothing").dispatchEvent(new Event("input"));
seen.curves = loss().querySelectorAll("path.curve").length;
const texts = (where, what) => [...where.querySelectorAll(what)].map((text) => text.textContent);
const figures = [...document.querySelectorAll("#charts figure")];
const numbers = (title, axis) => texts(figures.find((figure) => figure.dataset.title === title), `text[text-anchor=${axis}]`);
seen.steps = [...new Set(figures.map((figure) => texts(figure, "text[text-anchor=middle]").join(" ")))];
seen.lr = numbers("learning rate", "end");
seen.accuracy = numbers("accuracy", "end").every((text) => 0 <= Number(text) && Number(text) <= 1);
const map = document.querySelector(".heads svg");
over(map);
seen.map = document.getElementById("tip").textContent;
const rows = [...map.querySelectorAll(".row")], places = rows.map((row) => row.getBoundingClientRect());
seen.rows = rows.map((row) => row.textContent).join("|");
seen.columns = texts(map, ".name:not(.row)").join("|");
seen.readable = places.every((place, i) => place.left >= 0 && (i === 0 || place.top - places[i - 1].top >= 9.9));
seen.given = texts(document.getElementById("glance"), ".tokens")[0] === undefined ? "none"
  : texts(document.querySelector("#glance .tokens"), "b").join("");
const press = (where, key, shiftKey = false) => where.dispatchEvent(new KeyboardEvent("keydown", {key, shiftKey, bubbles: true}));
const looks = document.querySelector("#glance [aria-live]");
seen.glance = looks && looks.textContent;
if (looks) for (let i = 0; i < 9; ++i) press(document.querySelector("#glance .tokens"), "ArrowLeft");
seen.firstLooks = looks && looks.textContent;
seen.perplexity = texts(loss(), "text[text-anchor=start]").length > 1;
seen.differences = texts(document, "#differences td").join("|");
const spread = document.querySelectorAll("#histograms svg");
if (spread.length > 0) press(spread[spread.length - 1], "ArrowLeft");
seen.spread = document.getElementById("tip").textContent.split(":")[0];
seen.distributions = texts(document, "#histograms figcaption").join("|") + ` of ${texts(document, "#parameter option").length}`;
seen.written = texts(document, ".written h3").join("|");
press(loss(), "+");
seen.zoomed = texts(loss(), "text[text-anchor=middle]").join(" ");
press(loss(), "ArrowRight", true);
seen.moved = texts(loss(), "text[text-anchor=middle]").join(" ");
document.getElementById("reset").click();
const chartBox = loss().getBoundingClientRect(), drag = (target, type, share) => target.dispatchEvent(
  new PointerEvent(type, {clientX: chartBox.left + share * chartBox.width, clientY: chartBox.top + 20, bubbles: true}));
drag(loss(), "pointerdown", 0.5);
drag(window, "pointermove", 0.6);
drag(window, "pointerup", 1);
seen.dragged = texts(loss(), "text[text-anchor=middle]").join(" ") + (document.getElementById("reset").hidden ? " all" : "");
press(loss(), "0");
press(loss(), "ArrowRight");
seen.read = document.getElementById("tip").textContent.split("\n")[0];
const along = document.getElementById("axis");
seen.axes = texts(along, "option").join("|");
if (seen.axes.includes("tokens")) {
  along.value = "tokens";
  along.onchange();
}
seen.tokens = texts(loss(), "text[text-anchor=middle]").join(" ");
const beside = document.getElementById("beside"), maps = document.getElementById("maps");
seen.maps = maps && texts(maps, "option").join("|");
seen.sides = texts(document, ".heads figcaption").slice(0, 2).join("|");
const names = document.querySelectorAll(".legend .name"), boxes = document.querySelectorAll(".legend [type=checkbox]");
if (names.length > 1) {
  names[0].value = "the first";
  names[0].oninput();
  boxes[1].click();
}
seen.renamed = document.getElementById("title").textContent + "; " + texts(document, "#summary th:not([hidden])").join("|");
seen.left = loss().querySelectorAll("path.curve").length;
seen.address = decodeURIComponent(location.hash);
seen.samples = [...document.querySelectorAll(".sample b")].map((prompt) => prompt.textContent).join("|");
seen.parameters = document.querySelector("#parameters summary, #parameters p").textContent;
seen.wide = document.documentElement.scrollWidth > innerWidth;
document.title = JSON.stringify({...seen, errors});
</script>)js";

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (run_process({name, "--version"}).status == 0) return name;
  }
  return "";
}

// The title that the page has in the end; a console message would be in `*log`.
std::string title_in_browser(const fs::path& page, const fs::path& profile, const std::string& size, std::string* log) {
  const ProcessResult result = run_process(
      {browser(), "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile.string(), "--window-size=" + size,
       "--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=3000", "--dump-dom", "file://" + page.string()});
  for (size_t at = 0; (at = result.err.find("CONSOLE", at)) != std::string::npos; ++at)
    *log += result.err.substr(at, result.err.find('\n', at) - at) + '\n';
  const size_t begin = result.out.find("<title>") + 7;
  return result.out.substr(begin, result.out.find("</title>") - begin);
}

/// Opens the page on a desk and on a phone; `check` gets what the reader saw. Says so where there is no browser.
void check_in_browser(const fs::path& page, const std::function<void(bool desk, const std::string& title)>& check) {
  if (skips_without_ci()) return;
  if (browser().empty()) {
    MESSAGE("Chromium is not installed: the page was not opened");
    return;
  }
  std::ofstream(page, std::ios::app) << kReader;
  for (const bool desk : {true, false}) {
    CAPTURE(desk);
    std::string log;
    const std::string title = title_in_browser(page, page.parent_path() / "profile", desk ? "1200,900" : "390,800", &log);
    CAPTURE(title);
    CHECK(log == "");
    check(desk, title);
  }
}

}  // namespace

TEST_CASE("cli: report writes one page that needs nothing else") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "first";
  train_run(run, "1");
  CHECK(fs::exists(run / "report.html"));  // written by the training itself
  fs::remove(run / "report.html");
  const ProcessResult result = run_onestep({"report", run.string()});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out == (run / "report.html").string() + "\n");
  const std::string page = read(run / "report.html");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(contains(page, R"("name":"first")"));
  CHECK(contains(page, R"("name":"att.W_query.weight","shape":)"));
  CHECK(contains(page, R"("tokens":["Your","journey","starts","with","one"])"));
  CHECK(contains(page, R"("glance":{"pieces":["Your"," journey")"));
  CHECK(contains(page, R"("samples":[{"prompt":"Your journey","continuation":" )"));
  for (const char* outside : {"https:", "src=", "@import", "url(", "fetch("}) CHECK_FALSE(contains(page, outside));
  CHECK(page.find("http:") == page.rfind("http:"));  // the name of SVG's namespace
}

TEST_CASE("cli: a run with train.tensorboard writes its curves and samples of its text there") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(run_onestep({"train", kSentence, "--out", run.string(), "--quiet", "--set", "train.steps=10", "--set",
                       "train.tensorboard=true"})
              .status == 0);
  std::string events;
  for (const auto& file : fs::directory_iterator(run / "tensorboard")) events += read(file.path());
  for (const char* tag : {"loss/train", "loss/validation", "lr", "grad_norm", "tokens_per_second", "config"})
    CHECK_MESSAGE(contains(events, tag), tag);
  CHECK(contains(events, "sample"));
  CHECK(contains(events, "    Your journey "));
}

TEST_CASE("cli: report refuses what is no run and leaves out what is gone") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  CHECK(run_onestep({"report", run.string()}).status == 2);
  train_run(run, "1");
  fs::remove_all(run / "checkpoints");
  const ProcessResult result = run_onestep({"report", run.string(), "--out", (folder.path() / "page.html").string()});
  CHECK(result.status == 0);
  CHECK(result.err.starts_with("onestep: report: without parameters, attention maps and samples: "));
  CHECK(contains(read(folder.path() / "page.html"), R"("attention":null)"));
}

TEST_CASE("cli: a report that cannot be written after the training is a note and the run is done") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", page = run / "report.html";
  train_run(run, "1");
  fs::remove(page);
  fs::create_directory(page);
  const ProcessResult result = run_onestep({"train", "--resume", run.string(), "--quiet", "--set", "train.steps=31"});
  CHECK(result.status == 0);
  CHECK(result.err.starts_with("onestep: report: not written: " + page.string() + ": "));
  CHECK(result.out.starts_with("steps        31 in "));
  CHECK(fs::exists(run / "checkpoints/step-31"));
}

TEST_CASE("cli: report replaces reports and nothing else") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", page = folder.path() / "page.html";
  train_run(run, "1");
  std::ofstream(folder.path() / "notes.html") << "<!doctype html>\n<title>mine</title>\n";
  const std::string state = "checkpoints/step-30/state.json";
  for (const fs::path& file : {run / "config.json", run / "metrics.jsonl", run / "tokenizer.json", run / "summary.json",
                               run / state, folder.path() / "notes.html"}) {
    const std::string before = read(file);
    const ProcessResult result = run_onestep({"report", run.string(), "--out", file.string()});
    CHECK(result.status == 2);
    CHECK(result.err == "onestep: " + file.string() + ": is no report and would be lost (name another file with --out)\n");
    CHECK(read(file) == before);
  }
  std::ofstream{page};  // an empty file
  for (int i = 0; i < 2; ++i) {
    CHECK(run_onestep({"report", run.string(), "--out", page.string()}).status == 0);
    CHECK(contains(read(page), "onestep report"));
  }
}

TEST_CASE("cli: the report of two runs works in a browser on a desk and on a phone") {
  const TemporaryFolder folder;
  const std::string page = (folder.path() / "page.html").string();
  train_run(folder.path() / "a", "1");
  train_run(folder.path() / "b", "2");
  REQUIRE(run_onestep({"report", (folder.path() / "a").string(), (folder.path() / "b").string(), "--out", page}).status == 0);
  check_in_browser(page, [](bool, const std::string& title) {
    CHECK(contains(title, R"("summary":"|a|b")"));
    CHECK(contains(title, R"("points":"30 30 3 30 30 3")"));  // of each run: loss, smoothed, validation
    CHECK(contains(title, R"("hover":"a loss: )"));
    CHECK(contains(title, "; b evaluation on training tokens: "));
    CHECK(contains(title, R"("log":true,"curves":4)"));
    CHECK(contains(title, R"("steps":["10 20 30"],"lr":["0","0.005","0.01","0.015","0.02"],"accuracy":true)"));
    CHECK(contains(title, " looks at "));
    CHECK(contains(title, R"("rows":"Your|journey|starts|with|one","columns":"Your|journey|starts|with|one","readable":true)"));
    CHECK(contains(title, R"("samples":"Your journey|Your journey|)"));  // the beginning of what it is evaluated on
    CHECK(contains(title, R"("perplexity":true,"differences":"seed|1|2")"));
    CHECK(contains(title, R"("written":"step 10|step 20|step 30|step 10|step 20|step 30")"));
    CHECK(contains(title, R"("spread":"step 30","distributions":"weights|gradients|weights|gradients of 9")"));
    CHECK(contains(title, R"("given":"Your journey","glance":"“one” looks at “)"));
    CHECK(contains(title, R"x("firstLooks":"“Your” looks at itself (100 %)")x"));
    CHECK(contains(title, R"("zoomed":"10 15 20","moved":"15 20 25","dragged":"20 25 30")"));
    CHECK(contains(title, R"("read":"a loss: )"));
    CHECK(contains(title, R"( at step 1","axes":"steps|tokens|seconds","tokens":"50 100 150")"));
    CHECK(contains(title, R"("maps":"a step 20|a step 30|b step 20|b step 30","sides":"a step 30 head 0|b step 30 head 0")"));
    CHECK(contains(title, R"("renamed":"the first; |the first","left":2)"));
    CHECK(contains(title, R"("address":"#axis=tokens&amp;name0=the+first&amp;hide=1")"));
    CHECK(contains(title, R"("parameters":"the first 1,318 parameters","wide":false,"errors":[])"));
  });
}

TEST_CASE("report: the tokens beside an attention map can be read on a desk and on a phone") {
  constexpr const char* kStep = R"([{"step": 0, "loss": 1, "lr": 1, "val_loss": 1, "val_accuracy": 1}])";
  onestep::train::AttentionMaps maps;
  for (int i = 0; i < 48; ++i) maps.tokens.push_back(i % 6 == 5 ? " " : std::to_string(i) + "t");
  maps.layers.emplace_back("layer 0", onestep::full({2, 48, 48}, 0.5));
  const TemporaryFolder folder;
  const fs::path page = folder.path() / "page.html";
  std::ofstream(page) << onestep::train::report_html({{.name = "run", .metrics = kStep, .attention = {maps}}});
  check_in_browser(page, [](bool desk, const std::string& title) {
    CHECK(contains(title, desk ? R"("rows":"0t|1t|2t|3t|4t|␣|6t|)" : R"("rows":"0t|2t|4t|6t|)"));
    CHECK(contains(title, R"("readable":true)"));
    CHECK(contains(title, R"("parameters":"parameters: unknown)"));  // the run has none
  });
}

TEST_CASE("cli: the report of a task shows its symbols and answers to whole prompts") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  std::ofstream(folder.path() / "run.json") << R"({"model": {"d_model": 8, "num_heads": 2, "context_length": 3},
      "data": {"kind": "task", "task": "modular_addition", "modulus": 9}, "train": {"steps": 1}})";
  REQUIRE(run_onestep({"train", (folder.path() / "run.json").string(), "--quiet", "--out", run}).status == 0);
  const std::string page = read(run + "/report.html");
  CHECK(has_match(page, R"("tokens":\["\d","\d","="\])"));
  CHECK(has_match(page, R"("samples":\[\{"prompt":"\d \d = ","continuation":"(\d|=) "\})"));
}

TEST_CASE("cli: a report made in another folder has the run's text and without the text its parameters") {
  const TemporaryFolder folder;
  const auto inside = [&](const std::vector<std::string>& arguments, const std::string& place) {
    return run_onestep(arguments, {.directory = folder.path() / place});
  };
  std::ofstream(folder.path() / "text.txt") << "to be or not to be that is the question";
  REQUIRE(inside({"train", ONESTEP_SOURCE_DIR "/configs/text.json", "--quiet", "--set", "data.path=text.txt", "--set",
                  "data.val_fraction=0", "--set", "train.steps=2", "--set", "model.d_model=8"},
                 ".")
              .status == 0);
  const fs::path page = folder.path() / "runs/text/report.html";
  const std::string parameters = R"("name":"tok_emb.weight","shape":)", attention = R"("attention":[{"step":2,"tokens":)";
  CHECK(inside({"report", "text"}, "runs").err == "");
  CHECK(contains(read(page), parameters));
  CHECK(contains(read(page), attention));
  CHECK(inside({"eval", "text", "--quiet"}, "runs").status == 0);

  fs::remove(folder.path() / "text.txt");
  const ProcessResult gone = inside({"report", "text"}, "runs");
  CHECK(gone.status == 0);
  CHECK(gone.err == "onestep: report: without attention maps and samples: text.txt: cannot be opened: no such file\n");
  CHECK(contains(read(page), parameters));
  CHECK_FALSE(contains(read(page), attention));
  CHECK(contains(read(page), R"("evaluated_on":"training tokens")"));
}

TEST_CASE("cli: the report of a run with several checkpoints shows the maps of each beside the last") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", page = run / "report.html";
  REQUIRE(run_onestep({"train", kSentence, "--out", run.string(), "--quiet", "--set", "train.steps=30", "--set",
                       "train.checkpoint_every=10", "--set", "train.keep_checkpoints=3"})
              .status == 0);
  const std::string written = read(page);
  for (const char* step : {"10", "20", "30"})
    CHECK(contains(written, R"({"step":)" + std::string(step) + R"(,"tokens":["Your",)"));
  REQUIRE(run_onestep({"report", run.string()}).status == 0);
  CHECK(read(page) == written);
  check_in_browser(page, [](bool, const std::string& title) {
    CHECK(contains(title, R"("maps":"step 10|step 20|step 30","sides":"head 0|head 1")"));
    CHECK(contains(title, R"("wide":false,"errors":[])"));
  });
  std::ofstream(run / "checkpoints/step-20/model.safetensors") << "damaged";
  const ProcessResult result = run_onestep({"report", run.string()});
  CHECK(result.status == 0);
  CHECK(result.err.starts_with("onestep: report: without the attention maps of step-20: "));
  CHECK_FALSE(contains(read(page), R"({"step":20,"tokens":)"));
}
