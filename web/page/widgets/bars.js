// Names, a bar each, and what it stands for as text.
import {element} from './dom.js';

/**
 * {label, columns}: the heads of the names' and the texts' columns. Returns {node, update(rows)}, a row being {name, value, texts}: the
 * bar is as long as `value` among the largest, `texts` has one for each further column.
 */
export function bars({label, columns}) {
  const body = element('tbody');
  const [first, ...others] = columns;
  const table = element('table', {class: 'bars'},
    element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, first), element('td', {class: 'bar'}),
      others.map((name) => element('th', {scope: 'col'}, name)))), body);
  let rows = [];

  function makeRow({name}) {
    const bar = element('span', {'aria-hidden': 'true'}), cells = others.map(() => element('td'));
    return {name, bar, cells, node: element('tr', {}, element('th', {scope: 'row'}, name), element('td', {class: 'bar'}, bar), cells)};
  }
  return {
    node: element('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label}, table),
    update(next) {
      if (next.length !== rows.length || next.some(({name}, i) => name !== rows[i].name)) {
        rows = next.map(makeRow);
        body.replaceChildren(...rows.map((row) => row.node));
      }
      const largest = Math.max(...next.map(({value}) => value), 0);
      next.forEach(({value, texts}, i) => {
        rows[i].bar.style.width = `${largest > 0 ? Math.max(0, 100 * value / largest).toFixed(1) : 0}%`;
        texts.forEach((text, column) => {
          rows[i].cells[column].textContent = text;
        });
      });
    },
  };
}
