// Archives and the files that people drop.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import test from 'node:test';
import {dist, readFolder, temporaryFolder, writeFolder} from './support.mjs';

const {tar, untar} = await import(join(dist, 'tar.js'));
const {isWanted, opened} = await import(join(dist, 'files.js'));
const bytes = (text) => new TextEncoder().encode(text);
const run = () => new Map([['config.json', bytes('{}')], ['checkpoints/step-5/model.safetensors', new Uint8Array(1000).fill(7)],
  ['empty', new Uint8Array()], [`${'long/'.repeat(30)}file`, bytes('x')], [`${'é'.repeat(40)}.txt`, bytes('y')]]);
const sorted = (files) => [...files].map(([path, content]) => [path, [...content]]).sort();

test('tar unpacks what the page packs', () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'a.tar'), tar(run()));
  mkdirSync(join(folder, 'out'));
  execFileSync('tar', ['xf', join(folder, 'a.tar'), '-C', join(folder, 'out')]);
  assert.deepEqual(sorted(readFolder(join(folder, 'out'))), sorted(run()));
});

test('the page unpacks what tar packs, in each of its formats', () => {
  for (const format of ['ustar', 'gnu', 'pax']) {
    const folder = temporaryFolder();
    writeFolder(join(folder, 'in'), run());
    const packed = execFileSync('tar', ['cf', '-', `--format=${format}`, '-C', join(folder, 'in'), '.']);
    assert.deepEqual(sorted(untar(new Uint8Array(packed))), sorted(run()), format);
  }
});

test('what is no tar, or a part of one, is refused', () => {
  assert.throws(() => untar(new Uint8Array(2000).fill(65)), /no header at byte 0/);
  assert.throws(() => untar(tar(run()).subarray(0, 1800)), /the tar ends within checkpoints\/step-5\/model\.safetensors/);
  assert.throws(() => tar(new Map([['x'.repeat(101), bytes('')]])), /too long/);
  assert.deepEqual(sorted(untar(tar(new Map()))), []);
});

test('a run is found in a dropped folder and in a tar', () => {
  const inside = new Map([...run()].map(([path, content]) => [`some/run/${path}`, content]));
  assert.deepEqual(sorted(opened(inside)), sorted(run()));
  assert.deepEqual(sorted(opened(new Map([['run.tar', tar(inside)]]))), sorted(run()));
  assert.deepEqual(sorted(opened(run())), sorted(run()));
  assert.throws(() => opened(new Map([['a/readme.txt', bytes('')]])), /there is no config\.json/);
  assert.deepEqual(['gpt2/model.safetensors', 'gpt2/pytorch_model.bin', '.git/config', 'report.html'].filter(isWanted), ['gpt2/model.safetensors']);
});
