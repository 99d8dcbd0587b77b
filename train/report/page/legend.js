// ---- the legend of several runs: which are shown, and their names

/** Shapes that tell curves apart without their colors, as paths around 0, 0. */
const kMarks = ["M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-3.5,-3.5h7v7h-7z", "M0,-4.5l4.5,8h-9z", "M0,-5l5,5l-5,5l-5,-5z",
                "M-4.5,-2.5h9l-4.5,7.5z", "M-1.5,-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"];
const mark = (parent, run, x, y) => element(parent, "path", { class: "mark", d: kMarks[run % kMarks.length], fill: color(run),
                                                              transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})` });

/** A box and a field for every run; `changed` is called after each change. */
function drawLegend(parent, changed) {
  if (!several) return;
  runs.forEach((run, i) => {
    const original = run.name, entry = element(parent, "span");
    const box = element(entry, "input", { type: "checkbox", "aria-label": `show ${run.name}` });
    const svg = element(entry, "svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" });
    mark(svg, i, 0, 0);
    const field = element(entry, "input", { class: "name", "aria-label": `name of run ${i + 1}`, title: "type another name" });
    field.value = run.name;
    const fit = () => { field.size = Math.max(4, Math.min(40, field.value.length)); };
    fit();
    box.checked = !hiddenRuns.has(i);
    box.onchange = () => {
      if (box.checked) hiddenRuns.delete(i); else hiddenRuns.add(i);
      keep("hide", hiddenRuns.size > 0 ? [...hiddenRuns].join(",") : null);
      changed();
    };
    field.oninput = () => {
      run.name = field.value.trim() || original;
      fit();
      keep(`name${i}`, run.name === original ? null : run.name);
      changed();
    };
  });
}
