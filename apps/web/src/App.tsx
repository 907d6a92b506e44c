import { lazy, Suspense, useState } from 'react'
import { ConfigContext, type WebConfig } from './config.ts'
import { parseRoute, type Route, usePath } from './router.tsx'
import { type SendSession, SendSessionsContext } from './send/sendSession.ts'
import { NotFoundPage } from './shell/NotFoundPage.tsx'
import { PageBoundary } from './shell/PageBoundary.tsx'
import { Shell } from './shell/Shell.tsx'
import { type SignSession, SignSessionsContext, useWarningBeforeLoss } from './sign/signSession.ts'

/** One script for each page: who comes to verify a proof does not load the wallet, nor the other way round. */
const loaders = {
  wallet: () => import('./wallet/WalletPage.tsx'),
  proof: () => import('./proof/ProofPage.tsx'),
  sign: () => import('./sign/SignPage.tsx'),
  verify: () => import('./verifyPage/VerifyPage.tsx'),
  not_found: () => undefined,
} satisfies Record<Route['page'], () => unknown>

const WalletPage = lazy(() => loaders.wallet().then((module) => ({ default: module.WalletPage })))
const ProofPage = lazy(() => loaders.proof().then((module) => ({ default: module.ProofPage })))
const SignPage = lazy(() => loaders.sign().then((module) => ({ default: module.SignPage })))
const VerifyPage = lazy(() => loaders.verify().then((module) => ({ default: module.VerifyPage })))

/** Starts loading the script of a page, beside the configuration. A failure is reported when the page is shown. */
export function preloadPage(path: string): void {
  void Promise.resolve(loaders[parseRoute(path).page]()).catch(() => {})
}

/** The whole app, once it is configured. */
export function App({ config }: { config: WebConfig }) {
  const path = usePath()
  const [sendSessions] = useState(() => new Map<string, SendSession>())
  const [signSessions] = useState(() => new Map<string, SignSession>())
  useWarningBeforeLoss(signSessions)
  return (
    <ConfigContext value={config}>
      <SendSessionsContext value={sendSessions}>
        <SignSessionsContext value={signSessions}>
          <Shell>
            <PageBoundary key={path}>
              <Suspense fallback={<LoadingPage />}>
                <Page route={parseRoute(path)} />
              </Suspense>
            </PageBoundary>
          </Shell>
        </SignSessionsContext>
      </SendSessionsContext>
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
    case 'not_found':
      return <NotFoundPage />
  }
}

function LoadingPage() {
  return (
    <p className="loading-page" role="status">
      Loading …
    </p>
  )
}
