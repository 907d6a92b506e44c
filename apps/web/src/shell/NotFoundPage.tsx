import { Link } from '../router.tsx'

export function NotFoundPage() {
  return (
    <section className="plain-page" aria-labelledby="not-found">
      <h1 id="not-found">There is no page here</h1>
      <p>The address may be mistyped or cut off. Links to proofs look like this:</p>
      <p className="mono">{window.location.origin}/proof/q83vEjRWeJCrze8SNFZ4kA</p>
      <p className="actions">
        <Link to="/" className="button">
          To the wallet
        </Link>
        <Link to="/verify" className="button button-quiet">
          Verify a proof
        </Link>
      </p>
    </section>
  )
}
