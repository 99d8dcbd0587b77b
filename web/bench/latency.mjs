#!/usr/bin/env node
// How long a page that trains lets one wait (Chromium): node web/bench/latency.mjs [CONFIG [SECONDS]], after ./onestep web. CONFIG is a name of
// web/dist/configs. It prints the longest waits for a timer and for a frame, and between an input and what it changes.
import {missing, started} from '../tests/browser.mjs';

if (missing) {
  console.error(`latency: ${missing}`);
  process.exit(2);
}
const [config = 'shakespeare_char', seconds = '10'] = process.argv.slice(2);
const ends = [];
const {server, browser} = await started({after: (end) => ends.push(end)});
try {
  const page = await browser.page();
  await page.open(`${server.url}#/training?config=${config}`);
  await page.until(`document.querySelector('main').dataset.ready === 'training'`);
  await page.clickText('.stepper button', 'Train');
  await page.until(`document.querySelectorAll('.maps canvas').length > 0`);
  const found = await page.evaluate(`new Promise((resolve) => {
    const waits = {timer: [], frame: [], input: []}, end = performance.now() + 1000 * ${Number(seconds)};
    const quantiles = (list) => {
      const sorted = list.sort((a, b) => a - b), at = (q) => sorted[Math.floor(q * (sorted.length - 1))];
      return {count: list.length, median: at(0.5), p99: at(0.99), longest: at(1)};
    };
    let last = performance.now();
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      const now = performance.now();
      waits.timer.push(now - last);
      last = now;
      if (now < end) channel.port2.postMessage(0);
      else resolve({...Object.fromEntries(Object.entries(waits).map(([name, list]) => [name, quantiles(list)])),
        steps: document.querySelector('.readouts dd').textContent, rate: document.querySelectorAll('.readouts dd')[6].textContent});
    };
    channel.port2.postMessage(0);
    const frame = (before) => requestAnimationFrame((now) => {
      waits.frame.push(now - before);
      frame(now);
    });
    requestAnimationFrame(frame);
    const about = document.querySelector('details');
    setInterval(() => {  // from an input to the frame after it
      const began = performance.now();
      about.open = !about.open;
      requestAnimationFrame(() => setTimeout(() => waits.input.push(performance.now() - began)));
    }, 97);
  })`);
  const line = ({count, median, p99, longest}) => `median ${median.toFixed(1)} ms, 99 % below ${p99.toFixed(1)} ms, longest ${longest.toFixed(1)} ms (${count})`;
  console.log(`${config}, ${seconds} s, at the end step ${found.steps}, ${found.rate} tokens a second`);
  for (const name of ['timer', 'frame', 'input']) console.log(`${name.padEnd(6)} ${line(found[name])}`);
} finally {
  for (const end of ends) await end();
}
