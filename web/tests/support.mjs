// What the tests share.
import {execFileSync, spawn} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import v8 from 'node:v8';

v8.setFlagsFromString('--experimental-wasm-relaxed-simd');  // node 20 knows them, but does not take them unasked

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const dist = join(root, 'web/dist');
export const {Model, Run, load} = await import(join(dist, 'engine.js'));

/** The modules that this machine can run. */
export const modules = (await import(join(dist, 'engine.js'))).loadModule
  ? (await Promise.all(['exact', 'relaxed'].map(async (which) => {
      try {
        return (await load({worker: false, which})) && which;
      } catch {
        return null;
      }
    }))).filter(Boolean)
  : [];

/** The test cases of web_tests, in Chromium or in node. */
export const suites = {
  'fused multiply-adds': '*fma*',
  'doubles as text': 'web: a double*',
  'every kernel on every instruction set': 'kernels:*',
  'the op suite': 'op suite:*',
  'trainings of known bits': 'bits: 25 steps end with the known hashes on*',
};

export const temporaryFolder = () => mkdtempSync(join(tmpdir(), 'onestep-web-'));

/** The files below a folder: a Map from path to bytes. */
export function readFolder(folder, prefix = '') {
  const files = new Map();
  for (const name of readdirSync(join(folder, prefix))) {
    const path = join(prefix, name);
    if (statSync(join(folder, path)).isDirectory()) for (const [inner, bytes] of readFolder(folder, path)) files.set(inner, bytes);
    else files.set(path, new Uint8Array(readFileSync(join(folder, path))));
  }
  return files;
}

export function writeFolder(folder, files) {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), {recursive: true});
    writeFileSync(join(folder, path), bytes);
  }
}

export const program = process.env.ONESTEP_PROGRAM ?? join(root, 'build/release/onestep');
export const hasProgram = existsSync(program);

/** Calls the native program; returns its output. */
export function onestep(...args) {
  return execFileSync(program, args, {cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
}

/** Starts a command of the program that serves the page, until the test ends; resolves to {address, child}: what it tells, and its process. */
export async function serving(t, ...args) {
  const child = spawn(program, args, {stdio: ['ignore', 'pipe', 'pipe']});
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  const address = await new Promise((resolve, reject) => {
    const hear = (text) => {
      said += text;
      const found = /(http:\/\/127\.0\.0\.1:\S+)\s/.exec(said);
      if (found) resolve(found[1]);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('exit', () => reject(new Error(said)));
  });
  return {address, child};
}

/** The lines of a run's metrics without times. */
export function metrics(text) {
  return text
    .trim()
    .split('\n')
    .map((line) => withoutTimes(JSON.parse(line)));
}
export function withoutTimes({tokens_per_second, seconds, ...rest}) {
  return rest;
}

/** A small run with dropout, warm-up and evaluations. */
export const small = {
  seed: 7,
  model: {kind: 'gpt', d_model: 16, num_heads: 2, num_layers: 2, context_length: 15, dropout: 0.1},
  data: {kind: 'task', task: 'copy', vocab_size: 12, length: 8},
  optimizer: {kind: 'adamw', lr: 0.003},
  train: {steps: 12, batch_size: 4, eval_every: 4, eval_batches: 2, log_every: 1},
};
