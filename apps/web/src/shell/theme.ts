/** What the visitor chose; without a choice the system's setting holds. */
export type Theme = 'light' | 'dark'

/** Read by `public/theme.js` too, before the first paint. */
const KEY = 'countersign:theme'

/** What is shown now. */
export function readTheme(): Theme {
  const { theme } = document.documentElement.dataset
  if (theme === 'light' || theme === 'dark') return theme
  return window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

export function chooseTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme
  try {
    window.localStorage.setItem(KEY, theme)
  } catch {
    // Storage is forbidden: the choice holds until the page is left.
  }
}
