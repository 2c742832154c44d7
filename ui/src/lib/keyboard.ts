/** Whether a key press belongs to a field or an open dialog rather than to the page. */
export function typing(event: KeyboardEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.altKey) return true;
  const at = event.target as HTMLElement | null;
  if (at?.closest("dialog[open]")) return true;
  return at !== null && (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName));
}

/** Puts the cursor into the page's search field. */
export function search(): boolean {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  field?.focus();
  field?.select();
  return field !== null;
}
