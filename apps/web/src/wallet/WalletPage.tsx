import type { WalletInfo } from '@countersign/sdk'
import { useCallback } from 'react'
import { HistoryCard } from '../history/HistoryCard.tsx'
import { useHistory } from '../history/useHistory.ts'
import { useIncoming } from '../incoming/useIncoming.ts'
import { MonitorCard } from '../monitor/MonitorCard.tsx'
import { SendCard } from '../send/SendCard.tsx'
import { AccountCard } from './AccountCard.tsx'
import { SignedInPage } from './SignedInPage.tsx'
import { useBalance } from './useBalance.ts'

/** The wallet, signed in or not. */
export function WalletPage() {
  return <SignedInPage title="Wallet">{(signedIn) => <SignedIn {...signedIn} />}</SignedInPage>
}

function SignedIn({ wallet, onSessionLost }: { wallet: WalletInfo; onSessionLost: () => void }) {
  const balance = useBalance(wallet.address)
  const history = useHistory({ address: wallet.address, onSessionLost })
  const { refresh } = balance
  const incoming = useIncoming({ address: wallet.address, onFound: refresh })
  const { reload } = history
  const { look } = incoming
  const onChanged = useCallback(() => {
    void refresh()
    void reload()
  }, [refresh, reload])
  const onFunded = useCallback(() => {
    void refresh()
    look()
  }, [refresh, look])
  return (
    <div className="wallet-grid">
      <div className="area-account">
        <AccountCard wallet={wallet} balance={balance} onFunded={onFunded} />
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
