// ---- charts, which share one horizontal axis and its zoom

const kWidth = 520, kHeight = 260, kLeft = 62, kTop = 8, kBottom = 24;

let zoom = null;  // the part of the axis that is drawn, [left, right]; null: all of it

/** The axis of the runs that are shown. */
function wholeRange() {
  return range(shownRuns().flatMap((i) => runs[i].metrics.map((row) => axis.place(runs[i], row)).filter(known)), false);
}

/** Draws this part of the axis, as far as there is something; all of it where nothing would be left out. */
function zoomTo(left, right) {
  const [first, last] = wholeRange(), least = (last - first) / 1000;
  const a = Math.max(first, Math.min(left, last - least)), b = Math.min(last, Math.max(right, a + least));
  zoom = a <= first && b >= last ? null : [a, b];
  find("reset").hidden = zoom === null;
  drawCharts();
}

/** Moves or scales the range: `by` is a share of its width, `factor` makes it narrower or wider around `middle`. */
function changeZoom(by, factor, middle) {
  const [left, right] = zoom ?? wholeRange(), width = (right - left) * factor, [first, last] = wholeRange();
  const begin = middle - (middle - left) * factor + by * width;
  const inside = Math.max(first, Math.min(begin, last - width));
  zoomTo(inside, inside + width);
}

/** Beside the loss is the perplexity, exp(loss). */
const perplexity = (loss) => axisNumber(Number(Math.exp(loss).toPrecision(3)));

/**
 * Draws curves {run, label, points, kind} into a figure. Pointing shows the values at the nearest step, dragging zooms; so do
 * keys. None is above `most`.
 */
function chart(figure, curves, log, most = Infinity, isLoss = false) {
  const old = figure.querySelector("svg"), hadFocus = old !== null && old === document.activeElement;
  old?.remove();
  const kRight = isLoss ? 58 : 22, title = figure.dataset.title;
  const svg = element(figure, "svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img", tabindex: 0,
                                       "aria-label": `${title}: arrows read the values, + and - zoom, 0 shows all` });
  const [left, right] = zoom ?? wholeRange();
  for (const curve of curves) curve.drawn = within(curve.points, [left, right]).filter((p) => !log || p[1] > 0);
  const inside = curves.flatMap((curve) => curve.drawn).filter((p) => left <= p[0] && p[0] <= right);
  const all = inside.length > 0 ? inside : curves.flatMap((curve) => curve.drawn);
  const [low, top] = range(all.map((p) => p[1]), log), high = Math.min(top, most);
  const scale = log ? Math.log : (value) => value;
  const x = (place) => kLeft + (place - left) / (right - left) * (kWidth - kLeft - kRight);
  const y = (value) => kHeight - kBottom - (scale(value) - scale(low)) / (scale(high) - scale(low)) * (kHeight - kTop - kBottom);

  for (const value of ticks(low, high, 5, log)) {
    element(svg, "line", { class: "grid", x1: kLeft, x2: kWidth - kRight, y1: y(value), y2: y(value) });
    element(svg, "text", { x: kLeft - 6, y: y(value) + 4, "text-anchor": "end" }, axisNumber(value));
    if (isLoss) element(svg, "text", { x: kWidth - kRight + 6, y: y(value) + 4, "text-anchor": "start" }, perplexity(value));
  }
  for (const place of ticks(left, right, 5, false, axis === kAxes.time ? 0 : 1)) {
    element(svg, "text", { x: x(place), y: kHeight - 6, "text-anchor": "middle" }, axisNumber(place));
  }
  const box = [kLeft - 5, 0, kWidth - kLeft - kRight + 10, kHeight - kBottom + 5];  // beyond which nothing is drawn
  const inner = element(svg, "svg", { x: box[0], y: box[1], width: box[2], height: box[3], viewBox: box.join(" ") });
  for (const curve of curves) drawCurve(inner, curve, x, y);
  readable(svg, curves, { x, y, left, right, kRight });
  if (hadFocus) svg.focus({ preventScroll: true });
}

/** The line of a curve, and on it the points of a validation, or marks here and there that tell runs apart. */
function drawCurve(parent, { run, kind, drawn }, x, y) {
  const path = drawn.map((p, i) => `${i === 0 ? "M" : "L"}${x(p[0]).toFixed(2)},${y(p[1]).toFixed(2)}`).join("");
  element(parent, "path", { class: `curve ${kind}`, stroke: color(run), d: path, "data-points": drawn.length });
  if (kind === "raw") return;
  const every = kind === "validation" || drawn.length === 1 ? 1 : Math.ceil(drawn.length / 5);
  if (every > 1 && !several) return;
  // each run begins at another place, so that curves upon each other show all their marks
  for (let i = Math.floor(every * (run % 6) / 6); i < drawn.length; i += every) {
    if (several) mark(parent, run, x(drawn[i][0]), y(drawn[i][1]));
    else element(parent, "circle", { cx: x(drawn[i][0]), cy: y(drawn[i][1]), r: 2.5, fill: color(run) });
  }
}

/** Pointer and keys of a chart. */
function readable(svg, curves, { x, y, left, right, kRight }) {
  const cursor = element(svg, "line", { class: "grid", y1: kTop, y2: kHeight - kBottom, visibility: "hidden" });
  const chosen = element(svg, "rect", { class: "chosen", y: kTop, height: kHeight - kTop - kBottom, visibility: "hidden" });
  const isLoss = svg.parentElement.dataset.title === "loss", full = curves.filter((curve) => curve.drawn.length > 0);
  const placeOf = (event) => {
    const box = svg.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * kWidth - kLeft) / (kWidth - kLeft - kRight);
    return left + Math.max(0, Math.min(1, share)) * (right - left);
  };
  const read = (place, event) => {
    const hits = full.map((curve) => [curve, nearest(curve.drawn, place)]);
    if (hits.length === 0) return;
    const at = hits[0][1][0], box = svg.getBoundingClientRect();
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(at));
    cursor.setAttribute("visibility", "visible");
    const lines = hits.map(([curve, p]) => `${curve.label}: ${number(p[1])}${isLoss ? ` (perplexity ${perplexity(p[1])})` : ""} ` +
                                           axis.say(p[0], p[2]));
    showTip(event ?? { clientX: box.left + x(at) / kWidth * box.width, clientY: box.top + y(hits[0][1][1]) / kHeight * box.height },
            lines.join("\n"));
  };
  const forget = () => { hideTip(); for (const part of [cursor, chosen]) part.setAttribute("visibility", "hidden"); };
  let begin = null, cursorPlace = null;  // where dragging began, and the place of the arrow keys
  const isDrag = (event) => begin !== null && Math.abs(event.clientX - begin) >= 8;
  const drag = (event) => {
    if (!isDrag(event)) return;
    const [a, b] = [x(placeOf({ clientX: begin })), x(placeOf(event))].sort((m, n) => m - n);
    chosen.setAttribute("x", a);
    chosen.setAttribute("width", b - a);
    chosen.setAttribute("visibility", "visible");
  };
  const end = (event) => {  // of what may have left the chart
    removeEventListener("pointermove", drag);
    for (const name of ["pointerup", "pointercancel"]) removeEventListener(name, end);
    const places = isDrag(event) && event.type === "pointerup" ? [placeOf({ clientX: begin }), placeOf(event)] : null;
    begin = null;
    forget();
    if (places) zoomTo(Math.min(...places), Math.max(...places));
  };
  svg.onpointerdown = (event) => {
    read(placeOf(event), event);
    if (event.button !== 0) return;
    begin = event.clientX;
    addEventListener("pointermove", drag);
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, end);
  };
  svg.onpointermove = (event) => read(placeOf(event), event);
  svg.onpointerleave = () => { if (begin === null) forget(); };
  svg.onblur = forget;
  svg.ondblclick = () => zoomTo(-Infinity, Infinity);
  svg.onkeydown = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key], middle = cursorPlace ?? (left + right) / 2;
    if (way && event.shiftKey) changeZoom(way / 4, 1, middle);
    else if (way && full.length > 0) {
      const curve = full[0].drawn, now = cursorPlace === null ? -1 : curve.indexOf(nearest(curve, cursorPlace));
      const next = now < 0 ? (way > 0 ? 0 : curve.length - 1) : Math.max(0, Math.min(curve.length - 1, now + way));
      read(cursorPlace = curve[next][0]);
    } else if (event.key === "+" || event.key === "=") changeZoom(0, 0.5, middle);
    else if (event.key === "-") changeZoom(0, 2, middle);
    else if (event.key === "0" || event.key === "Escape") zoomTo(-Infinity, Infinity);
    else return;
    event.preventDefault();
  };
}

/** Without validation data a run is evaluated on what it is trained on. */
const evaluation = (run) => (run.evaluated_on.startsWith("training") ? `evaluation on ${run.evaluated_on}` : "validation");
const evaluations = [...new Set(runs.map(evaluation))].join(" or ");

function lossCurves(share) {
  return shownRuns().flatMap((i) => {
    const train = points(runs[i], "loss");
    return [
      { run: i, label: label(i, "loss"), points: train, kind: share > 0 ? "raw" : "train" },
      ...(share > 0 ? [{ run: i, label: label(i, "smoothed"), points: smoothed(train, share), kind: "train" }] : []),
      { run: i, label: label(i, evaluation(runs[i])), points: points(runs[i], "val_loss"), kind: "validation" },
    ];
  });
}

const charts = [
  { title: "loss", note: `left; right: perplexity; faint: each logged step; line: smoothed; dashed: ${evaluations}`,
    curves: lossCurves, isLoss: true, has: ["loss", "val_loss"] },
  ...[["lr", "learning rate"], ["grad_norm", "gradient norm"], ["tokens_per_second", "tokens per second"],
      ["val_accuracy", "accuracy", 1, evaluations], ["val_f1", "macro F1", 1, evaluations]].map(([key, title, most, note]) => ({
    title,
    note,
    most,
    has: [key],
    curves: () => shownRuns().map((i) => ({ run: i, label: label(i, title), points: points(runs[i], key), kind: "train" })),
  })),
].filter((entry) => runs.some((run) => run.metrics.some((row) => entry.has.some((key) => known(row[key])))));

function drawCharts() {
  const share = Number(find("smoothing").value);
  find("smoothing-value").textContent = share.toFixed(2);
  for (const entry of charts)
    chart(entry.figure, entry.curves(share), Boolean(entry.isLoss) && find("log").checked, entry.most, entry.isLoss);
}

/** Makes the figures and what is above them. */
function startCharts() {
  for (const entry of charts) {
    entry.figure = element(find("charts"), "figure", { "data-title": entry.title });
    const caption = element(entry.figure, "figcaption", {}, entry.title);
    if (entry.note) element(caption, "small", {}, ` (${entry.note})`);
  }
  const choice = find("axis");
  const can = (name) => runs.some((run) => run.metrics.some((row) => known(kAxes[name].place(run, row))));
  for (const name of Object.keys(kAxes).filter(can)) element(choice, "option", { value: name }, name === "time" ? unit : name);
  choice.value = Object.keys(kAxes).find((name) => kAxes[name] === axis);
  choice.onchange = () => {
    axis = kAxes[choice.value];
    keep("axis", choice.value === "steps" ? null : choice.value);
    zoomTo(-Infinity, Infinity);
  };
  find("reset").onclick = () => zoomTo(-Infinity, Infinity);
  find("log").onchange = find("smoothing").oninput = drawCharts;
  drawCharts();
}
