import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    // Tables are laid out as blocks where the page is narrow, which takes their roles away unless they are said.
    warningFilter: (warning) => warning.code !== "a11y_no_redundant_roles",
  },
};
