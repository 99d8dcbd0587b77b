// ---- samples of what the model writes

function drawSample(parent, { prompt, continuation }) {
  const text = element(parent, "pre", { class: "sample" });
  element(text, "b", {}, prompt);
  text.append(continuation);
}

function drawSamples(section) {
  runs.forEach((run, i) => {
    if (run.samples.length === 0 && run.written.length === 0) return;
    const part = element(section, "div", { "data-run": i });
    runElement(part, "h2", i, " Samples");
    element(part, "p", { class: "note" }, `bold: from the ${run.evaluated_on}; then ${run.labels.length > 0
      ? "the label that the model gives and, if it differs, the right one" : "what the model continues with"}`);
    for (const sample of run.samples) drawSample(part, sample);
    if (run.written.length === 0) return;
    const fold = element(part, "details", { open: "" });
    element(fold, "summary", {}, `while it was trained (${run.written.length} samples)`);
    const list = element(fold, "div", { class: "written", tabindex: 0, role: "region", "aria-label": "samples by step" });
    for (const sample of run.written) {
      element(list, "h3", {}, `step ${number(stepOf(sample))}`);
      drawSample(list, sample);
    }
  });
}
