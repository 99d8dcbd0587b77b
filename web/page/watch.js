// The room on training, for a run that the native program trains: followed from its folder, without touching it.
import {nativeFile, nativeFiles, nativeRuns, newestCheckpoint} from './native.js';
import {progress} from './progress.js';
import {paragraph} from './widgets/controls.js';
import {element} from './widgets/dom.js';
import {attentionMaps} from './widgets/maps.js';

const pause = 1000;  // milliseconds between two looks at the folder
const share = 50;  // a checkpoint is looked into for at most one part in so many of the time: the training has the same processors
const largest = 300e6;  // bytes of a checkpoint that is looked into

const isNewer = (a, b) => BigInt(a.modified) > BigInt(b.modified);
const sizeOf = (run, checkpoint) => run.files.filter(({path}) => path.startsWith(checkpoint)).reduce((sum, {size}) => sum + size, 0);

/** The metrics of a run as they grow: read(run) resolves to whether there is more. */
class Metrics {
  history = [];
  #size = 0;
  async read(run) {
    const file = run.files.find(({path}) => path === 'metrics.jsonl');
    if (!file || file.size === this.#size) return false;
    if (file.size < this.#size) [this.history, this.#size] = [[], 0];  // it went on from an earlier checkpoint
    const bytes = await nativeFile(run.name, 'metrics.jsonl', this.#size);
    if (bytes === null) return false;
    const whole = bytes.subarray(0, bytes.lastIndexOf(10) + 1);
    this.#size += whole.length;
    this.history.push(...new TextDecoder().decode(whole).split('\n').filter(Boolean).map((line) => JSON.parse(line)));
    return whole.length > 0;
  }
}

export async function show(root, engine, state, setState) {
  const name = state.watch, metrics = new Metrics();
  let config = null, prompt = state.prompt ?? '\n', looked = null, nextLook = 0, quiet = 0, ended = false, timer = null;

  const status = element('p', {class: 'told', role: 'status'}, 'It is read …');
  const failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  const bench = progress();
  const maps = attentionMaps({label: 'Attention maps'}), samples = element('div', {class: 'samples'}), which = element('p', {class: 'quiet'});
  const ask = paragraph({label: 'A text to look into', value: prompt, rows: 2, onChange: (text) => {
    prompt = text;
    setState({watch: name, prompt});
    [looked, nextLook] = [null, 0];
  }});
  const card = (title, words, ...content) => element('section', {class: 'card', 'aria-label': title}, element('h2', {}, title),
    element('p', {class: 'quiet'}, words), ...content);
  const learned = element('div', {class: 'steps', hidden: true},
    card('Attention', 'A row for each token that looks, a column for each that it looks at, by every head of the newest checkpoint.', which, ask.node, maps.node),
    card('Samples', 'How the model of that checkpoint goes on (bold).', samples));
  root.append(
    element('div', {class: 'intro'}, element('h1', {}, `Training: ${name}`),
      element('p', {}, 'A run of the program on this machine, read from its folder while it trains. ', element('a', {href: '#/training'}, 'Train in the browser instead'))),
    element('div', {class: 'card'}, status, failure, bench.node), learned);

  /** What the newest checkpoint makes of an example: a task's own, or the text. */
  async function look(run, checkpoint) {
    const began = performance.now(), files = await nativeFiles(run);
    if (files === null) return;  // the next one is there soon
    const own = config.data.kind === 'task';
    const opened = await engine.open(files, {as: own ? 'run' : 'model', give: true});
    which.textContent = `After ${checkpoint.match(/\d+/)[0]} steps.`;
    [looked, learned.hidden, ask.node.hidden] = [checkpoint, false, own];
    try {
      maps.update(own ? await opened.attention() : await opened.attention(prompt));
      const made = own ? await opened.sample({count: 3}) : [{prompt, continuation: (await opened.generate({text: prompt, tokens: 60, seed: 1})).text}];
      samples.replaceChildren(...made.map(({prompt, continuation}) => element('pre', {tabindex: 0}, prompt, element('strong', {}, continuation))));
    } catch (error) {
      which.textContent = error.message;  // of a text that its vocabulary cannot spell, say
    } finally {
      await opened.close();
      nextLook = performance.now() + share * (performance.now() - began);
    }
  }
  async function follow() {
    const run = (await nativeRuns())?.find((run) => run.name === name);
    if (!run) throw new Error(`this page is not served with a run ${name}`);
    config ??= JSON.parse(new TextDecoder().decode(await nativeFile(name, 'config.json')));
    quiet = (await metrics.read(run)) ? 0 : quiet + 1;
    const all = config.train.steps, steps = (metrics.history.at(-1)?.step ?? -1) + 1;
    const file = (path) => run.files.find((file) => file.path === path);
    const over = file('summary.json') && file('metrics.jsonl') && !isNewer(file('metrics.jsonl'), file('summary.json'));
    status.textContent = over ? `It has ended after ${steps} steps.` : quiet < 10 ? 'It trains.' : `Nothing new for ${quiet} seconds.`;
    if (quiet === 0) requestAnimationFrame(() => bench.update({history: metrics.history, steps, all}));
    const checkpoint = newestCheckpoint(run);
    if (!checkpoint || checkpoint === looked || performance.now() < nextLook) return;
    if (sizeOf(run, checkpoint) <= largest) await look(run, checkpoint);
  }
  async function poll() {
    try {
      if (!document.hidden) await follow();
      failure.hidden = true;
    } catch (error) {
      failure.hidden = false;
      failure.textContent = error instanceof TypeError ? 'The program does not answer any more.' : error.message;  // fetch throws that
    }
    if (!ended) timer = setTimeout(poll, pause);
  }
  await poll();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
