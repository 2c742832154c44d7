/**
 * The look that an environment gave its portal, as custom properties of CSS. Colours that could not be read on their
 * background are moved towards black or white until they can (WCAG 2.2, 4.5:1).
 */
export interface Palette {
  readonly accent?: string;
  readonly background?: string;
  readonly surface?: string;
  readonly text?: string;
  readonly muted?: string;
  readonly border?: string;
}

export interface Theme {
  readonly light?: Palette;
  readonly dark?: Palette;
  readonly font?: string;
  readonly radius?: number;
  readonly logo?: string;
  readonly favicon?: string;
  readonly words?: { readonly title?: string; readonly endpoints?: string; readonly event_types?: string; readonly deliveries?: string; readonly help_url?: string };
}

type Colour = readonly [number, number, number];
type Full = Required<Palette> & { readonly good: string; readonly warn: string; readonly bad: string };

/** The colours of styles/tokens.css. */
const defaults: { readonly light: Full; readonly dark: Full } = {
  light: { accent: "#1a5a8a", background: "#f7f8f9", surface: "#ffffff", text: "#1a1f24", muted: "#56616b", border: "#d5dade", good: "#1c6b3a", warn: "#7d5100", bad: "#a52822" },
  dark: { accent: "#7cc0f0", background: "#14171a", surface: "#1b1f23", text: "#e6e9ec", muted: "#a3adb6", border: "#353c43", good: "#7bd29b", warn: "#e9bd5a", bad: "#f49a92" },
};

function parse(text: string): Colour | undefined {
  const m = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  return m ? [parseInt(m[1]!, 16), parseInt(m[2]!, 16), parseInt(m[3]!, 16)] : undefined;
}

const print = (c: Colour): string => `#${c.map((v) => Math.round(v).toString(16).padStart(2, "0")).join("")}`;

/** share of b in a. */
const mix = (a: Colour, b: Colour, share: number): Colour => [0, 1, 2].map((i) => a[i]! + (b[i]! - a[i]!) * share) as unknown as Colour;

function luminance(c: Colour): number {
  const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Colour, b: Colour): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const black: Colour = [0, 0, 0];
const white: Colour = [255, 255, 255];
const worst = (c: Colour, on: readonly Colour[]): number => Math.min(...on.map((b) => contrast(c, b)));

/** The colour, or the nearest to it that can be read on all of the backgrounds. */
function readable(c: Colour, on: readonly Colour[], least = 4.6): Colour {
  if (worst(c, on) >= least) return c;
  const target = worst(black, on) > worst(white, on) ? black : white;
  for (let share = 0.05; share < 1; share += 0.05) {
    const moved = mix(c, target, share);
    if (worst(moved, on) >= least) return moved;
  }
  return target;
}

function shades(palette: Palette, base: Full): Record<string, Colour> {
  const own = (name: keyof Palette): Colour => parse(palette[name] ?? "") ?? parse(base[name])!;
  const surface = own("surface");
  let background = own("background");
  // No text can be read on a dark and on a light ground: then the background is as the surface.
  if (luminance(background) > 0.18 !== luminance(surface) > 0.18) background = surface;
  const towards = contrast(black, surface) > contrast(white, surface) ? black : white;
  const text = readable(own("text"), [background, surface], 7);
  const raised = mix(surface, towards, 0.06);
  const grounds = [background, surface, raised];
  const plainAccent = own("accent");
  const accentSoft = mix(surface, plainAccent, 0.12);
  const accent = readable(plainAccent, [...grounds, accentSoft]);
  const shade: Record<string, Colour> = {
    bg: background,
    surface,
    raised,
    border: own("border"),
    "border-strong": readable(mix(surface, text, 0.5), grounds, 3.1),
    text: readable(text, grounds),
    muted: readable(own("muted"), grounds),
    accent,
    "accent-soft": accentSoft,
    "on-accent": contrast(black, accent) > contrast(white, accent) ? black : white,
  };
  for (const name of ["good", "warn", "bad"] as const) {
    const plain = parse(base[name])!;
    const soft = mix(surface, plain, 0.12);
    shade[`${name}-soft`] = soft;
    shade[name] = readable(plain, [...grounds, soft]);
  }
  return shade;
}

/** The custom properties of a theme; empty if it changes none. */
export function properties(theme: Theme): Record<string, string> {
  const set: Record<string, string> = {};
  if (Object.keys(theme.light ?? {}).length + Object.keys(theme.dark ?? {}).length > 0) {
    const light = shades(theme.light ?? {}, defaults.light);
    const dark = shades(theme.dark ?? {}, defaults.dark);
    for (const [name, colour] of Object.entries(light)) set[`--${name}`] = `light-dark(${print(colour)}, ${print(dark[name]!)})`;
  }
  if (theme.font) set["--font"] = theme.font;
  if (theme.radius !== undefined) set["--radius"] = `${theme.radius}px`;
  return set;
}

/** Gives an element, and all within it, the look. */
export function applyLook(element: HTMLElement, theme: Theme): void {
  for (const name of [...element.style]) if (name.startsWith("--")) element.style.removeProperty(name);
  for (const [name, value] of Object.entries(properties(theme))) element.style.setProperty(name, value);
}

/** Images come as data: URLs of these kinds alone. */
export function image(url: string | undefined): string | undefined {
  return url !== undefined && /^data:image\/(png|svg\+xml);base64,[A-Za-z0-9+/=]+$/.test(url) ? url : undefined;
}

export function applyFavicon(url: string | undefined): void {
  const icon = image(url);
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon === undefined || link === null) return;
  link.type = icon.startsWith("data:image/png") ? "image/png" : "image/svg+xml";
  link.href = icon;
}
