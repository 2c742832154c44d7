import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// The output is committed: it must not depend on the machine, the time or the folder it is built in.
export default defineConfig({
  base: "/ui/",
  plugins: [svelte({ compilerOptions: { cssHash: ({ name, hash, filename }) => `s-${name}-${hash(filename?.replace(/^.*\/ui\/src\//, "") ?? name)}` } })],
  resolve: { alias: { "@godwit/client": here("../sdk/typescript/src/client/index.ts") } },
  build: {
    target: "es2023",
    outDir: here("../internal/ui/dist"),
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows images from data: URLs, and nothing else
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { pluginTimings: false },
      input: { index: here("index.html"), portal: here("portal.html"), embed: here("../sdk/typescript/src/portal/index.ts") },
      // Pages of others name the file of the portal's element, so its name stays.
      output: { entryFileNames: ({ name }) => (name === "embed" ? "embed.js" : "assets/[name]-[hash].js") },
    },
  },
});
