// ---- what a classifier takes for what

/** How often it takes each label for each: a table with the right labels beside the rows. */
function drawConfusion(section) {
  runs.forEach((run, i) => {
    if (run.labels.length === 0) return;
    const size = run.labels.length, counts = run.labels.map((_, row) => run.confusion.slice(row * size, (row + 1) * size));
    const part = element(section, "div", { "data-run": i });
    runElement(part, "h2", i, " Confusion matrix");
    element(part, "p", { class: "note" }, `${run.evaluated_on}: row = right label, column = predicted label`);
    const scroll = element(part, "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "confusion matrix" });
    const table = element(scroll, "table", { class: "confusion" });
    const head = element(table, "tr");
    for (const name of ["", ...run.labels]) element(head, "th", { class: name === "" ? "" : "number" }, name);
    counts.forEach((row, right) => {
      const line = element(table, "tr"), all = Math.max(1, row.reduce((sum, count) => sum + count, 0));
      element(line, "th", {}, run.labels[right]);
      row.forEach((count) => element(line, "td", { class: "number", style: `background: rgba(var(--heat), ${0.5 * count / all})` },
        count.toLocaleString("en")));
    });
  });
}
