// The room on the backward pass: a small program, its recorded graph, and one node at a time forward and back.
import {element} from './widgets/dom.js';
import {choice, toggle} from './widgets/controls.js';
import {graph} from './widgets/graph.js';
import {matrix} from './widgets/matrix.js';
import {asRows, brief, reshape, short} from './widgets/numbers.js';

const signs = {mul: '×', add: '+', sub: '−', div: '÷', matmul: '@', pow: '^', neg: '−'};

/** What an op's rule does with the gradient g that arrives at out. */
const rules = {
  add: 'a and b each get g (summed where they were repeated to fit)',
  sub: 'a gets g, b gets −g',
  mul: 'a gets g · b, b gets g · a',
  div: 'a gets g / b, b gets −g · a / b²',
  neg: 'the input gets −g',
  pow: 'the base gets g · n · baseⁿ⁻¹',
  matmul: 'a gets g bᵀ, b gets aᵀ g',
  dot: 'a gets g · b, b gets g · a',
  exp: 'the input gets g · out: exp is its own derivative',
  log: 'the input gets g / input',
  sqrt: 'the input gets g / (2 out)',
  tanh: 'the input gets g · (1 − out²)',
  sigmoid: 'the input gets g · out · (1 − out)',
  relu: 'the input gets g where it was positive, else 0',
  abs: 'the input gets g · sign(input)',
  sin: 'the input gets g · cos(input)',
  cos: 'the input gets −g · sin(input)',
  sum: 'every element that was summed gets g',
  mean: 'every element gets g, divided by their number',
  softmax: 'the input gets out · (g − sum(g · out))',
  log_softmax: 'the input gets g − softmax · sum(g)',
  cross_entropy: 'the logits get g · (softmax − one-hot target)',
  masked_fill: 'the input gets g, and 0 where the mask is',
  transpose: 'the input gets g, transposed',
  select: 'the chosen element gets g, all others 0',
  copy_slices: 'what was overwritten gets 0, what was written gets its part of g',
  copy_: 'what was written gets g',
  clone: 'the input gets g',
  maximum: 'the larger one gets g',
  minimum: 'the smaller one gets g',
};

const nameOf = (node) => node.name || node.text || node.op;

/** A labelled value of any shape: a number in the line, more as a matrix. */
function quantity(label, values, extra = null) {
  if (values === null) return element('p', {class: 'quantity'}, element('span', {class: 'label'}, label), '—');
  if (!Array.isArray(values))
    return element('p', {class: 'quantity'}, element('span', {class: 'label'}, label), element('strong', {}, short(values)), extra);
  return element('div', {class: 'quantity'}, element('span', {class: 'label'}, label, extra),
    element('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label}, matrix({values: asRows(values)}).node));
}

export async function show(root, startEngine, state, setState) {
  const engine = await startEngine();
  const examples = await engine.call('backward_examples');
  let program = state.program ?? examples[0].program;
  let order = state.order ?? (state.program ? 'newest first' : examples[0].order);
  let pass = null, picture = null, position = 0, turn = 0;
  const narrow = matchMedia('(max-width: 700px)');

  const failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  const about = element('p', {class: 'quiet about'});
  const canvas = element('div', {class: 'canvas scroll', role: 'group', 'aria-label': 'The recorded graph', tabindex: 0});
  const detail = element('div', {class: 'card detail', 'aria-live': 'polite'});
  const leaves = element('div', {class: 'card leaves'});

  // ---- stepping: first every node is computed, then every node is visited
  const forwardSteps = () => pass.nodes.length;
  const lastStep = () => pass.nodes.length + pass.visits.length;
  const current = () => (position === 0 ? null : position <= forwardSteps()
    ? {forward: true, node: position - 1}
    : {forward: false, visit: pass.visits[position - 1 - forwardSteps()], node: pass.visits[position - 1 - forwardSteps()].node});

  function saveState() {
    const next = {program};
    if (order !== 'newest first') next.order = order;
    next.step = String(position);
    setState(next);
  }
  function go(to) {
    if (!pass) return;
    position = Math.min(lastStep(), Math.max(0, to));
    saveState();
    showStep();
  }

  function showStep() {
    const now = current();
    const done = Math.min(position, forwardSteps());
    const visits = pass.visits.slice(0, Math.max(0, position - forwardSteps()));
    const gradient = new Map(visits.map((visit) => [visit.node, visit.gradient]));
    const arrived = new Map();
    for (const visit of visits) for (const gives of visit.gives) arrived.set(gives.input, gives.sum);
    const failed = pass.failure && pass.failure.node !== null && position === lastStep() ? pass.failure.node : null;

    pass.nodes.forEach((node, i) => {
      const computed = i < done;
      const classes = [computed ? 'computed' : '', gradient.has(i) ? 'visited' : '', now?.node === i ? 'now' : '', failed === i ? 'failed' : ''];
      const g = gradient.has(i) ? gradient.get(i) : arrived.get(i);
      picture.style(i, classes.filter(Boolean).join(' '), [label(node), computed ? brief(node.values) : '·',
        failed === i ? '✗ error' : g === undefined ? '' : `grad ${brief(g, 2)}${gradient.has(i) ? '' : ' so far'}`]);
      node.inputs.forEach((input, at) => {
        if (input !== null) picture.edge(i, at, computed ? 'computed' : '');
      });
    });
    for (const visit of visits) {
      for (const gives of visit.gives) {
        const active = now && !now.forward && now.visit === visit;
        const text = Array.isArray(gives.gradient) ? '' : `${typeof gives.gradient === 'number' && gives.gradient >= 0 ? '+' : ''}${short(gives.gradient)}`;
        picture.edge(visit.node, gives.position, `carried ${active ? 'active' : ''} ${gives.late ? 'late' : ''}`,
          gives.late ? `${text} too late` : text);
      }
    }
    slider.max = lastStep();
    slider.value = position;
    const phase = position === 0 ? 'Nothing is computed yet' : now.forward ? `Forward, node ${position} of ${forwardSteps()}`
      : `Backward, node ${position - forwardSteps()} of ${pass.visits.length}`;
    told.textContent = phase;
    slider.setAttribute('aria-valuetext', phase);
    back.disabled = first.disabled = position === 0;
    next.disabled = last.disabled = position === lastStep();
    detail.replaceChildren(...describe(now, arrived));
    leaves.replaceChildren(...leafTable(gradient));
    if (now) follow(now.node);
    root.dataset.step = position;
  }

  function label(node) {
    if (node.leaf) return node.name;
    const op = signs[node.op] ?? node.op;
    return node.name ? `${node.name} (${op})` : op;
  }

  /** Keeps the node in view. */
  function follow(i) {
    const {x, y, width, height} = picture.place(i);
    if (x < canvas.scrollLeft || x + width > canvas.scrollLeft + canvas.clientWidth)
      canvas.scrollLeft = x - (canvas.clientWidth - width) / 2;
    if (y < canvas.scrollTop || y + height > canvas.scrollTop + canvas.clientHeight)
      canvas.scrollTop = y - (canvas.clientHeight - height) / 2;
  }

  function describe(now, arrived) {
    if (!now) return [element('h2', {}, 'Before the first step'), element('p', {class: 'quiet'}, 'Step forward: each node is an op that is recorded as it is computed.')];
    const node = pass.nodes[now.node];
    const parts = [element('h2', {}, `${now.forward ? 'Computed' : 'Visited'}: ${nameOf(node)}`)];
    if (now.forward) {
      parts.push(element('p', {class: 'quiet'}, node.leaf ? 'A leaf: a value of yours, whose gradient is asked for.'
        : `The op ${node.op}, recorded with edges to its inputs ${inputNames(node).join(', ') || '(constants only)'}.`));
      parts.push(quantity('value', node.values));
      if (pass.failure && pass.failure.stage === 'forward' && position === lastStep()) parts.push(...failureNote());
      return parts;
    }
    parts.push(quantity('value', node.values), quantity('gradient that has arrived', now.visit.gradient));
    if (node.leaf) {
      parts.push(element('p', {class: 'quiet'}, 'A leaf: the gradient is added to what it has collected, and the pass goes no further here.'));
    } else if (rules[node.op]) {
      parts.push(element('p', {class: 'rule'}, element('span', {class: 'label'}, `rule of ${node.op}`), rules[node.op]));
    }
    for (const local of now.visit.local) {
      const input = pass.nodes[local.input];
      const name = `local derivative by ${nameOf(input)}${whichInput(node, local)}`;
      const uniform = local.diagonal && local.values.every((value) => value === local.values[0]);
      if (uniform && local.values.length > 1) parts.push(quantity(name, local.values[0], ' for every element by its own'));
      else if (local.diagonal) parts.push(quantity(name, reshape(local.values, node.shape), node.shape.length ? ' (each element by its own; all others are 0)' : null));
      else parts.push(quantity(`${name} (row: element of this value, column: element of ${nameOf(input)})`, local.values));
    }
    for (const gives of now.visit.gives) {
      const input = pass.nodes[gives.input];
      const whole = JSON.stringify(gives.gradient) === JSON.stringify(gives.sum);
      parts.push(quantity(`gives ${nameOf(input)}${whichInput(node, gives)}`, gives.gradient));
      if (gives.late) parts.push(element('p', {class: 'late'}, `Too late: ${nameOf(input)} was visited before, and does not pass this on.`));
      else if (!whole) parts.push(quantity(`${nameOf(input)} has now, all added up`, gives.sum));
    }
    if (pass.failure?.node === now.node && position === lastStep()) parts.push(...failureNote());
    return parts;
  }
  const whichInput = (node, at) => (node.inputs.filter((i) => i === at.input).length > 1 ? ` (input ${at.position + 1})` : '');
  const inputNames = (node) => node.inputs.filter((i) => i !== null).map((i) => nameOf(pass.nodes[i]));

  function failureNote() {
    return [element('p', {class: 'failure', role: 'alert'}, element('strong', {}, `${pass.failure.type} `), pass.failure.message)];
  }

  function leafTable(visited) {
    const rows = pass.leaves.flatMap((leaf) => {
      const numeric = asRows(leaf.numeric).flat();
      const gradient = leaf.gradient === null || !visited.has(leaf.node) ? numeric.map(() => null) : asRows(leaf.gradient).flat();
      return numeric.map((number, i) => {
        const far = typeof gradient[i] === 'number' && typeof number === 'number' &&
          Math.abs(gradient[i] - number) > 1e-5 * Math.max(1, Math.abs(number));
        const verdict = gradient[i] === null || typeof number !== 'number' ? '' : far ? '≠ differs' : '✓ agrees';
        return element('tr', {class: far ? 'differs' : ''},
          element('th', {scope: 'row'}, numeric.length > 1 ? `${leaf.name}[${indexOf(leaf.numeric, i)}]` : leaf.name),
          element('td', {}, short(gradient[i])), element('td', {}, short(number)), element('td', {}, verdict));
      });
    });
    return [element('h2', {}, 'Gradients and finite differences'),
      element('p', {class: 'quiet'}, 'The right column moves each input a little, up and down, and computes the program again.'),
      rows.length ? element('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Gradients and finite differences'}, element('table', {class: 'plain'},
        element('thead', {}, element('tr', {}, ['input', 'gradient', 'finite difference', ''].map((t) => (t ? element('th', {scope: 'col'}, t) : element('td', {}))))),
        element('tbody', {}, rows))) : element('p', {}, 'No input of the result has a gradient.')];
  }
  function indexOf(values, at) {
    if (!Array.isArray(values[0])) return String(at);
    const inner = asRows(values[0]).flat().length;
    return `${Math.floor(at / inner)}, ${indexOf(values[0], at % inner)}`;
  }

  // ---- the program
  async function compute(to = null) {
    const mine = ++turn;
    try {
      const result = await engine.call('backward', {program, order});
      if (mine !== turn) return;
      pass = result;
    } catch (error) {
      if (mine !== turn) return;
      failure.hidden = false;
      failure.replaceChildren(element('strong', {}, `${error.type ?? 'Error'} `), error.message);
      return;
    }
    const early = pass.failure && (pass.failure.stage === 'forward' || pass.failure.node === null);
    failure.hidden = !early;
    if (early) {
      const quoted = pass.failure.span ? program.slice(...characters(pass.failure.span)) : '';
      failure.replaceChildren(element('strong', {}, `${pass.failure.type} `), quoted ? element('code', {}, quoted) : '', ` ${pass.failure.message}`);
    }
    draw();
    position = Math.min(lastStep(), Math.max(0, to ?? forwardSteps()));
    saveState();
    showStep();
  }
  /** Places in bytes of UTF-8 as places in the text. */
  function characters(span) {
    const bytes = new TextEncoder().encode(program);
    return span.map((at) => new TextDecoder().decode(bytes.slice(0, at)).length);
  }
  function draw() {
    const shown = pass.nodes.length ? pass.nodes : [];
    if (shown.length === 0) {
      picture = {style() {}, edge() {}, place: () => ({x: 0, y: 0, width: 0, height: 0})};
      canvas.replaceChildren(element('p', {class: 'quiet'}, 'Nothing was recorded.'));
      return;
    }
    picture = graph({
      nodes: shown.map((node) => ({inputs: node.inputs, kind: node.leaf ? 'leaf' : 'op', lines: [label(node)]})),
      label: 'Nodes of the graph', vertical: narrow.matches, onPick: jumpTo,
    });
    canvas.replaceChildren(picture.node);
  }
  /** A chosen node: its visit if there is one and the pass has begun, else where it was computed. */
  function jumpTo(node) {
    const visit = pass.visits.findIndex((v) => v.node === node);
    go(position > forwardSteps() && visit >= 0 ? forwardSteps() + visit + 1 : node + 1);
  }

  const found = () => examples.find((e) => e.program === program);
  const example = choice({label: 'Example', value: found()?.name ?? 'own',
    choices: [...examples.map((e) => [e.name, e.title]), ['own', 'my own']], onChange: (name) => {
      const chosen = examples.find((e) => e.name === name);
      if (!chosen) return;
      program = editor.value = chosen.program;
      setOrder(chosen.order);
      fit();
      compute();
    }});
  const wrongOrder = toggle({label: 'Visit each node as soon as it is reached (a wrong order)', value: order !== 'newest first', onChange: (on) => {
    order = on ? 'depth first' : 'newest first';
    compute(position);
  }});
  function setOrder(value) {
    order = value;
    wrongOrder.set(order !== 'newest first');
    about.textContent = found()?.about ?? '';
  }
  const editor = element('textarea', {id: 'program', spellcheck: 'false', autocapitalize: 'off', rows: 4, maxlength: 4000, input: () => {
    program = editor.value;
    example.set(found()?.name ?? 'own');
    about.textContent = found()?.about ?? '';
    fit();
    compute();
  }});
  editor.value = program;
  function fit() {
    editor.rows = Math.min(14, Math.max(4, editor.value.split('\n').length));
  }

  const button = (label, name, to) => element('button', {type: 'button', 'aria-label': name, title: name, click: () => go(to())}, label);
  const first = button('|◀', 'To the beginning', () => 0);
  const back = button('◀', 'One step back', () => position - 1);
  const next = button('▶', 'One step on', () => position + 1);
  const last = button('▶|', 'To the end', () => lastStep());
  const slider = element('input', {type: 'range', min: 0, max: 1, step: 1, 'aria-label': 'Step', input: () => go(Number(slider.value))});
  const told = element('p', {class: 'told'});
  const stepper = element('div', {class: 'stepper', role: 'group', 'aria-label': 'Steps', keydown: (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by || event.target === slider) return;
    go(position + by);
    event.preventDefault();
  }}, element('div', {class: 'buttons'}, first, back, next, last), slider, told);

  const onResize = () => {
    if (!pass) return;
    draw();
    showStep();
  };
  narrow.addEventListener('change', onResize);
  about.textContent = found()?.about ?? '';
  fit();
  root.append(
    element('div', {class: 'intro'}, element('h1', {}, 'Backward'),
      element('p', {}, 'How gradients come about. The engine records each op of a small program as a node; a backward pass then visits the ' +
        'nodes from the last to the first and hands every input its share.')),
    element('div', {class: 'workbench'},
      element('div', {class: 'card program'}, example.node, about,
        element('label', {for: 'program'}, 'Program'), editor,
        element('details', {}, element('summary', {}, 'What a program can hold'), element('p', {class: 'quiet'},
          'A name with a number or a list is an input with a gradient: w = [0.8, 0.3]. Operators are + − * / ^ @ and brackets; ' +
          '+= and the like write in place, y[0] = 2 into an element. constant(3) has no gradient, detach() cuts one off. The result is ' +
          'the last line. Functions: ' + (await engine.call('expression_functions')).map((f) => f.name).join(', ') + '.')),
        wrongOrder.node, failure),
      element('div', {class: 'card picture'}, stepper, canvas),
      detail, leaves));
  await compute(state.step === undefined ? null : Number(state.step));
  return () => narrow.removeEventListener('change', onResize);
}
