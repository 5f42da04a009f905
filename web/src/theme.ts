import { signal } from "@preact/signals";

type Theme = "light" | "dark";

const kKey = "berth-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

// A browser that is to keep nothing throws at the mere name of its storage: then a choice lasts as long as the page.
let choice: string | null = null;
try {
  choice = localStorage.getItem(kKey);
} catch {}

function choose(wanted: Theme | null): void {
  choice = wanted;
  try {
    if (wanted === null) localStorage.removeItem(kKey);
    else localStorage.setItem(kKey, wanted);
  } catch {}
}

/// What is shown: the person's choice, else the system's.
export const theme = signal<Theme>("light");

function apply(): void {
  const said = choice === "light" || choice === "dark" ? choice : null;
  theme.value = said ?? (system.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme.value;
}

export function switchTheme(): void {
  const wanted = theme.peek() === "dark" ? "light" : "dark";
  // Back to what the system has: then it is followed again.
  choose(wanted === (system.matches ? "dark" : "light") ? null : wanted);
  apply();
}

apply();
system.addEventListener("change", apply);
