/** Work in steps that shows how far it is and can be stopped. */
export class Work {
  running = $state(false);
  count = $state(0);
  error = $state.raw<unknown>();
  #control = new AbortController();

  /** Runs the steps until one says that nothing is left. A step returns how many it took, and whether there are more. */
  async run(step: (signal: AbortSignal) => Promise<{ count: number; more: boolean }>): Promise<boolean> {
    this.#control = new AbortController();
    this.running = true;
    this.count = 0;
    this.error = undefined;
    try {
      for (;;) {
        const result = await step(this.#control.signal);
        this.count += result.count;
        if (!result.more || this.#control.signal.aborted) break;
      }
    } catch (error) {
      if (!this.#control.signal.aborted) this.error = error;
    }
    this.running = false;
    return this.error === undefined && !this.#control.signal.aborted;
  }

  stop(): void {
    this.#control.abort();
  }
}
