import { useState } from 'react'
import { chooseTheme, readTheme } from './theme.ts'

/** Between light and dark; the choice is remembered. */
export function ThemeToggle() {
  const [theme, setTheme] = useState(readTheme)
  const other = theme === 'dark' ? 'light' : 'dark'
  function toggle() {
    chooseTheme(other)
    setTheme(other)
  }
  return (
    <button type="button" className="icon-button" onClick={toggle} aria-label={`Use the ${other} theme`}>
      <svg viewBox="0 0 24 24" aria-hidden="true">
        {theme === 'dark' ? (
          <path d="M12 4V2m0 20v-2m8-8h2M2 12h2m13.7-5.7 1.4-1.4M4.9 19.1l1.4-1.4m11.4 0 1.4 1.4M4.9 4.9l1.4 1.4M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z" />
        ) : (
          <path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z" />
        )}
      </svg>
    </button>
  )
}
