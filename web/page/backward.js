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

/** The recorded op as it is written in its node. */
function label(node) {
  if (node.leaf) return node.name;
  const op = signs[node.op] ?? node.op;
  return node.name ? `${node.name} (${op})` : op;
}

const whichInput = (node, at) => (node.inputs.filter((i) => i === at.input).length > 1 ? ` (input ${at.position + 1})` : '');

const failureNote = ({type, message}) => element('p', {class: 'failure', role: 'alert'}, element('strong', {}, `${type} `), message);

/** Places in bytes of UTF-8 as places in the text. */
function characters(program, span) {
  const bytes = new TextEncoder().encode(program);
  return span.map((at) => new TextDecoder().decode(bytes.slice(0, at)).length);
}

// ---- what is said of the step that is shown

function describeComputed(pass, node) {
  const inputs = node.inputs.filter((i) => i !== null).map((i) => nameOf(pass.nodes[i]));
  return [
    element('p', {class: 'quiet'}, node.leaf ? 'A leaf: a value of yours, whose gradient is asked for.'
      : `The op ${node.op}, recorded with edges to its inputs ${inputs.join(', ') || '(constants only)'}.`),
    quantity('value', node.values),
  ];
}

function describeVisited(pass, node, visit) {
  const parts = [quantity('value', node.values), quantity('gradient that has arrived', visit.gradient)];
  if (node.leaf) {
    parts.push(element('p', {class: 'quiet'}, 'A leaf: the gradient is added to what it has collected, and the pass goes no further here.'));
  } else if (rules[node.op]) {
    parts.push(element('p', {class: 'rule'}, element('span', {class: 'label'}, `rule of ${node.op}`), rules[node.op]));
  }
  for (const local of visit.local) parts.push(localDerivative(pass, node, local));
  for (const gives of visit.gives) parts.push(...givenGradient(pass, node, gives));
  return parts;
}

function localDerivative(pass, node, local) {
  const input = pass.nodes[local.input];
  const name = `local derivative by ${nameOf(input)}${whichInput(node, local)}`;
  const uniform = local.diagonal && local.values.every((value) => value === local.values[0]);
  if (uniform && local.values.length > 1) return quantity(name, local.values[0], ' for every element by its own');
  if (local.diagonal)
    return quantity(name, reshape(local.values, node.shape), node.shape.length ? ' (each element by its own; all others are 0)' : null);
  return quantity(`${name} (row: element of this value, column: element of ${nameOf(input)})`, local.values);
}

function givenGradient(pass, node, gives) {
  const input = pass.nodes[gives.input];
  const parts = [quantity(`gives ${nameOf(input)}${whichInput(node, gives)}`, gives.gradient)];
  const whole = JSON.stringify(gives.gradient) === JSON.stringify(gives.sum);
  if (gives.late) parts.push(element('p', {class: 'late'}, `Too late: ${nameOf(input)} was visited before, and does not pass this on.`));
  else if (!whole) parts.push(quantity(`${nameOf(input)} has now, all added up`, gives.sum));
  return parts;
}

// ---- the leaves' gradients beside finite differences

function indexOf(values, at) {
  if (!Array.isArray(values[0])) return String(at);
  const inner = asRows(values[0]).flat().length;
  return `${Math.floor(at / inner)}, ${indexOf(values[0], at % inner)}`;
}

function leafRows(leaf, visited) {
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
}

function leafTable(pass, visited) {
  const rows = pass.leaves.flatMap((leaf) => leafRows(leaf, visited));
  return [element('h2', {}, 'Gradients and finite differences'),
    element('p', {class: 'quiet'}, 'The right column moves each input a little, up and down, and computes the program again.'),
    rows.length ? element('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Gradients and finite differences'}, element('table', {class: 'plain'},
      element('thead', {}, element('tr', {}, ['input', 'gradient', 'finite difference', ''].map((t) => (t ? element('th', {scope: 'col'}, t) : element('td', {}))))),
      element('tbody', {}, rows))) : element('p', {}, 'No input of the result has a gradient.')];
}

/** The room: a program, the pass that the engine made of it, and the step that is shown. */
class Room {
  pass = null;
  picture = null;
  position = 0;
  turn = 0;
  narrow = matchMedia('(max-width: 700px)');
  failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  about = element('p', {class: 'quiet about'});
  canvas = element('div', {class: 'canvas scroll', role: 'group', 'aria-label': 'The recorded graph', tabindex: 0});
  detail = element('div', {class: 'card detail', 'aria-live': 'polite'});
  leaves = element('div', {class: 'card leaves'});

  constructor(root, engine, examples, state, setState) {
    Object.assign(this, {root, engine, examples, setState});
    this.program = state.program ?? examples[0].program;
    this.order = state.order ?? (state.program ? 'newest first' : examples[0].order);
    this.makeProgramControls();
    this.makeStepper();
  }

  // ---- stepping: first every node is computed, then every node is visited
  get forwardSteps() {
    return this.pass.nodes.length;
  }
  get lastStep() {
    return this.pass.nodes.length + this.pass.visits.length;
  }
  current() {
    if (this.position === 0) return null;
    if (this.position <= this.forwardSteps) return {forward: true, node: this.position - 1};
    const visit = this.pass.visits[this.position - 1 - this.forwardSteps];
    return {forward: false, visit, node: visit.node};
  }
  moveTo(step) {
    this.position = Math.min(this.lastStep, Math.max(0, step));
    this.saveState();
    this.showStep();
  }
  go(step) {
    if (this.pass) this.moveTo(step);
  }
  /** A chosen node: its visit if there is one and the pass has begun, else where it was computed. */
  jumpTo(node) {
    const visit = this.pass.visits.findIndex((v) => v.node === node);
    this.go(this.position > this.forwardSteps && visit >= 0 ? this.forwardSteps + visit + 1 : node + 1);
  }
  saveState() {
    const next = {program: this.program};
    if (this.order !== 'newest first') next.order = this.order;
    next.step = String(this.position);
    this.setState(next);
  }

  // ---- the step that is shown
  showStep() {
    const {pass, position} = this;
    const now = this.current();
    const visits = pass.visits.slice(0, Math.max(0, position - this.forwardSteps));
    const gradient = new Map(visits.map((visit) => [visit.node, visit.gradient]));
    const arrived = new Map();
    for (const visit of visits) for (const gives of visit.gives) arrived.set(gives.input, gives.sum);
    this.paintNodes(now, gradient, arrived);
    this.paintCarried(now, visits);
    this.showStepper(now);
    this.detail.replaceChildren(...this.describe(now));
    this.leaves.replaceChildren(...leafTable(pass, gradient));
    if (now) this.follow(now.node);
    this.root.dataset.step = position;
  }
  paintNodes(now, gradient, arrived) {
    const {pass, picture, position} = this;
    const failed = pass.failure && pass.failure.node !== null && position === this.lastStep ? pass.failure.node : null;
    pass.nodes.forEach((node, i) => {
      const computed = i < position;
      const classes = [computed ? 'computed' : '', gradient.has(i) ? 'visited' : '', now?.node === i ? 'now' : '', failed === i ? 'failed' : ''];
      const g = gradient.has(i) ? gradient.get(i) : arrived.get(i);
      picture.style(i, classes.filter(Boolean).join(' '), [label(node), computed ? brief(node.values) : '·',
        failed === i ? '✗ error' : g === undefined ? '' : `grad ${brief(g, 2)}${gradient.has(i) ? '' : ' so far'}`]);
      node.inputs.forEach((input, at) => {
        if (input !== null) picture.edge(i, at, computed ? 'computed' : '');
      });
    });
  }
  /** The gradients that the visits so far have sent along the edges. */
  paintCarried(now, visits) {
    for (const visit of visits) {
      for (const gives of visit.gives) {
        const active = now && !now.forward && now.visit === visit;
        const text = Array.isArray(gives.gradient) ? '' : `${typeof gives.gradient === 'number' && gives.gradient >= 0 ? '+' : ''}${short(gives.gradient)}`;
        this.picture.edge(visit.node, gives.position, `carried ${active ? 'active' : ''} ${gives.late ? 'late' : ''}`,
          gives.late ? `${text} too late` : text);
      }
    }
  }
  showStepper(now) {
    const {position, slider} = this;
    const phase = position === 0 ? 'Nothing is computed yet' : now.forward ? `Forward, node ${position} of ${this.forwardSteps}`
      : `Backward, node ${position - this.forwardSteps} of ${this.pass.visits.length}`;
    slider.max = this.lastStep;
    slider.value = position;
    slider.setAttribute('aria-valuetext', phase);
    this.told.textContent = phase;
    this.back.disabled = this.first.disabled = position === 0;
    this.next.disabled = this.last.disabled = position === this.lastStep;
  }
  describe(now) {
    if (!now) return [element('h2', {}, 'Before the first step'), element('p', {class: 'quiet'}, 'Step forward: each node is an op that is recorded as it is computed.')];
    const {pass} = this;
    const node = pass.nodes[now.node];
    const parts = [element('h2', {}, `${now.forward ? 'Computed' : 'Visited'}: ${nameOf(node)}`),
      ...(now.forward ? describeComputed(pass, node) : describeVisited(pass, node, now.visit))];
    const failsHere = now.forward ? pass.failure?.stage === 'forward' : pass.failure?.node === now.node;
    if (failsHere && this.position === this.lastStep) parts.push(failureNote(pass.failure));
    return parts;
  }
  /** Keeps the node in view. */
  follow(i) {
    const {canvas} = this;
    const {x, y, width, height} = this.picture.place(i);
    if (x < canvas.scrollLeft || x + width > canvas.scrollLeft + canvas.clientWidth)
      canvas.scrollLeft = x - (canvas.clientWidth - width) / 2;
    if (y < canvas.scrollTop || y + height > canvas.scrollTop + canvas.clientHeight)
      canvas.scrollTop = y - (canvas.clientHeight - height) / 2;
  }

  // ---- the program
  async compute(to = null) {
    const mine = ++this.turn;
    try {
      const result = await this.engine.call('backward', {program: this.program, order: this.order});
      if (mine !== this.turn) return;
      this.pass = result;
    } catch (error) {
      if (mine !== this.turn) return;
      this.failure.hidden = false;
      this.failure.replaceChildren(element('strong', {}, `${error.type ?? 'Error'} `), error.message);
      return;
    }
    this.showEarlyFailure();
    this.draw();
    this.moveTo(to ?? this.forwardSteps);
  }
  showEarlyFailure() {
    const {failure, pass: {failure: failed}} = this;
    const early = failed && (failed.stage === 'forward' || failed.node === null);
    failure.hidden = !early;
    if (!early) return;
    const quoted = failed.span ? this.program.slice(...characters(this.program, failed.span)) : '';
    failure.replaceChildren(element('strong', {}, `${failed.type} `), quoted ? element('code', {}, quoted) : '', ` ${failed.message}`);
  }
  draw() {
    const {nodes} = this.pass;
    if (nodes.length === 0) {
      this.picture = {style() {}, edge() {}, place: () => ({x: 0, y: 0, width: 0, height: 0})};
      this.canvas.replaceChildren(element('p', {class: 'quiet'}, 'Nothing was recorded.'));
      return;
    }
    this.picture = graph({
      nodes: nodes.map((node) => ({inputs: node.inputs, kind: node.leaf ? 'leaf' : 'op', lines: [label(node)]})),
      label: 'Nodes of the graph', vertical: this.narrow.matches, onPick: (node) => this.jumpTo(node),
    });
    this.canvas.replaceChildren(this.picture.node);
  }
  drawAgain = () => {
    if (!this.pass) return;
    this.draw();
    this.showStep();
  };

  // ---- controls
  found() {
    return this.examples.find((e) => e.program === this.program);
  }
  makeProgramControls() {
    this.example = choice({label: 'Example', value: this.found()?.name ?? 'own',
      choices: [...this.examples.map((e) => [e.name, e.title]), ['own', 'my own']], onChange: (name) => this.choose(name)});
    this.wrongOrder = toggle({label: 'Visit each node as soon as it is reached (a wrong order)', value: this.order !== 'newest first', onChange: (on) => {
      this.order = on ? 'depth first' : 'newest first';
      this.compute(this.position);
    }});
    this.editor = element('textarea', {id: 'program', spellcheck: 'false', autocapitalize: 'off', rows: 4, maxlength: 4000, input: () => this.edited()});
    this.editor.value = this.program;
    this.showAbout();
    this.fit();
  }
  choose(name) {
    const chosen = this.examples.find((e) => e.name === name);
    if (!chosen) return;
    this.program = this.editor.value = chosen.program;
    this.order = chosen.order;
    this.wrongOrder.set(this.order !== 'newest first');
    this.showAbout();
    this.fit();
    this.compute();
  }
  edited() {
    this.program = this.editor.value;
    this.example.set(this.found()?.name ?? 'own');
    this.showAbout();
    this.fit();
    this.compute();
  }
  showAbout() {
    this.about.textContent = this.found()?.about ?? '';
  }
  fit() {
    this.editor.rows = Math.min(14, Math.max(4, this.editor.value.split('\n').length));
  }
  makeStepper() {
    const button = (sign, name, to) => element('button', {type: 'button', 'aria-label': name, title: name, click: () => this.go(to())}, sign);
    this.first = button('|◀', 'To the beginning', () => 0);
    this.back = button('◀', 'One step back', () => this.position - 1);
    this.next = button('▶', 'One step on', () => this.position + 1);
    this.last = button('▶|', 'To the end', () => this.lastStep);
    this.slider = element('input', {type: 'range', min: 0, max: 1, step: 1, 'aria-label': 'Step', input: () => this.go(Number(this.slider.value))});
    this.told = element('p', {class: 'told'});
    this.stepper = element('div', {class: 'stepper', role: 'group', 'aria-label': 'Steps', keydown: (event) => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!by || event.target === this.slider) return;
      this.go(this.position + by);
      event.preventDefault();
    }}, element('div', {class: 'buttons'}, this.first, this.back, this.next, this.last), this.slider, this.told);
  }
  /** The room's elements, with the names of the functions that a program can call. */
  elements(functions) {
    return [
      element('div', {class: 'intro'}, element('h1', {}, 'Backward'),
        element('p', {}, 'How gradients come about. The engine records each op of a small program as a node; a backward pass then visits the ' +
          'nodes from the last to the first and hands every input its share.')),
      element('div', {class: 'workbench'},
        element('div', {class: 'card program'}, this.example.node, this.about,
          element('label', {for: 'program'}, 'Program'), this.editor,
          element('details', {}, element('summary', {}, 'What a program can hold'), element('p', {class: 'quiet'},
            'A name with a number or a list is an input with a gradient: w = [0.8, 0.3]. Operators are + − * / ^ @ and brackets; ' +
            '+= and the like write in place, y[0] = 2 into an element. constant(3) has no gradient, detach() cuts one off. The result is ' +
            'the last line. Functions: ' + functions.join(', ') + '.')),
          this.wrongOrder.node, this.failure),
        element('div', {class: 'card picture'}, this.stepper, this.canvas),
        this.detail, this.leaves)];
  }
}

export async function show(root, startEngine, state, setState) {
  const engine = await startEngine();
  const room = new Room(root, engine, await engine.call('backward_examples'), state, setState);
  room.narrow.addEventListener('change', room.drawAgain);
  root.append(...room.elements((await engine.call('expression_functions')).map((f) => f.name)));
  await room.compute(state.step === undefined ? null : Number(state.step));
  return () => room.narrow.removeEventListener('change', room.drawAgain);
}
