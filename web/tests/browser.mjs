// Chromium over its debugging protocol (through a pipe, so that nothing is installed), and a server of the page.
import {execFileSync, spawn} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

export const dist = process.env.ONESTEP_WEB_DIST ?? fileURLToPath(new URL('../dist', import.meta.url));
const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** Why the page cannot be tried here, or false. */
export const missing = !program ? 'there is no Chromium' : !existsSync(path.join(dist, 'index.html')) ? 'web/dist is not built (./onestep web)' : false;

const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json'};

/** Serves a folder on this machine, and others below names of theirs; resolves to {url, close()}. */
async function serve(folder = dist, others = {}) {
  const server = http.createServer((request, response) => {
    const place = path.normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    const first = place.split('/')[1];
    const wanted = first in others ? path.join(others[first], place.slice(first.length + 1)) : path.join(folder, place);
    const file = wanted.endsWith('/') ? `${wanted}index.html` : wanted;
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, {'content-type': types[path.extname(file)] ?? 'application/octet-stream'});
    response.end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close()};
}

/** Starts the browser; resolves to {process, page(), close()}; `process` is its number. */
async function launch() {
  const profile = mkdtempSync(path.join(tmpdir(), 'onestep-browser-'));
  const child = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-pipe',
    '--force-color-profile=srgb', `--user-data-dir=${profile}`, 'about:blank'], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
  const [, , , toBrowser, fromBrowser] = child.stdio;
  const pending = new Map();
  const listeners = new Map();  // by session
  let count = 0, rest = '';
  fromBrowser.setEncoding('utf8');
  fromBrowser.on('data', (text) => {
    const parts = (rest + text).split('\0');
    rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      if (message.id) {
        const {resolve, reject} = pending.get(message.id);
        pending.delete(message.id);
        if (message.error) reject(new Error(message.error.message));
        else resolve(message.result);
      } else {
        listeners.get(message.sessionId)?.(message.method, message.params);
      }
    }
  });
  const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    pending.set(++count, {resolve, reject});
    toBrowser.write(`${JSON.stringify({id: count, method, params, sessionId})}\0`);
  });
  return {
    process: child.pid,
    /** A new page of this size; `touch` makes it a phone. */
    async page({width = 1280, height = 900, touch = false, scheme = 'light'} = {}) {
      const {targetId} = await send('Target.createTarget', {url: 'about:blank'});
      const {sessionId} = await send('Target.attachToTarget', {targetId, flatten: true});
      const page = new Page((method, params) => send(method, params, sessionId));
      listeners.set(sessionId, (method, params) => page.heard(method, params));
      await Promise.all(['Page.enable', 'Runtime.enable', 'Log.enable'].map((method) => page.send(method)));
      await page.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: touch ? 2 : 1, mobile: touch});
      if (touch) await page.send('Emulation.setTouchEmulationEnabled', {enabled: true, maxTouchPoints: 1});
      await page.scheme(scheme);
      return page;
    },
    async close() {
      await send('Browser.close').catch(() => {});
      await new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve()));
      rmSync(profile, {recursive: true, force: true, maxRetries: 5});
    },
  };
}

/** Serves and launches until the test has ended; resolves to {server, browser}. */
export async function started(t, ...served) {
  const server = await serve(...served);
  const browser = await launch();
  t.after(async () => {
    await browser.close();
    server.close();
  });
  return {server, browser};
}

class Page {
  /** What the console reported as an error, and exceptions nobody caught. */
  errors = [];
  clicks = 0;

  constructor(send) {
    this.send = send;
  }
  heard(method, params) {
    if (method === 'Runtime.exceptionThrown') this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error') this.errors.push(params.args.map((a) => a.value ?? a.description).join(' '));
    if (method === 'Log.entryAdded' && params.entry.level === 'error') this.errors.push(`${params.entry.text} ${params.entry.url ?? ''}`);
  }
  async scheme(value) {
    await this.send('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value}, {name: 'prefers-reduced-motion', value: 'reduce'}]});
  }
  async open(url) {
    await this.send('Page.navigate', {url});
  }
  /** The value of an expression in the page; promises are awaited. */
  async evaluate(expression) {
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  /** Waits until the expression is true, at most half a minute. */
  async until(expression) {
    for (let tries = 0; tries < 600; ++tries) {
      const value = await this.evaluate(expression).catch(() => false);  // while a page is being replaced
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`never true: ${expression}\n${this.errors.join('\n')}`);
  }
  /** The middle of an element, scrolled into view. */
  async place(selector) {
    return this.evaluate(`(() => { const e = document.querySelector(${JSON.stringify(selector)});
      e.scrollIntoView({block: 'center', inline: 'center'}); const b = e.getBoundingClientRect();
      return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })()`);
  }
  async hover(selector) {
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', ...await this.place(selector)});
  }
  async click(selector) {
    const at = {...await this.place(selector), button: 'left', clickCount: 1};
    await this.send('Input.dispatchMouseEvent', {type: 'mousePressed', ...at});
    await this.send('Input.dispatchMouseEvent', {type: 'mouseReleased', ...at});
  }
  async tap(selector) {
    await this.send('Input.dispatchTouchEvent', {type: 'touchStart', touchPoints: [await this.place(selector)]});
    await this.send('Input.dispatchTouchEvent', {type: 'touchEnd', touchPoints: []});
  }
  async press(key) {
    for (const type of ['keyDown', 'keyUp']) await this.send('Input.dispatchKeyEvent', {type, key, code: key, text: key === 'Enter' && type === 'keyDown' ? '\r' : undefined, windowsVirtualKeyCode: {ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Enter: 13, Escape: 27, Tab: 9}[key]});
  }
  /** Gives a control a value as a person would. */
  async fill(selector, value) {
    await this.evaluate(`(() => { const e = document.querySelector(${JSON.stringify(selector)});
      e.type === 'checkbox' ? e.checked = ${JSON.stringify(value)} : e.value = ${JSON.stringify(value)};
      for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, {bubbles: true})); })()`);
  }
  /** Clicks the element that this selector finds and whose text ends like this, once it is shown and enabled. */
  async clickText(selector, text) {
    const mark = `[data-clicked="${++this.clicks}"]`;
    await this.until(`(() => { const e = [...document.querySelectorAll(${JSON.stringify(selector)})].find((e) => e.textContent.endsWith(${JSON.stringify(text)}) && !e.disabled && e.getClientRects().length);
      if (e) e.dataset.clicked = ${this.clicks}; return Boolean(e); })()`);
    await this.click(mark);
  }
  /** The selector of the control with a label that begins like this. */
  async control(label) {
    return `#${await this.evaluate(`[...document.querySelectorAll('label')].find((l) => l.textContent.startsWith(${JSON.stringify(label)})).htmlFor`)}`;
  }
  text(selector) {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText`);
  }
  /** A PNG of the page, all of it unless `whole` is false. */
  async screenshot({whole = true} = {}) {
    return Buffer.from((await this.send('Page.captureScreenshot', {captureBeyondViewport: whole})).data, 'base64');
  }
}

/** Chooses files, or a folder, of this machine for the input with a label that begins like this. */
export async function choose(page, label, files) {
  const {result} = await page.send('Runtime.evaluate', {expression: `document.querySelector('${await page.control(label)}')`});
  await page.send('DOM.setFileInputFiles', {files, objectId: result.objectId});
}

/** Drops files and folders of this machine on an element. */
export async function drop(page, selector, files) {
  const at = {...await page.place(selector), data: {items: [], files, dragOperationsMask: 1}};
  for (const type of ['dragEnter', 'dragOver', 'drop']) await page.send('Input.dispatchDragEvent', {type, ...at});
}

/** Chooses a folder as a tar. */
export async function chooseTar(page, folder) {
  const archive = path.join(mkdtempSync(path.join(tmpdir(), 'onestep-tar-')), 'folder.tar');
  execFileSync('tar', ['cf', archive, '-C', path.dirname(folder), path.basename(folder)]);
  await choose(page, 'Choose files', [archive]);
}

/** What `act` makes the page offer as a file: {name, bytes}. */
export async function downloaded(page, act) {
  await page.evaluate(`(() => { const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => make.call(URL, window.saved = blob);
    HTMLAnchorElement.prototype.click = function() { window.savedName = this.download; }; })()`);
  await act();
  await page.until('window.savedName');
  const [name, url] = await page.evaluate(`new Promise((resolve) => { const reader = new FileReader();
    reader.onload = () => resolve([savedName, reader.result]); reader.readAsDataURL(saved); })`);
  return {name, bytes: Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')};
}
