// A matrix with names on its axes: numbers as text and, for the eye, as shade; cells answer to pointer, keyboard and touch.
import {element} from './dom.js';
import {pretty, short} from './numbers.js';

const isNumber = (value) => typeof value === 'number';

/** The shade of a number relative to the largest one: sign by hue, size by strength. */
function shade(value, largest) {
  if (!isNumber(value) || largest === 0) return null;
  return `--strength: ${(Math.min(1, Math.abs(value) / largest)).toFixed(3)}`;
}

/**
 * {caption, label, rows, columns, values, texts, edited, onPoint, onPick}: rows and columns are names (or null for none), label names the matrix where
 * no caption is shown, values are numbers or names of numbers, texts what the cells say, edited a list of [row, column]. onPoint(row, column) is called for hovered and
 * focused cells, onPick for clicked and entered ones. Returns {node, mark(cells, kind), clear(kind), focus(row, column)}.
 */
export function matrix({caption = '', label = caption, rows = null, columns = null, values, texts = null, edited = [], onPoint, onPick}) {
  const largest = Math.max(0, ...values.flat().filter(isNumber).map(Math.abs));
  const isEdited = new Set(edited.map(([row, column]) => `${row},${column}`));
  const interactive = Boolean(onPoint || onPick);
  const cells = values.map((row, r) => row.map((value, c) => {
    const text = texts ? pretty(texts[r][c]) : short(value);
    const kinds = [isNumber(value) ? (value < 0 ? 'negative' : 'positive') : 'special'];
    if (isEdited.has(`${r},${c}`)) kinds.push('edited');
    return element('td', {
      class: kinds.join(' '),
      style: shade(value, largest),
      tabindex: interactive ? (r === 0 && c === 0 ? 0 : -1) : null,
      'data-row': r,
      'data-column': c,
      title: isEdited.has(`${r},${c}`) ? 'set by hand' : null,
    }, text);
  }));

  const head = columns && element('thead', {}, element('tr', {},
    rows ? element('td', {class: 'corner'}) : null,
    columns.map((name) => element('th', {scope: 'col', title: name}, element('span', {}, name)))));
  const body = element('tbody', {}, cells.map((row, r) => element('tr', {},
    rows ? element('th', {scope: 'row', title: rows[r]}, element('span', {}, rows[r])) : null, row)));
  const table = element('table', {class: 'matrix', role: interactive ? 'grid' : null, 'aria-label': label || null},
    caption ? element('caption', {}, caption) : null, head, body);

  function at(event) {
    const cell = event.target.closest('td[data-row]');
    return cell && [Number(cell.dataset.row), Number(cell.dataset.column)];
  }
  function focus(row, column) {
    table.querySelector('td[tabindex="0"]')?.setAttribute('tabindex', -1);
    cells[row][column].setAttribute('tabindex', 0);
    cells[row][column].focus({preventScroll: false});
  }
  function move(event) {
    const place = at(event);
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!place) return;
    if (step) {
      const row = Math.min(cells.length - 1, Math.max(0, place[0] + step[0]));
      const column = Math.min(cells[0].length - 1, Math.max(0, place[1] + step[1]));
      focus(row, column);
      event.preventDefault();
    } else if (event.key === 'Enter' || event.key === ' ') {
      onPick?.(...place);
      event.preventDefault();
    }
  }
  if (interactive) {
    const point = (event) => {
      const place = at(event);
      if (place) onPoint?.(...place);
    };
    table.addEventListener('pointermove', point);  // not pointerover, which scrolling causes, too
    table.addEventListener('focusin', point);
    table.addEventListener('keydown', move);
    table.addEventListener('click', (event) => {
      const place = at(event);
      if (place) onPick?.(...place);
    });
  }

  const covered = (cell, {row, column}) => (row === null || Number(cell.dataset.row) === row) &&
      (column === null || Number(cell.dataset.column) === column);
  return {
    node: element('div', {class: 'matrix-frame'}, table),
    /** Gives cells a class; {row, column} with null for a whole column or row. */
    mark(places, kind) {
      for (const cell of cells.flat()) if (places.some((place) => covered(cell, place))) cell.classList.add(kind);
    },
    clear(kind) {
      for (const cell of cells.flat()) cell.classList.remove(kind);
    },
    focus,
  };
}
