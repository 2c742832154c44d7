/**
 * Programs that verify the deliveries of one endpoint, made from its settings. A secret is never part of a program: it
 * comes from an environment variable.
 */
import { goProgram } from "./go.ts";
import { pythonProgram } from "./python.ts";
import { shellProgram } from "./shell.ts";
import { typescriptProgram } from "./typescript.ts";
import type { Profile, Settings } from "./settings.ts";

export type { Key, Profile, Settings } from "./settings.ts";

export interface Language {
  readonly name: string;
  readonly label: string;
  /** Name of the program's file. */
  readonly file: string;
  readonly program: (settings: Settings) => string;
}

export const languages: readonly Language[] = [
  { name: "go", label: "Go", file: "main.go", program: goProgram },
  { name: "typescript", label: "TypeScript", file: "receive.ts", program: typescriptProgram },
  { name: "python", label: "Python", file: "receive.py", program: pythonProgram },
  { name: "shell", label: "Shell", file: "verify.sh", program: shellProgram },
];

export function isProfile(name: string): name is Profile {
  return name === "eds" || name === "ojs" || name === "cybercube" || name === "standard-webhooks";
}
