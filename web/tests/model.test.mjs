// The room on a trained model in a real browser, beside the native program's generate.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {axe, violations} from './axe.mjs';
import {choose, chooseTar, missing, started} from './browser.mjs';
import {hasProgram, onestep, readFolder, root, small, temporaryFolder, writeFolder} from './support.mjs';

const native = hasProgram ? false : 'no native program';
const stories = JSON.parse(readFileSync(join(root, 'web/page/configs/small_stories.json'), 'utf8'));

test('a trained model', {skip: missing}, async (t) => {
  const {server, browser} = await started(t);
  const open = async (state = {}, options = {}) => {
    const page = await browser.page(options);
    await page.open(`${server.url}#/model?${new URLSearchParams(state)}`);
    await page.until(`document.querySelector('main').dataset.ready === 'model'`);
    return page;
  };
  /** Waits until what is seen is of the last change. */
  const settled = (page) => page.until(`document.querySelector('.room').dataset.settled === 'true' && !document.querySelector('.model-bench').hidden`);
  const next = async (page) => {
    await settled(page);
    return page.evaluate(`[...document.querySelectorAll('.bars')].filter((b) => !b.closest('[hidden]')).flatMap((b) => [...b.querySelectorAll('tbody tr')])
      .map((r) => [r.children[0].textContent, ...[...r.children].slice(2).map((c) => c.textContent)])`);
  };
  const fill = async (page, label, value) => page.fill(await page.control(label), value);
  const trained = (config, ...sets) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    onestep('train', join(folder, 'config.json'), '--out', join(folder, 'run'), '--quiet', ...sets.flatMap((set) => ['--set', set]));
    return join(folder, 'run');
  };
  const generated = (run, ...options) => JSON.parse(onestep('generate', run, '--format', 'json', '--quiet', ...options));
  const percent = (logprob) => `${(100 * Math.fround(Math.exp(logprob))).toFixed(2)} %`;

  await t.test('a run of the program gives the program’s probabilities and words', {skip: native}, async () => {
    const run = trained(stories, 'train.steps=60');
    const page = await open({text: 'anna has the'});
    await chooseTar(page, run);
    const rows = await next(page);
    const greedy = generated(run, '--prompt', 'anna has the', '--tokens', '1', '--temperature', '0');
    assert.deepEqual(rows[0], [greedy.text.trim(), percent(greedy.logprobs[0])]);
    assert.ok(rows.length === 20 && rows.every((row, i) => i === 0 || parseFloat(row[1]) <= parseFloat(rows[i - 1][1])));
    await fill(page, 'Tokens', '12');
    await fill(page, 'Temperature', '0.8');
    await fill(page, 'Seed', '5');
    await page.clickText('.model-bench button', 'Write');
    await page.until(`document.querySelector('.written strong')`);
    const written = generated(run, '--prompt', 'anna has the', '--tokens', '12', '--temperature', '0.8', '--seed', '5');
    assert.equal(await page.text('.written strong'), written.text);
    assert.deepEqual(page.errors, []);
  });

  await t.test('a model of a task begins with a prompt of it and is asked with its symbols', {skip: native}, async () => {
    const run = trained(small);
    const page = await open();
    await chooseTar(page, run);
    await settled(page);
    assert.match(await page.text('.about'), /write its symbols with spaces/);
    assert.match(await page.evaluate(`document.querySelector('textarea').value`), /^([a-l] ){7}[a-l]$/);
    await fill(page, 'Text', 'd b e b f a a c');
    const greedy = generated(run, '--prompt', 'd b e b f a a c', '--tokens', '1', '--temperature', '0');
    assert.deepEqual((await next(page))[0], [greedy.text.trim(), percent(greedy.logprobs[0])]);
    await fill(page, 'Temperature', '0');
    await page.clickText('.model-bench button', 'Write');
    await page.until(`document.querySelector('.written strong')`);
    const written = generated(run, '--prompt', 'd b e b f a a c', '--temperature', '0');
    assert.equal(written.ids.length, 8);
    assert.equal(await page.text('.written strong'), written.text);
    await fill(page, 'Text', 'words');
    await settled(page);
    assert.match(await page.text('.model-bench .failure'), /^ConfigError /);
  });

  await t.test('a model of ids is asked with ids', {skip: native}, async () => {
    const run = trained({...small, data: {kind: 'tokens', vocab_size: 12, tokens: [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4]},
      model: {...small.model, context_length: 6}});
    const page = await open();
    await chooseTar(page, run);
    await settled(page);
    await fill(page, 'Text', '3, 1, 4, 1, 5');
    const greedy = generated(run, '--prompt-ids', '3,1,4,1,5', '--tokens', '1', '--temperature', '0');
    assert.deepEqual((await next(page))[0], [String(greedy.ids[0]), percent(greedy.logprobs[0])]);
    await fill(page, 'Text', 'words');
    await settled(page);
    assert.match(await page.text('.model-bench .failure'), /^ConfigError text: the model was trained on ids/);
  });

  await t.test('a GPT-2 in Hugging Face’s files is opened, with either form of its vocabulary', {skip: native}, async () => {
    const folder = temporaryFolder(), bpe = join(folder, 'bpe'), text = join(folder, 'text.txt');
    writeFileSync(text, stories.data.text);
    onestep('tokenizer', 'train', text, '--out', bpe, '--vocab-size', '300');
    const run = trained({...stories,
      data: {kind: 'text', path: text, tokenizer: 'bpe', tokenizer_path: bpe, val_fraction: 0.1}}, 'train.steps=5');
    const gpt = join(folder, 'gpt');
    onestep('export', run, gpt, '--quiet');
    const greedy = generated(run, '--prompt', 'anna has the', '--tokens', '1', '--temperature', '0');
    const page = await open({text: 'anna has the'});
    await choose(page, 'Choose a folder', [gpt]);
    assert.deepEqual((await next(page))[0], [greedy.text.replaceAll(' ', '␣'), percent(greedy.logprobs[0])]);
    assert.match(await page.text('.sources .about'), /2 × 4 heads/);
    const state = Object.fromEntries(new URLSearchParams((await page.evaluate('location.hash')).split('?')[1]));
    assert.deepEqual(state, {text: 'anna has the'});

    const one = join(folder, 'one');  // with tokenizer.json alone
    const files = readFolder(gpt), textOf = (name) => new TextDecoder().decode(files.get(name));
    const merges = textOf('merges.txt').trim().split('\n').filter((line) => !line.startsWith('#version'));
    writeFolder(one, [...['config.json', 'model.safetensors'].map((name) => [name, files.get(name)]),
      ['tokenizer.json', JSON.stringify({model: {type: 'BPE', vocab: JSON.parse(textOf('vocab.json')), merges},
        pre_tokenizer: {type: 'ByteLevel', add_prefix_space: false}, decoder: {type: 'ByteLevel'}})]]);
    const other = await open({text: 'anna has the'});
    await choose(other, 'Choose a folder', [one]);
    assert.deepEqual((await next(other))[0], [greedy.text.replaceAll(' ', '␣'), percent(greedy.logprobs[0])]);
    assert.match(await other.text('.model-bench'), /5 tokens: a · n · na · ␣has · ␣the/);
    assert.deepEqual(page.errors, []);
  });

  await t.test('a small one is trained on demand, and a run of the room Training is taken', async () => {
    const page = await open();
    await page.clickText('.sources button', 'Train a small one');
    const rows = await next(page);
    assert.match(await page.evaluate('location.hash'), /model=small&text=anna/);
    const computed = await page.evaluate(`import('./engine.js').then((m) => m.load()).then(async (e) => {
      const run = await e.run(await (await fetch('./configs/small_stories.json')).text());
      await run.step(10000);
      const model = await e.open(await run.save(), {as: 'model'});
      const text = document.querySelector('textarea').value;
      return {next: (await model.next(text)).next, maps: await model.attention(text)};
    })`);
    assert.deepEqual(rows, computed.next.map(({text, probability}) => [text.replaceAll(' ', '␣'), `${(100 * probability).toFixed(2)} %`]));
    await fill(page, 'Layer', '1');
    await fill(page, 'Head', '2');
    await settled(page);
    const {tokens, weights} = computed.maps;
    const size = tokens.length;
    assert.deepEqual(await page.evaluate(`[...document.querySelectorAll('section[aria-label=Attention] td[data-row]')].map((c) => c.innerText)`),
      weights[1][2].flatMap((row, r) => row.map((value, c) => (c > r ? '' : value.toFixed(2)))));
    const names = await page.evaluate(`[...document.querySelectorAll('section[aria-label=Attention] tbody th')].map((c) => c.title)`);
    assert.deepEqual(names, tokens.map((token) => token.replaceAll(' ', '␣')));
    await page.hover(`section[aria-label=Attention] td[data-row="${size - 1}"][data-column="1"]`);
    await page.until(`document.querySelector('.model-bench .told').textContent.includes(' looks at ')`);
    assert.match(await page.evaluate('location.hash'), /layer=2&head=3/);

    await page.evaluate(`document.querySelectorAll('nav a')[2].click()`);
    await page.until(`document.querySelector('.room.training .stepper')`);
    await page.clickText('.stepper button', 'One step');
    await page.until(`/1 steps/.test(document.querySelector('[role=status]').textContent)`);
    await page.evaluate(`document.querySelectorAll('nav a')[3].click()`);
    await page.until(`document.querySelector('.room.model .sources')`);
    await page.clickText('.sources button', 'Take the run of the room Training');
    await settled(page);
    assert.match(await page.text('.sources .about'), /1 × 4 heads/);
    assert.deepEqual(page.errors, []);
  });

  await t.test('a head that counts as zero changes what comes next', async () => {
    const page = await open({model: 'small', text: 'mia has the key and leo has the'});
    const before = await next(page);
    await page.click(await page.control('This head counts as zero'));
    const after = await next(page);
    assert.match(await page.evaluate('location.hash'), /ablate=1\.1/);
    assert.ok(after.every((row) => row.length === 4));
    const was = new Map(before);
    for (const [token, , all] of after) if (was.has(token)) assert.equal(all, was.get(token));
    assert.ok(after.some(([, now, all]) => now !== all));
    assert.ok(after.every(([, now, all, change]) => change.startsWith('=') || (change.startsWith('▲') === (parseFloat(now) >= parseFloat(all)) || now === all)));
    const again = await open(Object.fromEntries(new URLSearchParams((await page.evaluate('location.hash')).split('?')[1])));
    assert.deepEqual(await next(again), after);
    await page.clickText('.model-bench button', 'All heads back');
    assert.deepEqual(await next(page), before);

    await page.clickText('.model-bench button', 'Try every head');
    await page.until(`document.querySelectorAll('.effects td[data-row]').length === 8`);
    const effects = await page.evaluate(`[...document.querySelectorAll('.effects td[data-row]')].map((c) => c.innerText)`);
    const first = after.find(([token]) => token === before[0][0]);
    assert.ok(Math.abs(Number(effects[0].replace('−', '-')) - (parseFloat(first[1]) - parseFloat(first[2]))) < 0.011);
    await page.click('.effects td[data-row="1"][data-column="2"]');
    await settled(page);
    assert.match(await page.evaluate('location.hash'), /layer=2&head=3/);
    assert.deepEqual(page.errors, []);
  });

  await t.test('what the engine refuses is told', async () => {
    const page = await open({model: 'small', text: 'anna has'});
    await settled(page);
    await fill(page, 'Text', 'anna has the zebra');
    await settled(page);
    assert.match(await page.text('.model-bench .failure'), /zebra/);
    await fill(page, 'Text', 'anna has the');
    await settled(page);
    assert.equal(await page.evaluate(`document.querySelector('.model-bench .failure').hidden`), true);
    await choose(page, 'Choose files', [join(root, 'README.md')]);
    await page.until(`!document.querySelector('.sources .failure').hidden`);
    assert.match(await page.text('.sources .failure'), /there is no config\.json/);
    assert.deepEqual(page.errors, []);
  });

  await t.test('fits a phone and answers to touch', async () => {
    const page = await open({model: 'small', text: 'anna has the'}, {width: 390, height: 844, touch: true});
    await settled(page);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth <= 390'), true);
    await page.tap(await page.control('This head counts as zero'));
    await page.until(`location.hash.includes('ablate=1.1')`);
  });

  const source = axe();
  for (const scheme of ['light', 'dark'])
    for (const size of [{width: 1280, height: 900}, {width: 390, height: 844, touch: true}])
      await t.test(`is accessible: ${scheme}, ${size.width} pixels`, {skip: source ? false : 'axe-core cannot be fetched'}, async () => {
        const page = await open({model: 'small', text: 'anna has the', ablate: '2.1'}, {...size, scheme});
        await settled(page);
        await page.clickText('.model-bench button', 'Try every head');
        await page.until(`document.querySelectorAll('.effects td[data-row]').length === 8`);
        assert.deepEqual(await violations(page, source), []);
      });
});
