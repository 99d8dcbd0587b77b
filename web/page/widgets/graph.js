// A recorded graph in SVG: inputs on the left (or, on a narrow screen, above), results to the right.
import {svg} from './dom.js';

const box = {width: 148, height: 66}, gap = {along: 72, across: 22}, margin = 10;

/** The layer of each node: ops come after all their inputs, leaves just before their first use. */
function layerOf(nodes) {
  const layer = nodes.map(() => 0);
  nodes.forEach((node, i) => {  // inputs come first
    for (const input of node.inputs) if (input !== null) layer[i] = Math.max(layer[i], layer[input] + 1);
  });
  nodes.forEach((node, i) => {
    const uses = nodes.flatMap((user, u) => (user.inputs.includes(i) ? [layer[u]] : []));
    if (node.inputs.length === 0 && uses.length > 0) layer[i] = Math.min(...uses) - 1;
  });
  return layer;
}

/**
 * The places of a drawing: the nodes, and for an edge that passes layers a bend in each, so that it keeps clear of what is
 * there. {layer, neighbours: {before, after}, size} of each; `bends` of an edge by "user,position".
 */
function placesOf(nodes) {
  const layer = layerOf(nodes);
  const places = nodes.map((_, i) => ({layer: layer[i], before: [], after: [], size: 1}));
  const bends = new Map();
  const link = (from, to) => {
    places[from].after.push(to);
    places[to].before.push(from);
  };
  nodes.forEach((node, user) => node.inputs.forEach((input, position) => {
    if (input === null) return;
    let from = input;
    const passed = [];
    for (let l = layer[input] + 1; l < layer[user]; ++l) {
      places.push({layer: l, before: [], after: [], size: 0.4});
      passed.push(places.length - 1);
      link(from, places.length - 1);
      from = places.length - 1;
    }
    link(from, user);
    bends.set(`${user},${position}`, passed);
  }));
  return {places, bends};
}

const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

/** Orders each layer by the middle of its neighbours, there and back, which removes most crossings; the result is by layer. */
function untangle(places) {
  const layers = Array.from({length: Math.max(...places.map((p) => p.layer)) + 1}, () => []);
  places.forEach((place, i) => layers[place.layer].push(i));
  const at = new Map();
  const number = (layer) => layer.forEach((place, i) => at.set(place, i - (layer.length - 1) / 2));
  layers.forEach(number);
  for (let round = 0; round < 8; ++round) {
    const back = round % 2 === 1;
    for (const layer of back ? [...layers].reverse() : layers) {
      const key = new Map(layer.map((place) => {
        const near = back ? places[place].after : places[place].before;
        return [place, near.length ? mean(near.map((n) => at.get(n))) : at.get(place)];
      }));
      layer.sort((a, b) => key.get(a) - key.get(b) || a - b);
      number(layer);
    }
  }
  return layers;
}

/** Positions across the layers: as near to the neighbours as the sizes allow. */
function spread(layers, places) {
  const at = [];
  const apart = (a, b) => (places[a].size + places[b].size) / 2;
  const pack = (layer, wish) => {
    for (let i = 1; i < layer.length; ++i) wish[i] = Math.max(wish[i], wish[i - 1] + apart(layer[i - 1], layer[i]));
    return wish;
  };
  for (const layer of layers) {
    const packed = pack(layer, layer.map(() => 0));
    layer.forEach((place, i) => {
      at[place] = packed[i] - packed.at(-1) / 2;
    });
  }
  for (let round = 0; round < 8; ++round) {
    for (const layer of round % 2 ? [...layers].reverse() : layers) {
      const wish = layer.map((place) => {
        const near = [...places[place].before, ...places[place].after];
        return near.length ? mean(near.map((n) => at[n])) : at[place];
      });
      const packed = pack(layer, [...wish]);
      const shift = mean(packed.map((p, i) => wish[i] - p));  // what packing has pushed down comes up again
      layer.forEach((place, i) => {
        at[place] = packed[i] + shift;
      });
    }
  }
  const first = Math.min(...at);
  return at.map((value) => value - first);
}

/** A smooth line from start through the bends to the end, each bend being a straight piece along its layer. */
function lineThrough(start, bends, end, vertical) {
  let d = `M${start.x} ${start.y}`, from = start;
  const curve = (to) => {
    const half = (vertical ? to.y - from.y : to.x - from.x) / 2;
    d += vertical ? `C${from.x} ${from.y + half} ${to.x} ${to.y - half} ${to.x} ${to.y}`
      : `C${from.x + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
    from = to;
  };
  for (const bend of bends) {
    curve(bend);
    from = vertical ? {x: bend.x, y: bend.y + box.height} : {x: bend.x + box.width, y: bend.y};
    d += `L${from.x} ${from.y}`;
  }
  curve(end);
  return d;
}

/**
 * nodes: [{inputs: [place or null], lines: [text], kind}], inputs before users. Returns {node, style(place, classes, lines),
 * edge(user, position, classes, text), place(i)}; `onPick(place)` is called for a node that is clicked or entered.
 */
export function graph({nodes, label, vertical = false, onPick}) {
  const {places, bends} = placesOf(nodes);
  const across = spread(untangle(places), places);
  const step = vertical ? {along: box.height + gap.along, across: box.width + gap.across}
    : {along: box.width + gap.along, across: box.height + gap.across};
  const corner = places.map(({layer}, i) => {
    const along = margin + layer * step.along, side = margin + across[i] * step.across;
    return vertical ? {x: side, y: along} : {x: along, y: side};
  });
  const width = Math.max(...corner.map((c) => c.x)) + box.width + margin;
  const height = Math.max(...corner.map((c, i) => c.y + box.height * (i < nodes.length ? 1 : 0.6))) + margin;

  const edges = [];
  nodes.forEach((node, user) => node.inputs.forEach((input, position) => {
    if (input === null) return;
    const twins = node.inputs.filter((other) => other === input).length;
    const off = twins > 1 ? (node.inputs.slice(0, position).filter((other) => other === input).length - (twins - 1) / 2) * 22 : 0;
    const from = corner[input], to = corner[user];
    const middle = (c) => (vertical ? {x: c.x + box.width / 2 + off, y: c.y} : {x: c.x, y: c.y + box.height / 2 + off});
    const start = vertical ? {x: middle(from).x, y: from.y + box.height} : {x: from.x + box.width, y: middle(from).y};
    const end = vertical ? {x: middle(to).x, y: to.y - 7} : {x: to.x - 7, y: middle(to).y};
    const passed = bends.get(`${user},${position}`).map((bend) => middle(corner[bend]));
    const tip = vertical ? `M${end.x - 5} ${end.y - 1}h10l-5 7z` : `M${end.x - 1} ${end.y - 5}v10l7 -5z`;
    const last = passed.length ? {x: passed.at(-1).x + (vertical ? 0 : box.width), y: passed.at(-1).y + (vertical ? box.height : 0)} : start;
    const text = svg('text', {x: (last.x + end.x) / 2, y: (last.y + end.y) / 2 - 6 + (off > 0 ? 20 : 0), 'text-anchor': 'middle', class: 'carries'});
    const line = svg('path', {d: lineThrough(start, passed, end, vertical), class: 'line'});
    edges.push({user, position, group: svg('g', {class: 'edge'}, line, svg('path', {d: tip, class: 'tip'})), text});
  }));

  const drawn = nodes.map((node, i) => {
    const {x, y} = corner[i];
    const texts = [0, 1, 2].map((line) => svg('text', {x: box.width / 2, y: 20 + line * 18, 'text-anchor': 'middle', class: `line-${line}`},
      node.lines[line] ?? ''));
    const pick = () => onPick?.(i);
    const group = svg('g', {
      class: `node ${node.kind}`, transform: `translate(${x} ${y})`, role: 'button', tabindex: 0, click: pick,
      keydown: (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        pick();
      },
    }, svg('rect', {width: box.width, height: box.height, rx: node.kind === 'leaf' ? 3 : 22}), texts.flatMap((text) => [text, ' ']));  // its name is its text
    return {group, texts};
  });

  return {
    node: svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': label, class: 'graph'},
      edges.map((edge) => edge.group), drawn.map((d) => d.group), edges.map((edge) => edge.text)),
    style(i, classes, lines) {
      drawn[i].group.setAttribute('class', `node ${nodes[i].kind} ${classes}`);
      lines.forEach((line, l) => {
        drawn[i].texts[l].textContent = line;
      });
    },
    edge(user, position, classes, text = '') {
      const found = edges.find((edge) => edge.user === user && edge.position === position);
      if (!found) return;
      found.group.setAttribute('class', `edge ${classes}`);
      found.text.setAttribute('class', `carries ${classes}`);
      found.text.textContent = text;
    },
    /** Where a node is, in the picture's own units. */
    place: (i) => ({...corner[i], ...box}),
  };
}
