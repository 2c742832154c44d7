import { tick } from "./time.svelte.ts";

/**
 * What a page reads from the API. The work runs again when state that it reads before its first await changes, and the
 * request under way is given up.
 */
export class Load<T> {
  data = $state.raw<T | undefined>();
  error = $state.raw<unknown>();
  loading = $state(true);
  #runs = $state(0);

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    $effect(() => {
      void this.#runs;
      const control = new AbortController();
      this.loading = true;
      work(control.signal).then(
        (data) => {
          if (control.signal.aborted) return;
          tick();
          this.data = data;
          this.error = undefined;
          this.loading = false;
        },
        (error: unknown) => {
          if (control.signal.aborted) return;
          this.error = error;
          this.loading = false;
        },
      );
      return () => control.abort();
    });
  }

  reload(): void {
    this.#runs++;
  }
}

interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string;
}

/** A read of a list goes on until it has a few rows, or has asked for so many pages more. */
const few = 10;
const most = 20;

/** A list of the API, page by page. */
export class List<T> {
  items = $state.raw<readonly T[]>([]);
  error = $state.raw<unknown>();
  loading = $state(true);
  /** Whether there may be more. */
  more = $state(false);
  #next: string | undefined;
  #runs = $state(0);
  #control = new AbortController();
  readonly #page: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>;

  constructor(page: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>) {
    this.#page = page;
    $effect(() => {
      void this.#runs;
      this.#control = new AbortController();
      void this.#read(undefined, this.#control.signal);
      return () => this.#control.abort();
    });
  }

  async #read(cursor: string | undefined, signal: AbortSignal): Promise<void> {
    this.loading = true;
    try {
      let page = await this.#page(cursor, signal);
      let found = page.items;
      // A page of a filtered list may be short or empty although there are more: then the next ones are read, too.
      for (let i = 0; i < most && found.length < few && page.next_cursor && !signal.aborted; i++) {
        page = await this.#page(page.next_cursor, signal);
        found = [...found, ...page.items];
      }
      if (signal.aborted) return;
      tick();
      this.items = cursor === undefined ? found : [...this.items, ...found];
      this.#next = page.next_cursor || undefined;
      this.more = this.#next !== undefined;
      this.error = undefined;
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
    }
    this.loading = false;
  }

  next(): void {
    if (this.#next !== undefined && !this.loading) void this.#read(this.#next, this.#control.signal);
  }

  reload(): void {
    this.#runs++;
  }
}
