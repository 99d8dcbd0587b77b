// Curves over steps in SVG, told apart by dashes as well as colour.
import {element, svg} from './dom.js';
import {short} from './numbers.js';

const widest = 640, height = 260, left = 56, right = 12, top = 10, bottom = 38;
const dashes = [null, '6 4', '2 3', '8 3 2 3'];

/** About five round numbers from low to high. */
function ticks(low, high) {
  const raw = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const first = Math.ceil(low / step), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({length: count}, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/**
 * {label, x, y}: the title for all and of the axes. Returns {node, update(series)}, a series being {name, points: [[x, y], ...]}.
 * Under the pointer or, with the arrow keys, at the place one has moved to, the values are told.
 */
export function lineChart({label, x: xTitle = 'step', y: yTitle = ''}) {
  const picture = svg('svg', {viewBox: `0 0 ${widest} ${height}`, role: 'img', 'aria-label': label, tabindex: 0, class: 'chart'});
  const legend = element('figcaption', {class: 'legend'});
  const told = element('p', {class: 'quiet told', 'aria-live': 'polite'});
  let series = [], xs = [], place = null, toX = null, toY = null, width = widest;

  function draw() {
    const points = series.flatMap((s) => s.points).filter(([, y]) => Number.isFinite(y));
    picture.replaceChildren();
    width = Math.min(widest, picture.clientWidth || widest);  // so that words keep their size on a phone
    picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    legend.replaceChildren(...series.map((s, i) => element('span', {class: `series-${i % 4}`},
      svg('svg', {viewBox: '0 0 30 8', width: 30, height: 8, 'aria-hidden': 'true'},
        svg('path', {d: 'M0 4H30', 'stroke-dasharray': dashes[i % 4]})), s.name)));
    if (points.length === 0) return;
    const bounds = (values) => {
      const low = Math.min(...values), high = Math.max(...values);
      const room = Math.abs(low) / 2 || 0.5;
      return low === high ? [low - room, high + room] : [low, high];
    };
    const [x0, x1] = bounds(points.map((p) => p[0])), [y0, y1] = bounds(points.map((p) => p[1]));
    toX = (x) => left + (x - x0) / (x1 - x0) * (width - left - right);
    toY = (y) => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
    xs = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
    for (const y of ticks(y0, y1)) {
      picture.append(svg('path', {class: 'grid', d: `M${left} ${toY(y)}H${width - right}`}),
        svg('text', {x: left - 6, y: toY(y) + 4, 'text-anchor': 'end'}, short(y)));
    }
    for (const x of ticks(x0, x1)) picture.append(svg('text', {x: toX(x), y: height - 20, 'text-anchor': 'middle'}, short(x)));
    picture.append(svg('text', {x: width - right, y: height - 4, 'text-anchor': 'end'}, xTitle),
      svg('text', {x: 2, y: top + 2}, yTitle));
    series.forEach((s, i) => picture.append(svg('path', {
      class: `curve series-${i % 4}`, 'stroke-dasharray': dashes[i % 4],
      d: s.points.filter(([, y]) => Number.isFinite(y)).map(([x, y], k) => `${k ? 'L' : 'M'}${toX(x)} ${toY(y)}`).join(''),
    })));
    if (place !== null) tell(place);
  }

  function tell(at) {
    if (xs.length === 0) return;
    place = Math.min(xs.length - 1, Math.max(0, at));
    const x = xs[place];
    const values = series.map((s) => [s.name, s.points.find((p) => p[0] === x)?.[1]]).filter(([, y]) => y !== undefined);
    told.textContent = `${xTitle} ${short(x)}: ${values.map(([name, y]) => `${name} ${short(y)}`).join(', ')}`;
    picture.querySelector('.pointer')?.remove();
    picture.append(svg('path', {class: 'pointer', d: `M${toX(x)} ${top}V${height - bottom}`}));
  }

  picture.addEventListener('pointermove', (event) => {
    if (!toX) return;
    const box = picture.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * width;
    tell(xs.reduce((best, x, i) => (Math.abs(toX(x) - at) < Math.abs(toX(xs[best]) - at) ? i : best), 0));
  });
  picture.addEventListener('keydown', (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    tell((place ?? xs.length) + step);
    event.preventDefault();
  });
  return {
    node: element('figure', {class: 'chart-frame'}, legend, picture, told),
    update(next) {
      series = next;
      draw();
    },
  };
}
