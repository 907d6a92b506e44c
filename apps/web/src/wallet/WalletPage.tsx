import { HistoryCard } from '../history/HistoryCard.tsx'
import { MonitorCard } from '../monitor/MonitorCard.tsx'
import { SendCard } from '../send/SendCard.tsx'
import { AccountCard, Provenance } from './AccountCard.tsx'
import { OpenSessions } from './OpenSessions.tsx'
import { SignedInPage, type SignedInProps } from './SignedInPage.tsx'
import { useAccount } from './useAccount.ts'

export function WalletPage() {
  return <SignedInPage title="Wallet">{(signedIn) => <SignedIn {...signedIn} />}</SignedInPage>
}

function SignedIn({ wallet, onSessionLost, onSignOut }: SignedInProps) {
  const { address } = wallet
  const { balance, history, incoming, onChanged, onFunded } = useAccount({ address, wallet: address, onSessionLost })
  return (
    <div className="wallet-grid">
      <div className="area-account">
        <AccountCard deposit={{ address }} balance={balance} onFunded={onFunded} title="Your address">
          <Provenance wallet={wallet} />
          <OpenSessions onSignOut={onSignOut} />
        </AccountCard>
      </div>
      <div className="area-send">
        <SendCard wallet={wallet} onChanged={onChanged} onSessionLost={onSessionLost} />
      </div>
      <div className="area-history">
        <HistoryCard address={wallet.address} history={history} incoming={incoming} />
        <MonitorCard address={wallet.address} />
      </div>
    </div>
  )
}
