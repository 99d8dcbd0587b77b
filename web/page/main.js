// The frame of the page: rooms by URL (#/attention?heads=2), navigation, light and dark.
import {load} from './engine.js';
import {element} from './widgets/dom.js';

const rooms = [
  {path: 'attention', title: 'Attention', module: () => import('./attention.js')},
  {path: 'backward', title: 'Backward', module: () => import('./backward.js')},
  {path: 'training', title: 'Training', module: () => import('./training.js')},
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

function startRouter(engine) {
  const main = document.querySelector('main');
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
      const module = await room.module();
      const end = await module.show(root, engine, state, setState, kept);
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
try {
  await startRouter(await load());
} catch (error) {
  document.querySelector('main').replaceChildren(
      element('p', {class: 'failure', role: 'alert'}, `The engine did not start: ${error.message}`));
}
