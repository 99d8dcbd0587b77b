// Chromium without a window, over the pipe of its debugging protocol, and a server of files at 127.0.0.1.
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {existsSync} from 'node:fs';
import {readFile, rm} from 'node:fs/promises';
import {createServer} from 'node:http';
import {extname, join, normalize} from 'node:path';

import {temporaryFolder} from './support.mjs';

export const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

const types = {'.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json'};

/** Serves folders by the first part of the path; {url, close}. */
export async function serve(folders) {
  const server = createServer(async (request, response) => {
    const [, first, ...rest] = new URL(request.url, 'http://localhost').pathname.split('/');
    try {
      const bytes = await readFile(join(folders[first], normalize(rest.join('/'))));
      response.writeHead(200, {'Content-Type': types[extname(request.url)] ?? 'application/octet-stream'});
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {url: `http://127.0.0.1:${server.address().port}`, close: () => server.close()};
}

export class Browser {
  #pending = new Map();
  #count = 0;

  static async start() {
    const browser = new Browser();
    browser.profile = temporaryFolder();
    browser.process = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-pipe', `--user-data-dir=${browser.profile}`, 'about:blank'], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    let text = '';
    browser.process.stdio[4].setEncoding('utf8').on('data', (chunk) => {
      const messages = (text + chunk).split('\0');
      text = messages.pop();
      messages.forEach((message) => browser.#receive(JSON.parse(message)));
    });
    const {targetInfos} = await browser.send('Target.getTargets');
    const page = targetInfos.find(({type}) => type === 'page');
    browser.session = (await browser.send('Target.attachToTarget', {targetId: page.targetId, flatten: true})).sessionId;
    browser.errors = [];
    await browser.send('Runtime.enable');
    await browser.send('Page.enable');
    return browser;
  }

  #receive({id, result, error, method, params}) {
    if (id !== undefined) {
      const {resolve, reject} = this.#pending.get(id);
      this.#pending.delete(id);
      if (error) reject(new Error(error.message));
      else resolve(result);
    } else if (method === 'Runtime.exceptionThrown') {
      this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    } else if (method === 'Runtime.consoleAPICalled' && params.type === 'error') {
      this.errors.push(params.args.map(({value, description}) => value ?? description).join(' '));
    }
  }

  send(method, params = {}) {
    return new Promise((resolve, reject) => {
      this.#pending.set(++this.#count, {resolve, reject});
      this.process.stdio[3].write(JSON.stringify({id: this.#count, method, params, sessionId: this.session}) + '\0');
    });
  }

  async open(url) {
    await this.send('Page.navigate', {url});
    while (!(await this.evaluate(`document.readyState === 'complete' && location.href.startsWith(${JSON.stringify(url)})`)));
  }

  /** The value of an expression, or of what it promises, in the page. */
  async evaluate(expression) {
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async close() {
    this.process.kill();
    await once(this.process, 'exit');
    await rm(this.profile, {recursive: true, force: true, maxRetries: 5});
  }
}
