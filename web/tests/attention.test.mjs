// The room on attention in a real browser: the book's digits, hover, keys, touch, sliders, the URL.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {axe, violations} from './axe.mjs';
import {missing, started} from './browser.mjs';

const printed = readFileSync(new URL('../../learn/book/printed.cpp', import.meta.url), 'utf8');

/** The digits that the book prints, from the list of the program `onestep book`. */
function digits(id, dialect = '') {
  const found = printed.match(new RegExp(`\\{"${id}", "${dialect}",\\s*((?:"[^"]*"\\s*)+)\\}`));
  assert(found, id);
  return found[1].replace(/"\s*"|"/g, '').trim().split(/\s+/);
}

const ready = (step) => `document.querySelector('[data-step="${step}"]')`;
const cells = (step) => `[...document.querySelectorAll('[data-step="${step}"] td[data-row]')]`;
const shown = (page, step) => page.evaluate(`${cells(step)}.map((c) => c.innerText.replace(/−/g, '-').replace('∞', 'inf'))`);
const cell = (step, row, column) => `[data-step="${step}"] td[data-row="${row}"][data-column="${column}"]`;
const inspected = (page) => page.text('.inspector');

test('attention', {skip: missing}, async (t) => {
  const {server, browser} = await started(t);
  const open = async (query = '', options = {}) => {
    const page = await browser.page(options);
    await page.open(`${server.url}#/attention${query}`);
    await page.until(ready('x'));
    return page;
  };

  await t.test('shows the digits that the book prints', async () => {
    const page = await open();
    assert.deepEqual(await shown(page, 'keys'), digits('qkv_keys'));
    assert.deepEqual((await shown(page, 'weights')).slice(6, 12), digits('qkv_weights_2'));
    assert.deepEqual(await shown(page, 'context'), digits('self_attention_v1'));
    const section = await page.evaluate('[...document.querySelectorAll("select")].find((s) => s.value === "3.4.1").id');
    for (const [number, step, id, dialect] of [['3.3.2', 'weights', 'simple_weights_all'], ['3.4.2', 'context', 'self_attention_v2'],
      ['3.5.1', 'masked', 'sa2_scores_neg_inf'], ['3.5.2', 'dropped', 'dropout_causal', 'torch'],
      ['3.5.3', 'context', 'causal_attention'], ['3.6.1', 'merged', 'mha_wrapper'], ['3.6.2', 'output', 'mha']]) {
      const turn = await page.evaluate(`Number(document.querySelector('.steps').dataset.turn)`);
      await page.fill(`#${section}`, number);
      await page.until(`Number(document.querySelector('.steps').dataset.turn) > ${turn}`);
      const wanted = digits(id, dialect);
      const found = await shown(page, step);  // the book prints the last ones for a batch of the same text twice
      assert.deepEqual(found.map((text) => (text === '-inf' ? text : Number(text))),
        wanted.slice(0, found.length).map((text) => (text === '-inf' ? text : Number(text))), number);
      assert.match(await page.text(`[data-step="${step}"] .badge`), /✓/);
    }
    assert.deepEqual(page.errors, []);
  });

  await t.test('shows what the engine computes, to the last digit', async () => {
    const choice = {sentence: 'all the words we know', weights: 'linear', seed: 7, width: 4, heads: 2, masked: true};
    const page = await open(`?${new URLSearchParams(choice)}`);
    const computed = await page.evaluate(`import('./engine.js').then((m) => m.load()).then((e) => e.call('attention', ${JSON.stringify(choice)}))`);
    for (const step of computed.steps) assert.deepEqual(await shown(page, step.name), step.texts.flat(2), step.name);
    assert.deepEqual(computed.words, choice.sentence.split(' '));
  });

  await t.test('tells what made a number, under the pointer and with the keys', async () => {
    const page = await open();
    await page.hover(cell('scores', 1, 1));
    await page.until(`document.querySelector('.inspector').innerText.includes('query of journey · key of journey')`);
    assert.match(await inspected(page), /0\.4306 × 0\.4433 \+ 1\.4551 × 1\.1419 = 1\.8524/);
    assert.equal(await page.evaluate(`${cells('queries')}.filter((c) => c.classList.contains('source')).map((c) => c.dataset.row).join()`), '1,1');
    await page.evaluate(`document.querySelector('${cell('weights', 0, 0)}').focus()`);
    await page.press('ArrowDown');
    await page.press('ArrowRight');
    await page.until(`document.querySelector('.inspector').innerText.includes('exp(score with journey) / sum of exp over the row of journey')`);
    assert.equal(await page.evaluate('document.activeElement.innerText'), '0.2264');
    await page.press('Enter');
    await page.until(`location.hash.includes('cell=weights')`);
    await page.press('Escape');
    await page.until(`!location.hash.includes('cell=')`);
  });

  await t.test('sets a number by hand, and all that follows from it changes', async () => {
    const page = await open();
    const before = await shown(page, 'context');
    await page.click(cell('keys', 2, 1));
    await page.until(`!document.querySelector('.setting').hidden`);
    await page.fill('.setting input[type=range]', '-1.5');
    await page.until(`document.querySelector('${cell('keys', 2, 1)}').innerText === '−1.5000'`);
    const changed = await shown(page, 'context');
    assert.notDeepEqual(changed, before);
    assert.match(await page.evaluate('location.hash'), /edits=keys%3A2%3A1%3A-1\.5/);
    const again = await open(new URL(await page.evaluate('location.href')).hash.replace('#/attention', ''));
    await again.until(`document.querySelector('${cell('keys', 2, 1)}').classList.contains('pinned')`);
    assert.deepEqual(await shown(again, 'context'), changed);
    await page.click('.setting button');
    await page.until(`document.querySelector('${cell('keys', 2, 1)}').innerText === '1.1156'`);
    assert.deepEqual(await shown(page, 'context'), before);
  });

  await t.test('switches and sliders change what is computed and the URL', async () => {
    const page = await open();
    const control = async (label) => `#${await page.evaluate(`[...document.querySelectorAll('label')].find((l) => l.textContent === '${label}').htmlFor`)}`;
    await page.click(await control('Causal mask'));
    await page.until(ready('masked'));
    assert.deepEqual((await shown(page, 'masked')).slice(0, 3), ['0.9231', '-inf', '-inf']);
    await page.click(await control('Scaling'));
    await page.until(`!${ready('scaled')}`);
    await page.fill(await control('Heads'), '2');
    await page.until(ready('merged'));
    await page.fill(await control('Dropout'), '0.5');
    await page.until(ready('dropped'));
    await page.click(await control('Output projection'));
    await page.until(ready('output'));
    assert.equal(await page.evaluate('location.hash'), '#/attention?heads=2&masked=true&scaled=false&dropout=0.5&output=true');
    await page.fill(await control('Sentence'), '');
    await page.until(`!document.querySelector('.failure').hidden`);
    assert.match(await page.text('.failure'), /^arguments: \/sentence: has 0 words/);
    await page.fill(await control('Sentence'), 'one word');
    await page.until(`document.querySelector('.failure').hidden && ${cells('x')}.length === 6`);
    assert.deepEqual(page.errors, []);
  });

  await t.test('shows the lines of C++ and Python of every step', async () => {
    const page = await open('?heads=2&masked=true&dropout=0.5&output=true');
    const lines = await page.evaluate(`[...document.querySelectorAll('section')].map((s) => [...s.querySelectorAll('pre')].map((p) => p.textContent))`);
    for (const [cpp, python] of lines) assert(cpp.endsWith(';') && python.length > 0 && !python.includes(';'));
    assert(lines.flat().join('\n').includes('weights = softmax(scores, -1);'));
  });

  await t.test('fits a phone and answers to touch', async () => {
    const page = await open('?masked=true', {width: 390, height: 844, touch: true});
    assert.equal(await page.evaluate('document.documentElement.scrollWidth <= 390'), true);
    assert.equal(await page.evaluate(`[...document.querySelectorAll('.matrix-frame')].every((f) => f.scrollWidth <= f.clientWidth)`), true);
    await page.tap(cell('queries', 1, 0));
    await page.until(`document.querySelector('.inspector').innerText.includes('0.4306')`);
    await page.until(`!document.querySelector('.setting').hidden`);
  });

  const source = axe();
  for (const scheme of ['light', 'dark'])
    for (const size of [{width: 1280, height: 900}, {width: 390, height: 844, touch: true}])
      await t.test(`is accessible: ${scheme}, ${size.width} pixels`, {skip: source ? false : 'axe-core cannot be fetched'}, async () => {
        const page = await open('?masked=true&heads=2&dropout=0.5&edits=keys:1:1:0.5&cell=keys:0:1:1', {...size, scheme});
        await page.until(`!document.querySelector('.setting').hidden`);
        assert.deepEqual(await violations(page, source), []);
      });
});
