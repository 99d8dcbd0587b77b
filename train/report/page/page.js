"use strict";
// Draws the page from the JSON in #data: {runs: [{name, facts, metrics, evaluated_on, parameters, config, attention, samples, labels,
// confusion}]}.
const runs = JSON.parse(document.getElementById("data").textContent).runs;
const find = (id) => document.getElementById(id);
const color = (run) => `var(--run-${run % 6})`;
const known = (value) => value !== null && value !== undefined;

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
  if (Math.abs(value) >= 1e4) return value.toLocaleString("en", { notation: "compact" });
  return value !== 0 && Math.abs(value) < 1e-3 ? Number(value.toPrecision(3)).toExponential() : number(value);
}

const tip = find("tip");
function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 4)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 4)) + "px";
}
const hideTip = () => { tip.hidden = true; };

// ---- curves

/** Steps are counted from 1 here, as in the terminal and in checkpoints/step-N. */
const stepOf = (row) => row.step + 1;

/** [[step, value], ...] of one key of metrics.jsonl. */
const points = (run, key) => run.metrics.filter((row) => known(row[key])).map((row) => [stepOf(row), row[key]]);

/** The exponential moving average of the values, its first ones corrected for their missing past. */
function smoothed(curve, share) {
  let mean = 0, weight = 0;
  return curve.map(([step, value]) => {
    mean = share * mean + (1 - share) * value;
    weight = share * weight + (1 - share);
    return [step, mean / weight];
  });
}

/** About `count` round numbers, `least` or more apart, over a range; powers of ten on a logarithmic axis that spans some. */
function ticks(low, high, count, log, least = 0) {
  if (log && high / low > 30) {
    const found = [];
    for (let e = Math.ceil(Math.log10(low)); 10 ** e <= high; ++e) found.push(10 ** e);
    return found;
  }
  const rough = Math.max(least, (high - low) / count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); ++i) found.push(i * step);
  return found;
}

function range(values, log) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (log && value <= 0) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (low < high) return [low, high];
  if (log) return [low / 2, low * 2];
  return low === 0 ? [0, 1] : [Math.min(0, 2 * low), Math.max(0, 2 * low)];
}

const kWidth = 520, kHeight = 260, kLeft = 62, kRight = 22, kTop = 8, kBottom = 24;

/** All charts have one axis of steps, that of all runs. */
const [left, right] = range(runs.flatMap((run) => run.metrics.map(stepOf)), false);

/** Draws curves {run, label, points, kind} into a figure; hovering shows the values at the nearest step. None is above `most`. */
function chart(figure, curves, log, most = Infinity) {
  figure.querySelector("svg")?.remove();
  const svg = element(figure, "svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img" });
  const [low, top] = range(curves.flatMap((curve) => curve.points.map((p) => p[1])), log), high = Math.min(top, most);
  const scale = log ? Math.log : (value) => value;
  const x = (step) => kLeft + (step - left) / (right - left) * (kWidth - kLeft - kRight);
  const y = (value) => kHeight - kBottom - (scale(value) - scale(low)) / (scale(high) - scale(low)) * (kHeight - kTop - kBottom);

  for (const value of ticks(low, high, 5, log)) {
    element(svg, "line", { class: "grid", x1: kLeft, x2: kWidth - kRight, y1: y(value), y2: y(value) });
    element(svg, "text", { x: kLeft - 6, y: y(value) + 4, "text-anchor": "end" }, axisNumber(value));
  }
  for (const step of ticks(left, right, 5, false, 1)) {
    element(svg, "text", { x: x(step), y: kHeight - 6, "text-anchor": "middle" }, axisNumber(step));
  }
  for (const curve of curves) {
    const drawn = curve.points.filter((p) => !log || p[1] > 0);
    const path = drawn.map((p, i) => `${i === 0 ? "M" : "L"}${x(p[0]).toFixed(2)},${y(p[1]).toFixed(2)}`).join("");
    element(svg, "path", { class: `curve ${curve.kind}`, stroke: color(curve.run), d: path, "data-points": drawn.length });
    if (curve.kind !== "validation" && drawn.length > 1) continue;
    for (const p of drawn) element(svg, "circle", { cx: x(p[0]), cy: y(p[1]), r: 2.5, fill: color(curve.run) });
  }
  const cursor = element(svg, "line", { class: "grid", y1: kTop, y2: kHeight - kBottom, visibility: "hidden" });
  svg.onpointermove = (event) => {
    const box = svg.getBoundingClientRect();
    const step = left + ((event.clientX - box.left) / box.width * kWidth - kLeft) / (kWidth - kLeft - kRight) * (right - left);
    const hits = curves.filter((curve) => curve.points.length > 0).map((curve) => [curve, nearest(curve.points, step)]);
    if (hits.length === 0) return;
    const place = x(hits[0][1][0]);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, place);
    cursor.setAttribute("visibility", "visible");
    showTip(event, hits.map(([curve, p]) => `${curve.label}: ${number(p[1])} at step ${number(p[0])}`).join("\n"));
  };
  svg.onpointerleave = () => { hideTip(); cursor.setAttribute("visibility", "hidden"); };
}

/** The point whose step is closest; points ascend in step. */
function nearest(curve, step) {
  let low = 0, high = curve.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve[middle][0] < step) low = middle + 1; else high = middle;
  }
  return low > 0 && step - curve[low - 1][0] < curve[low][0] - step ? curve[low - 1] : curve[low];
}

/** Without validation data a run is evaluated on what it is trained on. */
const evaluation = (run) => (run.evaluated_on.startsWith("training") ? `evaluation on ${run.evaluated_on}` : "validation");
const evaluations = [...new Set(runs.map(evaluation))].join(" or ");
const label = (run, what) => (runs.length > 1 ? `${runs[run].name} ${what}` : what);

function lossCurves(share) {
  return runs.flatMap((run, i) => {
    const train = points(run, "loss");
    return [
      { run: i, label: label(i, "loss"), points: train, kind: share > 0 ? "raw" : "train" },
      ...(share > 0 ? [{ run: i, label: label(i, "smoothed"), points: smoothed(train, share), kind: "train" }] : []),
      { run: i, label: label(i, evaluation(run)), points: points(run, "val_loss"), kind: "validation" },
    ];
  });
}

const charts = [
  { title: "loss", note: `faint: each logged step; line: smoothed; dashed: ${evaluations}`, curves: lossCurves, canBeLog: true },
  ...[["lr", "learning rate"], ["grad_norm", "gradient norm"], ["tokens_per_second", "tokens per second"],
      ["val_accuracy", "accuracy", 1, evaluations], ["val_f1", "macro F1", 1, evaluations]].map(([key, title, most, note]) => ({
    title,
    note,
    most,
    curves: () => runs.map((run, i) => ({ run: i, label: label(i, title), points: points(run, key), kind: "train" })),
  })),
].filter((entry) => entry.curves(0).some((curve) => curve.points.length > 0));

function drawCharts() {
  const share = Number(find("smoothing").value);
  find("smoothing-value").textContent = share.toFixed(2);
  for (const entry of charts) chart(entry.figure, entry.curves(share), Boolean(entry.canBeLog) && find("log").checked, entry.most);
}

// ---- attention

const kName = 10, kAdvance = 6.1, kLongestName = 12;  // height and width of a character beside a map, in pixels

/** Tokens as they stand beside a map: spaces and line ends can be seen, and long ones are cut. */
const axisNames = (tokens) => tokens.map((token) => {
  const name = [...token.replaceAll(" ", "\u2423").replaceAll("\\n", "\u21b5")];
  return name.length > kLongestName ? name.slice(0, kLongestName - 1).join("") + "\u2026" : name.join("");
});

/** Pixels that the longest of the names takes. */
const widthOf = (names) => kAdvance * Math.max(...names.map((name) => [...name].length));

/** A picture of a pixel a weight. */
function pixels(weights) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = weights.length;
  const paint = canvas.getContext("2d");
  const heat = getComputedStyle(document.documentElement).getPropertyValue("--heat");
  weights.forEach((row, i) => row.forEach((weight, j) => {
    paint.fillStyle = `rgba(${heat}, ${Math.sqrt(weight)})`;
    paint.fillRect(j, i, 1, 1);
  }));
  return canvas.toDataURL();
}

/**
 * One head's weights [T, T] as cells with the tokens beside the rows and above the columns, of which one in so many is named where
 * there is no room for all: that number is returned. Pointing at a cell names its two tokens and the weight.
 */
function heatMap(parent, title, weights, tokens) {
  const figure = element(parent, "figure");
  element(figure, "figcaption", {}, title);
  const names = axisNames(tokens), size = names.length, width = figure.clientWidth;
  const x0 = widthOf(names) + 6, cell = (width - x0 - 1) / size, every = Math.ceil(kName / cell);
  const upright = widthOf(names) + 2 <= every * cell, y0 = upright ? kName + 6 : x0;
  const svg = element(figure, "svg", { viewBox: `0 0 ${width} ${y0 + size * cell + 1}`, role: "img", "aria-label": title });
  const square = { x: x0, y: y0, width: size * cell, height: size * cell };
  element(svg, "image", { ...square, href: pixels(weights), preserveAspectRatio: "none" });
  element(svg, "rect", { ...square, class: "frame" });
  for (let i = 0; i < size; i += every) {
    const middle = (i + 0.5) * cell, column = x0 + middle;
    element(svg, "text", { class: "name row", x: x0 - 4, y: y0 + middle + 3.5, "text-anchor": "end" }, names[i]);
    element(svg, "text", upright ? { class: "name", x: column, y: y0 - 5, "text-anchor": "middle" }
                                 : { class: "name", transform: `translate(${column + 3.5} ${y0 - 4}) rotate(-90)` }, names[i]);
  }
  const pointed = element(svg, "rect", { class: "pointed", width: cell, height: cell, visibility: "hidden" });
  svg.onpointerdown = svg.onpointermove = (event) => {
    const box = svg.getBoundingClientRect(), scale = width / box.width;
    const cellAt = (place) => Math.max(0, Math.min(size - 1, Math.floor(place / cell)));
    const i = cellAt((event.clientY - box.top) * scale - y0), j = cellAt((event.clientX - box.left) * scale - x0);
    pointed.setAttribute("x", x0 + j * cell);
    pointed.setAttribute("y", y0 + i * cell);
    pointed.setAttribute("visibility", "visible");
    showTip(event, `${JSON.stringify(tokens[i])} (${i}) looks at ${JSON.stringify(tokens[j])} (${j}): ${number(weights[i][j])}`);
  };
  svg.onpointerleave = () => { hideTip(); pointed.setAttribute("visibility", "hidden"); };
  return every;
}

/** Pixels in which a map with these tokens can be read. */
function readableWidth(tokens) {
  const width = widthOf(axisNames(tokens));
  return Math.max(180, Math.min(520, width + 8 + tokens.length * Math.max(kName + 0.2, Math.min(48, width + 4))));
}

function drawAttention(section) {
  const shown = runs.filter((run) => run.attention);
  if (shown.length === 0) return;
  element(section, "h2", {}, "Attention");
  const controls = element(section, "div", { class: "controls" });
  const choice = element(controls, "select", { id: "layer", "aria-label": "layer" });
  for (const run of shown) {
    run.attention.layers.forEach((layer, i) =>
      element(choice, "option", { value: `${runs.indexOf(run)} ${i}` }, runs.length > 1 ? `${run.name}: ${layer.name}` : layer.name));
  }
  element(controls, "span", {}, "row = query, column = key; the stronger the color, the larger the weight; the weights of a row sum to 1");
  const heads = element(section, "div", { class: "heads" }), note = element(section, "p", { class: "note" });
  choice.onchange = () => {
    heads.replaceChildren();
    const [run, layer] = choice.value.split(" ").map(Number);
    const { tokens, layers } = runs[run].attention;
    heads.style.gridTemplateColumns = `repeat(auto-fill, minmax(min(100%, ${readableWidth(tokens)}px), 1fr))`;
    const every = Math.max(...layers[layer].heads.map((weights, i) => heatMap(heads, `head ${i}`, weights, tokens)));
    note.textContent = `the first ${tokens.length} tokens of a sample of the ${runs[run].evaluated_on}` +
      (every > 1 ? `, one in ${every} of them named` : "") + "; pointing at a cell names its two tokens and the weight";
  };
  choice.onchange();
}

// ---- tables and texts

/** Cards for one run; a table with a column a run to compare several. */
function drawSummary(section) {
  if (runs.length === 1) {
    const cards = element(section, "div", { class: "cards" });
    for (const [name, value] of runs[0].facts) {
      const card = element(cards, "div");
      element(card, "small", {}, name);
      element(card, "b", {}, value);
    }
    return;
  }
  const table = element(element(section, "div", { class: "scroll" }), "table");
  const head = element(table, "tr");
  element(head, "th");
  runs.forEach((run, i) => element(head, "th", { style: `border-color: ${color(i)}` }, run.name));
  for (const name of new Set(runs.flatMap((run) => run.facts.map((fact) => fact[0])))) {
    const row = element(table, "tr");
    element(row, "td", { class: "note" }, name);
    for (const run of runs) element(row, "td", {}, run.facts.find((fact) => fact[0] === name)?.[1] ?? "");
  }
}

/** How often a classifier takes each label for each: a table with the right labels beside the rows. */
function drawConfusion(section) {
  runs.filter((run) => run.labels.length > 0).forEach((run) => {
    const size = run.labels.length, counts = run.labels.map((_, i) => run.confusion.slice(i * size, (i + 1) * size));
    element(section, "h2", {}, label(runs.indexOf(run), "Confusion matrix"));
    element(section, "p", { class: "note" }, `${run.evaluated_on}: row = right label, column = predicted label`);
    const table = element(element(section, "div", { class: "scroll" }), "table", { class: "confusion" });
    const head = element(table, "tr");
    for (const name of ["", ...run.labels]) element(head, "th", { class: name === "" ? "" : "number" }, name);
    counts.forEach((row, i) => {
      const line = element(table, "tr"), all = Math.max(1, row.reduce((sum, count) => sum + count, 0));
      element(line, "th", {}, run.labels[i]);
      row.forEach((count) => element(line, "td", { class: "number", style: `background: rgba(var(--heat), ${0.5 * count / all})` },
        count.toLocaleString("en")));
    });
  });
}

function drawSamples(section) {
  runs.filter((run) => run.samples.length > 0).forEach((run) => {
    element(section, "h2", {}, label(runs.indexOf(run), "Samples"));
    element(section, "p", { class: "note" }, `bold: from the ${run.evaluated_on}; then ${run.labels.length > 0 ? "the label that the model gives and, if it differs, the right one" : "what the model goes on with"}`);
    for (const { prompt, continuation } of run.samples) {
      const text = element(section, "pre", { class: "sample" });
      element(text, "b", {}, prompt);
      text.append(continuation);
    }
  });
}

function drawParameters(section) {
  runs.forEach((run, i) => {
    if (run.parameters.length === 0) {
      element(section, "p", { class: "note" }, label(i, "parameters: unknown, as no checkpoint of the run could be read"));
      return;
    }
    const total = run.parameters.reduce((sum, p) => sum + p.count, 0);
    const fold = element(section, "details", runs.length === 1 && run.parameters.length < 30 ? { open: "" } : {});
    element(fold, "summary", {}, label(i, `${total.toLocaleString("en")} parameters`));
    const table = element(element(fold, "div", { class: "scroll" }), "table");
    const head = element(table, "tr");
    for (const [title, kind] of [["name", ""], ["shape", ""], ["elements", "number"]]) element(head, "th", { class: kind }, title);
    for (const p of run.parameters) {
      const row = element(table, "tr");
      element(row, "td", {}, p.name);
      element(row, "td", {}, `[${p.shape.join(", ")}]`);
      element(row, "td", { class: "number" }, p.count.toLocaleString("en"));
    }
  });
}

function drawConfigs(section) {
  runs.forEach((run, i) => {
    const fold = element(section, "details");
    element(fold, "summary", {}, label(i, "config"));
    element(fold, "pre", {}, run.config);
  });
}

find("title").textContent = runs.map((run) => run.name).join(" and ");
document.title = `${find("title").textContent} - onestep`;
if (runs.length > 1) {
  runs.forEach((run, i) => {
    const entry = element(find("legend"), "span");
    element(entry, "i", { style: `background: ${color(i)}` });
    entry.append(run.name);
  });
}
drawSummary(find("summary"));
for (const entry of charts) {
  entry.figure = element(find("charts"), "figure", { "data-title": entry.title });
  const caption = element(entry.figure, "figcaption", {}, entry.title);
  if (entry.note) element(caption, "small", {}, ` (${entry.note})`);
}
find("log").onchange = find("smoothing").oninput = drawCharts;
drawCharts();
drawConfusion(find("confusion"));
drawAttention(find("attention"));
const redrawMaps = () => find("layer")?.onchange();
matchMedia("(prefers-color-scheme: dark)").onchange = redrawMaps;
let drawnWidth = innerWidth;
addEventListener("resize", () => {
  if (drawnWidth === innerWidth) return;  // a phone that shows or hides its address
  drawnWidth = innerWidth;
  redrawMaps();
});
drawSamples(find("samples"));
drawParameters(find("parameters"));
drawConfigs(find("config"));
