#!/usr/bin/env node
// Whether watching slows a training: node web/bench/watch.mjs CONFIG [TURNS [--set KEY=VALUE ...]], after ./onestep web. Trains alone,
// with an empty page opened in Chromium, and watched there, in turns. Compares the seconds that the last line of metrics.jsonl gives,
// and tells the processors' seconds that Chromium and the server took meanwhile (Linux).
import {spawn} from 'node:child_process';
import {existsSync, readFileSync, readdirSync, rmSync} from 'node:fs';
import {join} from 'node:path';
import {missing, started} from '../tests/browser.mjs';
import {program, root, serving, temporaryFolder} from '../tests/support.mjs';

if (missing) {
  console.error(`watch: ${missing}`);
  process.exit(2);
}
const [config, turns = '5', ...sets] = process.argv.slice(2);
const ends = [], after = (end) => ends.push(end);
const {server, browser} = await started({after}, undefined, {tests: join(root, 'web/tests')});
const blank = await browser.page();

/** The processors' seconds of a process and all below it, those that have ended among them. */
function processorSeconds(top) {
  const processes = new Map();
  for (const name of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1).split(' ');
      processes.set(Number(name), {parent: Number(fields[1]), ticks: fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)});
    } catch {
      // It has ended meanwhile.
    }
  }
  const isBelow = (id) => id === top || (processes.has(id) && isBelow(processes.get(id).parent));
  return [...processes].filter(([id]) => isBelow(id)).reduce((sum, [, {ticks}]) => sum + ticks / 100, 0);
}

/** Starts a training, as `name` says. */
async function start(name, run) {
  const command = ['train', config, '--out', run, ...sets];
  if (name === 'alone') return spawn(program, command, {stdio: 'ignore'});
  const {address, child} = await serving({after: () => {}}, ...command, '--watch');
  await blank.open(name === 'watched' ? address : `${server.url}tests/blank.html`);
  return child;
}
/** {run, browser, server}: the seconds of one training, and of the processors for the other two. */
async function measured(name) {
  const folder = temporaryFolder(), run = join(folder, 'run'), before = processorSeconds(browser.process);
  const child = await start(name, run), took = {server: 0};
  const below = () => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  while (!existsSync(join(run, 'summary.json')) && child.exitCode === null) {
    took.browser = processorSeconds(browser.process) - before;
    took.server = below().reduce((sum, id) => sum + processorSeconds(Number(id)), 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  if (child.exitCode === null) await new Promise((resolve) => child.on('exit', resolve));
  took.run = JSON.parse(readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n').at(-1)).seconds;
  rmSync(folder, {recursive: true});
  await blank.open('about:blank');
  await new Promise((resolve) => setTimeout(resolve, 2000));  // until Chromium is idle again
  return took;
}

const names = ['alone', 'empty page', 'watched'], taken = names.map(() => []);
for (let turn = 0; turn < Number(turns); ++turn)
  for (let i = 0; i < names.length; ++i) taken[(turn + i) % names.length].push(await measured(names[(turn + i) % names.length]));
const sorted = (times) => times.sort((a, b) => a - b), median = (times) => sorted(times)[Math.floor(times.length / 2)];
names.forEach((name, i) => {
  const of = (key) => taken[i].map((times) => times[key]);
  console.log(`${name.padEnd(10)} median ${median(of('run')).toFixed(2)} s, least ${sorted(of('run'))[0].toFixed(2)} s; processors: ` +
    `Chromium ${median(of('browser')).toFixed(2)} s, server ${median(of('server')).toFixed(2)} s`);
});
for (const end of ends.reverse()) await end();
