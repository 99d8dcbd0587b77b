// ---- how the elements of a parameter and its gradient are distributed, step by step

/** The histograms [{step, low, high, counts}, ...] of one parameter of a run; `kind` is weights or gradients. */
const histogramsOf = (run, name, kind) => run.histograms.flatMap((line) => {
  const found = line.parameters.find((parameter) => parameter.name === name)?.[kind];
  return found ? [{ step: stepOf(line), ...found }] : [];
});

/** A column for every step; the stronger a part of it, the more elements are there. Pointing, or arrows, read a column. */
function drawDistribution(parent, title, columns) {
  const figure = element(parent, "figure");
  element(figure, "figcaption", {}, title);
  if (columns.length === 0) {
    element(figure, "p", { class: "note" }, "there are none");
    return;
  }
  const svg = element(figure, "svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img", tabindex: 0,
                                       "aria-label": `${title}: arrows read the steps` });
  const [low, high] = range(columns.flatMap((column) => [column.low, column.high]), false);
  const width = (kWidth - kLeft - 22) / columns.length, height = kHeight - kTop - kBottom;
  const y = (value) => kTop + (high - value) / (high - low) * height;
  for (const value of ticks(low, high, 5, false)) {
    element(svg, "line", { class: "grid", x1: kLeft, x2: kWidth - 22, y1: y(value), y2: y(value) });
    element(svg, "text", { x: kLeft - 6, y: y(value) + 4, "text-anchor": "end" }, axisNumber(value));
  }
  columns.forEach(({ step, low: from, high: to, counts }, i) => {
    const most = Math.max(...counts), part = (to - from) / counts.length;
    counts.forEach((count, k) => {
      if (count === 0) return;
      const top = y(from + (k + 1) * part);
      element(svg, "rect", { class: "part", x: kLeft + i * width, width, y: top, height: Math.max(1, y(from + k * part) - top),
                             opacity: Math.sqrt(count / most).toFixed(3) });
    });
    if (i % Math.ceil(columns.length / 5) === 0)
      element(svg, "text", { x: kLeft + (i + 0.5) * width, y: kHeight - 6, "text-anchor": "middle" }, axisNumber(step));
  });
  const pointed = element(svg, "rect", { class: "pointed", y: kTop, width, height, visibility: "hidden" });
  let now = -1;
  const read = (i, event) => {
    now = Math.max(0, Math.min(columns.length - 1, i));
    const { step, low: from, high: to, counts } = columns[now], box = svg.getBoundingClientRect();
    const sum = counts.reduce((a, b) => a + b, 0), best = counts.indexOf(Math.max(...counts)), part = (to - from) / counts.length;
    pointed.setAttribute("x", kLeft + now * width);
    pointed.setAttribute("visibility", "visible");
    showTip(event ?? { clientX: box.left + (kLeft + now * width) / kWidth * box.width, clientY: box.top + box.height / 2 },
            `step ${number(step)}: from ${number(from)} to ${number(to)}\n${Math.round(100 * counts[best] / sum)} % between ` +
            `${number(from + best * part)} and ${number(from + (best + 1) * part)}`);
  };
  svg.onpointermove = svg.onpointerdown = (event) => {
    const box = svg.getBoundingClientRect();
    read(Math.floor(((event.clientX - box.left) / box.width * kWidth - kLeft) / width), event);
  };
  svg.onpointerleave = svg.onblur = () => { hideTip(); pointed.setAttribute("visibility", "hidden"); };
  svg.onkeydown = (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way) return;
    read(now < 0 && way < 0 ? columns.length - 1 : now + way);
    event.preventDefault();
  };
}

function drawHistograms(section) {
  const having = runs.map((run, i) => i).filter((i) => runs[i].histograms.length > 0);
  if (having.length === 0) return;
  element(section, "h2", {}, "Weights and gradients by layer");
  const controls = element(section, "div", { class: "controls" });
  const choice = element(element(controls, "label", {}, "parameter "), "select", { id: "parameter" });
  const names = new Set(having.flatMap((i) => runs[i].histograms.flatMap((line) => line.parameters.map(({ name }) => name))));
  for (const name of names) element(choice, "option", {}, name);
  element(section, "p", { class: "note" }, "a column for a step: the stronger the color, the more elements have about that value; of a " +
          "large parameter some elements stand for all; gradients are those after clipping");
  const parts = having.map((i) => element(section, "div", { "data-run": i }));
  choice.onchange = () => parts.forEach((part, k) => {
    const run = having[k];
    part.replaceChildren();
    if (several) runElement(part, "h3", run, "");
    const figures = element(part, "div", { class: "charts" });
    for (const kind of ["weights", "gradients"]) drawDistribution(figures, kind, histogramsOf(runs[run], choice.value, kind));
  });
  choice.onchange();
}
