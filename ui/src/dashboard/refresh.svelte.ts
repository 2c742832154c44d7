import { location, setQuery } from "../lib/router.svelte.ts";

/** Calls a function every so often while the page is seen, unless the address says `refresh=off`. */
export class Refresh {
  constructor(work: () => void, seconds = 10) {
    $effect(() => {
      if (!this.on) return;
      const timer = setInterval(() => {
        if (document.visibilityState === "visible") work();
      }, seconds * 1000);
      return () => clearInterval(timer);
    });
  }

  get on(): boolean {
    return location.query.get("refresh") !== "off";
  }

  toggle(): void {
    setQuery({ refresh: this.on ? "off" : undefined });
  }
}
