// The room on the backward pass in a real browser: stepping, values and gradients, errors, the URL.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {axe, violations} from './axe.mjs';
import {missing, started} from './browser.mjs';

test('backward', {skip: missing}, async (t) => {
  const {server, browser} = await started(t);
  const open = async (state = {}, options = {}) => {
    const page = await browser.page(options);
    await page.open(`${server.url}#/backward?${new URLSearchParams(state)}`);
    await page.until(`document.querySelector('.room').dataset.step !== undefined`);
    return page;
  };
  const nodes = (page) => page.evaluate(`[...document.querySelectorAll('.node')].map((n) => [...n.querySelectorAll('text')].map((t) => t.textContent))`);
  const step = (page) => page.evaluate(`Number(document.querySelector('.room').dataset.step)`);
  const button = (name) => `[aria-label="${name}"]`;
  const table = (page) => page.evaluate(`[...document.querySelectorAll('.leaves tbody tr')].map((r) => [...r.children].map((c) => c.innerText))`);
  const twice = 'x = 3\ny = x * x\ny + 4 * x';

  await t.test('steps forward and back, one node at a time', async () => {
    const page = await open({program: twice, step: 0});
    assert.deepEqual(await nodes(page), [['x', '·', ''], ['y (×)', '·', ''], ['×', '·', ''], ['+', '·', '']]);
    for (let i = 0; i < 4; ++i) await page.click(button('One step on'));
    assert.deepEqual(await nodes(page), [['x', '3', ''], ['y (×)', '9', ''], ['×', '12', ''], ['+', '21', '']]);
    await page.click(button('One step on'));
    assert.deepEqual((await nodes(page)).map((n) => n[2]), ['', 'grad 1 so far', 'grad 1 so far', 'grad 1']);
    await page.click(button('One step on'));
    await page.click(button('One step on'));
    assert.deepEqual((await nodes(page)).map((n) => n[2]), ['grad 10 so far', 'grad 1', 'grad 1', 'grad 1']);
    assert.match(await page.text('.detail'), /local derivative by x \(input 1\)\s*3/);
    assert.match(await page.text('.detail'), /x has now, all added up\s*10/);
    await page.click(button('One step on'));
    assert.deepEqual(await table(page), [['x', '10', '10', '✓ agrees']]);
    assert.equal(await page.evaluate(`document.querySelector('${button('One step on')}').disabled`), true);
    await page.evaluate(`document.querySelector('${button('One step back')}').focus()`);
    await page.press('ArrowLeft');
    assert.equal(await step(page), 7);
    await page.click(button('To the beginning'));
    assert.equal(await step(page), 0);
    await page.fill('.stepper input', '8');
    assert.equal(await step(page), 8);
    assert.deepEqual(page.errors, []);
  });

  await t.test('numbers are the engine’s', async () => {
    const program = 'x = [0.5, -1.5]\nw = [0.8, 0.3]\nb = 0.4\ntanh(dot(w, x) + b)';
    const page = await open({program, step: 99});
    const computed = await page.evaluate(`import('./engine.js').then((m) => m.load()).then((e) => e.call('backward', ${JSON.stringify({program})}))`);
    const rows = computed.leaves.flatMap((leaf) => [leaf.gradient].flat());
    assert.deepEqual((await table(page)).map((row) => Number(row[1].replace('−', '-'))), rows.map((v) => Number(v.toPrecision(5))));
    assert((await table(page)).every((row) => row[3] === '✓ agrees'));
  });

  await t.test('every example can be walked through', async () => {
    const page = await open();
    const select = await page.evaluate(`document.querySelector('.program select').id`);
    const names = await page.evaluate(`[...document.querySelectorAll('.program option')].map((o) => o.value)`);
    assert(names.length >= 11);
    for (const name of names.filter((n) => n !== 'own')) {
      const before = await page.evaluate('location.hash');
      await page.fill(`#${select}`, name);
      if (name !== names[0]) await page.until(`location.hash !== ${JSON.stringify(before)}`);
      const last = await page.evaluate(`Number(document.querySelector('.stepper input').max)`);
      for (let i = 0; i <= last; ++i) await page.fill('.stepper input', String(i));
      assert.equal(await step(page), last, name);
      assert.equal(await page.evaluate(`[...document.querySelectorAll('.node .line-1')].some((t) => t.textContent === '—')`), false, name);
    }
    assert.deepEqual(page.errors, []);
  });

  await t.test('a broken order of visits shows what comes too late', async () => {
    const page = await open({program: 'x = 2\ny = x * x\nz = y * 3\ny + z', order: 'depth first', step: 7});
    assert.match(await page.text('.detail'), /Too late: y was visited before/);
    await page.click(button('To the end'));
    assert.deepEqual(await table(page), [['x', '4', '16', '≠ differs']]);
    await page.click('.program input[type=checkbox]');
    await page.until(`document.querySelector('.leaves').innerText.includes('agrees')`);
    assert.deepEqual(await table(page), [['x', '16', '16', '✓ agrees']]);
    assert(!(await page.evaluate('location.hash')).includes('order='));
  });

  await t.test('the engine’s errors are shown where they arise', async () => {
    const page = await open({program: 'x = [0.5, 1.0]\ny = exp(x)\ny *= 2\nsum(y)', step: 99});
    assert.match(await page.text('.detail .failure'), /^GradError exp: a tensor needed for its gradient was changed in place/);
    assert.match(await page.evaluate(`document.querySelector('.node.failed').textContent`), /y \(exp\)/);
    await page.fill('#program', 'x = [1, 2]\nx + y');
    await page.until(`!document.querySelector('.program .failure').hidden`);
    assert.match(await page.text('.program .failure'), /y has no value yet/);
    await page.fill('#program', 'x = [1, 2]\nx * (');
    await page.until(`document.querySelector('.program .failure').innerText.includes('line 2, column 6')`);
    await page.fill('#program', 'x = [1, 2]\nsum(x * x)');
    await page.until(`document.querySelector('.program .failure').hidden`);
    assert.deepEqual(page.errors, []);
  });

  await t.test('the URL keeps program, order and step', async () => {
    const page = await open({program: twice, step: 6});
    const again = await open(Object.fromEntries(new URLSearchParams((await page.evaluate('location.hash')).split('?')[1])));
    assert.equal(await step(again), 6);
    assert.deepEqual(await nodes(again), await nodes(page));
    await page.evaluate(`document.querySelectorAll('.node')[1].dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))`);
    assert.equal(await step(page), 7);
    await page.evaluate(`document.querySelector('nav a').click()`);
    await page.until(`document.querySelector('.room.attention [data-step]')`);
    assert.equal(await page.evaluate('document.title'), 'Attention · onestep');
  });

  await t.test('fits a phone and answers to touch', async () => {
    const page = await open({program: twice, step: 4}, {width: 390, height: 844, touch: true});
    assert.equal(await page.evaluate('document.documentElement.scrollWidth <= 390'), true);
    await page.tap(button('One step on'));
    assert.equal(await step(page), 5);
  });

  const source = axe();
  for (const scheme of ['light', 'dark'])
    for (const size of [{width: 1280, height: 900}, {width: 390, height: 844, touch: true}])
      await t.test(`is accessible: ${scheme}, ${size.width} pixels`, {skip: source ? false : 'axe-core cannot be fetched'}, async () => {
        for (const [program, at] of [[twice, 7], ['x = [0.5, 1.0]\ny = exp(x)\ny *= 2\nsum(y)', 99]]) {
          const page = await open({program, step: at}, {...size, scheme});
          assert.deepEqual(await violations(page, source), []);
        }
      });
});
