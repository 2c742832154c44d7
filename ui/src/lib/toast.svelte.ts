export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: "good" | "bad";
}

let list = $state.raw<readonly Toast[]>([]);
let last = 0;

export const toasts = {
  get list(): readonly Toast[] {
    return list;
  },
};

/** Says for a moment what happened. What a reader must not miss belongs on the page. */
export function say(text: string, kind: Toast["kind"] = "good"): void {
  const toast = { id: ++last, text, kind };
  list = [...list, toast].slice(-4);
  setTimeout(() => dismiss(toast.id), kind === "bad" ? 12_000 : 5_000);
}

export function dismiss(id: number): void {
  list = list.filter((t) => t.id !== id);
}

export async function copy(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(what);
  } catch {
    say("The browser does not let this page copy. Select the text and copy it by hand.", "bad");
  }
}
