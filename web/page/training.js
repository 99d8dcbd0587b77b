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

export async function show(root, startEngine, state, setState, kept) {
  const [engine, known] = await Promise.all([startEngine(), configs()]);
  const left = kept.training && (Object.keys(state).length === 0 || JSON.stringify(state) === JSON.stringify(kept.training.state)) ? kept.training : null;
  const chosen = left?.chosen ?? {config: known.has(state.config) ? state.config : standard, edit: state.edit ?? null, text: state.text ?? ''};
  let session = left?.session ?? null, seen = left?.seen ?? {}, fromFiles = left?.fromFiles ?? false;
  let extended = left ? left.extended : Number(state.steps) || null, planned = changesOf(state.lr), checked = null, seenShown = null;
  let work = Promise.resolve(), ended = false, drawing = false, asked = 0, nextLook = 0, nextSample = 0, nextAddress = 0;

  // ---- the config
  const ownText = paragraph({label: 'Your own text', value: chosen.text, placeholder: 'Paste a text to train on it instead.',
    onChange: (text) => edit({text})});
  const about = element('p', {class: 'quiet about'});
  const editor = configEditor({label: 'The config', onChange: (text) => edit({edit: text})});
  const select = choice({label: 'Config', value: '', choices: [...[...known.keys()].map((name) => [name, name.replaceAll('_', ' ')]), ['', 'my own']],
    onChange: (config) => config && edit({config, edit: null})});

  /** The editor's text, or that with one's own text in it. */
  function config() {
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
  async function check() {
    const mine = ++asked;
    let complaint = null, result = null;
    try {
      result = await engine.check(config());
    } catch (error) {
      complaint = error.message;
    }
    if (mine !== asked || ended) return;
    checked = result;
    editor.complain(complaint);
    showConfig();
  }
  function showConfig() {
    const text = chosen.edit ?? known.get(chosen.config);
    if (editor.text !== text) editor.set(text);
    select.set(chosen.edit === null ? chosen.config : '');
    about.textContent = commentsOf(text);
    ownText.node.hidden = checked !== null && checked.data.kind !== 'text';
    draw();
  }
  function edit(part) {
    Object.assign(chosen, part);
    planned = [];
    showConfig();
    remember();
    return check();
  }

  // ---- the run
  async function begin() {
    const resolved = await engine.check(config());
    if (resolved.data.path || resolved.data.paths) await (kept.repository ??= addRepository(engine));
    session = new Session(await engine.run(config()), {planned});
    session.started = JSON.stringify(config());
    if (extended) await session.extend(engine, extended);
  }
  async function replace(next) {
    await session?.run.close();
    session = next;
    [seen, extended, fromFiles, planned] = [{}, null, next !== null, []];
  }
  /** Does a task, and says what went wrong in it. */
  async function attempt(task) {
    failure.hidden = true;
    try {
      await task();
    } catch (error) {
      failure.hidden = false;
      failure.replaceChildren(element('strong', {}, `${error.type ?? 'Error'} `), error.message);
    }
    if (!ended) remember();
    draw();
  }
  /** Attempts a task when those before it are done. */
  const enqueue = (task) => (work = work.then(() => attempt(task)));
  /** The same, ending what trains. */
  function interrupt(task) {
    session?.stop();
    return enqueue(task);
  }
  const train = (until) => enqueue(async () => {
    if (!session) await begin();
    draw();
    await session.train({until, heard});
    if (!ended) remember();
    if (session.steps > 0 && !ended) await look(true);
  });
  async function heard() {
    draw();
    const now = performance.now();
    if (now >= nextLook) await look(now >= nextSample);
    if (now < nextAddress || ended) return;
    nextAddress = now + 1000;
    remember();
  }
  /** Asks for what is seen of the run; looking takes a ninth of the time. */
  async function look(withSamples) {
    const {run} = session, began = performance.now();
    const next = {...seen, maps: await run.attention(), gradients: await run.gradients()};
    if (withSamples) next.samples = await run.sample({count: 3});
    seen = next;
    const now = performance.now(), took = now - began;
    nextLook = now + Math.max(200, 8 * took);
    if (withSamples) nextSample = now + Math.max(1000, 16 * took);
    draw();
  }
  function open(files) {
    const [path, bytes] = [...files][0] ?? [''];
    if (files.size !== 1 || !path.endsWith('.txt')) return openRun(files);
    const text = new TextDecoder().decode(bytes);
    ownText.set(text);
    return edit(checked?.data.kind === 'text' ? {text} : {config: 'own_text', edit: null, text});
  }
  const openRun = (files) => interrupt(async () => {
    const own = opened(await files);
    const run = await engine.open(own, {as: 'run'});
    const lines = own.has('metrics.jsonl') ? new TextDecoder().decode(own.get('metrics.jsonl')).trim().split('\n') : [];
    await replace(new Session(run, {history: lines.map((line) => JSON.parse(line)).filter((line) => line.step < run.stepsDone)}));
    ownText.set('');
    await edit({edit: JSON.stringify(run.config, null, 2), text: ''});
    session.started = JSON.stringify(config());
    if (session.steps > 0) await look(true);
  });
  const lengthen = (steps) => (!session ? edit({edit: editor.text.replace(/("steps"\s*:\s*)\d+/, `$1${steps}`)})
    : interrupt(async () => {
        await session.extend(engine, steps);
        extended = steps;
      }));

  // ---- what is kept: in the address, and for when one comes back
  function remember() {
    const next = chosen.edit === null ? {config: chosen.config} : {edit: chosen.edit};
    if (chosen.text) next.text = chosen.text;
    if (session?.steps) next.step = String(session.steps);
    if (session?.changes.length) next.lr = textOf(session.changes);
    if (extended) next.steps = String(extended);
    const shared = !fromFiles && (chosen.edit ?? '').length + chosen.text.length <= longest;
    unshared.hidden = shared;
    kept.training = session && {session, chosen, seen, fromFiles, extended, state: shared ? next : {}, work};
    setState(shared ? next : {});
  }

  // ---- drawing, at most once a frame
  function draw() {
    if (drawing || ended) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (!ended) paint();
    });
  }
  function paint() {
    const going = session?.running ?? false, steps = session?.steps ?? 0;
    start.textContent = going ? '■ Stop' : steps ? '▶ Go on' : '▶ Train';
    start.disabled = !going && (session ? session.done : checked === null);
    one.disabled = going || start.disabled;
    again.disabled = keep.disabled = !session;
    status.textContent = !session ? 'Nothing is trained yet.' : going ? 'It trains.'
      : session.done ? `The run has ended after ${steps} steps.` : `Stopped after ${steps} steps.`;
    stale.hidden = !session || session.started === JSON.stringify(config());
    bench.update(session && {history: session.history, steps, all: session.run.config.train.steps});
    const now = session?.run.config ?? checked;
    const free = (control) => document.activeElement !== control.input;  // of a hand that moves it
    if (now && free(rate)) rate.set(Math.log10(Math.max(now.optimizer.lr, 1e-6)));
    if (now && free(all)) all.set(now.train.steps);
    rate.node.hidden = !session;
    if (seenShown !== seen) requestAnimationFrame(paintSeen);  // a frame of its own
  }
  function paintSeen() {
    if (seenShown === seen || ended) return;
    const before = seenShown;
    seenShown = seen;
    learned.hidden = !seen.maps;
    if (!seen.maps) return;
    maps.update(seen.maps);
    gradients.update(seen.gradients.map(({name, norm}) => ({name, value: norm, texts: [short(norm)]})));
    if (before?.samples === seen.samples) return;
    samples.replaceChildren(...(seen.samples ?? []).map(({prompt, continuation}) => element('pre', {tabindex: 0}, prompt, element('strong', {}, continuation))));
  }

  const button = (text, click) => element('button', {type: 'button', click}, text);
  const start = button('▶ Train', () => (session?.running ? session.stop() : train()));
  const one = button('One step', () => train((session?.steps ?? 0) + 1));
  const again = button('Start over', () => interrupt(() => replace(null)));
  const keep = button('Download the run', () => attempt(async () =>
    download(`${chosen.edit === null ? chosen.config : 'run'}-step-${session.steps}`, await session.run.save())));
  const status = element('p', {class: 'told', role: 'status'});
  const rate = slider({label: 'Learning rate from here on', min: -6, max: 0, step: 0.05, value: -3, show: (power) => short(rateOf(power)),
    onChange: (power) => attempt(() => session.setLearningRate(rateOf(power)))});
  const all = integer({label: 'Steps in all', min: 1, max: 1000000, value: 1, onChange: lengthen});
  const stale = element('p', {class: 'quiet', hidden: true}, 'This run goes on with the config that it was started with; “Start over” takes the one above.');
  const unshared = element('p', {class: 'quiet', hidden: true}, 'The address of this page cannot hold this run; download it to pass it on.');
  const failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  const bench = progress();
  const maps = attentionMaps({label: 'Attention maps'});
  const gradients = bars({label: 'Gradient norms', columns: ['parameter', 'norm']});
  const samples = element('div', {class: 'samples'});
  const card = (title, words, ...content) => element('section', {class: 'card', 'aria-label': title}, element('h2', {}, title),
    element('p', {class: 'quiet'}, words), ...content);
  const learned = element('div', {class: 'steps', hidden: true},
    card('Attention', 'How one held-out example looks to every head: a row for each token that looks, a column for each that it looks at.', maps.node),
    card('Samples', 'How the model goes on (bold) from the beginning of a held-out example.', samples),
    card('Gradients', 'The norm of the gradient of every parameter in the last step, after clipping.', gradients.node));

  const native = await nativeChoice({
    'Watch it': (name) => (location.hash = `#/training?watch=${encodeURIComponent(name)}`),
    'Go on with a copy here': (name) => openRun(nativeFilesOf(name)),
  });
  root.append(
    element('div', {class: 'intro'}, element('h1', {}, 'Training'),
      element('p', {}, 'A model learns in this browser, with the bits of the program on the command line. Choose or write a config, ' +
        'watch what forms, and take the run with you.')),
    element('div', {class: 'training-bench'},
      element('div', {class: 'card program'}, select.node, about, editor.node, ownText.node,
        fileDrop({label: 'Or open a run, its folder or its tar, or a text (.txt): drop it here', wanted: isWanted, onFiles: open}).node, native),
      element('div', {class: 'card'},
        element('div', {class: 'stepper', role: 'group', 'aria-label': 'The run'}, start, one, again, keep, status),
        failure, stale, unshared, element('div', {class: 'controls'}, rate.node, all.node), bench.node)),
    learned);
  showConfig();
  await left?.work;
  await check();
  if (!left && Number(state.step) > 0) train(Number(state.step));
  draw();
  return () => {
    session?.stop();
    ended = true;
    if (session) kept.training = {...kept.training, session, seen, work};
  };
}
