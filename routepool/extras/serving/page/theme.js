// Light, dark, or as the system says; remembered by the browser where it may remember.

const NAMES = { "": "System colours", light: "Light", dark: "Dark" };
const STORED = "routepool-theme";

export function followTheme(button) {
  const names = Object.keys(NAMES);
  let theme = remembered();
  const apply = () => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = NAMES[theme];
    button.setAttribute("aria-label", `Colours: ${NAMES[theme]}; switch`);
  };
  button.addEventListener("click", () => {
    theme = names[(names.indexOf(theme) + 1) % names.length];
    remember(theme);
    apply();
  });
  apply();
}

function remembered() {
  try {
    const theme = localStorage.getItem(STORED);
    return theme in NAMES ? theme : "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

function remember(theme) {
  try {
    localStorage.setItem(STORED, theme);
  } catch {
    // The browser keeps nothing.
  }
}
