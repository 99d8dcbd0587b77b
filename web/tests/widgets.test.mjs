// Widgets that no room of its own tests: the chart and the place for files.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {missing, started} from './browser.mjs';

test('widgets', {skip: missing}, async (t) => {
  const {server, browser} = await started(t);
  const page = await browser.page();
  await page.open(`${server.url}#/attention`);
  await page.until(`document.querySelector('[data-step="x"]')`);

  await t.test('a chart tells its values under the pointer and with the keys', async () => {
    await page.evaluate(`import('./widgets/chart.js').then(({lineChart}) => {
      window.chart = lineChart({label: 'Loss', y: 'loss'});
      document.querySelector('.room').replaceChildren(chart.node);
      chart.update([{name: 'training', points: [[0, 3], [10, NaN], [20, 1.5]]}, {name: 'validation', points: [[20, 2]]}]);
      document.querySelector('.chart').focus();
    })`);
    await page.press('ArrowLeft');
    assert.equal(await page.text('.told'), 'step 20: training 1.5, validation 2');
    await page.press('ArrowLeft');
    assert.equal(await page.text('.told'), 'step 0: training 3');
    await page.evaluate(`chart.update([{name: 'training', points: [[0, 1e30], [1, 1e30]]}])`);  // next to each other among the numbers
    await page.evaluate(`chart.update([{name: 'training', points: [[5, 1]]}])`);  // a single point has a place, too
    await page.hover('.chart');
    assert.equal(await page.text('.told'), 'step 5: training 1');
    assert.equal(await page.evaluate(`[...document.querySelectorAll('.curve')].every((c) => !c.getAttribute('d').includes('NaN'))`), true);
    await page.evaluate('chart.update([])');
  });

  await t.test('files that are chosen come as bytes by path', async () => {
    const got = await page.evaluate(`import('./widgets/controls.js').then(({fileDrop}) => new Promise((resolve) => {
      const drop = fileDrop({label: 'A run', onFiles: (files) => resolve([...files].map(([path, bytes]) => [path, ...bytes]))});
      document.querySelector('.room').replaceChildren(drop.node);
      const list = new DataTransfer();
      list.items.add(new File([new Uint8Array([1, 2])], 'config.json'));
      const input = drop.node.querySelector('input');
      input.files = list.files;
      input.dispatchEvent(new Event('change'));
    }))`);
    assert.deepEqual(got, [['config.json', 1, 2]]);
    assert.deepEqual(page.errors, []);
  });
});
