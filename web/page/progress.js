// How a run goes, from its metrics: the numbers of the last step, and curves over steps.
import {lineChart} from './widgets/chart.js';
import {element} from './widgets/dom.js';
import {short} from './widgets/numbers.js';

const names = ['step', 'loss', 'validation loss', 'validation accuracy', 'learning rate', 'gradient norm', 'tokens a second'];

/** At most 300 of the points, the last one among them. */
function thinned(points) {
  const every = Math.ceil(points.length / 300);
  return points.filter((_, i) => (points.length - 1 - i) % every === 0);
}

/** Returns {node, update(run)}: run is null, or {history, steps, all}: objects with the keys of metrics.jsonl, steps done and wanted. */
export function progress() {
  const values = names.map(() => element('dd', {}, '—'));
  const losses = lineChart({label: 'Loss', y: 'loss'});
  const norms = lineChart({label: 'Gradient norm', y: 'norm'});
  const rates = lineChart({label: 'Learning rate', y: 'rate'});
  const more = element('details', {toggle: () => update(shown)}, element('summary', {}, 'Gradient norm and learning rate'), norms.node, rates.node);
  let shown = null;

  function update(run) {
    shown = run;
    const history = run?.history ?? [];
    const last = history.at(-1), checked = history.findLast((step) => step.val_loss !== undefined);
    const texts = [run ? `${run.steps} of ${run.all}` : '—', short(last?.loss), short(checked?.val_loss), short(checked?.val_accuracy),
      short(last?.lr), short(last?.grad_norm), last ? Math.round(last.tokens_per_second).toLocaleString('en') : '—'];
    texts.forEach((text, i) => {
      values[i].textContent = text;
    });
    const curve = (name, key) => ({name, points: thinned(history.filter((line) => typeof line[key] === 'number').map((line) => [line.step + 1, line[key]]))});
    losses.update([curve('training', 'loss'), curve('validation', 'val_loss')].filter(({points}) => points.length > 0));
    if (!more.open) return;
    norms.update([curve('all gradients, before clipping', 'grad_norm')]);
    rates.update([curve('learning rate', 'lr')]);
  }
  return {
    node: element('div', {}, element('dl', {class: 'readouts'}, names.map((name, i) => element('div', {}, element('dt', {}, name), values[i]))),
      losses.node, more),
    update,
  };
}
