import { SignedInPage } from '../wallet/SignedInPage.tsx'
import { SignCard } from './SignCard.tsx'
import './sign.css'

/** Where a message or typed data is signed. */
export function SignPage() {
  return <SignedInPage title="Sign a message">{(signedIn) => <SignCard {...signedIn} />}</SignedInPage>
}
