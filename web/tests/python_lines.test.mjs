// The lines of Python that the room on attention shows, run by PyTorch: they give the numbers beside them.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {pathToFileURL} from 'node:url';
import {dist} from './browser.mjs';

const python = (program) => spawnSync('python3', ['-c', program], {encoding: 'utf8'});
const built = existsSync(path.join(dist, 'exact.wasm'));
const skip = !built ? 'web/dist is not built (./onestep web)' : python('import torch').status !== 0 ? 'there is no PyTorch' : false;

test('the lines of Python give the numbers beside them', {skip}, async () => {
  const {load} = await import(pathToFileURL(path.join(dist, 'engine.js')));
  const engine = await load();
  const choices = (await engine.call('attention_sections')).map((section) => section.choice);
  choices.push({sentence: 'own words', weights: 'linear', width: 6, heads: 3, masked: true, dropout: 0.5, output: true});
  for (const choice of choices) {
    const {steps} = await engine.call('attention', choice);
    const shown = steps.map(({python: lines}) => {
      const last = lines.split('\n').at(-1);
      return `${lines}\nshown.append(${last.slice(0, last.indexOf(' ='))}.flatten().tolist())`;
    });
    const run = python(`import json, torch\nshown = []\n${shown.join('\n')}\nprint(json.dumps([[str(v) for v in step] for step in shown]))`);
    assert.equal(run.status, 0, run.stderr);
    const numbers = JSON.parse(run.stdout);
    steps.forEach((step, i) => {
      const wanted = step.values.flat(2);
      assert.equal(numbers[i].length, wanted.length, step.name);
      wanted.forEach((value, k) => {
        const theirs = numbers[i][k];
        assert(theirs === value || Math.abs(Number(theirs) - value) < 1e-6, `${step.name}: ${theirs} for ${value}`);
      });
    });
  }
});
