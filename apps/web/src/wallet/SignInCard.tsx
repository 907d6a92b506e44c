import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { useProviders } from './useProviders.ts'

export type SignInCardProps = {
  /** Without a provider: the default one. */
  onSignIn: (options?: { provider: string }) => void
}

/** One button for each way to sign in. */
export function SignInCard({ onSignIn }: SignInCardProps) {
  const providers = useProviders(useConfig().apiBaseUrl)
  return (
    <section className="card sign-in" aria-label="Sign in">
      {providers === null ? (
        <>
          <p className="visually-hidden" role="status">
            Looking for the ways to sign in
          </p>
          <div className="skeleton sign-in-skeleton" aria-hidden="true" />
        </>
      ) : null}
      {providers?.length === 0 ? (
        <button type="button" className="button button-large" onClick={() => onSignIn()}>
          Sign in
        </button>
      ) : null}
      {providers?.map(({ id, name, icon }) => (
        <button
          key={id}
          type="button"
          className={`button button-large ${providers.length > 1 ? 'button-quiet' : ''}`}
          onClick={() => onSignIn({ provider: id })}
        >
          {icon === null ? null : <img src={icon} alt="" width="24" height="24" />}
          Continue with {name}
        </button>
      ))}
      <p className="fine-print">
        Signing in makes your wallet, if you have none yet. There is nothing to install or write down.
      </p>
      <p className="fine-print">
        Only here to check? <Link to="/verify">Verify a proof</Link>
      </p>
    </section>
  )
}
