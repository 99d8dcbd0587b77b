// The frame of the page: rooms by URL (#/attention?heads=2), navigation, light and dark.
import {element} from './widgets/dom.js';

const rooms = [
  {path: 'attention', title: 'Attention', module: () => import('./attention.js')},
  {path: 'backward', title: 'Backward', module: () => import('./backward.js')},
  {path: 'training', title: 'Training', module: ({watch}) => (watch ? import('./watch.js') : import('./training.js'))},
  {path: 'model', title: 'A trained model', module: () => import('./model.js')},
];

const themes = ['auto', 'light', 'dark'];

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.querySelector('.theme').textContent = `Theme: ${theme}`;
}

function startTheme() {
  let theme = themes.includes(localStorage.getItem('theme')) ? localStorage.getItem('theme') : 'auto';
  setTheme(theme);
  document.querySelector('.theme').addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    localStorage.setItem('theme', theme);
    setTheme(theme);
  });
}

/** The room of a URL and its state, an object of strings. */
function readUrl() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const room = rooms.find((r) => r.path === path) ?? rooms[0];
  return {room, state: Object.fromEntries(new URLSearchParams(query))};
}

function urlOf(room, state) {
  const query = new URLSearchParams(state).toString();
  return `#/${room.path}${query ? `?${query}` : ''}`;
}

/** Returns what resolves to the engine, whose module is loaded when a room first asks for it: a run can be watched without. */
function engineStarter(main) {
  let engine = null;
  async function start() {
    const words = element('p', {class: 'quiet'}, 'Loading the engine …');
    main.append(words);
    try {
      return await (await import('./engine.js')).load();
    } catch (error) {
      throw new Error(`The engine did not start: ${error.message}`);
    } finally {
      words.remove();
    }
  }
  return () => (engine ??= start());
}

function startRouter() {
  const main = document.querySelector('main'), startEngine = engineStarter(main);
  const links = rooms.map((room) => element('a', {href: `#/${room.path}`}, room.title));
  document.querySelector('nav').replaceChildren(...links);
  const kept = {};  // what rooms leave for each other, and for when one comes back
  let takeDown = () => {};
  let shown = 0;

  async function show() {
    const turn = ++shown;
    const {room, state} = readUrl();
    takeDown();
    takeDown = () => {};
    document.title = `${room.title} · onestep`;
    rooms.forEach((r, i) => {
      if (r === room) links[i].setAttribute('aria-current', 'page');
      else links[i].removeAttribute('aria-current');
    });
    const root = element('div', {class: `room ${room.path}`});
    main.replaceChildren(root);
    const setState = (next) => {  // unless one has just gone to another room
      if (turn === shown && readUrl().room === room) history.replaceState(null, '', urlOf(room, next));
    };
    try {
      const module = await room.module(state);
      const end = await module.show(root, startEngine, state, setState, kept);
      if (turn === shown) takeDown = end;
      else end();
    } catch (error) {
      root.replaceChildren(element('p', {class: 'failure', role: 'alert'}, String(error.message ?? error)));
    }
    main.dataset.ready = room.path;
  }

  addEventListener('hashchange', show);
  return show();
}

startTheme();
startRouter();
