// The room on a trained model: what comes next after a text, what each head looks at, and what a head is good for.
import {configs, isWanted, opened} from './files.js';
import {latest} from './latest.js';
import {nativeChoice, nativeFilesOf} from './native.js';
import {Session} from './session.js';
import {bars} from './widgets/bars.js';
import {choice, fileDrop, integer, paragraph, slider, toggle} from './widgets/controls.js';
import {element} from './widgets/dom.js';
import {matrix} from './widgets/matrix.js';
import {pretty, short} from './widgets/numbers.js';

const small = {config: 'small_stories', text: 'anna has the red ball . anna gives the'};
const shown = 24;  // tokens in the picture of attention, the last ones

const percent = (probability) => `${(100 * probability).toFixed(2)} %`;
/** As one reads it in a table: spaces and line ends are seen. */
const visible = (token) => token.replaceAll(' ', '␣').replaceAll('\n', '⏎') || '∅';
const counted = (count) => Array.from({length: count}, (_, i) => [String(i), String(i + 1)]);

/** [[layer, head], ...] from 0 of "1.2,2.1", which counts from 1, and back. */
const headsOf = (text) => (text ? text.split(',').map((place) => place.split('.').map((number) => Number(number) - 1)) : []);
const textOf = (heads) => heads.map(([layer, head]) => `${layer + 1}.${head + 1}`).join(',');

export async function show(root, startEngine, state, setState, kept) {
  const engine = await startEngine();
  const chosen = {
    model: state.model ?? null, text: state.text ?? null, layer: Number(state.layer ?? 1) - 1, head: Number(state.head ?? 1) - 1, ablate: headsOf(state.ablate),
    tokens: Number(state.tokens ?? 30), temperature: Number(state.temperature ?? 1), seed: Number(state.seed ?? 0),
  };
  let model = null, ended = false, round = 0, work = Promise.resolve();
  const isAblated = (layer, head) => chosen.ablate.some(([l, h]) => l === layer && h === head);

  function remember() {
    const next = {};
    if (chosen.model) next.model = chosen.model;
    if (chosen.text !== null) next.text = chosen.text;
    if (chosen.layer) next.layer = String(chosen.layer + 1);
    if (chosen.head) next.head = String(chosen.head + 1);
    if (chosen.ablate.length) next.ablate = textOf(chosen.ablate);
    if (chosen.tokens !== 30) next.tokens = String(chosen.tokens);
    if (chosen.temperature !== 1) next.temperature = String(chosen.temperature);
    if (chosen.seed) next.seed = String(chosen.seed);
    if (!ended) setState(next);
  }

  // ---- which model
  async function take(files, source) {
    const next = await engine.open(files, {as: 'model', give: true});
    if (ended) return next.close();
    await model?.close();
    model = next;
    chosen.model = source;
    chosen.text ??= model.example ?? (model.tokenizer === null ? '1, 2, 3' : small.text);
    if (model.answer !== null && !state.tokens) {
      chosen.tokens = model.answer;
      tokens.set(chosen.tokens);
    }
    chosen.layer = Math.min(chosen.layer, model.layers - 1);
    chosen.head = Math.min(chosen.head, model.heads - 1);
    chosen.ablate = chosen.ablate.filter(([layer, head]) => layer < model.layers && head < model.heads);
    layer.choose(counted(model.layers));
    head.choose(counted(model.heads));
    text.set(chosen.text);
    written.replaceChildren();
    await change();
  }
  async function trainSmall() {
    const session = new Session(await engine.run((await configs()).get(small.config)));
    const all = session.run.config.train.steps;
    await session.train({heard: () => {
      about.textContent = `It trains: step ${session.steps} of ${all}.`;
      if (ended) session.stop();
    }});
    if (!ended) await take(await session.run.save(), 'small');
    await session.run.close();
  }
  const takeRun = async () => take(await kept.training.session.run.save(), 'run');
  const takeNative = async (name) => take(await nativeFilesOf(name), `native:${name}`);
  const takeFiles = async (files) => {
    about.textContent = 'It is opened …';
    await take(opened(files), null);
  };
  /** Gets a model, one after another, and says what went wrong. */
  const get = (task) => (work = work.then(async () => {
    failure.hidden = true;
    try {
      await task();
    } catch (error) {
      complain(failure, error);
    }
    describe();
  }));
  function complain(node, error) {
    node.hidden = false;
    node.replaceChildren(element('strong', {}, `${error.type ?? 'Error'} `), error.message);
  }
  function describe() {
    const size = model && `${model.layers} × ${model.heads} heads, ${model.parameters.toLocaleString('en')} parameters, a vocabulary of ` +
      `${model.vocabulary.toLocaleString('en')}, at most ${model.context.toLocaleString('en')} tokens at once.`;
    about.textContent = !model ? 'Train one, or bring your own.' : model.tokenizer === null
      ? `${size} It was trained on ids: write them with commas.` : model.example !== null
        ? `${size} It was trained on a task: write its symbols with spaces. This prompt it has not seen.` : size;
    looks.hidden = !model;
    fromTraining.disabled = !kept.training?.session;
  }

  // ---- what follows from the text and the heads
  const refresh = latest(async () => {
    const mine = round, {ablate} = chosen;
    try {
      const next = await model.next(chosen.text, {ablate});
      const whole = ablate.length ? await model.next(chosen.text, {count: 500}) : null;
      const {weights} = await model.attention(chosen.text, {layer: chosen.layer, head: chosen.head, ablate});
      if (ended) return;
      mistake.hidden = true;
      showNext(next, whole);
      showAttention(next.tokens, weights);
    } catch (error) {
      if (!ended) complain(mistake, error);
    }
    root.dataset.settled = mine === round;
  });
  function change(part = {}) {
    Object.assign(chosen, part);
    ++round;
    root.dataset.settled = false;
    remember();
    const {layer: l, head: h, ablate} = chosen;
    layer.set(String(l));
    head.set(String(h));
    zero.set(isAblated(l, h));
    restore.hidden = ablate.length === 0;
    zeroed.textContent = ablate.length ? `Count as zero: ${ablate.map(([a, b]) => `layer ${a + 1} head ${b + 1}`).join(', ')}.` : 'All heads count.';
    effects.replaceChildren();
    return refresh();
  }

  function showNext({tokens, next}, whole) {
    told.textContent = `${tokens.length} ${tokens.length === 1 ? 'token' : 'tokens'}: ${tokens.map(visible).join(' · ')}`;
    const before = new Map((whole?.next ?? []).map(({id, probability}) => [id, probability]));
    const rows = next.map(({id, text, probability}) => {
      const was = before.get(id);
      const change = was === undefined ? '—' : `${probability > was ? '▲' : probability < was ? '▼' : '='} ${pretty((100 * (probability - was)).toFixed(2))}`;
      return {name: `${visible(text)}`, value: probability, texts: whole ? [percent(probability), was === undefined ? '—' : percent(was), change] : [percent(probability)]};
    });
    plain.node.hidden = whole !== null;
    compared.node.hidden = whole === null;
    (whole ? compared : plain).update(rows);
  }
  function showAttention(tokens, weights) {
    const first = Math.max(0, tokens.length - shown);
    const names = tokens.slice(first).map(visible);
    const values = weights.slice(first).map((row) => row.slice(first));
    const table = matrix({
      label: `Attention of layer ${chosen.layer + 1}, head ${chosen.head + 1}`, rows: names, columns: names, values,
      texts: values.map((row, r) => row.map((value, c) => (c > r && value === 0 ? '' : value.toFixed(2)))),
      onPoint: (row, column) => {
        weight.textContent = `${names[row]} looks at ${names[column]} with ${short(values[row][column])}`;
      },
    });
    attention.replaceChildren(table.node);
    weight.textContent = (first > 0 ? `The last ${shown} tokens. ` : '') + 'A row is the token that looks, a column the one it looks at. Point at a weight for more digits.';
  }

  /** How much the most likely token loses without each head, one at a time. */
  async function tryHeads() {
    const mine = round, {text: prompt, ablate} = chosen;
    const {next: [best]} = await model.next(prompt, {ablate, count: 1});
    const values = [];
    for (let l = 0; l < model.layers; ++l) {
      values.push([]);
      for (let h = 0; h < model.heads; ++h) {
        const {next} = await model.next(prompt, {ablate: [...ablate.filter(([a, b]) => a !== l || b !== h), [l, h]], count: model.vocabulary > 5000 ? 500 : model.vocabulary});
        if (mine !== round || ended) return;
        values[l].push(100 * ((next.find(({id}) => id === best.id)?.probability ?? 0) - best.probability));
        effects.replaceChildren(element('p', {class: 'quiet', role: 'status'}, `Layer ${l + 1}, head ${h + 1} …`));
      }
    }
    effects.replaceChildren(
      element('p', {}, `${visible(best.text)} has ${percent(best.probability)}. Without a head it changes by so many points:`),
      matrix({label: 'Effect of each head', rows: values.map((_, l) => `layer ${l + 1}`), columns: values[0].map((_, h) => `head ${h + 1}`), values,
        texts: values.map((row) => row.map((value) => value.toFixed(2))), onPick: (l, h) => change({layer: l, head: h})}).node);
  }
  async function write() {
    const {text: prompt, tokens, temperature, seed, ablate} = chosen;
    written.replaceChildren('It writes …');
    const made = await model.generate({text: prompt, tokens, temperature, seed, ablate});
    written.replaceChildren(prompt, element('strong', {}, made.text), made.stopped ? element('span', {class: 'quiet'}, ' (the end)') : '');
  }
  const attempt = (task) => task().catch((error) => complain(mistake, error));

  // ---- controls
  const button = (words, click) => element('button', {type: 'button', click}, words);
  const about = element('p', {class: 'about', role: 'status'});
  const failure = element('p', {class: 'failure', role: 'alert', hidden: true});
  const mistake = element('p', {class: 'failure', role: 'alert', hidden: true});
  const fromTraining = button('Take the run of the room Training', () => get(takeRun));
  const text = paragraph({label: 'Text', value: chosen.text ?? '', rows: 3, onChange: (words) => change({text: words})});
  const told = element('p', {class: 'quiet'});
  const plain = bars({label: 'Next tokens', columns: ['token', 'probability']});
  const compared = bars({label: 'Next tokens, without some heads', columns: ['token', 'probability', 'with all heads', 'change']});
  const layer = choice({label: 'Layer', choices: counted(1), value: '0', onChange: (index) => change({layer: Number(index)})});
  const head = choice({label: 'Head', choices: counted(1), value: '0', onChange: (index) => change({head: Number(index)})});
  const zero = toggle({label: 'This head counts as zero', value: false, onChange: (on) => {
    const others = chosen.ablate.filter(([l, h]) => l !== chosen.layer || h !== chosen.head);
    change({ablate: on ? [...others, [chosen.layer, chosen.head]] : others});
  }});
  const restore = button('All heads back', () => change({ablate: []}));
  const zeroed = element('p', {class: 'quiet'});
  const attention = element('div'), weight = element('p', {class: 'told', 'aria-live': 'polite'}), effects = element('div', {class: 'effects'});
  const written = element('pre', {class: 'written', tabindex: 0, 'aria-label': 'What was written', 'aria-live': 'polite'});
  const tokens = integer({label: 'Tokens', min: 1, max: 500, value: chosen.tokens, onChange: (count) => keep({tokens: count})});
  const writing = [
    tokens,
    slider({label: 'Temperature', min: 0, max: 2, step: 0.05, value: chosen.temperature, show: (t) => t.toFixed(2), onChange: (temperature) => keep({temperature})}),
    integer({label: 'Seed', min: 0, max: 999999, value: chosen.seed, onChange: (seed) => keep({seed})}),
  ];
  function keep(part) {
    Object.assign(chosen, part);
    remember();
  }
  const card = (title, words, ...content) => element('section', {class: 'card', 'aria-label': title}, element('h2', {}, title),
    words ? element('p', {class: 'quiet'}, words) : null, ...content);
  const looks = element('div', {class: 'model-bench', hidden: true},
    card('What comes next', null, text.node, told, mistake, plain.node, compared.node),
    card('Attention', null, element('div', {class: 'controls'}, layer.node, head.node, zero.node), element('div', {class: 'setting'}, zeroed, restore), attention, weight),
    card('What each head is good for', 'Each head in turn counts as zero: how much of its probability does the likeliest next token lose?',
      button('Try every head', () => attempt(tryHeads)), effects),
    card('Write on', 'Token by token, each drawn with its probability; at a temperature of 0 it is always the likeliest.', element('div', {class: 'controls'}, writing.map((control) => control.node)), button('Write', () => attempt(write)), written));

  root.append(
    element('div', {class: 'intro'}, element('h1', {}, 'A trained model'),
      element('p', {}, 'What a model makes of a text: the token it expects next, where each of its heads looks, and what changes when a head is taken away.')),
    element('div', {class: 'card program sources'}, about, element('div', {class: 'setting'}, button('Train a small one', () => get(trainSmall)), fromTraining),
      failure, fileDrop({label: 'Or drop a run here (a folder or its tar), or a GPT-2, Llama, Mistral or Qwen with config.json, model.safetensors and its vocabulary', wanted: isWanted,
        onFiles: (files) => get(() => takeFiles(files))}).node,
      await nativeChoice({'Look into it': (name) => get(() => takeNative(name))})),
    looks);
  describe();
  if (chosen.model === 'small') get(trainSmall);
  else if (chosen.model?.startsWith('native:')) get(() => takeNative(chosen.model.slice('native:'.length)));
  else if (chosen.model === 'run' && kept.training?.session) get(takeRun);
  return () => {
    ended = true;
    work.then(() => model?.close());
  };
}
