import type { FoundEvent, SearchEnd, SearchProgress } from "@godwit/client";
import { api } from "../lib/api.svelte.ts";

/** What a search selects; see GET /v1/events/search. */
export interface Wanted {
  readonly text?: string | undefined;
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly source?: string | undefined;
  readonly attribute?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** A search that shows what it finds as it finds it. It starts again when what is wanted changes. */
export class EventSearch {
  found = $state.raw<readonly FoundEvent[]>([]);
  progress = $state.raw<SearchProgress | undefined>();
  end = $state.raw<SearchEnd | undefined>();
  error = $state.raw<unknown>();
  running = $state(false);
  /** Events examined by earlier parts of this search. */
  #before = $state(0);
  #control = new AbortController();
  readonly #wanted: () => Wanted | undefined;

  constructor(wanted: () => Wanted | undefined) {
    this.#wanted = wanted;
    $effect(() => {
      const what = wanted();
      this.found = [];
      this.end = undefined;
      this.progress = undefined;
      this.#before = 0;
      if (what === undefined) return;
      void this.#run(what, undefined);
      return () => this.#control.abort();
    });
  }

  get scanned(): number {
    return this.#before + (this.end?.scanned ?? this.progress?.scanned ?? 0);
  }

  async #run(wanted: Wanted, cursor: string | undefined): Promise<void> {
    const control = (this.#control = new AbortController());
    this.running = true;
    this.error = undefined;
    try {
      for await (const line of api.searchEvents({ ...wanted, cursor, limit: 50, signal: control.signal })) {
        if (control.signal.aborted) return;
        if (line.event) this.found = [...this.found, line.event];
        if (line.progress) this.progress = line.progress;
        if (line.end) this.end = line.end;
      }
      if (!this.end && !control.signal.aborted) throw new TypeError("The search was cut off");
    } catch (error) {
      if (!control.signal.aborted) this.error = error;
    }
    if (this.#control === control) this.running = false;
  }

  /** Goes on where the search ended. */
  more(): void {
    const wanted = this.#wanted();
    const cursor = this.end?.next;
    if (!wanted || !cursor || this.running) return;
    this.#before += this.end?.scanned ?? 0;
    this.end = undefined;
    this.progress = undefined;
    void this.#run(wanted, cursor);
  }

  stop(): void {
    this.#control.abort();
    this.running = false;
  }
}
