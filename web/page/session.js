// A training run that a page drives: in short pieces, so that it stops at once and the engine's thread answers others in between.

const PIECE = 50;  // milliseconds

export class Session {
  /** The steps so far, objects with the keys of metrics.jsonl. */
  history;
  /** [step, learning rate]: what was changed on the way. */
  changes = [];
  running = false;
  #stopping = false;
  #planned;
  #wanted = null;

  /** `planned` are changes of the learning rate at steps to come. */
  constructor(run, {history = [], planned = []} = {}) {
    this.run = run;
    this.history = history;
    this.steps = run.stepsDone;
    this.done = run.done;
    this.#planned = planned;
  }

  /** Trains until `until` steps are done, the run ends, or stop(); awaits heard(the new steps) after each piece. */
  async train({until = Infinity, heard = () => {}} = {}) {
    if (this.running) return;
    this.running = true;
    this.#stopping = false;
    try {
      for (let piece = 1; !this.#stopping && !this.done && this.steps < until;) {
        await this.#change();
        const ends = [until, ...this.#planned.map(([step]) => step)].filter((step) => step > this.steps);
        const count = Math.min(piece, ...ends.map((step) => step - this.steps));
        const began = performance.now();
        const news = await this.run.step(count);
        const took = performance.now() - began;
        this.history.push(...news);
        this.steps += news.length;
        this.done = news.length < count || this.steps >= this.run.config.train.steps;
        piece = Math.max(1, Math.min(2 * count, Math.floor(count * PIECE / took), 200));
        await heard(news);
      }
      await this.#change();
    } catch (error) {
      this.done ||= error.type === 'DivergedError';  // its parameters are no numbers any more
      throw error;
    } finally {
      this.running = false;
    }
  }
  /** Ends train() after the piece under way. */
  stop() {
    this.#stopping = true;
  }

  /** Continues with another optimizer.lr: from now on, or, while it trains, after the piece under way. */
  async setLearningRate(lr) {
    this.#wanted = lr;
    if (!this.running) await this.#change();
  }
  async #change() {
    const lr = this.#wanted ?? this.#planned.find(([step]) => step === this.steps)?.[1] ?? null;
    this.#planned = this.#planned.filter(([step]) => step > this.steps);
    this.#wanted = null;
    if (lr === null || lr === this.run.config.optimizer.lr) return;
    await this.run.setLearningRate(lr);
    this.changes = [...this.changes.filter(([step]) => step !== this.steps), [this.steps, lr]];
  }

  /** Goes on to `steps` steps in all. */
  async extend(engine, steps) {
    const longer = await engine.open(await this.run.save(), {as: 'run', steps});
    await this.run.close();
    this.run = longer;
    this.done = longer.done;
  }
}
