// Files that come and go: what a person drops or chooses, what a page offers to keep, and what the page brings along.
import {tar, untar} from './tar.js';

/** Whether a file of a folder is of use here: not the same weights in formats that the engine does not read. */
export const isWanted = (path) => !/\.(bin|h5|msgpack|ot|onnx|tflite|mlmodel|pt|pth|html)$|(^|\/)\.git\//.test(path);

/**
 * What engine.open wants of the files (a Map from path to Uint8Array) that a person gave: a tar is unpacked, paths begin in the folder
 * that holds config.json. Throws Error where there is none.
 */
export function opened(files) {
  const archive = files.size === 1 && [...files].find(([path]) => path.endsWith('.tar'));
  const all = archive ? untar(archive[1]) : files;
  const depth = (path) => path.split('/').length;
  const [config] = [...all.keys()].filter((path) => /(^|\/)config\.json$/.test(path)).sort((a, b) => depth(a) - depth(b));
  if (config === undefined)
    throw new Error('there is no config.json: choose the folder of a run, its tar, or a folder with config.json and model.safetensors');
  const folder = config.slice(0, -'config.json'.length);
  return new Map([...all].filter(([path]) => path.startsWith(folder)).map(([path, bytes]) => [path.slice(folder.length), bytes]));
}

/** Has the browser keep the files as NAME.tar, which unpacks into the folder NAME. */
export function download(name, files) {
  const archive = tar(new Map([...files].map(([path, bytes]) => [`${name}/${path}`, bytes])));
  const url = URL.createObjectURL(new Blob([archive], {type: 'application/x-tar'}));
  const link = document.createElement('a');
  Object.assign(link, {href: url, download: `${name}.tar`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

async function brought(path) {
  const response = await fetch(new URL(path, import.meta.url));
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  return response;
}

/** The configs that the page brings along: a Map from name to text. */
export async function configs() {
  const names = await (await brought('configs/index.json')).json();
  return new Map(await Promise.all(names.map(async (name) => [name, await (await brought(`configs/${name}.json`)).text()])));
}

/** Gives the engine the files of the repository that its configs read, at their paths there. */
export async function addRepository(engine) {
  await engine.request('addFiles', {files: untar(new Uint8Array(await (await brought('repository.tar')).arrayBuffer())), folder: '/'});
}
