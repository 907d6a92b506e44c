import { useState } from 'react'
import { ConfigContext, type WebConfig } from './config.ts'
import { Link, parseRoute, type Route, usePath } from './router.tsx'
import { Shell } from './shell/Shell.tsx'
import { createLazyPart } from './ui/createLazyPart.tsx'
import { type Sessions, SessionsContext, useWarningBeforeLeaving } from './wallet/session.ts'

const loadVaults = () => import('./vaults/VaultPages.tsx')

/** Each page has its own script, so a visitor who verifies a proof doesn't load the wallet. */
const loaders = {
  wallet: () => import('./wallet/WalletPage.tsx'),
  proof: () => import('./proof/ProofPage.tsx'),
  sign: () => import('./sign/SignPage.tsx'),
  verify: () => import('./verifyPage/VerifyPage.tsx'),
  vaults: loadVaults,
  new_vault: loadVaults,
  vault: loadVaults,
  approve: loadVaults,
  passkey: loadVaults,
  not_found: () => undefined,
} satisfies Record<Route['page'], () => unknown>

const skeleton = <PageSkeleton />
const WalletPage = createLazyPart(() => loaders.wallet().then((module) => module.WalletPage), skeleton)
const ProofPage = createLazyPart(() => loaders.proof().then((module) => module.ProofPage), skeleton)
const SignPage = createLazyPart(() => loaders.sign().then((module) => module.SignPage), skeleton)
const VerifyPage = createLazyPart(() => loaders.verify().then((module) => module.VerifyPage), skeleton)
const VaultPages = createLazyPart(() => loadVaults().then((module) => module.VaultPages), skeleton)

/** Starts loading a page's script while the configuration loads. Failures are reported when the page is shown. */
export function preloadPage(path: string): void {
  void Promise.resolve(loaders[parseRoute(path).page]()).catch(() => {})
}

export function App({ config }: { config: WebConfig }) {
  const path = usePath()
  const [sessions] = useState((): Sessions => new Map())
  useWarningBeforeLeaving(sessions)
  return (
    <ConfigContext value={config}>
      <SessionsContext value={sessions}>
        <Shell>
          <Page key={path} route={parseRoute(path)} />
        </Shell>
      </SessionsContext>
    </ConfigContext>
  )
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case 'wallet':
      return <WalletPage />
    case 'proof':
      return <ProofPage slug={route.slug} />
    case 'sign':
      return <SignPage />
    case 'verify':
      return <VerifyPage />
    case 'vaults':
    case 'new_vault':
    case 'vault':
    case 'approve':
    case 'passkey':
      return <VaultPages route={route} />
    case 'not_found':
      return <NotFoundPage />
  }
}

/** Shown while the page's script loads. */
function PageSkeleton() {
  return (
    <div className="card">
      <p className="visually-hidden" role="status">
        Loading the page…
      </p>
      <div className="skeleton skeleton-line" />
      <div className="skeleton skeleton-title" />
      <div className="skeleton skeleton-block" />
    </div>
  )
}

function NotFoundPage() {
  return (
    <section className="plain-page stack" aria-labelledby="not-found">
      <h1 id="not-found">Page not found</h1>
      <p>Check the address. A link to a proof looks like this:</p>
      <p className="mono">{window.location.origin}/proof/q83vEjRWeJCrze8SNFZ4kA</p>
      <p className="actions">
        <Link to="/" className="button">
          Go to your wallet
        </Link>
        <Link to="/verify" className="button button-quiet">
          Verify a proof
        </Link>
      </p>
    </section>
  )
}
