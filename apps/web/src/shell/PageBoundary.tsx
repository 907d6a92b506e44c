import { Component, type ReactNode } from 'react'

type State = { hasFailed: boolean }

/**
 * Catches a page whose script could not be loaded, and what no page expects. React offers a boundary as a class only.
 * Give it a `key`, so that the next page starts again.
 */
export class PageBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { hasFailed: false }

  static getDerivedStateFromError(): State {
    return { hasFailed: true }
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children
    return (
      <section className="plain-page" role="alert">
        <h1>This page could not be shown</h1>
        <p>
          A part of it did not load, or failed. That happens when the connection drops, or just after an update of the
          app.
        </p>
        <p className="actions">
          <button type="button" className="button" onClick={() => window.location.reload()}>
            Load again
          </button>
        </p>
      </section>
    )
  }
}
