// The room on training, for a run that the native program trains: followed from its folder, without touching it.
import {nativeFile, nativeFiles, nativeRuns, newestCheckpoint} from './native.js';
import {progress} from './progress.js';
import {paragraph} from './widgets/controls.js';
import {element} from './widgets/dom.js';
import {attentionMaps} from './widgets/maps.js';

const pause = 2000;  // milliseconds between two looks at the folder: one with its drawing takes 20 of a processor
const share = 50;  // a checkpoint is looked into for at most one part in so many of the time: the training has the same processors
const firstLook = 500;  // milliseconds that the first one is taken to need, with the start of the engine
const beginnings = ['\n', ' ', 'e', '0'];  // where no text is given: of one that the model writes
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
    if (file.size < this.#size) [this.history, this.#size] = [[], 0];  // it continued from an earlier checkpoint
    const bytes = await nativeFile(run.name, 'metrics.jsonl', this.#size);
    if (bytes === null) return false;
    const whole = bytes.subarray(0, bytes.lastIndexOf(10) + 1);
    this.#size += whole.length;
    this.history.push(...new TextDecoder().decode(whole).split('\n').filter(Boolean).map((line) => JSON.parse(line)));
    return whole.length > 0;
  }
}

/** {prompt, continuation}: how a model continues a text, or the first of the beginnings that its vocabulary can spell. */
async function written(model, given) {
  const texts = given ? [given] : beginnings;
  for (const text of texts) {
    try {
      return {prompt: text, continuation: (await model.generate({text, tokens: 60, seed: 1})).text};
    } catch (error) {
      if (text === texts.at(-1)) throw error;
    }
  }
}

export async function show(root, startEngine, state, setState) {
  const name = state.watch, metrics = new Metrics();
  let config = null, prompt = state.prompt ?? '', quiet = 0, over = false, ended = false, timer = null, work = Promise.resolve();
  let shown = null, looked = null, nextLook = performance.now() + share * firstLook;

  /** Does a task when those before it are done. */
  const enqueue = (task) => (work = work.catch(() => {}).then(task));

  const status = element('p', {class: 'told', role: 'status'}, 'It is read …');
  const failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  const bench = progress();
  const maps = attentionMaps({label: 'Attention maps'}), samples = element('div', {class: 'samples'}), which = element('p', {class: 'quiet'});
  const ask = paragraph({label: 'A text to look into', value: prompt, placeholder: 'What the model writes, unless you write something.', rows: 2,
    onChange: (text) => {
      prompt = text;
      setState(prompt ? {watch: name, prompt} : {watch: name});
      enqueue(showLearned);
    }});
  const card = (title, words, ...content) => element('section', {class: 'card', 'aria-label': title}, element('h2', {}, title),
    element('p', {class: 'quiet'}, words), ...content);
  const waiting = element('p', {class: 'quiet', hidden: true},
    'What the newest checkpoint attends to and writes is shown when the run has ended, and seldom before: that takes the processors of the training. ',
    element('button', {type: 'button', click: () => ([nextLook, waiting.hidden] = [0, true])}, 'Look now'));
  const learned = element('div', {class: 'steps', hidden: true},
    card('Attention', 'A row for each token that looks, a column for each that it looks at, by every head of the newest checkpoint.', which, ask.node, maps.node),
    card('Samples', 'How the model of that checkpoint continues (bold).', samples));
  root.append(
    element('div', {class: 'intro'}, element('h1', {}, `Training: ${name}`),
      element('p', {}, 'A run of the program on this machine, read from its folder while it trains. ', element('a', {href: '#/training'}, 'Train in the browser instead'))),
    element('div', {class: 'steps'}, element('div', {class: 'card'}, status, failure, bench.node, waiting), learned));

  /** What the newest checkpoint that was opened makes of an example: a task's own, or the text. */
  async function showLearned() {
    if (!shown || ended) return;
    const {opened, own, steps} = shown;
    which.textContent = `After ${steps} steps.`;
    try {
      const made = own ? await opened.sample({count: 3}) : [await written(opened, prompt)];
      maps.update(await (own ? opened.attention() : opened.attention(prompt || made[0].prompt + made[0].continuation.slice(0, 30))));
      samples.replaceChildren(...made.map(({prompt, continuation}) => element('pre', {tabindex: 0}, prompt, element('strong', {}, continuation))));
    } catch (error) {
      which.textContent = error.message;  // of a text that its vocabulary cannot spell, say
    }
  }
  async function look(run, checkpoint) {
    const began = performance.now(), files = await nativeFiles(run);
    if (files === null) return;  // the next one is there soon
    const engine = await startEngine(), own = config.data.kind === 'task';
    await shown?.opened.close();
    shown = null;
    shown = {opened: await engine.open(files, {as: own ? 'run' : 'model', give: true}), own, steps: Number(checkpoint.match(/\d+/)[0])};
    [looked, learned.hidden, ask.node.hidden] = [checkpoint, false, own];
    await showLearned();
    nextLook = performance.now() + share * (performance.now() - began);
  }
  async function follow() {
    const run = (await nativeRuns())?.find((run) => run.name === name);
    if (!run) throw new Error(`this page is not served with a run ${name}`);
    config ??= JSON.parse(new TextDecoder().decode(await nativeFile(name, 'config.json')));
    quiet = (await metrics.read(run)) ? 0 : quiet + 1;
    const all = config.train.steps, steps = (metrics.history.at(-1)?.step ?? -1) + 1;
    const file = (path) => run.files.find((file) => file.path === path);
    over = file('summary.json') && file('metrics.jsonl') && !isNewer(file('metrics.jsonl'), file('summary.json'));
    status.textContent = over ? `It has ended after ${steps} steps.` : quiet * pause < 10000 ? 'It trains.' : `Nothing new for ${quiet * pause / 1000} seconds.`;
    if (quiet === 0) requestAnimationFrame(() => bench.update({history: metrics.history, steps, all}));
    const checkpoint = newestCheckpoint(run);
    const wanted = checkpoint && checkpoint !== looked && sizeOf(run, checkpoint) <= largest;
    waiting.hidden = !wanted || over || performance.now() >= nextLook;
    if (wanted && waiting.hidden) await enqueue(() => look(run, checkpoint));
  }
  async function poll() {
    try {
      if (!document.hidden) await follow();
      failure.hidden = true;
    } catch (error) {
      if (over && error instanceof TypeError) return;  // the training's server ends with it
      failure.hidden = false;
      failure.textContent = error instanceof TypeError ? 'The program does not answer any more.' : error.message;  // fetch throws that
    }
    if (!ended) timer = setTimeout(poll, over ? 5 * pause : pause);
  }
  await poll();
  return () => {
    ended = true;
    clearTimeout(timer);
    shown?.opened.close();
  };
}
