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

function complain(node, error) {
  node.hidden = false;
  node.replaceChildren(element('strong', {}, `${error.type ?? 'Error'} `), error.message);
}

const button = (words, click) => element('button', {type: 'button', click}, words);

const card = (title, words, ...content) => element('section', {class: 'card', 'aria-label': title}, element('h2', {}, title),
  words ? element('p', {class: 'quiet'}, words) : null, ...content);

/** What an address chooses. */
const choicesOf = (state) => ({
  model: state.model ?? null, text: state.text ?? null, layer: Number(state.layer ?? 1) - 1, head: Number(state.head ?? 1) - 1, ablate: headsOf(state.ablate),
  tokens: Number(state.tokens ?? 30), temperature: Number(state.temperature ?? 1), seed: Number(state.seed ?? 0),
});

/** The room: a model, and what is chosen of it. */
class Room {
  model = null;
  ended = false;
  round = 0;
  work = Promise.resolve();

  constructor(root, {engine, state, setState, kept}) {
    Object.assign(this, {root, engine, state, setState, kept, chosen: choicesOf(state)});
    this.refresh = latest(() => this.look());
    this.makeSource();
    this.makeText();
    this.makeHeads();
    this.makeWriting();
    this.makeCards();
  }

  remember() {
    const {chosen} = this;
    const next = {};
    if (chosen.model) next.model = chosen.model;
    if (chosen.text !== null) next.text = chosen.text;
    if (chosen.layer) next.layer = String(chosen.layer + 1);
    if (chosen.head) next.head = String(chosen.head + 1);
    if (chosen.ablate.length) next.ablate = textOf(chosen.ablate);
    if (chosen.tokens !== 30) next.tokens = String(chosen.tokens);
    if (chosen.temperature !== 1) next.temperature = String(chosen.temperature);
    if (chosen.seed) next.seed = String(chosen.seed);
    if (!this.ended) this.setState(next);
  }
  keep(part) {
    Object.assign(this.chosen, part);
    this.remember();
  }
  end() {
    this.ended = true;
    this.work.then(() => this.model?.close());
  }

  // ---- which model
  async take(files, source) {
    const next = await this.engine.open(files, {as: 'model', give: true});
    if (this.ended) return next.close();
    await this.model?.close();
    this.model = next;
    const {chosen, model} = this;
    chosen.model = source;
    chosen.text ??= model.example ?? (model.tokenizer === null ? '1, 2, 3' : small.text);
    if (model.answer !== null && !this.state.tokens) {
      chosen.tokens = model.answer;
      this.tokens.set(chosen.tokens);
    }
    chosen.layer = Math.min(chosen.layer, model.layers - 1);
    chosen.head = Math.min(chosen.head, model.heads - 1);
    chosen.ablate = chosen.ablate.filter(([layer, head]) => layer < model.layers && head < model.heads);
    this.layer.choose(counted(model.layers));
    this.head.choose(counted(model.heads));
    this.text.set(chosen.text);
    this.written.replaceChildren();
    await this.change();
  }
  async trainSmall() {
    const session = new Session(await this.engine.run((await configs()).get(small.config)));
    const all = session.run.config.train.steps;
    await session.train({heard: () => {
      this.about.textContent = `It trains: step ${session.steps} of ${all}.`;
      if (this.ended) session.stop();
    }});
    if (!this.ended) await this.take(await session.run.save(), 'small');
    await session.run.close();
  }
  async takeRun() {
    await this.take(await this.kept.training.session.run.save(), 'run');
  }
  async takeNative(name) {
    await this.take(await nativeFilesOf(name), `native:${name}`);
  }
  async takeFiles(files) {
    this.about.textContent = 'It is opened …';
    await this.take(opened(files), null);
  }
  /** Gets a model, one after another, and says what went wrong. */
  get(task) {
    return (this.work = this.work.then(async () => {
      this.failure.hidden = true;
      try {
        await task();
      } catch (error) {
        complain(this.failure, error);
      }
      this.describe();
    }));
  }
  /** The model that the address names. */
  getChosen() {
    const {model} = this.chosen;
    if (model === 'small') this.get(() => this.trainSmall());
    else if (model?.startsWith('native:')) this.get(() => this.takeNative(model.slice('native:'.length)));
    else if (model === 'run' && this.kept.training?.session) this.get(() => this.takeRun());
  }
  describe() {
    const {model} = this;
    const size = model && `${model.layers} × ${model.heads} heads, ${model.parameters.toLocaleString('en')} parameters, a vocabulary of ` +
      `${model.vocabulary.toLocaleString('en')}, at most ${model.context.toLocaleString('en')} tokens at once.`;
    this.about.textContent = !model ? 'Train one, or bring your own.' : model.tokenizer === null
      ? `${size} It was trained on ids: write them with commas.` : model.example !== null
        ? `${size} It was trained on a task: write its symbols with spaces. This prompt it has not seen.` : size;
    this.looks.hidden = !model;
    this.fromTraining.disabled = !this.kept.training?.session;
  }

  // ---- what follows from the text and the heads
  async look() {
    const {chosen, round: mine} = this, {ablate} = chosen;
    try {
      const next = await this.model.next(chosen.text, {ablate});
      const whole = ablate.length ? await this.model.next(chosen.text, {count: 500}) : null;
      const {weights} = await this.model.attention(chosen.text, {layer: chosen.layer, head: chosen.head, ablate});
      if (this.ended) return;
      this.mistake.hidden = true;
      this.showNext(next, whole);
      this.showAttention(next.tokens, weights);
    } catch (error) {
      if (!this.ended) complain(this.mistake, error);
    }
    this.root.dataset.settled = mine === this.round;
  }
  change(part = {}) {
    Object.assign(this.chosen, part);
    ++this.round;
    this.root.dataset.settled = false;
    this.remember();
    const {layer, head, ablate} = this.chosen;
    this.layer.set(String(layer));
    this.head.set(String(head));
    this.zero.set(ablate.some(([l, h]) => l === layer && h === head));
    this.restore.hidden = ablate.length === 0;
    this.zeroed.textContent = ablate.length ? `Count as zero: ${ablate.map(([a, b]) => `layer ${a + 1} head ${b + 1}`).join(', ')}.` : 'All heads count.';
    this.effects.replaceChildren();
    return this.refresh();
  }

  showNext({tokens, next}, whole) {
    this.told.textContent = `${tokens.length} ${tokens.length === 1 ? 'token' : 'tokens'}: ${tokens.map(visible).join(' · ')}`;
    const before = new Map((whole?.next ?? []).map(({id, probability}) => [id, probability]));
    const rows = next.map(({id, text, probability}) => {
      const was = before.get(id);
      const change = was === undefined ? '—' : `${probability > was ? '▲' : probability < was ? '▼' : '='} ${pretty((100 * (probability - was)).toFixed(2))}`;
      return {name: `${visible(text)}`, value: probability, texts: whole ? [percent(probability), was === undefined ? '—' : percent(was), change] : [percent(probability)]};
    });
    this.plain.node.hidden = whole !== null;
    this.compared.node.hidden = whole === null;
    (whole ? this.compared : this.plain).update(rows);
  }
  showAttention(tokens, weights) {
    const first = Math.max(0, tokens.length - shown);
    const names = tokens.slice(first).map(visible);
    const values = weights.slice(first).map((row) => row.slice(first));
    const table = matrix({
      label: `Attention of layer ${this.chosen.layer + 1}, head ${this.chosen.head + 1}`, rows: names, columns: names, values,
      texts: values.map((row, r) => row.map((value, c) => (c > r && value === 0 ? '' : value.toFixed(2)))),
      onPoint: (row, column) => {
        this.weight.textContent = `${names[row]} looks at ${names[column]} with ${short(values[row][column])}`;
      },
    });
    this.attention.replaceChildren(table.node);
    this.weight.textContent = (first > 0 ? `The last ${shown} tokens. ` : '') + 'A row is the token that looks, a column the one it looks at. Point at a weight for more digits.';
  }

  /** How much the most likely token loses without each head, one at a time. */
  async tryHeads() {
    const mine = this.round, {effects} = this, {text: prompt, ablate} = this.chosen;
    const {next: [best]} = await this.model.next(prompt, {ablate, count: 1});
    const values = [];
    for (let l = 0; l < this.model.layers; ++l) {
      values.push([]);
      for (let h = 0; h < this.model.heads; ++h) {
        const {next} = await this.model.next(prompt, {ablate: [...ablate.filter(([a, b]) => a !== l || b !== h), [l, h]], count: this.model.vocabulary > 5000 ? 500 : this.model.vocabulary});
        if (mine !== this.round || this.ended) return;
        values[l].push(100 * ((next.find(({id}) => id === best.id)?.probability ?? 0) - best.probability));
        effects.replaceChildren(element('p', {class: 'quiet', role: 'status'}, `Layer ${l + 1}, head ${h + 1} …`));
      }
    }
    effects.replaceChildren(
      element('p', {}, `${visible(best.text)} has ${percent(best.probability)}. Without a head it changes by so many points:`),
      matrix({label: 'Effect of each head', rows: values.map((_, l) => `layer ${l + 1}`), columns: values[0].map((_, h) => `head ${h + 1}`), values,
        texts: values.map((row) => row.map((value) => value.toFixed(2))), onPick: (l, h) => this.change({layer: l, head: h})}).node);
  }
  async write() {
    const {text: prompt, tokens, temperature, seed, ablate} = this.chosen;
    this.written.replaceChildren('It writes …');
    const made = await this.model.generate({text: prompt, tokens, temperature, seed, ablate});
    this.written.replaceChildren(prompt, element('strong', {}, made.text), made.stopped ? element('span', {class: 'quiet'}, ' (the end)') : '');
  }
  attempt(task) {
    return task().catch((error) => complain(this.mistake, error));
  }

  // ---- controls
  makeSource() {
    this.about = element('p', {class: 'about', role: 'status'});
    this.failure = element('p', {class: 'failure', role: 'alert', hidden: true});
    this.fromTraining = button('Take the run of the room Training', () => this.get(() => this.takeRun()));
  }
  makeText() {
    this.mistake = element('p', {class: 'failure', role: 'alert', hidden: true});
    this.text = paragraph({label: 'Text', value: this.chosen.text ?? '', rows: 3, onChange: (words) => this.change({text: words})});
    this.told = element('p', {class: 'quiet'});
    this.plain = bars({label: 'Next tokens', columns: ['token', 'probability']});
    this.compared = bars({label: 'Next tokens, without some heads', columns: ['token', 'probability', 'with all heads', 'change']});
  }
  makeHeads() {
    const {chosen} = this;
    this.layer = choice({label: 'Layer', choices: counted(1), value: '0', onChange: (index) => this.change({layer: Number(index)})});
    this.head = choice({label: 'Head', choices: counted(1), value: '0', onChange: (index) => this.change({head: Number(index)})});
    this.zero = toggle({label: 'This head counts as zero', value: false, onChange: (on) => {
      const others = chosen.ablate.filter(([l, h]) => l !== chosen.layer || h !== chosen.head);
      this.change({ablate: on ? [...others, [chosen.layer, chosen.head]] : others});
    }});
    this.restore = button('All heads back', () => this.change({ablate: []}));
    this.zeroed = element('p', {class: 'quiet'});
    this.attention = element('div');
    this.weight = element('p', {class: 'told', 'aria-live': 'polite'});
    this.effects = element('div', {class: 'effects'});
  }
  makeWriting() {
    const {chosen} = this;
    this.written = element('pre', {class: 'written', tabindex: 0, 'aria-label': 'What was written', 'aria-live': 'polite'});
    this.tokens = integer({label: 'Tokens', min: 1, max: 500, value: chosen.tokens, onChange: (count) => this.keep({tokens: count})});
    this.temperature = slider({label: 'Temperature', min: 0, max: 2, step: 0.05, value: chosen.temperature, show: (t) => t.toFixed(2),
      onChange: (temperature) => this.keep({temperature})});
    this.seed = integer({label: 'Seed', min: 0, max: 999999, value: chosen.seed, onChange: (seed) => this.keep({seed})});
  }

  /** Where models come from; `native` is the choice among the program's runs. */
  sources(native) {
    return element('div', {class: 'card program sources'}, this.about,
      element('div', {class: 'setting'}, button('Train a small one', () => this.get(() => this.trainSmall())), this.fromTraining),
      this.failure, fileDrop({label: 'Or drop a run here (a folder or its tar), or a GPT-2, Llama, Mistral or Qwen with config.json, model.safetensors and its vocabulary', wanted: isWanted,
        onFiles: (files) => this.get(() => this.takeFiles(files))}).node,
      native);
  }
  makeCards() {
    const {layer, head, zero, zeroed, restore} = this;
    this.looks = element('div', {class: 'model-bench', hidden: true},
      card('What comes next', null, this.text.node, this.told, this.mistake, this.plain.node, this.compared.node),
      card('Attention', null, element('div', {class: 'controls'}, layer.node, head.node, zero.node), element('div', {class: 'setting'}, zeroed, restore), this.attention, this.weight),
      card('What each head is good for', 'Each head in turn counts as zero: how much of its probability does the likeliest next token lose?',
        button('Try every head', () => this.attempt(() => this.tryHeads())), this.effects),
      card('Write on', 'Token by token, each drawn with its probability; at a temperature of 0 it is always the likeliest.',
        element('div', {class: 'controls'}, this.tokens.node, this.temperature.node, this.seed.node),
        button('Write', () => this.attempt(() => this.write())), this.written));
  }
}

export async function show(root, startEngine, state, setState, kept) {
  const room = new Room(root, {engine: await startEngine(), state, setState, kept});
  root.append(
    element('div', {class: 'intro'}, element('h1', {}, 'A trained model'),
      element('p', {}, 'What a model makes of a text: the token it expects next, where each of its heads looks, and what changes when a head is taken away.')),
    room.sources(await nativeChoice({'Look into it': (name) => room.get(() => room.takeNative(name))})),
    room.looks);
  room.describe();
  room.getChosen();
  return () => room.end();
}
