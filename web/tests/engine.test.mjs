// The JavaScript API, on both modules.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import test from 'node:test';

import {Model, Run, hasProgram, load, metrics, modules, onestep, readFolder, root, small, temporaryFolder, withoutTimes, writeFolder} from './support.mjs';

test('the exact module runs everywhere', () => assert.ok(modules.includes('exact')));

for (const which of modules) {
  const engine = await load({worker: false, which});

  test(`${which}: a run gives the keys of metrics.jsonl, step by step`, async () => {
    const run = await engine.run(small);
    assert.ok(run instanceof Run);
    const first = await run.step(10);
    assert.equal(first.length, 10);
    assert.deepEqual(Object.keys(first[0]).sort(), ['grad_norm', 'loss', 'lr', 'seconds', 'step', 'tokens_per_second']);
    assert.deepEqual(first.map(({step}) => step), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert.ok('val_loss' in first[3] && 'val_accuracy' in first[3]);
    assert.equal((await run.step(10)).length, 2);
    assert.deepEqual(await run.step(), []);
    await run.close();
    await assert.rejects(run.step(), {type: 'ConfigError'});
  });

  test(`${which}: a bad config rejects with the checker's message`, async () => {
    const refusal = {type: 'ConfigError', message: /^config: \/model\/d_model: .*"x"$/};
    await assert.rejects(engine.check({model: {d_model: 'x'}}), refusal);
    await assert.rejects(engine.run({model: {d_model: 'x'}}), refusal);
    await assert.rejects(engine.check('{"seed": 1,\n}'), /^EngineError|config:2:/);
    await assert.rejects(engine.call('fly'), {type: 'ConfigError', message: /^call: .*fly$/});
    assert.equal((await engine.check(small)).optimizer.weight_decay, 0.01);
  });

  test(`${which}: maps, samples, gradients and evaluation of a run`, async () => {
    const run = await engine.run(small);
    assert.deepEqual(await run.gradients(), []);
    await run.step(3);
    const {tokens, weights} = await run.attention();
    assert.equal(weights.length, 2);
    assert.equal(weights[0].length, 2);
    for (const row of weights[1][0]) assert.ok(Math.abs(row.reduce((sum, weight) => sum + weight) - 1) < 1e-6);
    assert.equal(weights[0][0].length, tokens.length);
    assert.equal(weights[0][0][0][1], 0);
    assert.equal((await run.sample({count: 3})).length, 3);
    const gradients = await run.gradients();
    const total = Math.sqrt(gradients.reduce((sum, {norm}) => sum + norm * norm, 0));
    const [{grad_norm}] = [(await run.step(1))[0]];
    assert.ok(total > 0 && grad_norm > 0 && gradients.every(({name}) => name.includes('.')));
    assert.ok((await run.evaluate()).loss > 0);
    await run.close();
  });

  test(`${which}: looking at a run does not change it`, async () => {
    const [a, b] = [await engine.run(small), await engine.run(small)];
    await a.step(2), await b.step(2);
    await b.attention(), await b.sample(), await b.evaluate(), await b.gradients(), await b.save();
    assert.deepEqual((await a.step(4)).map(withoutTimes), (await b.step(4)).map(withoutTimes));
    await a.close(), await b.close();
  });

  test(`${which}: a saved run is opened again and resumes bit for bit`, async () => {
    const [whole, part] = [await engine.run(small), await engine.run(small)];
    const all = (await whole.step(12)).map(withoutTimes);
    await part.step(5);
    const files = await part.save();
    assert.ok(files.has('config.json') && files.has('metrics.jsonl') && files.has('checkpoints/step-5/model.safetensors'));
    const again = await engine.open(files);
    assert.ok(again instanceof Run);
    assert.deepEqual((await again.step(12)).map(withoutTimes), all.slice(5));
    await Promise.all([whole, part, again].map((run) => run.close()));
  });

  test(`${which}: the learning rate is changed on the way`, async () => {
    const run = await engine.run(small);
    await run.step(2);
    await assert.rejects(run.setLearningRate(-1), {type: 'ConfigError'});
    assert.equal((await run.setLearningRate(0.001)).optimizer.lr, 0.001);
    assert.equal((await run.step(1))[0].lr, 0.001);
    const again = await engine.open(await run.save());
    assert.equal((await again.step(1))[0].lr, 0.001);
    await run.close(), await again.close();
  });

  test(`${which}: text is learned, and the model that was is looked into`, async () => {
    const config = {
      ...small,
      model: {...small.model, dropout: 0},
      data: {kind: 'text', text: 'the cat sat on the mat. the dog sat on the log. '.repeat(20), tokenizer: 'char'},
    };
    const run = await engine.run(config);
    await run.step(12);
    const model = await engine.open(await run.save(), {as: 'model'});
    assert.ok(model instanceof Model);
    assert.deepEqual([model.layers, model.heads, model.tokenizer], [2, 2, 'char']);
    const {tokens, next} = await model.next('the c');
    assert.deepEqual(tokens, ['t', 'h', 'e', ' ', 'c']);
    const everything = await model.next('the c', {count: 1000});
    assert.ok(Math.abs(everything.next.reduce((sum, {probability}) => sum + probability, 0) - 1) < 1e-5);
    assert.ok(next[0].probability >= next[1].probability);
    const ablated = await model.next('the c', {ablate: [[0, 0], [1, 1]]});
    assert.notDeepEqual(ablated.next, next);
    assert.deepEqual((await model.next('the c')).next, next, 'the parameters are what they were');
    await assert.rejects(model.next('the c', {ablate: [[2, 0]]}), {type: 'ConfigError'});
    const one = await model.attention('the c', {layer: 1, head: 0});
    assert.deepEqual(one.weights, (await model.attention('the c')).weights[1][0]);
    assert.equal((await model.generate({text: 'the', tokens: 5, temperature: 0})).ids.length, 5);
    await model.close(), await run.close();
  });

  test(`${which}: the native program and the module continue each other's runs`, {skip: !hasProgram && 'no native program'}, async () => {
    const folder = temporaryFolder(), config = join(folder, 'config.json');
    writeFolder(folder, [['config.json', JSON.stringify(small)]]);
    onestep('train', config, '--out', join(folder, 'native'), '--quiet');
    const all = metrics(readFileSync(join(folder, 'native/metrics.jsonl'), 'utf8'));

    const run = await engine.run(small);
    assert.deepEqual((await run.step(6)).map(withoutTimes), all.slice(0, 6));
    writeFolder(join(folder, 'page'), await run.save());
    onestep('train', '--resume', join(folder, 'page'), '--quiet');
    assert.deepEqual(metrics(readFileSync(join(folder, 'page/metrics.jsonl'), 'utf8')), all);
    for (const name of ['model', 'optimizer'])
      assert.deepEqual(readFileSync(join(folder, `page/checkpoints/step-12/${name}.safetensors`)), readFileSync(join(folder, `native/checkpoints/step-12/${name}.safetensors`)));

    onestep('train', config, '--out', join(folder, 'begun'), '--quiet', '--set', 'train.steps=6');
    const opened = await engine.open(readFolder(join(folder, 'begun')), {steps: 12});
    assert.deepEqual((await opened.step(12)).map(withoutTimes), all.slice(6));
    await run.close(), await opened.close();
  });

  test(`${which}: configs/next_token.json gives the losses of the native program`, {skip: !hasProgram && 'no native program'}, async () => {
    const file = join(root, 'configs/next_token.json'), folder = join(temporaryFolder(), 'run');
    onestep('train', file, '--out', folder, '--quiet', '--set', 'train.log_every=1');
    const run = await engine.run(readFileSync(file, 'utf8'));
    const steps = (await run.step(100)).map(withoutTimes);
    assert.deepEqual(steps, metrics(readFileSync(join(folder, 'metrics.jsonl'), 'utf8')).slice(0, 100));
    await run.close();
  });
}
