// The room on training in a real browser, beside runs of the native program.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {axe, violations} from './axe.mjs';
import {choose, chooseTar, downloaded, drop, missing, started} from './browser.mjs';
import {hasProgram, metrics, onestep, root, small, temporaryFolder} from './support.mjs';

const native = hasProgram ? false : 'no native program';
const quick = {...small, train: {...small.train, steps: 40, eval_every: 10}};

/** Five significant digits, as the page writes them. */
const short = (value) => String(Number(value.toPrecision(5)));

test('training', {skip: missing}, async (t) => {
  const {server, browser} = await started(t);
  const open = async (state = {}, options = {}) => {
    const page = await browser.page(options);
    await page.open(`${server.url}#/training?${new URLSearchParams(state)}`);
    await page.until(`document.querySelector('main').dataset.ready === 'training'`);
    return page;
  };
  const edited = (config) => ({edit: JSON.stringify(config, null, 2)});
  const button = (page, text) => page.clickText('.stepper button', text);
  const shown = async (page) => Object.fromEntries(await page.evaluate(`[...document.querySelectorAll('.readouts > div')].map((d) => [...d.children].map((c) => c.textContent))`));
  const stopped = (page, steps) => page.until(`/${steps} steps/.test(document.querySelector('[role=status]').textContent)`);
  const stateOf = async (page) => Object.fromEntries(new URLSearchParams((await page.evaluate('location.hash')).split('?')[1]));
  /** The metrics.jsonl of the program for a config. */
  const trained = (config, ...sets) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    onestep('train', join(folder, 'config.json'), '--out', join(folder, 'run'), '--quiet', ...sets.flatMap((set) => ['--set', set]));
    return {folder: join(folder, 'run'), lines: metrics(readFileSync(join(folder, 'run/metrics.jsonl'), 'utf8'))};
  };

  await t.test('every step has the numbers of the program', {skip: native}, async () => {
    const {lines} = trained(quick);
    const page = await open(edited(quick));
    let validation = null;
    for (let step = 1; step <= 11; ++step) {
      await button(page, 'One step');
      await stopped(page, step);
      await page.until(`document.querySelector('.readouts dd').textContent === '${step} of 40'`);
      const line = lines[step - 1], now = await shown(page);
      validation = line.val_loss ?? validation;
      assert.deepEqual([now.loss, now['gradient norm'], now['learning rate'], now['validation loss']],
        [short(line.loss), short(line.grad_norm), short(line.lr), validation === null ? '—' : short(validation)], `step ${step}`);
    }
    await button(page, 'Continue');
    await stopped(page, 40);
    await page.until(`document.querySelector('.readouts dd').textContent === '40 of 40'`);
    assert.equal((await shown(page)).loss, short(lines[39].loss));
    assert.equal((await shown(page))['validation accuracy'], short(lines[39].val_accuracy));
    await page.evaluate(`document.querySelector('.chart').focus()`);
    for (let left = 0; left < 5; ++left) await page.press('ArrowLeft');
    assert.equal(await page.text('.chart-frame .told'), `step 36: training ${short(lines[35].loss)}`);
    assert.equal(await page.evaluate(`[...document.querySelectorAll('.stepper button')].slice(0, 2).every((b) => b.disabled)`), true);
    assert.deepEqual(page.errors, []);
  });

  await t.test('maps, gradients and samples are those of the run', async () => {
    const page = await open({...edited(quick), step: 7});
    await stopped(page, 7);
    await page.until(`document.querySelectorAll('.maps canvas').length === 4 && document.querySelectorAll('.samples pre').length === 3`);
    const found = await page.evaluate(`import('./engine.js').then((m) => m.load()).then(async (e) => {
      const run = await e.run(${JSON.stringify(quick)});
      await run.step(7);
      return {maps: await run.attention(), gradients: await run.gradients(), samples: await run.sample({count: 3})};
    })`);
    assert.deepEqual(await page.evaluate(`[...document.querySelectorAll('section[aria-label=Gradients] tbody tr')].map((r) => [r.children[0].textContent, r.children[2].textContent])`),
      found.gradients.map(({name, norm}) => [name, norm < 1e-4 ? norm.toExponential(2).replace('-', '−') : short(norm)]));
    assert.deepEqual(await page.evaluate(`[...document.querySelectorAll('.samples pre')].map((p) => p.textContent)`), found.samples.map((s) => s.prompt + s.continuation));
    await page.evaluate(`document.querySelectorAll('.maps canvas')[3].focus()`);
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight']) await page.press(key);  // the first one puts the cursor into a corner
    const {tokens, weights} = found.maps;
    assert.equal(await page.text('section[aria-label=Attention] .told'),
      `Layer 2, head 2: token 3 (${tokens[2]}) looks at token 2 (${tokens[1]}) with ${short(weights[1][1][2][1])}`);
    const alpha = await page.evaluate(`document.querySelectorAll('.maps canvas')[3].getContext('2d').getImageData(1, 2, 1, 1).data[3]`);
    assert.equal(alpha, Math.round(255 * Math.sqrt(weights[1][1][2][1])));
  });

  await t.test('stops at once, continues, starts over', async () => {
    const page = await open({...edited({...quick, train: {...quick.train, steps: 100000, eval_every: 0}})});
    await button(page, 'Train');
    await page.until(`document.querySelectorAll('.maps canvas').length === 4`);
    await button(page, 'Stop');
    await page.until(`/^Stopped after/.test(document.querySelector('[role=status]').textContent)`);
    const {step} = await stateOf(page);
    assert.ok(Number(step) > 0 && Number(step) < 100000);
    await button(page, 'One step');
    await stopped(page, Number(step) + 1);
    await button(page, 'Start over');
    await page.until(`document.querySelector('[role=status]').textContent === 'Nothing is trained yet.'`);
    assert.equal((await shown(page)).loss, '—');
    assert.equal((await stateOf(page)).step, undefined);
    assert.deepEqual(page.errors, []);
  });

  await t.test('a changed learning rate is in the address, and the download continues in the program', {skip: native}, async () => {
    const page = await open({...edited(quick), step: 12});
    await stopped(page, 12);
    const rate = await page.control('Learning rate from here on');
    await page.fill(rate, '-3');
    await page.until(`location.hash.includes('lr=12')`);
    await button(page, 'One step');
    await stopped(page, 13);
    await page.until(`document.querySelector('.readouts dd').textContent === '13 of 40'`);
    assert.equal((await shown(page))['learning rate'], '0.001');
    assert.equal((await stateOf(page)).lr, '12:0.001');
    const again = await open(await stateOf(page));  // the same address gives the same run
    await stopped(again, 13);
    await again.until(`document.querySelector('.readouts dd').textContent === '13 of 40'`);
    const keys = ['step', 'loss', 'gradient norm', 'learning rate', 'validation loss'];
    const [one, other] = [await shown(page), await shown(again)];
    assert.deepEqual(keys.map((key) => other[key]), keys.map((key) => one[key]));

    const folder = temporaryFolder();
    const {name, bytes} = await downloaded(page, () => button(page, 'Download the run'));
    assert.equal(name, 'run-step-13.tar');
    writeFileSync(join(folder, name), bytes);
    execFileSync('tar', ['xf', join(folder, name), '-C', folder]);
    const run = join(folder, 'run-step-13');
    for (const command of [['eval', run], ['generate', run, '--prompt-ids', '1,2,3', '--tokens', '3']]) onestep(...command);
    onestep('train', '--resume', run, '--quiet');
    const lines = metrics(readFileSync(join(run, 'metrics.jsonl'), 'utf8'));
    await page.send('Page.bringToFront');
    await button(page, 'Continue');
    await stopped(page, 40);
    await page.until(`document.querySelector('.readouts dd').textContent === '40 of 40'`);
    assert.equal(lines.length, 40);
    assert.deepEqual([(await shown(page)).loss, (await shown(page))['validation loss']], [short(lines[39].loss), short(lines[39].val_loss)]);
  });

  await t.test('a run of the program is opened and continues', {skip: native}, async () => {
    const {lines} = trained(quick), {folder} = trained(quick, 'train.steps=15');
    const page = await open();
    await chooseTar(page, folder);
    await page.until(`document.querySelector('[role=status]').textContent === 'The run has ended after 15 steps.'`);
    await page.until(`document.querySelector('.readouts dd').textContent === '15 of 15'`);
    assert.equal((await shown(page)).loss, short(lines[14].loss));
    assert.equal(await page.evaluate('location.hash'), '#/training');  // an address cannot hold files
    await page.fill(await page.control('Steps in all'), '40');
    await page.until(`document.querySelector('.readouts dd').textContent === '15 of 40'`);
    await button(page, 'Continue');
    await stopped(page, 40);
    await page.until(`document.querySelector('.readouts dd').textContent === '40 of 40'`);
    assert.equal((await shown(page)).loss, short(lines[39].loss));
    await choose(page, 'Choose a folder', [folder]);
    await page.until(`document.querySelector('.readouts dd').textContent === '15 of 15'`);
    await button(page, 'Start over');
    await page.until(`document.querySelector('[role=status]').textContent === 'Nothing is trained yet.'`);
    await drop(page, '.drop', [folder]);
    await page.until(`document.querySelector('.readouts dd').textContent === '15 of 15'`);
    await choose(page, 'Choose files', [join(root, 'README.md')]);
    await page.until(`!document.querySelector('.failure[role=alert]:not(#config-message)').hidden`);
    assert.match(await page.text('.failure[role=alert]:not(#config-message)'), /there is no config\.json/);
    assert.deepEqual(page.errors, []);
  });

  await t.test('one’s own text is learned', {skip: native}, async () => {
    const text = 'one two three two one. '.repeat(30);
    const config = JSON.parse(readFileSync(join(root, 'web/page/configs/own_text.json'), 'utf8'));
    const {lines} = trained({...config, data: {...config.data, text}}, 'train.steps=5');
    const page = await open({config: 'own_text'});
    await page.fill(await page.control('Your own text'), text);
    await page.until(`location.hash.includes('text=one')`);
    await page.fill(await page.control('Steps in all'), '5');
    await page.until(`document.querySelector('#config').value.includes('"steps": 5,')`);
    await button(page, 'Train');
    await stopped(page, 5);
    await page.until(`document.querySelector('.readouts dd').textContent === '5 of 5'`);
    assert.equal((await shown(page)).loss, short(lines[4].loss));

    const other = await open();
    const file = join(temporaryFolder(), 'own.txt');
    writeFileSync(file, text);
    await drop(other, '.drop', [file]);
    await other.until(`location.hash.startsWith('#/training?config=own_text&text=one')`);
    await button(other, 'One step');
    await stopped(other, 1);
    await other.until(`document.querySelector('.readouts dd').textContent === '1 of 500'`);
    assert.equal((await shown(other)).loss, short(lines[0].loss));
    assert.deepEqual(other.errors, []);
  });

  await t.test('the repository’s configs run, also those that read its files', {skip: native}, async () => {
    const page = await open({config: 'text'});
    await button(page, 'One step');
    await stopped(page, 1);
    await page.until(`document.querySelector('.readouts dd').textContent === '1 of 1500'`);
    const {lines} = trained(JSON.parse(readFileSync(join(root, 'configs/text.json'), 'utf8')), 'train.steps=1', 'train.eval_batches=1');
    assert.equal((await shown(page)).loss, short(lines[0].loss));
    const names = await page.evaluate(`[...document.querySelectorAll('.program option')].map((o) => o.value).filter(Boolean)`);
    for (const name of ['copy', 'reverse', 'sort', 'addition', 'own_text', 'next_token', 'own_docs']) assert.ok(names.includes(name), name);
    for (const name of names) assert.equal(await page.evaluate(`import('./engine.js').then((m) => m.load()).then(async (e) =>
      (await e.check(await (await fetch('./configs/${name}.json')).text())).train.steps > 0)`), true, name);
    assert.deepEqual(page.errors, []);
  });

  await t.test('the checker’s messages are shown where they arise', async () => {
    const page = await open();
    const wrong = '{\n  "model": {\n    "d_model": "x"\n  },\n  "data": {"kind": "task", "task": "copy", "vocab_size": 8}\n}';
    await page.fill('#config', wrong);
    await page.until(`!document.querySelector('#config-message').hidden`);
    assert.match(await page.text('#config-message'), /^config: \/model\/d_model: must be a whole number from 1 to 65536: got "x"/);
    assert.equal(await page.text('#config-message button'), 'Go to line 3');
    await page.until(`document.querySelector('.stepper button').disabled`);
    await page.click('#config-message button');
    assert.equal(await page.evaluate(`(() => { const c = document.querySelector('#config'); return c.value.slice(c.selectionStart, c.selectionEnd); })()`), '    "d_model": "x"');
    await page.fill('#config', '{\n  "seed": 1,\n}');
    await page.until(`document.querySelector('#config-message').innerText.startsWith('config:3')`);
    assert.equal(await page.text('#config-message button'), 'Go to line 3');
    await page.fill('#config', wrong.replace('"x"', '32'));
    await page.until(`document.querySelector('#config-message').hidden`);
    await page.fill('#config', wrong.replace('"x"', '32').replace('}\n}', '},\n  "optimizer": {"lr": 1e30}\n}'));
    await button(page, 'Train');
    await page.until(`!document.querySelector('.failure[role=alert]:not(#config-message)').hidden`);
    assert.match(await page.text('.failure[role=alert]:not(#config-message)'), /^DivergedError /);
    assert.deepEqual(page.errors, []);
  });

  await t.test('a run waits while one looks at another room', async () => {
    const page = await open({...edited(quick), step: 5});
    await stopped(page, 5);
    await page.evaluate(`document.querySelector('nav a').click()`);
    await page.until(`document.querySelector('.room.attention [data-step]')`);
    await page.evaluate(`document.querySelectorAll('nav a')[2].click()`);
    await page.until(`document.querySelector('.readouts dd')?.textContent === '5 of 40'`);
    await button(page, 'One step');
    await stopped(page, 6);
    assert.deepEqual(page.errors, []);
  });

  await t.test('fits a phone and answers to touch', async () => {
    const page = await open({...edited(quick), step: 3}, {width: 390, height: 844, touch: true});
    await stopped(page, 3);
    await page.until(`document.querySelectorAll('.maps canvas').length === 4`);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth <= 390'), true);
    await page.tap('.stepper button:nth-child(2)');
    await stopped(page, 4);
    await page.tap('.maps figure:nth-child(2) canvas');
    await page.until(`/^Layer 1, head 2: token 8 /.test(document.querySelector('section[aria-label=Attention] .told').textContent)`);
    assert.ok(await page.evaluate(`document.querySelector('.chart text').getBoundingClientRect().height >= 12`));  // to be read
  });

  const source = axe();
  for (const scheme of ['light', 'dark'])
    for (const size of [{width: 1280, height: 900}, {width: 390, height: 844, touch: true}])
      await t.test(`is accessible: ${scheme}, ${size.width} pixels`, {skip: source ? false : 'axe-core cannot be fetched'}, async () => {
        const page = await open({...edited(quick), step: 12}, {...size, scheme});
        await page.until(`document.querySelectorAll('.samples pre').length === 3`);
        assert.deepEqual(await violations(page, source), []);
        await page.fill('#config', '{"model": 3}');
        await page.until(`!document.querySelector('#config-message').hidden`);
        assert.deepEqual(await violations(page, source), []);
      });
});
