import "../styles/index.ts";
import { mount } from "svelte";
import { forCustomers } from "../lib/advice.ts";
import { startRouter } from "../lib/router.svelte.ts";
import { startTheme } from "../lib/theme.svelte.ts";
import App from "./App.svelte";

// /portal/{environment}/…: the server must know the environment to say who may frame the page.
const base = /^\/portal\/env_[^/]+/.exec(window.location.pathname)?.[0] ?? "/portal";

forCustomers();
startTheme("system");
startRouter(base);
mount(App, { target: document.getElementById("app")! });
