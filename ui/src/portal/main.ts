import "../styles/index.ts";
import { mount } from "svelte";
import { startRouter } from "../lib/router.svelte.ts";
import { startTheme } from "../lib/theme.svelte.ts";
import App from "./App.svelte";

startTheme();
startRouter("/portal");
mount(App, { target: document.getElementById("app")! });
