/** Light, dark, or as the system says. The choice is no secret and stays in the browser. */
export type Theme = "light" | "dark" | "system";

const key = "godwit-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // a frame without storage
  }
}

let current = $state<Theme>("system");

export const theme = {
  get value(): Theme {
    return current;
  },
};

function apply(value: Theme): void {
  current = value;
  if (value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
}

export function startTheme(fixed?: Theme): void {
  apply(fixed ?? stored());
}

export function setTheme(value: Theme): void {
  apply(value);
  try {
    localStorage.setItem(key, value);
  } catch {
    // The choice lasts as long as the page.
  }
}
