#!/usr/bin/env node
// How long a page lets one wait, before and while it trains (Chromium): node web/bench/latency.mjs [CONFIG [SECONDS]], after ./onestep web.
// CONFIG is a name in web/dist/configs. Timers: how late one of 5 ms is. Frames: from one to the next. Inputs: from a click to after
// the frame that shows what it changed. What other programs do to the machine is in all of them: compare with the idle page.
import {missing, started} from '../tests/browser.mjs';

if (missing) {
  console.error(`latency: ${missing}`);
  process.exit(2);
}
const [config = 'shakespeare_char', seconds = '10'] = process.argv.slice(2);

/** In the page: the waits of some seconds, {timer, frame, input, task: [milliseconds, ...]}. */
const measure = `new Promise((resolve) => {
  const waits = {timer: [], frame: [], input: [], task: []}, end = performance.now() + 1000 * ${Number(seconds)};
  const observer = new PerformanceObserver((list) => waits.task.push(...list.getEntries().map((entry) => entry.duration)));
  observer.observe({type: 'longtask'});
  const tick = (before) => setTimeout(() => {
    const now = performance.now();
    waits.timer.push(now - before - 5);
    if (now < end) return tick(now);
    clearInterval(clicks);
    observer.disconnect();
    resolve(waits);
  }, 5);
  const frame = (before) => requestAnimationFrame((now) => {
    if (before) waits.frame.push(now - before);
    if (now < end) frame(now);
  });
  const summary = document.querySelector('summary');
  const clicks = setInterval(() => {
    const began = performance.now();
    summary.click();
    requestAnimationFrame(() => setTimeout(() => waits.input.push(performance.now() - began)));
  }, 97);
  tick(performance.now());
  frame(null);
})`;

function report(title, waits) {
  console.log(title);
  for (const name of ['timer', 'frame', 'input']) {
    const sorted = waits[name].sort((a, b) => a - b), at = (q) => sorted[Math.floor(q * (sorted.length - 1))].toFixed(1);
    console.log(`  ${name.padEnd(6)} median ${at(0.5)} ms, 99 % below ${at(0.99)} ms, longest ${at(1)} ms (${sorted.length})`);
  }
  console.log(`  tasks of more than 50 ms: ${waits.task.length ? waits.task.map((ms) => `${ms} ms`).join(', ') : 'none'}`);
}

const ends = [];
const {server, browser} = await started({after: (end) => ends.push(end)});
try {
  const page = await browser.page();
  await page.open(`${server.url}#/training?config=${config}`);
  await page.until(`document.querySelector('main').dataset.ready === 'training'`);
  report('idle', await page.evaluate(measure));
  await page.clickText('.stepper button', 'Train');
  await page.until(`document.querySelectorAll('.maps canvas').length > 0`);
  const waits = await page.evaluate(measure);
  const [step, rate] = await page.evaluate(`[0, 6].map((i) => document.querySelectorAll('.readouts dd')[i].textContent)`);
  report(`${config}, at the end step ${step}, ${rate} tokens a second`, waits);
} finally {
  for (const end of ends) await end();
}
