// Before the first paint, so that a page chosen dark does not flash white. A file and not inline, for strict content policies.
try {
  const theme = localStorage.getItem('countersign:theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Storage is forbidden: the system's setting holds.
}
