// ---- first of all: what the model writes, and where it looks while it reads that

/** The place from which one sees most: of the token in the later half that looks most at one before it, not at the first. */
function mostTelling(weights) {
  let best = weights.length - 1, most = 0;
  weights.forEach((row, i) => {
    const strongest = 2 * i < weights.length ? 0 : Math.max(0, ...row.slice(1, i));
    if (strongest > most) [best, most] = [i, strongest];
  });
  return best;
}

/** The text of a sample, in which pointing at a token shades those that it looks at; a line below says it in words. */
function drawGlance(parent, run, { pieces, given, weights }) {
  const block = element(parent, "div", { "data-run": run });
  if (several) runElement(block, "h3", run, "");
  const text = element(block, "p", { class: "tokens", tabindex: 0, role: "group",
                                      "aria-label": "what the model writes; arrows go from token to token" });
  const tokens = pieces.map((piece, i) => element(text, i < given ? "b" : "span", {}, piece));
  if (weights.length === 0) return;
  const said = element(block, "p", { class: "note", "aria-live": "polite" });
  let now = 0;
  const look = (i) => {
    now = Math.max(0, Math.min(weights.length - 1, i));
    const row = weights[now], most = Math.max(...row);
    tokens.forEach((token, j) => {
      token.classList.toggle("from", j === now);
      token.style.background = j <= now && row[j] > 0 ? `rgba(var(--heat), ${(0.6 * row[j] / most).toFixed(3)})` : "";
    });
    const best = row.map((weight, j) => [weight, j]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([weight]) => weight >= 0.005);
    const name = (j) => `\u201c${visible(pieces[j].trim() || pieces[j])}\u201d`;
    said.textContent = `${name(now)} looks at ` +
      best.map(([weight, j]) => `${j === now ? "itself" : name(j)} (${Math.round(100 * weight)} %)`).join(", ");
  };
  tokens.slice(0, weights.length).forEach((token, i) => { token.onpointerenter = token.onpointerdown = () => look(i); });
  text.onkeydown = (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way) return;
    look(now + way);
    event.preventDefault();
  };
  look(mostTelling(weights));
}

function drawGlances(section) {
  const all = runs.map((run, i) => [run.glance, i]).filter(([glance]) => known(glance)), kMost = 4;
  if (all.length === 0) return;
  element(section, "h2", {}, "What the model writes, and where it looks");
  const blocks = element(section, "div", { class: "glances" });
  for (const [glance, i] of all.slice(0, kMost)) drawGlance(blocks, i, glance);
  element(section, "p", { class: "note" },
          "Bold is given, the rest is written by the model. Point at a token or tap it: the stronger the shade of another one, the more it " +
          "looks at that, in the mean over all heads and layers." + (all.length > kMost ? ` More runs are below: these are the first ${kMost}.` : ""));
}
