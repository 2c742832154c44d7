/** The parts of a text between line ends and commas that are not empty. */
export function listed(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}
