import { ConfigError } from '../config.ts'

const EXAMPLE = `{
  "apiBaseUrl": "https://api.example.com",
  "chainId": 11155111
}`

/** Shown instead of the app, mostly to an operator. */
export function ConfigErrorPage({ error }: { error: unknown }) {
  const faults = error instanceof ConfigError ? error.faults : ['the configuration couldn’t be read']
  return (
    <main id="main" className="plain-page stack">
      <h1>This app isn’t configured yet</h1>
      <p>The app couldn’t load its configuration:</p>
      <div role="alert">
        <ul>
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      </div>
      <p>
        If you host this app, add a <code>config.json</code> file at its root, such as the one below, then reload the
        page. On your own machine, <code>npm run dev</code> creates it.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls on a narrow screen, also by keyboard */}
      <pre className="mono" tabIndex={0}>
        {EXAMPLE}
      </pre>
      <p className="actions">
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Reload
        </button>
      </p>
    </main>
  )
}
