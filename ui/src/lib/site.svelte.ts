let name = $state("Godwit");

/** The name behind the titles of pages. */
export const site = {
  get name(): string {
    return name;
  },
};

export function nameSite(text: string): void {
  name = text;
}
