#!/usr/bin/env node
// How fast each module trains in node: node web/bench/speed.mjs [CONFIG [SECONDS]], after ./onestep web. CONFIG is a file. Tokens are
// told by the clock's seconds and by those that the process had a processor: they are the same on an idle machine.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {load, modules, root} from '../tests/support.mjs';

const [config = join(root, 'configs/next_token.json'), seconds = '5'] = process.argv.slice(2);
for (const which of modules) {
  const engine = await load({worker: false, which}), run = await engine.run(JSON.parse(readFileSync(config, 'utf8')));
  await run.step(20);  // compiled by then
  const began = performance.now(), before = process.cpuUsage();
  let steps = 0;
  for (let done = 1; done > 0 && performance.now() - began < 1000 * Number(seconds); steps += done) done = (await run.step(5)).length;
  const {user, system} = process.cpuUsage(before), tokens = steps * run.tokensPerStep;
  const rate = (took) => Math.round(tokens / took).toLocaleString('en');
  console.log(`${which.padEnd(8)} ${rate((performance.now() - began) / 1000)} tokens/s, ${rate((user + system) / 1e6)} tokens a processor's second (${steps} steps)`);
}
