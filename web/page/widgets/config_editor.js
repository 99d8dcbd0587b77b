// A config as text, with the checker's message at the line that it is about.
import {element} from './dom.js';

/** The line, from 0, that a message of the checker names: `config:3:5: ...` or, by JSON pointer, `config: /model/d_model: ...`. */
export function lineOf(message, text) {
  const numbered = message.match(/^config:(\d+)/);
  if (numbered) return Math.min(Number(numbered[1]), text.split('\n').length) - 1;
  const pointer = message.match(/^config: ((?:\/[^/:\s]+)+)/)?.[1];
  if (!pointer) return null;
  let at = 0;
  for (const key of pointer.slice(1).split('/')) {
    const found = text.slice(at).search(new RegExp(`"${key.replace(/[^\w]/g, '\\$&')}"\\s*:`));
    if (found < 0) break;  // a key that is missing belongs where its object begins
    at += found + 1;
  }
  return at === 0 ? null : text.slice(0, at).split('\n').length - 1;
}

/** {label, onChange}. Returns {node, text, set(text), complain(message or null)}; onChange(text) is called with every edit. */
export function configEditor({label, onChange}) {
  const area = element('textarea', {id: 'config', spellcheck: 'false', autocapitalize: 'off', rows: 12, 'aria-describedby': 'config-message',
    input: () => onChange(area.value)});
  const message = element('div', {id: 'config-message', class: 'failure', role: 'alert', hidden: true});

  function go(line) {
    const lines = area.value.split('\n');
    const start = lines.slice(0, line).join('\n').length + (line > 0 ? 1 : 0);
    area.closest('details').open = true;
    area.focus();
    area.setSelectionRange(start, start + lines[line].length);
    area.scrollTop = area.scrollHeight * line / lines.length - area.clientHeight / 2;
  }
  return {
    node: element('div', {class: 'editor'}, element('details', {open: matchMedia('(min-width: 1001px)').matches},
      element('summary', {}, label), element('label', {for: 'config', class: 'hidden'}, label), area), message),
    get text() {
      return area.value;
    },
    set(text) {
      area.value = text;
    },
    complain(error) {
      message.hidden = error === null;
      area.setAttribute('aria-invalid', String(error !== null));
      const line = error === null ? null : lineOf(error, area.value);
      message.replaceChildren(...(error === null ? [] : [error]), ...(line === null ? [] : [
        element('p', {}, element('code', {}, area.value.split('\n')[line].trim().slice(0, 200)), ' ',
          element('button', {type: 'button', click: () => go(line)}, `Go to line ${line + 1}`))]));
    },
  };
}
