// The room on training: a config, its run in the engine's thread, and what it learns while it learns it.
import {addRepository, configs, download, isWanted, opened} from './files.js';
import {nativeChoice, nativeFilesOf} from './native.js';
import {progress} from './progress.js';
import {Session} from './session.js';
import {bars} from './widgets/bars.js';
import {configEditor} from './widgets/config_editor.js';
import {choice, fileDrop, integer, paragraph, slider} from './widgets/controls.js';
import {element} from './widgets/dom.js';
import {attentionMaps} from './widgets/maps.js';
import {short} from './widgets/numbers.js';

const standard = 'copy';
const longest = 20000;  // characters of an address that is kept

/** What a config says of itself in its comments. */
function commentsOf(text) {
  try {
    return Object.entries(JSON.parse(text)).filter(([key]) => key.startsWith('//')).map(([, line]) => line).join(' ');
  } catch {
    return '';
  }
}

/** [[50, 0.001], ...] of 50:0.001,... and back. */
const changesOf = (text) => (text ? text.split(',').map((change) => change.split(':').map(Number)) : []);
const textOf = (changes) => changes.map((change) => change.join(':')).join(',');

/** The learning rate of a place on the slider, of two digits. */
const rateOf = (power) => Number((10 ** power).toPrecision(2));

const button = (text, click) => element('button', {type: 'button', click}, text);

const card = (title, words, ...content) => element('section', {class: 'card', 'aria-label': title}, element('h2', {}, title),
  element('p', {class: 'quiet'}, words), ...content);

/** The room: a config, the run made of it, and what was last seen of that. */
class Room {
  checked = null;
  seenShown = null;
  work = Promise.resolve();
  ended = false;
  drawing = false;
  asked = 0;
  nextLook = 0;
  nextSample = 0;
  nextAddress = 0;

  /** `left` is the room as it was left, where one comes back to it. */
  constructor({engine, known, state, setState, kept, left}) {
    Object.assign(this, {engine, known, setState, kept});
    this.chosen = left?.chosen ?? {config: known.has(state.config) ? state.config : standard, edit: state.edit ?? null, text: state.text ?? ''};
    this.session = left?.session ?? null;
    this.seen = left?.seen ?? {};
    this.fromFiles = left?.fromFiles ?? false;
    this.extended = left ? left.extended : Number(state.steps) || null;
    this.planned = changesOf(state.lr);
    this.makeConfigControls();
    this.makeRunControls();
    this.makeSeen();
  }

  // ---- the config
  makeConfigControls() {
    const {chosen, known} = this;
    this.ownText = paragraph({label: 'Your own text', value: chosen.text, placeholder: 'Paste a text to train on it instead.',
      onChange: (text) => this.edit({text})});
    this.about = element('p', {class: 'quiet about'});
    this.editor = configEditor({label: 'The config', onChange: (text) => this.edit({edit: text})});
    this.select = choice({label: 'Config', value: '', choices: [...[...known.keys()].map((name) => [name, name.replaceAll('_', ' ')]), ['', 'my own']],
      onChange: (config) => config && this.edit({config, edit: null})});
  }
  /** The editor's text, or that with one's own text in it. */
  config() {
    const {editor, chosen} = this;
    let parsed;
    try {
      parsed = JSON.parse(editor.text);
    } catch {
      return editor.text;  // the checker says where it is wrong
    }
    if (chosen.text === '' || parsed?.data?.kind !== 'text') return editor.text;
    const {path, paths, ...data} = parsed.data;
    return {...parsed, data: {...data, text: chosen.text}};
  }
  async check() {
    const mine = ++this.asked;
    let complaint = null, result = null;
    try {
      result = await this.engine.check(this.config());
    } catch (error) {
      complaint = error.message;
    }
    if (mine !== this.asked || this.ended) return;
    this.checked = result;
    this.editor.complain(complaint);
    this.showConfig();
  }
  showConfig() {
    const {chosen, editor, checked} = this;
    const text = chosen.edit ?? this.known.get(chosen.config);
    if (editor.text !== text) editor.set(text);
    this.select.set(chosen.edit === null ? chosen.config : '');
    this.about.textContent = commentsOf(text);
    this.ownText.node.hidden = checked !== null && checked.data.kind !== 'text';
    this.draw();
  }
  edit(part) {
    Object.assign(this.chosen, part);
    this.planned = [];
    this.showConfig();
    this.remember();
    return this.check();
  }

  // ---- the run
  async begin() {
    const {engine, kept} = this;
    const resolved = await engine.check(this.config());
    if (resolved.data.path || resolved.data.paths) await (kept.repository ??= addRepository(engine));
    this.session = new Session(await engine.run(this.config()), {planned: this.planned});
    this.session.started = JSON.stringify(this.config());
    if (this.extended) await this.session.extend(engine, this.extended);
  }
  async replace(next) {
    await this.session?.run.close();
    this.session = next;
    [this.seen, this.extended, this.fromFiles, this.planned] = [{}, null, next !== null, []];
  }
  /** Does a task, and says what went wrong in it. */
  async attempt(task) {
    this.failure.hidden = true;
    try {
      await task();
    } catch (error) {
      this.failure.hidden = false;
      this.failure.replaceChildren(element('strong', {}, `${error.type ?? 'Error'} `), error.message);
    }
    if (!this.ended) this.remember();
    this.draw();
  }
  /** Attempts a task when those before it are done. */
  enqueue(task) {
    return (this.work = this.work.then(() => this.attempt(task)));
  }
  /** The same, ending what trains. */
  interrupt(task) {
    this.session?.stop();
    return this.enqueue(task);
  }
  train(until) {
    return this.enqueue(async () => {
      if (!this.session) await this.begin();
      this.draw();
      await this.session.train({until, heard: () => this.heard()});
      if (!this.ended) this.remember();
      if (this.session.steps > 0 && !this.ended) await this.look(true);
    });
  }
  async heard() {
    this.draw();
    const now = performance.now();
    if (now >= this.nextLook) await this.look(now >= this.nextSample);
    if (now < this.nextAddress || this.ended) return;
    this.nextAddress = now + 1000;
    this.remember();
  }
  /** Asks for what is seen of the run; looking takes a ninth of the time. */
  async look(withSamples) {
    const {run} = this.session, began = performance.now();
    const next = {...this.seen, maps: await run.attention(), gradients: await run.gradients()};
    if (withSamples) next.samples = await run.sample({count: 3});
    this.seen = next;
    const now = performance.now(), took = now - began;
    this.nextLook = now + Math.max(200, 8 * took);
    if (withSamples) this.nextSample = now + Math.max(1000, 16 * took);
    this.draw();
  }
  open(files) {
    const [path, bytes] = [...files][0] ?? [''];
    if (files.size !== 1 || !path.endsWith('.txt')) return this.openRun(files);
    const text = new TextDecoder().decode(bytes);
    this.ownText.set(text);
    return this.edit(this.checked?.data.kind === 'text' ? {text} : {config: 'own_text', edit: null, text});
  }
  openRun(files) {
    return this.interrupt(async () => {
      const own = opened(await files);
      const run = await this.engine.open(own, {as: 'run'});
      const lines = own.has('metrics.jsonl') ? new TextDecoder().decode(own.get('metrics.jsonl')).trim().split('\n') : [];
      await this.replace(new Session(run, {history: lines.map((line) => JSON.parse(line)).filter((line) => line.step < run.stepsDone)}));
      this.ownText.set('');
      await this.edit({edit: JSON.stringify(run.config, null, 2), text: ''});
      this.session.started = JSON.stringify(this.config());
      if (this.session.steps > 0) await this.look(true);
    });
  }
  lengthen(steps) {
    if (!this.session) return this.edit({edit: this.editor.text.replace(/("steps"\s*:\s*)\d+/, `$1${steps}`)});
    return this.interrupt(async () => {
      await this.session.extend(this.engine, steps);
      this.extended = steps;
    });
  }
  async download() {
    const {chosen, session} = this;
    download(`${chosen.edit === null ? chosen.config : 'run'}-step-${session.steps}`, await session.run.save());
  }

  // ---- what is kept: in the address, and for when one comes back
  remember() {
    const {chosen, session, seen, fromFiles, extended, work} = this;
    const next = chosen.edit === null ? {config: chosen.config} : {edit: chosen.edit};
    if (chosen.text) next.text = chosen.text;
    if (session?.steps) next.step = String(session.steps);
    if (session?.changes.length) next.lr = textOf(session.changes);
    if (extended) next.steps = String(extended);
    const shared = !fromFiles && (chosen.edit ?? '').length + chosen.text.length <= longest;
    this.unshared.hidden = shared;
    this.kept.training = session && {session, chosen, seen, fromFiles, extended, state: shared ? next : {}, work};
    this.setState(shared ? next : {});
  }
  end() {
    const {session, seen, kept} = this;
    session?.stop();
    this.ended = true;
    if (session) kept.training = {...kept.training, session, seen, work: this.work};
  }

  // ---- drawing, at most once a frame
  draw() {
    if (this.drawing || this.ended) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      if (!this.ended) this.paint();
    });
  }
  paint() {
    const {session, checked, start, rate, all} = this;
    const going = session?.running ?? false, steps = session?.steps ?? 0;
    start.textContent = going ? '■ Stop' : steps ? '▶ Continue' : '▶ Train';
    start.disabled = !going && (session ? session.done : checked === null);
    this.one.disabled = going || start.disabled;
    this.again.disabled = this.keep.disabled = !session;
    this.status.textContent = !session ? 'Nothing is trained yet.' : going ? 'It trains.'
      : session.done ? `The run has ended after ${steps} steps.` : `Stopped after ${steps} steps.`;
    this.stale.hidden = !session || session.started === JSON.stringify(this.config());
    this.bench.update(session && {history: session.history, steps, all: session.run.config.train.steps});
    const now = session?.run.config ?? checked;
    const free = (control) => document.activeElement !== control.input;  // of a hand that moves it
    if (now && free(rate)) rate.set(Math.log10(Math.max(now.optimizer.lr, 1e-6)));
    if (now && free(all)) all.set(now.train.steps);
    rate.node.hidden = !session;
    if (this.seenShown !== this.seen) requestAnimationFrame(() => this.paintSeen());  // a frame of its own
  }
  paintSeen() {
    const {seen} = this;
    if (this.seenShown === seen || this.ended) return;
    const before = this.seenShown;
    this.seenShown = seen;
    this.learned.hidden = !seen.maps;
    if (!seen.maps) return;
    this.maps.update(seen.maps);
    this.gradients.update(seen.gradients.map(({name, norm}) => ({name, value: norm, texts: [short(norm)]})));
    if (before?.samples === seen.samples) return;
    this.samples.replaceChildren(...(seen.samples ?? []).map(({prompt, continuation}) => element('pre', {tabindex: 0}, prompt, element('strong', {}, continuation))));
  }

  // ---- the run's controls, and what is seen of it
  makeRunControls() {
    this.start = button('▶ Train', () => (this.session?.running ? this.session.stop() : this.train()));
    this.one = button('One step', () => this.train((this.session?.steps ?? 0) + 1));
    this.again = button('Start over', () => this.interrupt(() => this.replace(null)));
    this.keep = button('Download the run', () => this.attempt(() => this.download()));
    this.status = element('p', {class: 'told', role: 'status'});
    this.rate = slider({label: 'Learning rate from here on', min: -6, max: 0, step: 0.05, value: -3, show: (power) => short(rateOf(power)),
      onChange: (power) => this.attempt(() => this.session.setLearningRate(rateOf(power)))});
    this.all = integer({label: 'Steps in all', min: 1, max: 1000000, value: 1, onChange: (steps) => this.lengthen(steps)});
    this.stale = element('p', {class: 'quiet', hidden: true}, 'This run continues with the config that it was started with; “Start over” takes the one above.');
    this.unshared = element('p', {class: 'quiet', hidden: true}, 'The address of this page cannot hold this run; download it to pass it on.');
    this.failure = element('p', {class: 'failure', role: 'alert', hidden: true});
    this.bench = progress();
  }
  makeSeen() {
    this.maps = attentionMaps({label: 'Attention maps'});
    this.gradients = bars({label: 'Gradient norms', columns: ['parameter', 'norm']});
    this.samples = element('div', {class: 'samples'});
    this.learned = element('div', {class: 'steps', hidden: true},
      card('Attention', 'How one held-out example looks to every head: a row for each token that looks, a column for each that it looks at.', this.maps.node),
      card('Samples', 'How the model continues (bold) from the beginning of a held-out example.', this.samples),
      card('Gradients', 'The norm of the gradient of every parameter in the last step, after clipping.', this.gradients.node));
  }
  /** The room's elements, with the choice among the program's runs. */
  elements(native) {
    return [
      element('div', {class: 'intro'}, element('h1', {}, 'Training'),
        element('p', {}, 'A model learns in this browser, with the bits of the program on the command line. Choose or write a config, ' +
          'watch what forms, and take the run with you.')),
      element('div', {class: 'training-bench'},
        element('div', {class: 'card program'}, this.select.node, this.about, this.editor.node, this.ownText.node,
          fileDrop({label: 'Or open a run, its folder or its tar, or a text (.txt): drop it here', wanted: isWanted, onFiles: (files) => this.open(files)}).node, native),
        element('div', {class: 'card'},
          element('div', {class: 'stepper', role: 'group', 'aria-label': 'The run'}, this.start, this.one, this.again, this.keep, this.status),
          this.failure, this.stale, this.unshared, element('div', {class: 'controls'}, this.rate.node, this.all.node), this.bench.node)),
      this.learned];
  }
}

export async function show(root, startEngine, state, setState, kept) {
  const [engine, known] = await Promise.all([startEngine(), configs()]);
  const left = kept.training && (Object.keys(state).length === 0 || JSON.stringify(state) === JSON.stringify(kept.training.state)) ? kept.training : null;
  const room = new Room({engine, known, state, setState, kept, left});
  root.append(...room.elements(await nativeChoice({
    'Watch it': (name) => (location.hash = `#/training?watch=${encodeURIComponent(name)}`),
    'Continue with a copy here': (name) => room.openRun(nativeFilesOf(name)),
  })));
  room.showConfig();
  await left?.work;
  await room.check();
  if (!left && Number(state.step) > 0) room.train(Number(state.step));
  room.draw();
  return () => room.end();
}
