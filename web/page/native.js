// The runs of this machine, where its program serves the page (`onestep play`, `onestep train --watch`).
import {choice} from './widgets/controls.js';
import {element} from './widgets/dom.js';

const at = (path) => new URL(path.split('/').map(encodeURIComponent).join('/'), import.meta.url);

/** [{name, modified, files: [{path, size, modified}]}], the last changed first; null where no program serves the page (runs.json). */
export async function nativeRuns() {
  return (await fetch(at('runs.json'), {cache: 'no-store'})).json();
}

/** The bytes of a run's file from `first` on; null where it is gone. */
export async function nativeFile(name, path, first = 0) {
  const response = await fetch(at(`runs/${name}/${path}`), {cache: 'no-store', headers: first ? {Range: `bytes=${first}-`} : {}});
  return response.ok && response.status !== 204 ? new Uint8Array(await response.arrayBuffer()) : null;
}

/** The checkpoint of the most steps, `checkpoints/step-N/`; null before the first. */
export function newestCheckpoint(run) {
  const steps = run.files.map(({path}) => /^checkpoints\/step-(\d+)\/state\.json$/.exec(path)).filter(Boolean).map(([, step]) => Number(step));
  return steps.length ? `checkpoints/step-${Math.max(...steps)}/` : null;
}

/**
 * What engine.open wants of a run: a Map from path to bytes, with the newest of its checkpoints. Null where the program has replaced that
 * meanwhile.
 */
export async function nativeFiles(run) {
  const checkpoint = newestCheckpoint(run), files = new Map();
  for (const {path} of run.files) {
    if (!['config.json', 'tokenizer.json', 'metrics.jsonl'].includes(path) && !(checkpoint && path.startsWith(checkpoint))) continue;
    const bytes = await nativeFile(run.name, path);
    if (bytes === null) return null;
    files.set(path, bytes);
  }
  return files;
}

/** The same of a run by its name, as it is now. Throws Error where there is none, or nothing is saved of it yet. */
export async function nativeFilesOf(name) {
  for (let tries = 0; tries < 5; ++tries) {
    const run = (await nativeRuns())?.find((run) => run.name === name);
    if (!run) throw new Error(`this machine has no run ${name}`);
    if (!newestCheckpoint(run)) throw new Error(`${name} has no checkpoint yet`);
    const files = await nativeFiles(run);
    if (files) return files;
  }
  throw new Error(`${name} is replaced faster than it can be read`);
}

/** A choice of this machine's runs with buttons, {words: act(name)}; null where there is none. */
export async function nativeChoice(buttons) {
  const runs = await nativeRuns();
  if (!runs?.length) return null;
  let name = runs[0].name;
  const select = choice({label: 'A run of this machine', value: name, choices: runs.map((run) => [run.name, run.name]), onChange: (next) => (name = next)});
  return element('div', {class: 'setting native'}, select.node,
    Object.entries(buttons).map(([words, act]) => element('button', {type: 'button', click: () => act(name)}, words)));
}
