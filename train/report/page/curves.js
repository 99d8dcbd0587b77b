// ---- curves: [[x, value, step], ...] in ascending order

/** Steps are counted from 1 here, as in the terminal and in checkpoints/step-N. */
const stepOf = (row) => row.step + 1;

/** Seconds in what time is counted in. */
const kUnits = { seconds: 1, minutes: 60, hours: 3600 };
const longest = runs.reduce((most, run) => run.metrics.reduce((time, row) => Math.max(time, row.seconds ?? 0), most), 0);
const unit = longest > 7200 ? "hours" : longest > 300 ? "minutes" : "seconds";

/** What the charts may run along: the place of a row of metrics, and how it is said. Places a run has not are left out. */
const kAxes = {
  steps: { place: (run, row) => stepOf(row), say: (x) => `at step ${number(x)}` },
  tokens: { place: (run, row) => (run.tokens_per_step > 0 ? stepOf(row) * run.tokens_per_step : null),
            say: (x, step) => `after ${number(x)} tokens (step ${number(step)})` },
  time: { place: (run, row) => (known(row.seconds) ? row.seconds / kUnits[unit] : null),
          say: (x, step) => `after ${number(x)} ${unit} (step ${number(step)})` },
};
let axis = Object.hasOwn(kAxes, settings.get("axis") ?? "") ? kAxes[settings.get("axis")] : kAxes.steps;

/** The curve of one key of metrics.jsonl. */
const points = (run, key) => run.metrics.filter((row) => known(row[key]) && known(axis.place(run, row)))
  .map((row) => [axis.place(run, row), row[key], stepOf(row)]);

/** The exponential moving average of the values, its first ones corrected for their missing past. */
function smoothed(curve, share) {
  let mean = 0, weight = 0;
  return curve.map(([x, value, step]) => {
    mean = share * mean + (1 - share) * value;
    weight = share * weight + (1 - share);
    return [x, mean / weight, step];
  });
}

/** The point whose place is closest. */
function nearest(curve, x) {
  let low = 0, high = curve.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve[middle][0] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - curve[low - 1][0] < curve[low][0] - x ? curve[low - 1] : curve[low];
}

/** The points of a curve inside of a range, and one beyond each end, to which lines lead. */
function within(curve, [left, right]) {
  const first = curve.findIndex((p) => p[0] >= left);
  if (first < 0) return curve.slice(-1);
  const beyond = curve.findIndex((p) => p[0] > right);
  return curve.slice(Math.max(0, first - 1), beyond < 0 ? curve.length : beyond + 1);
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
