// ---- attention

const kName = 10, kAdvance = 6.1, kLongestName = 12;  // height and width of a character beside a map, in pixels

/** Tokens as they are shown beside a map: spaces and line ends can be seen, and long ones are cut. */
const axisNames = (tokens) => tokens.map((token) => {
  const name = [...visible(token)];
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

/** The maps that can be shown: run, place in its list, and what they are called. */
const allMaps = runs.flatMap((run, i) => (run.attention ?? []).map((maps, k) => ({ run: i, maps, text:
  run.attention.length > 1 ? ` step ${number(maps.step)}` : "", last: k === run.attention.length - 1 })));

/** A choice of maps; `none` is what stands for no choice. */
function mapChoice(parent, id, title, none) {
  const choice = element(element(parent, "label", {}, `${title} `), "select", { id });
  if (none) element(choice, "option", { value: "" }, none);
  allMaps.forEach(({ run, text }, i) => runElement(choice, "option", run, text, { value: i }));
  return choice;
}

/** Heads of one layer, or of the layer in two runs or at two steps beside each other. */
function drawHeads(parent, layer, sides) {
  parent.replaceChildren();
  const tokens = (side) => side.maps.tokens;
  const widest = Math.max(...sides.map((side) => readableWidth(tokens(side))));
  parent.style.gridTemplateColumns = sides.length > 1 ? "1fr 1fr" : `repeat(auto-fill, minmax(min(100%, ${widest}px), 1fr))`;
  const heads = Math.max(...sides.map((side) => side.maps.layers[layer]?.heads.length ?? 0));
  let every = 1;
  for (let head = 0; head < heads; ++head) {
    for (const side of sides) {
      const weights = side.maps.layers[layer]?.heads[head];
      const name = sides.length > 1 ? `${(several ? runs[side.run].name : "") + side.text} head ${head}`.trim() : `head ${head}`;
      if (weights) every = Math.max(every, heatMap(parent, name, weights, tokens(side)));
      else element(element(parent, "figure"), "figcaption", {}, `${name}: there is none`);
    }
  }
  return every;
}

function drawAttention(section) {
  if (allMaps.length === 0) return () => {};
  element(section, "h2", {}, "Attention");
  const controls = element(section, "div", { class: "controls" });
  const layer = element(element(controls, "label", {}, "layer "), "select", { id: "layer" });
  const layers = allMaps.reduce((longest, { maps }) => (maps.layers.length > longest.length ? maps.layers : longest), []);
  layers.forEach(({ name }, i) => element(layer, "option", { value: i }, name.replace(/^layer /, "")));
  const first = mapChoice(controls, "maps", several ? "of" : "at"), second = mapChoice(controls, "beside", "beside it", "nothing");
  first.value = allMaps.findIndex(({ last }) => last);
  for (const choice of [first, second]) choice.parentElement.hidden = allMaps.length === 1;
  const lasts = allMaps.map(({ last }, i) => (last ? i : -1)).filter((i) => i >= 0);
  if (lasts.length === 2) second.value = lasts[1];
  element(section, "p", { class: "note" },
          "row = query, column = key; the stronger the color, the larger the weight; the weights of a row sum to 1");
  const heads = element(section, "div", { class: "heads" }), note = element(section, "p", { class: "note" });
  const redraw = () => {
    if (hiddenRuns.has(allMaps[first.value].run)) first.value = Math.max(0, allMaps.findIndex(({ run, last }) => last && !hiddenRuns.has(run)));
    if (second.value !== "" && hiddenRuns.has(allMaps[second.value].run)) second.value = "";
    const sides = [first.value, second.value].filter((value) => value !== "").map((value) => allMaps[value]);
    const every = drawHeads(heads, Number(layer.value), sides);
    note.textContent = `the first ${sides[0].maps.tokens.length} tokens of a sample of the ${runs[sides[0].run].evaluated_on}` +
      (every > 1 ? `, one in ${every} of them named` : "") + "; pointing at a cell names its two tokens and the weight";
  };
  layer.onchange = first.onchange = second.onchange = redraw;
  redraw();
  return redraw;
}
