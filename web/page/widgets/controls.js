// Labelled controls. Each returns {node, set(value)}, some `input`, too; `onChange` gets the new value when a person changes it.
import {element} from './dom.js';

let count = 0;
const newId = () => `control-${++count}`;

export function slider({label, min, max, step = 1, value, show = String, onChange}) {
  const id = newId();
  const output = element('output', {for: id}, show(value));
  const input = element('input', {id, type: 'range', min, max, step, value, input: () => {
    output.textContent = show(Number(input.value));
    onChange(Number(input.value));
  }});
  const node = element('div', {class: 'control slider'}, element('label', {for: id}, label), input, output);
  return {node, input, set(next) {
    input.value = next;
    output.textContent = show(next);
  }};
}

export function toggle({label, value, onChange}) {
  const id = newId();
  const input = element('input', {id, type: 'checkbox', role: 'switch', change: () => onChange(input.checked)});
  input.checked = value;
  return {node: element('div', {class: 'control toggle'}, input, element('label', {for: id}, label)), set(next) {
    input.checked = next;
  }};
}

/** `choices` are [value, text] pairs; `choose(pairs)` puts others in their place. */
export function choice({label, choices, value, onChange}) {
  const id = newId();
  const select = element('select', {id, change: () => onChange(select.value)});
  const choose = (pairs) => select.replaceChildren(...pairs.map(([name, text]) => element('option', {value: name}, text)));
  choose(choices);
  select.value = value;
  return {node: element('div', {class: 'control choice'}, element('label', {for: id}, label), select), choose, set(next) {
    select.value = next;
  }};
}

export function integer({label, min, max, value, onChange}) {
  const id = newId();
  const input = element('input', {id, type: 'number', min, max, step: 1, value, inputmode: 'numeric', change: () => {
    const number = Math.min(max, Math.max(min, Math.round(Number(input.value) || 0)));
    input.value = number;
    onChange(number);
  }});
  return {node: element('div', {class: 'control integer'}, element('label', {for: id}, label), input), input, set(next) {
    input.value = next;
  }};
}

export function text({label, value, maxlength, onChange}) {
  const id = newId();
  const input = element('input', {id, type: 'text', value, maxlength, spellcheck: 'false', autocomplete: 'off',
    input: () => onChange(input.value)});
  return {node: element('div', {class: 'control text'}, element('label', {for: id}, label), input), set(next) {
    if (input.value !== next) input.value = next;
  }};
}

/** A text of several lines. */
export function paragraph({label, value, placeholder = null, rows = 4, onChange}) {
  const id = newId();
  const area = element('textarea', {id, rows, placeholder, spellcheck: 'false', input: () => onChange(area.value)});
  area.value = value;
  return {node: element('div', {class: 'control paragraph'}, element('label', {for: id}, label), area), set(next) {
    if (area.value !== next) area.value = next;
  }};
}

/** A place to drop files or a folder, or to choose them; `onFiles` gets a Map from path to Uint8Array of those that are `wanted(path)`. */
export function fileDrop({label, wanted = () => true, onFiles}) {
  const bytesOf = async (file) => new Uint8Array(await file.arrayBuffer());
  const read = async (files) => onFiles(new Map(await Promise.all([...files].map((file) => [file.webkitRelativePath || file.name, file])
    .filter(([path]) => wanted(path)).map(async ([path, file]) => [path, await bytesOf(file)]))));
  const chooser = (what, folder) => {
    const id = newId();
    const input = element('input', {id, type: 'file', multiple: true, webkitdirectory: folder, change: async () => {
      await read(input.files);
      input.value = '';  // the same ones may be chosen again
    }});
    return element('div', {class: 'control'}, element('label', {for: id}, what), input);
  };
  const node = element('div', {class: 'drop', role: 'group', 'aria-label': label}, element('p', {}, label),
    chooser('Choose files', false), chooser('Choose a folder', true));
  node.addEventListener('dragover', (event) => {
    event.preventDefault();
    node.classList.add('over');
  });
  node.addEventListener('dragleave', () => node.classList.remove('over'));
  node.addEventListener('drop', async (event) => {
    event.preventDefault();
    node.classList.remove('over');
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const files = (await Promise.all(entries.map(filesOf))).flat().filter(([path]) => wanted(path));
    onFiles(new Map(await Promise.all(files.map(async ([path, file]) => [path, await bytesOf(file)]))));
  });
  return {node};
}

/** [path, file] of all files below an entry of a drop. */
async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [[entry.fullPath.replace(/^\//, ''), file]];
  }
  const reader = entry.createReader();
  const all = [];
  for (;;) {  // a reader gives a hundred entries at a time
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    all.push(...some);
  }
  return (await Promise.all(all.map(filesOf))).flat();
}
