/** Importing this module registers `<godwit-portal>`. */
import { defineGodwitPortal } from "./element.js";

export { defineGodwitPortal, type GodwitPortalElement, type RefreshLink } from "./element.js";

defineGodwitPortal();
