// The room on attention: a sentence, and every matrix from its embeddings to its context vectors, as the engine computes them.
import {element} from './widgets/dom.js';
import {choice, integer, slider, text, toggle} from './widgets/controls.js';
import {matrix} from './widgets/matrix.js';
import {pretty} from './widgets/numbers.js';

const standard = {
  sentence: 'Your journey starts with one step', weights: 'uniform', seed: 123, width: 2, heads: 1, masked: false, scaled: true,
  dropout: 0, dropout_seed: 123, dialect: 'torch', output: false,
};

const groups = {
  embeddings: ['Embeddings', 'Each word is three numbers. The words of the book’s sentence have the book’s; any other word gets ' +
    'numbers of its own, the same wherever it is.'],
  weights: ['Weight matrices', 'They are what training changes. Here they are as they are drawn from the seed.'],
  projections: ['Queries, keys and values', 'The embedding of each word, times each matrix: what the word looks for, what it is ' +
    'found by, and what it passes on.'],
  heads: ['Split into heads', 'Each head takes some columns of the queries, keys and values for itself.'],
  scores: ['Scores', 'How well the query of a word (row) fits the key of a word (column): their dot product.'],
  masked: ['Causal mask', 'No word looks at words that come after it. Their scores become −∞, of which softmax makes 0.'],
  scaled: ['Scaled scores', 'Divided by the square root of the width of a key: a sum of more products would be larger.'],
  softmax: ['Attention weights', 'Softmax along each row: every weight is positive, and each row sums to 1.'],
  dropout: ['Dropout', 'In training some weights are set to 0 at random, and the others grow so that the mean stays.'],
  context: ['Context vectors', 'For each word, the sum of all values, each times its weight.'],
  merged: ['Heads side by side', 'The context vectors of all heads, concatenated for each word.'],
  output: ['Output projection', 'One more matrix mixes what the heads have found.'],
};

const captions = {
  x: 'x', W_query: 'W_query', W_key: 'W_key', W_value: 'W_value', queries: 'queries', keys: 'keys', values: 'values',
  query_heads: 'queries', key_heads: 'keys', value_heads: 'values', W_out: 'W_out', b_out: 'b_out', output: 'output',
};

const editable = new Set(['x', 'W_query', 'W_key', 'W_value', 'queries', 'keys', 'values', 'W_out']);

const weightChoices = [['none', 'none: words as they are'], ['uniform', 'uniform from 0 to 1'], ['linear', 'as a Linear layer draws'],
  ['per head', 'Linear layers, head by head']];

/** The choice that a URL stands for: what it leaves out is standard. Edits are step:row:column:value, separated by commas. */
function fromUrl(state) {
  const chosen = {...standard};
  for (const [name, value] of Object.entries(standard)) {
    if (!(name in state)) continue;
    chosen[name] = typeof value === 'boolean' ? state[name] === 'true' : typeof value === 'number' ? Number(state[name]) : state[name];
  }
  chosen.edits = {};
  for (const edit of (state.edits ?? '').split(',').filter(Boolean)) {
    const [step, row, column, value] = edit.split(':');
    (chosen.edits[step] ??= []).push([Number(row), Number(column), Number(value)]);
  }
  return chosen;
}

function toUrl(chosen, cell) {
  const state = {};
  for (const [name, value] of Object.entries(standard)) if (chosen[name] !== value) state[name] = String(chosen[name]);
  const edits = Object.entries(chosen.edits).flatMap(([step, list]) => list.map((edit) => [step, ...edit].join(':')));
  if (edits.length) state.edits = edits.join(',');
  if (cell) state.cell = [cell.step, cell.head, cell.row, cell.column].join(':');
  return state;
}

function axis(kind, size, words) {
  if (kind === 'words') return words;
  if (kind === 'one') return [''];
  return Array.from({length: size}, (_, i) => String(i + 1));
}

function badge(printed, section, words) {
  if (!printed) return null;
  if (!printed.agrees) return element('p', {class: 'badge wrong'}, `Not as the book prints it: ${printed.difference}`);
  const which = printed.row === null ? `all ${printed.numbers}` : `row ${words[printed.row]}`;
  return element('p', {class: 'badge', title: `Section ${section} of the book`}, `✓ the book’s digits, ${which}`);
}

/** One group of steps: its matrices, and beside them the lines that computed them. */
function groupCard(number, group, steps, room, point, pick) {
  const [title, about] = groups[group];
  const drawn = [];
  const figures = steps.map((step) => {
    const rows = axis(step.rows, step.values[0].length, room.words);
    const columns = axis(step.columns, step.values[0][0].length, room.words);
    const matrices = step.values.map((values, head) => {
      const caption = [captions[step.name], step.per_head ? `head ${head + 1}` : null].filter(Boolean).join(', ');
      const widget = matrix({
        caption, label: `${title} ${caption}`, rows: step.rows === 'one' ? null : rows, columns, values, texts: step.texts[head],
        edited: step.edited,
        onPoint: (row, column) => point({step: step.name, head, row, column}),
        onPick: (row, column) => pick({step: step.name, head, row, column}),
      });
      drawn.push({step: step.name, head, widget});
      return widget.node;
    });
    return element('div', {class: 'step', 'data-step': step.name}, element('div', {class: 'heads'}, matrices),
      badge(step.printed, room.section, room.words));
  });
  const code = (language, key) => element('div', {class: 'code'}, element('h3', {}, language),
    element('pre', {tabindex: 0, 'aria-label': `${title} in ${language}`}, steps.map((step) => step[key]).join('\n')));
  const card = element('section', {class: `card ${steps[0].per_head ? 'wide' : ''}`, 'data-group': group, 'aria-label': title},
    element('div', {class: 'card-head'}, element('span', {class: 'number', 'aria-hidden': 'true'}, String(number)),
      element('div', {}, element('h2', {}, title), element('p', {class: 'quiet'}, about))),
    element('div', {class: 'card-body'}, element('div', {class: 'figures'}, figures),
      element('div', {class: 'codes'}, code('C++', 'cpp'), code('Python', 'python'))));
  return {card, drawn};
}

/** What the cell under the pointer is made of, and a slider where it can be set. */
function inspector(onEdit) {
  const where = element('p', {class: 'where'}, 'Point at a number, or move there with the arrow keys.');
  const formula = element('p', {class: 'formula'});
  const numbers = element('p', {class: 'numbers'});
  const range = element('input', {type: 'range', min: -2, max: 2, step: 0.01, 'aria-label': 'Set this number',
    input: () => onEdit(Number(range.value))});
  const exact = element('input', {type: 'number', step: 0.01, 'aria-label': 'Set this number exactly',
    change: () => exact.value !== '' && onEdit(Number(exact.value))});
  const reset = element('button', {type: 'button', click: () => onEdit(null)}, 'as computed');
  const setting = element('div', {class: 'setting', hidden: true}, range, exact, reset);
  const live = element('div', {'aria-live': 'polite'}, where, formula, numbers);
  return {
    node: element('aside', {class: 'inspector', 'aria-label': 'This number'}, live, setting),
    show(place, answer, words, {pinned, edited}) {
      const kind = captions[place.step] ?? groups[place.group][0].toLowerCase();
      const text = pretty(typeof answer.value === 'number' ? answer.value.toFixed(4) : answer.value);
      where.replaceChildren(element('strong', {}, kind), place.label, pinned ? element('span', {class: 'pin'}, ' pinned') : '');
      formula.textContent = edited ? 'set by hand' : answer.formula;
      numbers.replaceChildren(...(answer.numbers && !edited ? [pretty(answer.numbers), ' = '] : []),
        element('strong', {class: 'result'}, place.text ?? text));
      setting.hidden = !pinned || !editable.has(place.step);
      if (document.activeElement !== range) range.value = answer.value;
      if (document.activeElement !== exact) exact.value = Number(answer.value).toFixed(2);
      reset.disabled = !edited;
    },
    hideSetting() {
      setting.hidden = true;
    },
  };
}

export async function show(root, startEngine, state, setState) {
  const engine = await startEngine();
  const sections = await engine.call('attention_sections');
  let chosen = fromUrl(state);
  let room = null, drawn = [], pointed = null, pinned = null, turn = 0, asked = 0;
  if (state.cell) {
    const [step, head, row, column] = state.cell.split(':');
    pinned = {step, head: Number(head), row: Number(row), column: Number(column)};
  }

  const steps = element('div', {class: 'steps'});
  const failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  const panel = inspector((value) => edit(value));

  // ---- one number
  const same = (a, b) => a && b && a.step === b.step && a.head === b.head && a.row === b.row && a.column === b.column;
  const isEdited = (cell) => (chosen.edits[cell.step] ?? []).some(([row, column]) => row === cell.row && column === cell.column);

  function mark(cell, sources, kind) {
    for (const {step, head, widget} of drawn) {
      widget.clear('source');
      widget.clear(kind);
      widget.mark(sources.filter((s) => s.step === step && s.head === head), 'source');
      if (step === cell.step && head === cell.head) widget.mark([cell], kind);
    }
  }
  async function explain(cell) {
    const mine = ++asked;
    const step = room.steps.find((s) => s.name === cell.step);
    if (!step?.values[cell.head]?.[cell.row] || cell.column >= step.values[0][0].length) return;
    const answer = await engine.call('attention_cell', {...chosen, ...cell});
    if (mine !== asked) return;
    const rows = axis(step.rows, step.values[0].length, room.words), columns = axis(step.columns, step.values[0][0].length, room.words);
    const label = `${step.per_head ? `, head ${cell.head + 1}` : ''}${rows[cell.row] ? `: row ${rows[cell.row]}` : ':'}, column ${columns[cell.column]}`;
    drawn.forEach(({widget}) => widget.clear('pinned'));
    mark(cell, answer.sources, same(cell, pinned) ? 'pinned' : 'pointed');
    panel.show({...cell, group: step.group, label, text: pretty(step.texts[cell.head][cell.row][cell.column])}, answer, room.words,
      {pinned: same(cell, pinned), edited: isEdited(cell)});
  }
  function point(cell) {
    if (pinned || same(cell, pointed)) return;
    pointed = cell;
    explain(cell);
  }
  function pick(cell) {
    pinned = same(cell, pinned) ? null : cell;
    drawn.forEach(({widget}) => widget.clear('pinned'));
    explain(cell);
    setState(toUrl(chosen, pinned));
  }
  function edit(value) {
    if (!pinned) return;
    const others = (chosen.edits[pinned.step] ?? []).filter(([row, column]) => row !== pinned.row || column !== pinned.column);
    if (value !== null) others.push([pinned.row, pinned.column, value]);
    const edits = {...chosen.edits, [pinned.step]: others};
    if (others.length === 0) delete edits[pinned.step];
    change({edits});
  }

  // ---- all steps
  async function compute() {
    const mine = ++turn;
    try {
      const next = await engine.call('attention', chosen);
      if (mine !== turn) return;
      room = next;
    } catch (error) {
      if (mine !== turn) return;
      failure.hidden = false;
      failure.textContent = error.message;
      return;
    }
    failure.hidden = true;
    const names = [...new Set(room.steps.map((step) => step.group))];
    const cards = names.map((group, i) => groupCard(i + 1, group, room.steps.filter((s) => s.group === group), room, point, pick));
    drawn = cards.flatMap((card) => card.drawn);
    steps.replaceChildren(...cards.map((card) => card.card));
    clearEdits.hidden = Object.keys(chosen.edits).length === 0;
    section.set(room.section ?? 'own');
    if (pinned) await explain(pinned);
    steps.dataset.turn = mine;
  }
  function change(part) {
    chosen = {...chosen, ...part};
    setState(toUrl(chosen, pinned));
    showControls();
    compute();
  }

  // ---- controls
  const section = choice({label: 'Section of the chapter', value: 'own',
    choices: [...sections.map((s) => [s.section, `${s.section} ${s.title}`]), ['own', 'my own']],
    onChange: (number) => {
      const found = sections.find((s) => s.section === number);
      if (!found) return;
      pinned = null;
      panel.hideSetting();
      change({...found.choice, edits: {}});
    }});
  const dividing = (width, heads) => Math.max(heads, Math.round(width / heads) * heads);
  const controls = {
    sentence: text({label: 'Sentence', value: chosen.sentence, maxlength: 200, onChange: (sentence) => change({sentence, edits: {}})}),
    weights: choice({label: 'Weights', choices: weightChoices, value: chosen.weights, onChange: (weights) =>
      change(weights === 'none' ? {weights, heads: 1, output: false, width: 3, edits: {}} : {weights, edits: {}})}),
    seed: integer({label: 'Seed', min: 0, max: 999999, value: chosen.seed, onChange: (seed) => change({seed})}),
    heads: slider({label: 'Heads', min: 1, max: 4, value: chosen.heads,
      onChange: (heads) => change({heads, width: dividing(chosen.width, heads), edits: {}})}),
    width: slider({label: 'Width of all queries', min: 1, max: 8, value: chosen.width,
      onChange: (width) => change({width: dividing(width, chosen.heads), edits: {}})}),
    masked: toggle({label: 'Causal mask', value: chosen.masked, onChange: (masked) => change({masked})}),
    scaled: toggle({label: 'Scaling', value: chosen.scaled, onChange: (scaled) => change({scaled})}),
    output: toggle({label: 'Output projection', value: chosen.output, onChange: (output) => change({output})}),
    dropout: slider({label: 'Dropout', min: 0, max: 0.9, step: 0.05, value: chosen.dropout, show: (p) => p.toFixed(2),
      onChange: (dropout) => change({dropout})}),
    dropout_seed: integer({label: 'Seed of dropout', min: 0, max: 999999, value: chosen.dropout_seed,
      onChange: (seed) => change({dropout_seed: seed})}),
    dialect: choice({label: 'Dropout mask of', value: chosen.dialect, onChange: (dialect) => change({dialect}),
      choices: [['torch', 'PyTorch 2.7 and later'], ['torch-mkl', 'older PyTorch on Intel']]}),
  };
  const clearEdits = element('button', {type: 'button', hidden: true, click: () => change({edits: {}})}, 'Undo all numbers set by hand');
  function showControls() {
    for (const [name, control] of Object.entries(controls)) control.set(chosen[name]);
    const bare = chosen.weights === 'none';
    for (const name of ['seed', 'heads', 'width', 'output']) controls[name].node.hidden = bare;
    for (const name of ['dropout_seed', 'dialect']) controls[name].node.hidden = chosen.dropout === 0;
  }
  const order = ['weights', 'seed', 'heads', 'width', 'dropout', 'masked', 'scaled', 'output', 'dropout_seed', 'dialect'];
  const onKey = (event) => {
    if (event.key !== 'Escape' || !pinned) return;
    const cell = pinned;
    pinned = null;
    setState(toUrl(chosen, null));
    explain(cell);
  };
  document.addEventListener('keydown', onKey);
  root.append(
    element('div', {class: 'intro'}, element('h1', {}, 'Attention'),
      element('p', {}, 'How a word gathers meaning from the other words of its sentence, one matrix at a time. Point at any number to see ' +
        'what made it; choose it, by a click or Enter, to keep it and, in inputs and weights, to change it.')),
    element('form', {class: 'card controls', 'aria-label': 'What is computed', submit: (event) => event.preventDefault()},
      controls.sentence.node, section.node, order.map((name) => controls[name].node), clearEdits),
    failure, steps, panel.node);
  showControls();
  await compute();
  return () => document.removeEventListener('keydown', onKey);
}
