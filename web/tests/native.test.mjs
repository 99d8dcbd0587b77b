// Runs of the native program in the page that it serves itself.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {axe, violations} from './axe.mjs';
import {dist, missing, started} from './browser.mjs';
import {hasProgram, onestep, serving, small, temporaryFolder, writeFolder} from './support.mjs';

const skip = missing || (!hasProgram && 'the native program is not built');
const short = (number) => String(Number(number.toPrecision(5)));
const encode = (value) => new TextEncoder().encode(JSON.stringify(value));

/** A folder with a config and, trained with it, the run `copied`. */
function trained(changes = {}) {
  const folder = temporaryFolder();
  writeFolder(folder, new Map([['config.json', encode({...small, train: {...small.train, ...changes}})]]));
  const run = join(folder, 'runs', 'copied');
  onestep('train', join(folder, 'config.json'), '--out', run, '--quiet');
  return {folder, run, lines: readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line))};
}
const shown = (page) => page.evaluate(`Object.fromEntries([...document.querySelectorAll('.readouts div')].map((d) => [d.children[0].textContent, d.children[1].textContent]))`);

test('runs of this machine in the rooms of the page', {skip}, async (t) => {
  const {folder, lines} = trained();
  const {browser} = await started(t);
  const {address} = await serving(t, 'play', join(folder, 'runs'), '--page', dist);
  assert.equal((await fetch(address)).headers.get('connection'), 'close');  // an open one wakes the server a hundred times a second
  const page = await browser.page();

  await t.test('a run that has ended is watched', async () => {
    await page.open(`${address}#/training`);
    await page.until(`document.querySelector('main').dataset.ready === 'training'`);
    await page.clickText('.native button', 'Watch it');
    await page.until(`document.querySelector('main h1')?.textContent === 'Training: copied' && document.querySelector('.samples pre')`);  // what is shown last
    assert.equal(await page.text('[role=status]'), `It has ended after ${lines.length} steps.`);
    const now = await shown(page), last = lines.at(-1);
    assert.deepEqual([now.step, now.loss, now['validation loss'], now['gradient norm']],
      [`${lines.length} of ${small.train.steps}`, short(last.loss), short(last.val_loss), short(last.grad_norm)]);
    assert.equal(await page.evaluate(`document.querySelectorAll('.maps canvas').length`), 4);
    assert.equal(await page.evaluate(`document.querySelectorAll('.samples pre').length`), 3);
    const source = axe();
    if (source) assert.deepEqual(await violations(page, source), []);
  });
  await t.test('a copy continues in the page', async () => {
    await page.open(`${address}#/training`);
    await page.until(`document.querySelector('main').dataset.ready === 'training'`);
    await page.clickText('.native button', 'Continue with a copy here');
    await page.until(`document.querySelector('.stepper .told').textContent === 'The run has ended after ${lines.length} steps.'`);
    assert.equal((await shown(page)).loss, short(lines.at(-1).loss));
  });
  await t.test('a run is looked into, also by its address', async () => {
    await page.open(`${address}#/model`);
    await page.until(`document.querySelector('main').dataset.ready === 'model'`);
    await page.clickText('.native button', 'Look into it');
    await page.until(`document.querySelector('.model .bars, .model table')?.getClientRects().length > 0`);
    assert.match(await page.evaluate('location.hash'), /model=native%3Acopied/);
    await page.evaluate('location.reload()');
    await page.until(`document.querySelector('.about')?.textContent.startsWith('2 × 2 heads')`);
  });
  assert.deepEqual(page.errors, []);
});

test('a run is watched while it trains', {skip}, async (t) => {
  const folder = temporaryFolder();
  writeFolder(folder, new Map([['config.json', encode({...small, train: {...small.train, steps: 1000000, checkpoint_every: 500, log_every: 1}})]]));
  const {browser} = await started(t);
  const {address, child} = await serving(t, 'train', join(folder, 'config.json'), '--watch', '--out', join(folder, 'live'));
  const page = await browser.page({width: 390, height: 844, touch: true});
  await page.open(address);
  await page.until(`/^[1-9]\\d* of/.test(document.querySelector('.readouts dd')?.textContent)`);
  const loaded = () => page.evaluate(`performance.getEntriesByType('resource').map(({name}) => name.split('/').at(-1))`);
  assert.ok(!(await loaded()).includes('engine.js'));  // it would take the training's processors
  await page.clickText('button', 'Look now');
  await page.until(`document.querySelector('.maps canvas') && document.querySelector('.samples pre')`);
  assert.ok((await loaded()).includes('engine.js'));
  const steps = async () => Number((await shown(page)).step.split(' ')[0]);
  const before = await steps();
  assert.equal(await page.text('[role=status]'), 'It trains.');
  await page.until(`Number(document.querySelector('.readouts dd').textContent.split(' ')[0]) > ${before}`);
  assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= 390);
  assert.deepEqual(page.errors, []);
  const ended = new Promise((resolve) => child.on('exit', resolve));
  child.kill('SIGINT');
  assert.equal(await ended, 130);
  await page.until(`!document.querySelector('.failure').hidden`);
  assert.equal(await page.text('.failure'), 'The program does not answer any more.');
});

test('a run is followed to its end, which comes with its program’s', {skip}, async (t) => {
  const folder = temporaryFolder();
  const config = {...small, data: {kind: 'text', path: join(folder, 'text.txt'), tokenizer: 'char'}, train: {...small.train, steps: 6000, eval_every: 6000}};
  writeFolder(folder, new Map([['config.json', encode(config)], ['text.txt', new TextEncoder().encode('the cat sat on the mat. '.repeat(50))]]));
  const {browser} = await started(t);
  const {address, child} = await serving(t, 'train', join(folder, 'config.json'), '--watch', '--out', join(folder, 'short'));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const page = await browser.page();
  await page.open(address);
  await page.until(`document.querySelector('.maps canvas') && document.querySelector('.samples pre')`);
  assert.equal(await ended, 0);
  assert.ok(await page.evaluate(`document.querySelector('.maps canvas').width`) > 5);  // a text that the model has written
  await page.fill('textarea', 'the c');  // is answered though the program has ended
  await page.until(`document.querySelector('.maps canvas').width === 5 && document.querySelector('.samples pre').textContent.startsWith('the c')`);
  await page.fill('textarea', 'QED');
  await page.until(`document.querySelector('section[aria-label=Attention]').textContent.includes('"Q"')`);
  assert.equal(await page.text('[role=status]'), 'It has ended after 6000 steps.');
  assert.equal(await page.evaluate(`document.querySelector('.failure').hidden`), true);
  assert.deepEqual(page.errors, []);
});
