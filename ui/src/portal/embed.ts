/** What this page tells the page that shows it in a frame. Nothing of it is secret, so it may go to any origin. */
export const framed = window.parent !== window;

type Told = { readonly type: "ready" } | { readonly type: "expired" } | { readonly type: "height"; readonly height: number };

export function tell(message: Told): void {
  if (framed) window.parent.postMessage({ godwit: "portal", ...message }, "*");
}

/** Tells the height of the content whenever it changes. */
export function tellHeight(content: HTMLElement): () => void {
  let last = 0;
  const observer = new ResizeObserver(() => {
    const height = Math.ceil(content.getBoundingClientRect().height);
    if (height === last || height === 0) return;
    last = height;
    tell({ type: "height", height });
  });
  if (framed) observer.observe(content);
  return () => observer.disconnect();
}
