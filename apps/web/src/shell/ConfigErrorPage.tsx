import { ConfigError } from '../config.ts'

const EXAMPLE = `{
  "apiBaseUrl": "https://api.example.com",
  "chainId": 11155111
}`

/** Shown in place of the app, mostly to an operator who is setting it up. */
export function ConfigErrorPage({ error }: { error: unknown }) {
  const faults = error instanceof ConfigError ? error.faults : ['the configuration could not be read']
  return (
    <main id="main" className="plain-page stack">
      <h1>This app is not configured yet</h1>
      <p>It reads its configuration from a file beside it, and cannot start without:</p>
      <div role="alert">
        <ul>
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      </div>
      <p>
        If you host this app, put a file <code>config.json</code> at its root, such as this one, and load the page
        again. On your own machine <code>npm run dev</code> does it for you.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls on a narrow screen, also by keyboard */}
      <pre className="mono" tabIndex={0}>
        {EXAMPLE}
      </pre>
      <p className="actions">
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Load again
        </button>
      </p>
    </main>
  )
}
