#!/usr/bin/env node
// Whether watching slows a training: node web/bench/watch.mjs CONFIG [TURNS [--set KEY=VALUE ...]], after ./onestep web. Trains alone
// and watched in Chromium, in turns, and compares the seconds that the last line of metrics.jsonl gives.
import {spawn} from 'node:child_process';
import {existsSync, readFileSync, rmSync} from 'node:fs';
import {join} from 'node:path';
import {missing, started} from '../tests/browser.mjs';
import {program, temporaryFolder} from '../tests/support.mjs';

if (missing) {
  console.error(`watch: ${missing}`);
  process.exit(2);
}
const [config, turns = '5', ...sets] = process.argv.slice(2);
const ends = [];
const {browser} = await started({after: (end) => ends.push(end)});
const blank = await browser.page();

/** The seconds of one training. */
async function seconds(watched) {
  const folder = temporaryFolder(), run = join(folder, 'run');
  const child = spawn(program, ['train', config, '--out', run, ...sets, ...(watched ? ['--watch'] : [])], {stdio: ['ignore', 'pipe', 'pipe']});
  const ended = new Promise((resolve) => child.on('exit', resolve));
  let said = '', page = null;
  const hear = async (text) => {
    said += text;
    const address = /(http:\/\/127\.0\.0\.1:\S+)\s/.exec(said)?.[1];
    if (watched && address && !page) {
      page = blank;
      await page.open(address);
    }
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  while (!existsSync(join(run, 'summary.json')) && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 100));
  child.kill('SIGINT');
  await ended;
  const last = JSON.parse(readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n').at(-1));
  rmSync(folder, {recursive: true});
  return last.seconds;
}

const times = {alone: [], watched: []};
for (let turn = 0; turn < Number(turns); ++turn)
  for (const name of turn % 2 ? ['watched', 'alone'] : ['alone', 'watched']) times[name].push(await seconds(name === 'watched'));
for (const [name, all] of Object.entries(times)) {
  all.sort((a, b) => a - b);
  console.log(`${name.padEnd(8)} median ${all[Math.floor(all.length / 2)].toFixed(2)} s, least ${all[0].toFixed(2)} s, most ${all.at(-1).toFixed(2)} s`);
}
for (const end of ends.reverse()) await end();
