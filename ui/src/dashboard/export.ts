import { ownFetch, problem } from "../lib/api.svelte.ts";
import { save } from "../lib/save.ts";
import { say } from "../lib/toast.svelte.ts";
import { sentence } from "../lib/advice.ts";

/** Saves an answer of the server as a file. */
export async function download(path: string, file: string, headers: Record<string, string> = {}): Promise<void> {
  try {
    const response = await ownFetch(path, { headers });
    if (!response.ok) throw await problem(response);
    save(await response.blob(), file);
  } catch (error) {
    say(`${file} was not saved: ${sentence(error).what}`, "bad");
  }
}
