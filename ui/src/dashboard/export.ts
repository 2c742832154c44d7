import { ownFetch, problem } from "../lib/api.svelte.ts";
import { say } from "../lib/toast.svelte.ts";
import { sentence } from "../lib/advice.ts";

/** Saves an answer of the server as a file. */
export async function download(path: string, file: string, headers: Record<string, string> = {}): Promise<void> {
  try {
    const response = await ownFetch(path, { headers });
    if (!response.ok) throw await problem(response);
    const url = URL.createObjectURL(await response.blob());
    const link = document.createElement("a");
    link.href = url;
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    say(`${file} was not saved: ${sentence(error).what}`, "bad");
  }
}
