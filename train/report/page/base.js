"use strict";
// What the parts of the page share. The data is in #data: {runs: [{name, facts, tokens_per_step, metrics, evaluated_on, parameters,
// config, glance, attention, samples, written, histograms, labels, confusion}], differences: [[key, value in each run]]}.
const page = JSON.parse(document.getElementById("data").textContent), runs = page.runs;
const find = (id) => document.getElementById(id);
const color = (run) => `var(--run-${run % 6})`;
const known = (value) => value !== null && value !== undefined;
const several = runs.length > 1;

function element(parent, name, attributes = {}, text = "") {
  const svg = ["svg", "path", "line", "text", "circle", "rect", "image"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== "") made.textContent = text;
  parent.append(made);
  return made;
}

function number(value) {
  if (!known(value)) return "none";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 1000 ? 0 : 4 });
}

/** A number beside an axis, where a phone has room for five characters: 100K, 2e-4. */
function axisNumber(value) {
  if (Math.abs(value) >= 1e9) return value.toExponential(0).replace("e+", "e");
  if (Math.abs(value) >= 1e4) return value.toLocaleString("en", { notation: "compact" });
  return value !== 0 && Math.abs(value) < 1e-3 ? Number(value.toPrecision(3)).toExponential() : number(value);
}

const tip = find("tip");
/** A text beside a place of the window. */
function showTip(place, text) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(place.clientX + 14, innerWidth - box.width - 4)) + "px";
  tip.style.top = Math.max(4, Math.min(place.clientY + 14, innerHeight - box.height - 4)) + "px";
}
const hideTip = () => { tip.hidden = true; };

/** What a token looks like where spaces and line ends are to be seen. */
const visible = (token) => token.replaceAll(" ", "\u2423").replaceAll("\\n", "\u21b5").replaceAll("\n", "\u21b5");

// ---- which runs are shown, and what they are called: kept in the address, so that a link to it shows the same

const settings = new URLSearchParams(location.hash.slice(1));
const hiddenRuns = new Set((settings.get("hide") ?? "").split(",").filter(Boolean).map(Number).filter((i) => several && i in runs));
runs.forEach((run, i) => { run.name = settings.get(`name${i}`) ?? run.name; });

/** Keeps a setting in the address; null forgets it. A page inside of another one, as in a notebook, may have none. */
function keep(key, value) {
  if (value === null) settings.delete(key); else settings.set(key, value);
  try {
    history.replaceState(null, "", `${location.href.split("#")[0]}#${settings}`);
  } catch {
    // shown all the same
  }
}

const shownRuns = () => runs.map((_, i) => i).filter((i) => !hiddenRuns.has(i));
const label = (run, what) => (several ? `${runs[run].name} ${what}` : what);

/** An element that belongs to a run: hidden with it, and called by its name where there are several, before `text`. */
const ofRun = (run, text = "") => ({ "data-run": run, ...(several ? { "data-named": text } : {}) });

/** An element of a run with its name, where there are several, and a text. */
function runElement(parent, name, run, text, attributes = {}) {
  return element(parent, name, { ...attributes, ...ofRun(run, text) }, several ? runs[run].name + text : text.trim());
}

/** Shows what belongs to runs that are not hidden, by their names of now. */
function showRuns() {
  for (const part of document.querySelectorAll("[data-run]")) {
    const run = Number(part.dataset.run);
    part.hidden = part.disabled = hiddenRuns.has(run);
    if (known(part.dataset.named)) part.textContent = runs[run].name + part.dataset.named;
  }
  find("title").textContent = shownRuns().map((i) => runs[i].name).join(" and ") || "no run is shown";
  document.title = `${find("title").textContent} - onestep`;
}
