import { useConfig } from '../config.ts'
import { SignedInPage } from '../wallet/SignedInPage.tsx'
import { SignCard } from './SignCard.tsx'
import './sign.css'

/** Where a message or typed data is signed. */
export function SignPage() {
  const { signInDemoUrl } = useConfig()
  return (
    <SignedInPage title="Sign a message">
      {(signedIn) => (
        <>
          <SignCard {...signedIn} />
          {signInDemoUrl === undefined ? null : (
            <p className="fine-print">
              Other sites can ask for a signature too: <a href={signInDemoUrl}>sign in to a demo site with Ethereum</a>.
            </p>
          )}
        </>
      )}
    </SignedInPage>
  )
}
