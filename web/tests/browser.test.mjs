// The engine in a real browser: known trainings, and a worker that trains.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import test from 'node:test';
import {pathToFileURL} from 'node:url';

import {missing as skip, started} from './browser.mjs';
import {dist, load, root, suites, withoutTimes} from './support.mjs';

/** Opens an empty page of the server for `use(page)`. */
async function inBrowser(t, use) {
  const {server, browser} = await started(t, dist, {build: join(root, 'build/wasm/web'), source: root, tests: join(root, 'web/tests')});
  const page = await browser.page();
  await page.open(`${server.url}tests/blank.html`);
  await page.until(`document.readyState === 'complete' && location.pathname.endsWith('blank.html')`);
  await use(page);
  assert.deepEqual(page.errors, []);
}

for (const [what, cases] of Object.entries(suites))
  test(`${what}, in Chromium`, {skip}, (t) =>
    inBrowser(t, async (page) => {
      const goldens = 'tests/goldens/training_hashes.json';
      const configs = Object.keys(JSON.parse(readFileSync(join(root, goldens), 'utf8')).hashes);
      const files = [goldens, ...configs.map((name) => `tests/configs/${name}.json`)];
      const {status, output} = await page.evaluate(`(async () => {
        const {Exit, Wasi} = await import('/wasi.js');
        let output = '';
        const wasi = new Wasi({args: ['web_tests', ${JSON.stringify(`--test-case=${cases}`)}], print: (text) => (output += text)});
        const files = new Map();
        for (const path of ${JSON.stringify(files)})
          files.set(path, new Uint8Array(await (await fetch('/source/' + path)).arrayBuffer()));
        wasi.add(files, ${JSON.stringify(root)});
        const module = await WebAssembly.compile(await (await fetch('/build/web_tests.wasm')).arrayBuffer());
        const instance = await WebAssembly.instantiate(module, wasi.imports);
        wasi.attach(instance);
        try {
          instance.exports._start();
          return {status: 0, output};
        } catch (error) {
          if (!(error instanceof Exit)) throw error;
          return {status: error.status, output};
        }
      })()`);
      assert.equal(status, 0, output.slice(-20000));
      assert.match(output, /test cases: +[1-9]/);
    }));

test('a worker trains with the losses of node', {skip}, (t) =>
  inBrowser(t, async (page) => {
    const config = JSON.parse(readFileSync(join(root, 'configs/next_token.json'), 'utf8'));
    const {steps, name} = await page.evaluate(`(async () => {
      const {load} = await import('/engine.js');
      const engine = await load();
      const run = await engine.run(${JSON.stringify(config)});
      const steps = await run.step(50);
      const name = await engine.request('name');
      engine.close();
      return {steps, name};
    })()`);
    const here = await (await load({worker: false, which: 'exact'})).run(config);
    assert.deepEqual(steps.map(withoutTimes), (await here.step(50)).map(withoutTimes), name);
  }));

test('opened as a file, the page says what opens it', {skip}, async (t) => {
  const {browser} = await started(t);
  const page = await browser.page();
  await page.open(pathToFileURL(join(dist, 'index.html')).href);
  await page.until(`document.querySelector('.failure')`);
  assert.match(await page.text('.failure'), /\.\/onestep web/);
});
