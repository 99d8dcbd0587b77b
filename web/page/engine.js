// The engine for pages: `const engine = await load()` (README.md).
import {Wasi} from './wasi.js';

/** What the engine refuses: `type` is its exception's name. */
export class EngineError extends Error {
  constructor({type, message}) {
    super(message);
    this.name = this.type = type;
  }
}

/** The module in this thread: call(method, args) returns the result or throws EngineError; `wasi` holds its files. */
export class Module {
  constructor(instance, wasi, name) {
    this.exports = instance.exports;
    this.wasi = wasi;
    this.name = name;
  }

  call(method, args = {}) {
    const encoded = [method, JSON.stringify(args)].map((text) => new TextEncoder().encode(text));
    const places = encoded.map((bytes) => this.#copy(bytes));
    const at = this.exports.call(places[0], encoded[0].length, places[1], encoded[1].length);
    places.forEach((place) => this.exports.release(place));
    const text = new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, at, this.exports.result_size()));
    const result = JSON.parse(text);
    if (result?.error) throw new EngineError(result.error);
    return result;
  }

  #copy(bytes) {
    const at = this.exports.allocate(bytes.length);
    if (at === 0) throw new EngineError({type: 'MemoryError', message: 'out of memory'});
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }
}

async function bytesOf(url) {
  if (url.protocol === 'file:' && globalThis.process?.versions?.node) return (await import('node:fs/promises')).readFile(url);
  const response = await fetch(url);
  if (!response.ok) throw new EngineError({type: 'IoError', message: `${url}: ${response.status} ${response.statusText}`});
  return response.arrayBuffer();
}

/**
 * The module that is best on this machine: relaxed.wasm where its instructions are known and round once, else exact.wasm. `which`
 * asks for one of them.
 */
export async function loadModule({base = import.meta.url, which = null, print = () => {}} = {}) {
  for (const name of which ? [which] : ['relaxed', 'exact']) {
    const wasi = new Wasi({print, env: {ONESTEP_CACHE: '/cache'}});
    let compiled;
    try {
      compiled = await WebAssembly.compile(await bytesOf(new URL(`${name}.wasm`, base)));
    } catch (error) {
      if (name === 'relaxed' && !which && error instanceof WebAssembly.CompileError) continue;  // unknown instructions
      throw error;
    }
    const instance = await WebAssembly.instantiate(compiled, wasi.imports);
    wasi.attach(instance);
    instance.exports._initialize();
    if (instance.exports.supported()) return new Module(instance, wasi, name);
  }
  throw new EngineError({type: 'ConfigError', message: 'this browser cannot run the engine'});
}

/** What this thread and a worker do with a module, by name. */
export const requests = {
  call: (module, {method, args}) => module.call(method, args),
  addFiles: (module, {files, folder}) => module.wasi.add(files, folder),
  files: (module, {folder}) => module.wasi.files(folder),
  removeFiles: (module, {folder}) => module.wasi.remove(folder),
  name: (module) => module.name,
};

/** Sends requests to a worker and returns their answers. */
class Remote {
  constructor(worker) {
    this.worker = worker;
    this.pending = new Map();
    this.count = 0;
    worker.onmessage = ({data: {id, result, error}}) => {
      const {resolve, reject} = this.pending.get(id);
      this.pending.delete(id);
      if (error) reject(new EngineError(error));
      else resolve(result);
    };
    worker.onerror = (event) => {
      for (const {reject} of this.pending.values()) reject(new EngineError({type: 'Error', message: event.message}));
      this.pending.clear();
    };
  }
  request(kind, args, transfer = []) {
    return new Promise((resolve, reject) => {
      this.pending.set(++this.count, {resolve, reject});
      this.worker.postMessage({id: this.count, kind, args}, transfer);
    });
  }
  close() {
    this.worker.terminate();
  }
}

class Local {
  constructor(module) {
    this.module = module;
  }
  async request(kind, args) {
    return requests[kind](this.module, args);
  }
  close() {}
}

/** A training run. */
export class Run {
  constructor(engine, description) {
    this.engine = engine;
    Object.assign(this, {
      number: description.run,
      folder: description.folder,
      config: description.config,
      data: description.data,
      parameters: description.parameters,
      tokensPerStep: description.tokens_per_step,
      stepsDone: description.step,
      done: description.done,
    });
  }
  #call(method, args = {}) {
    return this.engine.call(method, {run: this.number, ...args});
  }
  /** Trains up to `steps` steps: an array of objects with the keys of metrics.jsonl; shorter where the run ends. */
  step(steps = 1) {
    return this.#call('run_step', {steps});
  }
  /** {loss, accuracy, tokens} on held-out data. */
  evaluate() {
    return this.#call('run_evaluate');
  }
  /** {tokens, weights: [layer][head][query][key]} of a sample of what the run is evaluated on. */
  attention({tokens = 32} = {}) {
    return this.#call('run_attention', {tokens});
  }
  /** `count` times {prompt, continuation}. */
  sample({count = 1} = {}) {
    return this.#call('run_samples', {count});
  }
  /** [{name, norm}] of every parameter's gradient in the last step. */
  gradients() {
    return this.#call('run_gradients');
  }
  /** Goes on with another optimizer.lr; resolves to the config. */
  async setLearningRate(lr) {
    this.config = await this.#call('run_set_learning_rate', {lr});
    return this.config;
  }
  /** The files of the run folder, with a checkpoint of now: a Map from path to Uint8Array, for `onestep train --resume`. */
  async save() {
    const {folder} = await this.#call('run_save');
    return this.engine.request('files', {folder});
  }
  /** Forgets the run and its files. */
  async close() {
    await this.#call('run_close');
    await this.engine.request('removeFiles', {folder: this.folder});
  }
}

/** A trained model. `ablate` is a list of [layer, head] whose results count as zero. */
export class Model {
  constructor(engine, description) {
    this.engine = engine;
    Object.assign(this, {
      number: description.model,
      parameters: description.parameters,
      layers: description.layers,
      heads: description.heads,
      context: description.context,
      vocabulary: description.vocabulary,
      tokenizer: description.tokenizer,
      example: description.example,  // a prompt of the task that it was trained on, and the tokens of its answer; else null
      answer: description.answer,
    });
  }
  #call(method, args) {
    return this.engine.call(method, {model: this.number, ...args});
  }
  /** {tokens: [names of the text's], next: [{id, text, probability}]}, the `count` most likely ones first. */
  next(text, {ablate = [], count = 20, temperature = 1} = {}) {
    return this.#call('model_next', {text, ablate, count, temperature});
  }
  /** {tokens, weights}: [layer][head][query][key], or less of it where `layer` and `head` are given. */
  attention(text, {layer, head, ablate = []} = {}) {
    return this.#call('model_attention', {text, layer, head, ablate});
  }
  /** {ids, text, logprobs, stopped} of what follows the text; stopped where a token ended it. */
  generate({text, tokens = 50, temperature = 1, topK = 0, topP = 1, seed = 0, ablate = []}) {
    return this.#call('model_generate', {text, tokens, temperature, top_k: topK, top_p: topP, seed, ablate});
  }
  close() {
    return this.#call('model_close', {});
  }
}

export class Engine {
  #folders = 0;
  constructor(thread) {
    this.thread = thread;
  }
  request(kind, args, transfer) {
    return this.thread.request(kind, args, transfer);
  }
  /** Calls a method of the engine by name; rejects with EngineError. */
  call(method, args = {}) {
    return this.request('call', {method, args});
  }
  /** The config (an object, or the text of a file) with every default written out; rejects with the checker's message. */
  check(config) {
    return this.call('check_config', {config});
  }
  /** A new run of a config. */
  async run(config, {folder = this.#newFolder()} = {}) {
    return new Run(this, await this.call('run_new', {config, folder}));
  }
  /**
   * The run or model in `files`, a Map from path to Uint8Array (or an object): a Run that continues, to `steps` steps if given, or with
   * {as: 'model'}, or where it can only be that (a GPT in safetensors), a Model. With `give` the arrays go over to the engine, which
   * spares a copy of a large model.
   */
  async open(files, {as = null, steps, folder = this.#newFolder(), give = false} = {}) {
    const given = [...(files instanceof Map ? files : Object.entries(files))];
    const own = new Map(give ? given : given.map(([path, bytes]) => [path, bytes.slice()]));
    await this.request('addFiles', {files: own, folder}, [...new Set([...own.values()].map((bytes) => bytes.buffer))]);
    let open = null;
    try {
      const kind = as ?? (await this.call('folder_kind', {folder}));
      if (kind === 'run') open = new Run(this, await this.call('run_open', {folder, steps}));
      return open ?? new Model(this, await this.call('model_open', {folder}));
    } finally {
      if (!open) await this.request('removeFiles', {folder});  // a model is in memory, all of it
    }
  }
  /** Ends the worker. */
  close() {
    this.thread.close();
  }
  #newFolder() {
    return `/runs/${++this.#folders}`;
  }
}

/**
 * Loads the engine: in a worker, so that the page stays responsive, or with {worker: false}, and always outside of browsers, in this
 * thread. {which: 'exact'} or 'relaxed' asks for one of the two modules; by default it is the fastest that gives the right bits.
 */
export async function load({worker = typeof Worker !== 'undefined' && typeof window !== 'undefined', which = null} = {}) {
  if (!worker) return new Engine(new Local(await loadModule({which})));
  const remote = new Remote(new Worker(new URL('./worker.js', import.meta.url), {type: 'module'}));
  await remote.request('load', {which});
  return new Engine(remote);
}
