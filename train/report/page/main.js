// ---- the page

const drawMaps = drawAttention(find("attention"));
startCharts();
drawLegend(find("legend"), () => {
  showRuns();
  zoomTo(...(zoom ?? [-Infinity, Infinity]));
  drawMaps();
});
drawGlances(find("glance"));
drawSummary(find("summary"));
drawDifferences(find("differences"));
drawConfusion(find("confusion"));
drawHistograms(find("histograms"));
drawSamples(find("samples"));
drawParameters(find("parameters"));
drawConfigs(find("config"));
showRuns();
matchMedia("(prefers-color-scheme: dark)").onchange = drawMaps;
let drawnWidth = innerWidth;
addEventListener("resize", () => {
  if (drawnWidth === innerWidth) return;  // a phone that shows or hides its address
  drawnWidth = innerWidth;
  drawMaps();
});
