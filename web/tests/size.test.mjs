// What a visitor of the page waits for: each module as web servers send it.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import test from 'node:test';
import {brotliCompressSync, constants} from 'node:zlib';

import {dist} from './support.mjs';

for (const which of ['exact', 'relaxed'])
  test(`the ${which} engine has at most 600,000 bytes, compressed`, () => {
    const module = readFileSync(join(dist, `${which}.wasm`));
    const size = brotliCompressSync(module, {params: {[constants.BROTLI_PARAM_SIZE_HINT]: module.length}}).length;
    assert.ok(size <= 600_000, `${size} bytes`);
  });
