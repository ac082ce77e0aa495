"use strict";
// Light or dark theme: the choice of the reader, or else the preference of the system.
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const key = "cafelearn-theme";
  root.classList.add("js");

  // Browsers may disable storage for local files; the choice then lasts until the page is closed.
  let chosen = null;
  try { chosen = localStorage.getItem(key); } catch { chosen = null; }

  function apply() {
    const dark = chosen ? chosen === "dark" : system.matches;
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  }

  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem(key, chosen); } catch { /* storage is disabled */ }
    apply();
  });
  system.addEventListener("change", apply);
  apply();

  // In the navigation, mark the section that is in view.
  const links = new Map(
    [...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main > section")) seen.observe(section);
}
