// ---- tables and texts

/** A table with a column for every run. */
function runTable(section) {
  const table = element(element(section, "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "runs" }), "table");
  const head = element(table, "tr");
  element(head, "th");
  runs.forEach((_, i) => runElement(head, "th", i, "", { style: `border-color: ${color(i)}` }));
  return table;
}

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
  const table = runTable(section);
  for (const name of new Set(runs.flatMap((run) => run.facts.map((fact) => fact[0])))) {
    const row = element(table, "tr");
    element(row, "td", { class: "note" }, name);
    runs.forEach((run, i) => element(row, "td", { "data-run": i }, run.facts.find((fact) => fact[0] === name)?.[1] ?? ""));
  }
}

/** The keys in which the configs of several runs differ. */
function drawDifferences(section) {
  if (!several) return;
  element(section, "h2", {}, "Where the configs differ");
  if (page.differences.length === 0) {
    element(section, "p", { class: "note" }, "the configs of these runs are the same");
    return;
  }
  const table = runTable(section);
  for (const [key, ...values] of page.differences) {
    const row = element(table, "tr");
    element(row, "td", { class: "note" }, key);
    values.forEach((value, i) => element(row, "td", { "data-run": i }, value));
  }
}

function drawParameters(section) {
  runs.forEach((run, i) => {
    if (run.parameters.length === 0) {
      runElement(section, "p", i, " parameters: unknown, as no checkpoint of the run could be read", { class: "note" });
      return;
    }
    const total = run.parameters.reduce((sum, p) => sum + p.count, 0);
    const fold = element(section, "details", { "data-run": i, ...(!several && run.parameters.length < 30 ? { open: "" } : {}) });
    runElement(fold, "summary", i, ` ${total.toLocaleString("en")} parameters`);
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
    const fold = element(section, "details", { "data-run": i });
    runElement(fold, "summary", i, " config");
    element(fold, "pre", {}, run.config);
  });
}

