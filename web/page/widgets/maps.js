// The attention maps of all heads as small pictures: darker is more. Under the pointer or the arrow keys a weight is told as a number.
import {element} from './dom.js';
import {short} from './numbers.js';

const ink = [58, 128, 220];  // seen on a light ground and on a dark one

/** Paints weights, a matrix of numbers from 0 to 1, one pixel each; their roots, so that a thirtieth is still seen. */
function paint(canvas, weights) {
  const rows = weights.length, columns = weights[0].length;
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, {width: columns, height: rows});
  const picture = new ImageData(columns, rows);
  weights.flat().forEach((weight, i) => picture.data.set([...ink, Math.round(255 * Math.sqrt(weight))], 4 * i));
  canvas.getContext('2d').putImageData(picture, 0, 0);
}

/**
 * {label}. Returns {node, update({tokens, weights})}: names of the tokens, and [layer][head][query][key]. A row belongs to the token that
 * looks, a column to the one that is looked at.
 */
export function attentionMaps({label}) {
  const grid = element('div', {class: 'maps', role: 'group', 'aria-label': label});
  const told = element('p', {class: 'quiet told', 'aria-live': 'polite'}, 'Point at a map, or move in it with the arrow keys.');
  let tokens = [], weights = [], maps = [], place = null;

  function tell() {
    const {layer, head, row, column} = place;
    const weight = weights[layer]?.[head]?.[row]?.[column];
    if (weight === undefined) return;
    told.textContent = `Layer ${layer + 1}, head ${head + 1}: token ${row + 1} (${tokens[row]}) looks at token ${column + 1} ` +
      `(${tokens[column]}) with ${short(weight)}`;
    for (const map of maps) map.cursor.hidden = map.layer !== layer || map.head !== head;
    const {cursor} = maps.find((map) => map.layer === layer && map.head === head);
    const percent = (index) => `${100 * index / tokens.length}%`;
    Object.assign(cursor.style, {left: percent(column), top: percent(row), width: percent(1), height: percent(1)});
  }

  function makeMap(layer, head) {
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const index = (at, size) => Math.min(tokens.length - 1, Math.max(0, Math.floor(at / size * tokens.length)));
      place = {layer, head, row: index(event.clientY - box.top, box.height), column: index(event.clientX - box.left, box.width)};
      tell();
    };
    const canvas = element('canvas', {role: 'img', tabindex: 0, 'aria-label': `Attention of layer ${layer + 1}, head ${head + 1}`,
      pointermove: point,
      pointerdown: point,  // a finger does not move
      keydown: (event) => {
        const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
        if (!step) return;
        const here = place?.layer === layer && place.head === head;
        const moved = (at, by) => Math.min(tokens.length - 1, Math.max(0, at + by));
        place = {layer, head, row: here ? moved(place.row, step[0]) : 0, column: here ? moved(place.column, step[1]) : 0};
        tell();
        event.preventDefault();
      }});
    const cursor = element('span', {class: 'cursor', hidden: true});
    return {layer, head, canvas, cursor, node: element('figure', {},
      element('figcaption', {}, `layer ${layer + 1}, head ${head + 1}`), element('div', {class: 'map'}, canvas, cursor))};
  }

  return {
    node: element('div', {}, grid, told),
    update(next) {
      ({tokens, weights} = next);
      const shape = weights.map((heads) => heads.length).join();
      if (grid.dataset.shape !== shape) {
        grid.dataset.shape = shape;
        maps = weights.flatMap((heads, layer) => heads.map((_, head) => makeMap(layer, head)));
        grid.replaceChildren(...maps.map((map) => map.node));
      }
      for (const {layer, head, canvas} of maps) paint(canvas, weights[layer][head]);
      if (place) tell();
    },
  };
}
