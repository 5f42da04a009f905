import { signal } from "@preact/signals";

type Theme = "light" | "dark";

const kKey = "berth-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  const text = localStorage.getItem(kKey);
  return text === "light" || text === "dark" ? text : null;
}

/// What is shown: the person's choice, else the system's.
export const theme = signal<Theme>("light");

function apply(): void {
  theme.value = chosen() ?? (system.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme.value;
}

export function switchTheme(): void {
  const wanted = theme.peek() === "dark" ? "light" : "dark";
  // Back to what the system has: then it is followed again.
  if (wanted === (system.matches ? "dark" : "light")) localStorage.removeItem(kKey);
  else localStorage.setItem(kKey, wanted);
  apply();
}

apply();
system.addEventListener("change", apply);
