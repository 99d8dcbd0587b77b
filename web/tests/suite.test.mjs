// The op suite, the tests of the kernels and the known trainings, compiled to WebAssembly with all instruction sets: in node only where no
// browser runs them (browser.test.mjs), for they take minutes.
import assert from 'node:assert/strict';
import {openSync, readFileSync} from 'node:fs';
import {readFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'node:test';
import v8 from 'node:v8';
import {WASI} from 'node:wasi';

import {missing} from './browser.mjs';
import {root, suites, temporaryFolder} from './support.mjs';

// The calls that a module makes of node:wasi's functions without a frame of their own crash node 20: where memory is collected
// within one, the collector does not see the frames of JavaScript below, which then hold objects that are no more.
v8.setFlagsFromString('--no-turbo-fast-api-calls');

const skip = missing ? false : 'Chromium runs them';
const module = skip || await WebAssembly.compile(await readFile(join(root, 'build/wasm/web/web_tests.wasm')));

/** Its exit status and what it says. */
async function run(cases) {
  const log = join(temporaryFolder(), 'log');
  const wasi = new WASI({
    version: 'preview1',
    args: ['web_tests', `--test-case=${cases}`],
    preopens: {'/': '/'},
    stdout: openSync(log, 'w'),
    returnOnExit: true,
  });
  const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
  const status = wasi.start(instance);
  return {status, output: readFileSync(log, 'utf8')};
}

for (const [what, cases] of Object.entries(suites))
  test(what, {skip}, async () => {
    const {status, output} = await run(cases);
    assert.equal(status, 0, output.slice(-20000));
    assert.match(output, /test cases: +[1-9]/);
  });
